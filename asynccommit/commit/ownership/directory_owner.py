"""The owner of a job directory whose name is ambiguous.

Hadoop before 3.4.1 has the job ``n7`` in ``_temporary/manifest_n7``, which is also the directory of
a job ``manifest_n7``. What is in it tells: its commit record, or else the manifests. Where nothing
is in it yet it counts as what its name says. Jobs of FileOutputCommitter share directories and are
identified by the ids of their tasks, which two job ids can have in common.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.claims import is_own
from asynccommit.commit.hints import job_command
from asynccommit.commit.layouts.file_output import FileLayout, is_number
from asynccommit.commit.layouts.layout import OLDER, RECORD, Layout
from asynccommit.errors import (
    ExistsError,
    ManifestError,
    NotFoundError,
    OptionError,
    PreconditionError,
    RejectedError,
)
from asynccommit.formats.commit_record import MAX_RECORD_BYTES, decode_record
from asynccommit.formats.manifest import SUFFIX, decode_manifest
from asynccommit.options.job import MAX_MANIFEST_BYTES
from asynccommit.stores.base import Info, Store
from asynccommit.stores.tree import list_if_there

_LOOKED_AT = 3
"""Maximum number of manifests to read until one can be decoded."""

L = TypeVar("L", bound=Layout)


async def as_found(store: Store, layout: L) -> L:
    """Return the layout of the job that owns the directory of ``layout``."""
    name = layout.job_id
    if layout.prefix or layout.shared or not name.startswith(OLDER) or name == OLDER:
        return layout
    if await _owner(store, layout.job_dir) != name.removeprefix(OLDER):
        return layout
    return replace(layout, job_id=name.removeprefix(OLDER), prefix=OLDER)


async def find_layout(run: CommitContext) -> CommitContext:
    """Return ``run`` with the layout of older Hadoop if the job has it.

    Raises ``PreconditionError`` if the job's directory is a link, or another job's.
    """
    if await is_own(run, run.layout):
        await _refuse_older(run)
        return run
    if run.layout.shared:
        await refuse_alias(run)
        return run
    older = run.layout.older()
    if not await is_own(run, older):
        return run
    named = replace(older, job_id=f"{OLDER}{older.job_id}", prefix="")
    found = await as_found(run.store, named)
    if found.prefix:
        return replace(run, layout=older).acts()
    if await _owner(run.store, named.job_dir) is None:
        run.warn(
            f"{named.job_dir} was kept: nothing in it tells whether it belongs to this job, as "
            f"written by Hadoop before 3.4.1, or to another: {job_command('abort', named)}"
        )
    return run


async def _refuse_older(run: CommitContext) -> None:
    found = await as_found(run.store, run.layout)
    if found.prefix != run.layout.prefix:
        text = f"belongs to job {found.job_id}, as written by Hadoop before 3.4.1: name that job"
        raise PreconditionError("list", run.layout.job_dir, text)


async def refuse_taken(run: CommitContext) -> None:
    """Refuse to set up a job in a directory of another job.

    Raises ``PreconditionError``, ``ExistsError``.
    """
    if run.layout.shared:
        await refuse_alias(run)
    elif run.layout.job_id.startswith(OLDER):
        await _refuse_older(run)


async def refuse_alias(run: CommitContext) -> None:
    """Refuse a job of FileOutputCommitter whose task ids are in use.

    An ended job does not count. Raises ``ExistsError``.
    """
    layout = run.layout
    if not isinstance(layout, FileLayout):
        return
    for info in await list_if_there(run.store, layout.temporary):
        name = _name(info)
        if not info.is_dir or is_number(name) or name == layout.job_id:
            continue
        with suppress(OptionError):  # no name of a job
            other = FileLayout(layout.dest, name)
            if other.run_id == layout.run_id and await _is_shared(run.store, info.path):
                text = (
                    f"job {name} has tasks with the ids of this job's tasks: give this job "
                    "another id"
                )
                raise ExistsError("mkdir", info.path, text)


async def _is_shared(store: Store, job_dir: str) -> bool:
    """Return whether a job directory belongs to FileOutputCommitter.

    The tasks of such a job are elsewhere.
    """
    for attempt in await list_if_there(store, job_dir):
        if attempt.is_dir and _name(attempt).isdigit():
            inside = {_name(info) for info in await list_if_there(store, attempt.path)}
            if not inside & {"manifests", "tasks"}:
                return True
    return False


async def _owner(store: Store, job_dir: str) -> str | None:
    """Return the id of the job that wrote ``job_dir``; ``None`` if unknown."""
    attempts = [info for info in await list_if_there(store, job_dir) if info.is_dir]
    for attempt in attempts:
        said = await _recorded(store, f"{attempt.path}/{RECORD}")
        if said is not None:
            return said
    for attempt in attempts:
        listing = await list_if_there(store, f"{attempt.path}/manifests")
        manifests = [info.path for info in listing if info.path.endswith(SUFFIX)]
        for path in manifests[:_LOOKED_AT]:
            with suppress(ManifestError, NotFoundError, PreconditionError, RejectedError):
                return decode_manifest(await store.get(path, MAX_MANIFEST_BYTES), path).job_id
    return None


async def _recorded(store: Store, path: str) -> str | None:
    with suppress(ManifestError, NotFoundError, PreconditionError, RejectedError):
        return decode_record(await store.get(path, MAX_RECORD_BYTES), path).job_id
    return None


def _name(info: Info) -> str:
    return info.path.rpartition("/")[2]

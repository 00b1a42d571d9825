"""This job's part of directories that FileOutputCommitter shares.

Hadoop deletes all of ``_temporary`` when one of the jobs ends, and the others lose their work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace

from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.own_tasks import _attempts, _name, own_tasks
from asynccommit.commit.layouts.file_output import FileLayout, is_number, job_of_task
from asynccommit.commit.layouts.layout import TEMPORARY, Layout
from asynccommit.errors import ExistsError, NotFoundError, OptionError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Store
from asynccommit.stores.tree import is_there, list_if_there, remove_directory, remove_tree, walk
from asynccommit.stores.urls import Address


async def find_jobs(store: Store, dest: Address) -> dict[FileLayout, int]:
    """Return the jobs with tasks here, and their committed tasks.

    Raises ``StoreError``.
    """
    found: dict[FileLayout, int] = {}
    names = await _own_names(store, dest)
    for place in await _attempts(store, Layout(dest, "any")):
        number = int(_name(place))
        for path in [place, f"{place}/{TEMPORARY}"]:
            for info in await list_if_there(store, path):
                job_id = job_of_task(_name(info.path)) if info.is_dir else None
                if job_id is not None:
                    layout = FileLayout(dest, job_id, number)
                    layout = replace(layout, job_id=names.get(layout.run_id, job_id))
                    found.setdefault(layout, 0)
                    found[layout] += path == place
    return found


async def _own_names(store: Store, dest: Address) -> dict[str, str]:
    """Return the ids of jobs with own directories, by task prefix.

    Only of a job of ours is the id another than that of its tasks.
    """
    names: dict[str, str] = {}
    for info in await list_if_there(store, Layout(dest, "any").temporary):
        with suppress(OptionError):  # no name of ours
            if info.is_dir and not is_number(_name(info.path)):
                layout = FileLayout(dest, _name(info.path))
                names[layout.run_id] = layout.job_id
    return names


async def holds_files(run: CommitContext) -> bool:
    """Return whether this job's task directories contain files.

    Directories of application attempts up to this one are examined.
    """
    for info in await own_tasks(run, until=run.layout.attempt):
        async for below in walk(run.store, info.path):
            if not below.is_dir:
                return True
    return False


async def delete_own(run: CommitContext) -> None:
    """Delete the directories of this job's tasks, in all attempts."""
    if not run.layout.shared:
        return
    own = await own_tasks(run)
    run.meter.total = len(own) + 1

    async def delete(info: Info) -> None:
        with suppress(NotFoundError):
            await remove_tree(run.store, info.path)
        run.meter.step()

    await for_each(own, delete, workers=run.workers)


async def take_own(run: CommitContext, place: str) -> bool:
    """Move this job's task directories, up to this attempt's.

    Each is gone in one moment: a commit that begins meanwhile sees that one is missing. Returns
    whether there were some.
    """
    own = await own_tasks(run, until=run.layout.attempt) if run.layout.shared else []
    if not own:
        return False
    await run.store.mkdir(f"{place}/tasks")

    async def take(info: Info) -> None:
        number = info.path.removeprefix(f"{run.layout.temporary}/").partition("/")[0]
        with suppress(NotFoundError):
            await run.store.rename(info.path, f"{place}/tasks/{number}-{_name(info.path)}")

    await for_each(own, take, workers=run.workers)
    return True


async def is_aborted(run: CommitContext, sources: Collection[str]) -> bool:
    """Return whether an abort is in progress or has taken one of ``sources``.

    In this order: an abort that has not renamed the job's own directory by now finds the record;
    one that has ended has taken the tasks before.
    """
    if await is_there(run.store, run.layout.ended("aborted")):
        return True
    there = {_name(info.path) for info in await list_if_there(run.store, run.layout.committed_dir)}
    cut = len(run.layout.sources_dir) + 1
    return not {path[cut:].partition("/")[0] for path in sources} <= there


def identity_of(info: Info) -> str:
    """Return the identity of a committed task's directory."""
    return info.etag or str(info.modified)


async def refuse_replaced(run: CommitContext, read: Mapping[str, str | None]) -> None:
    """Refuse a commit if a task's output was replaced since.

    From then on no task of ours takes another's place.

    Args:
        run: the commit under way.
        read: path of each task's directory -> its identity when it was read.

    Raises ``PreconditionError``.
    """
    there = await list_if_there(run.store, run.layout.committed_dir)
    now = {info.path: identity_of(info) for info in there}
    for path, identity in read.items():
        if now.get(path) != identity:
            text = "another attempt of the task committed as the job commit began: commit it again"
            raise PreconditionError("rename", path, text)


async def remove_shared(run: CommitContext) -> None:
    """Remove the empty directories of application attempts."""
    for place in await _attempts(run.store, run.layout):
        with suppress(ExistsError, NotFoundError, PreconditionError):
            with suppress(NotFoundError):
                await remove_directory(run.store, f"{place}/{TEMPORARY}")
            await remove_directory(run.store, place)

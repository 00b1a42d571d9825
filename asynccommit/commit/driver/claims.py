"""Claim a job or task attempt at setup: exactly one process succeeds.

On stores with directories, creating a new directory is one atomic request. On other stores, a small
file is written that must not exist yet. Both contain a token or an id, so that a request that is
repeated because its answer was lost recognizes its own result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import cast

from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.drafts import discard, draft, put_drafted
from asynccommit.commit.layouts.layout import Layout
from asynccommit.errors import (
    ExistsError,
    ManifestError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StoreError,
)
from asynccommit.formats.job_owner import (
    MAX_JOB_OWNER_BYTES,
    JobOwner,
    decode_job_owner,
    encode_job_owner,
)
from asynccommit.runtime.concurrency import together
from asynccommit.stores.base import DirectoryStore, Info, Kind, Store
from asynccommit.stores.tree import is_there
from asynccommit.stores.unchanged import refuse_renumbering

_JOB = "this job attempt exists already: use another id"
_TASK = "this task attempt exists already: use another id"
_MAX_CLAIM = 1024

# --- a job -----------------------------------------------------------------------------------


async def look_first(run: CommitContext, store: Store) -> bool:
    """Return whether the destination is missing.

    Raises ``ExistsError`` if the job attempt is found to exist, and ``PreconditionError`` if the
    destination is a file, or a link is in the place of the job directory.
    """
    missing = False

    async def look() -> None:
        nonlocal missing
        missing = await is_missing(run.store, run.layout.dest.path)

    if run.store.traits.links:
        await together(look, lambda: is_own(run, run.layout))
    elif store.traits.directories:
        await look()  # the directory of the attempt is asked for by making it
    else:
        await together(look, lambda: refuse_existing(store, run.layout.attempt_dir, _JOB))
    return missing


async def claim_job(run: CommitContext, store: Store, owner: JobOwner) -> None:
    """Create the directories of a job attempt, and write its owner file.

    Raises ``ExistsError`` if another process has made them, or does so now.
    """
    layout = run.layout
    if not store.traits.directories:
        makes = [lambda path=path: store.mkdir(path) for path in layout.setup_dirs]
        await together(*makes, lambda: write_owner(store, layout.job_owner, owner))
        return
    places = [path for path in layout.setup_dirs if path != layout.attempt_dir]

    async def make() -> None:
        try:
            await cast(DirectoryStore, store).mkdir_new(layout.attempt_dir)
        except ExistsError as error:
            raise ExistsError(error.op, error.path, _JOB) from error
        for path in places:
            await store.mkdir(path)

    await _make_and_own(store, layout, owner, make)


async def take_owner(store: Store, layout: Layout, owner: JobOwner) -> None:
    """Write the owner file of a job that another process has set up.

    Raises ``ExistsError`` if another owner's file exists.
    """

    async def make() -> None:  # Hadoop's committers make less than ours
        await store.mkdir(layout.attempt_dir)

    if store.traits.directories:
        await _make_and_own(store, layout, owner, make)
    else:
        await write_owner(store, layout.job_owner, owner)


async def _make_and_own(
    store: Store, layout: Layout, owner: JobOwner, make: Callable[[], Awaitable[None]]
) -> None:
    """Make directories, with the draft of the owner file written meanwhile."""
    data, ahead = encode_job_owner(owner), list[Info | None]()

    async def write_ahead() -> None:
        ahead.append(await draft(store, layout, data))

    try:
        await together(make, write_ahead)
    except StoreError:
        for written in ahead:
            await discard(store, written)
        raise
    await _place_owner(store, layout, data, *ahead)


async def _place_owner(store: Store, layout: Layout, data: bytes, ahead: Info | None) -> None:
    """Put the owner file of a job that was just set up in place."""
    if ahead is not None:
        with suppress(StoreError):  # it is written again, and the error reported
            await put_drafted(store, layout, layout.job_owner, data, ahead)
            return
    await _write_owner(store, layout.job_owner, data)


async def setup_id(store: Store, path: str) -> str | None:
    """Return the unique id of a job's setup; ``None`` if it has none.

    ``path`` is that of the job's owner file. Hadoop's committers write none.
    """
    try:
        return decode_job_owner(await store.get(path, MAX_JOB_OWNER_BYTES), path).owner.id
    except (NotFoundError, ManifestError):
        return None


async def write_owner(store: Store, path: str, owner: JobOwner) -> None:
    """Write a job's owner file.

    Raises ``ExistsError`` if another owner's file exists.
    """
    await _write_owner(store, path, encode_job_owner(owner))


async def _write_owner(store: Store, path: str, data: bytes) -> None:
    try:
        written = await put_new(store, path, data, MAX_JOB_OWNER_BYTES)
    except ExistsError as error:
        raise ExistsError(error.op, path.rpartition("/")[0], _JOB) from error
    if written is not None:
        await refuse_renumbering(store, written)


# --- a task ----------------------------------------------------------------------------------


async def claim_task(
    store: Store, directory: str, claim: str, name: str, *, base: str | None
) -> None:
    """Create the directory of a task attempt, which must not exist.

    Args:
        store: where it is.
        directory: of the attempt.
        claim: a file that stands for it where a directory cannot be claimed.
        name: unlike that of any other setup.
        base: where the attempt writes: the directory itself or one below it, ``None`` if nowhere.

    Raises ``ExistsError`` if it exists already, or another process is creating it.
    """
    if store.traits.directories:
        try:
            await cast(DirectoryStore, store).mkdir_new(directory)
        except ExistsError as error:
            raise ExistsError(error.op, error.path, _TASK) from error
        if base not in (None, directory):
            await store.mkdir(base)
        return
    await refuse_existing(store, directory, _TASK)
    makes = [] if base is None else [lambda: store.mkdir(base)]
    try:
        await together(lambda: put_new(store, claim, name.encode(), _MAX_CLAIM), *makes)
    except ExistsError as error:
        raise ExistsError(error.op, directory, _TASK) from error


# --- parts -----------------------------------------------------------------------------------


async def put_new(store: Store, path: str, data: bytes, limit: int) -> Info | None:
    """Write a file whose content no other process writes.

    Returns the store's answer, or ``None`` if that was lost. Raises ``ExistsError`` if another
    writer's file exists, ``OutcomeUnknownError`` if that is unknown.
    """
    try:
        return await store.put(path, data, overwrite=False)
    except (ExistsError, OutcomeUnknownError) as error:
        try:
            there = await store.get(path, limit)
        except NotFoundError:
            raise error from None
        if there != data:
            raise ExistsError("put", path, "another process was faster") from error
        return None


async def refuse_existing(store: Store, path: str, text: str) -> None:
    """Raise ``ExistsError`` if something is at ``path``."""
    if await is_there(store, path):
        raise ExistsError("mkdir", path, text)


async def is_missing(store: Store, path: str) -> bool:
    """Return whether nothing is at ``path``; a file is an error.

    Raises ``PreconditionError`` for a file.

    Where files and directories of one name can be side by side, nothing else would refuse it.
    """
    try:
        info = await store.head(path)
    except NotFoundError:
        return True
    if info.kind is Kind.FILE:
        raise PreconditionError("mkdir", path, "it is a file, not a directory")
    return False


async def is_own(run: CommitContext, layout: Layout) -> bool:
    """Return whether the job has a directory.

    Raises ``PreconditionError`` if it is a link: a job deletes its directory in the end, and what a
    link leads to is another's.
    """
    try:
        info = await run.store.head(layout.job_dir)
    except NotFoundError:
        return False
    if run.store.traits.links and info.kind is Kind.OTHER:
        text = "a link is in the place of the job directory: remove the link, or use another job id"
        raise PreconditionError("mkdir", layout.job_dir, text)
    return True

"""Publish the output of a Hive job: fence, deduplicate, move.

Tasks give their files final names in ``_tmp.X``, beside ``X``. Then::

    _tmp.X  ->  _tmp.X.intermediate    tasks that still write, write elsewhere from now on
                duplicates deleted, empty buckets made
                _tmp.X.intermediate  ->  X
                _task_tmp.X deleted

A replaced ``X`` is kept as ``_backup.X`` meanwhile. If files are added to it one by one they are in
``_tmp.X.adding`` meanwhile, so that no run searches half of them for duplicates. Empty buckets are
written to ``_tmp.X.buckets`` and moved: otherwise a late write of a dead process could create
``.intermediate`` again, and the next run would take that for the output of a job. Each step is one
rename, or can be repeated; so a later run can finish an interrupted one. The order is that of Hive
0.9; later releases rename nothing first, and a straggler may add a file that is never compared.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import cast

from asynccommit.errors import (
    ManifestError,
    NotFoundError,
    OutcomeUnknownError,
    RejectedError,
    StoreError,
    UnsupportedError,
)
from asynccommit.hive.add_files import add, add_from
from asynccommit.hive.deduplication import Dedup, change
from asynccommit.hive.places import PublishDirectories, cleaning_up, drop, move, restore
from asynccommit.hive.places import Published as Published
from asynccommit.hive.scan import Reading, scan_table
from asynccommit.options.checked import checked
from asynccommit.stores.base import Kind, ProbingStore, Store
from asynccommit.stores.tree import is_there, walk


@checked
async def publish(
    store: Store, path: str, reading: Reading | None = None, *, replaces: bool = False
) -> Published:
    """Publish the files that a Hive job left in ``_tmp.X`` beside ``path``.

    All tasks must have ended, and no other process may publish there. After a failure (the error
    names the cause) or a crash, run it again, or ``discard``. A failure with a known outcome leaves
    the previous content at ``path``, unless the error says that the job is committed.

    Args:
        store: a store that renames a directory in one step.
        path: ``X``: destination of the files; absolute and decoded.
        reading: how to read the files; ``None`` means one level, by the rules up to Hive 2.3.
        replaces: remove the previous content of ``path``; otherwise add the files, as copies where
            a name is taken.

    Raises:
        UnsupportedError: the store has no such rename.
        ManifestError: duplicates cannot be decided, or a named path is in the way that may belong
            to another job.
        CommitError: the files are published, and the remains beside them could not be removed.
        StoreError: the first request that failed before.
    """
    places = await _open(store, path)
    if await is_there(store, places.adding):
        await _refuse_late(store, places, places.adding)
        done = await add_from(store, places, resumed=True)
    else:
        done = await _publish(store, places, reading, replaces)
    async with cleaning_up(places):
        for directory in (places.buckets, places.task, places.discarded):
            await drop(store, directory)
    return done


@checked
async def discard(store: Store, path: str) -> None:
    """Restore the old files of a failed Hive job and remove both temporary directories.

    Args:
        store: a store that renames a directory in one step.
        path: ``X``: intended destination of the files; absolute and decoded.

    Raises:
        UnsupportedError: the store has no such rename.
        ManifestError: the job is half published, or the replaced directory cannot be put back.
        StoreError: the first request that failed.
    """
    places = await _open(store, path)
    if await is_there(store, places.adding):
        raise ManifestError(
            places.adding, f"is partly added to {places.final}: publish again to finish"
        )
    if await is_there(store, places.taken) and await is_there(store, places.backup):
        await _refuse_foreign(store, places)
    await restore(store, places)
    await drop(store, places.discarded)
    for directory in (places.written, places.taken):
        # Moved in one step first, so that no later run can publish the rest of a partial delete.
        with suppress(NotFoundError):
            await move(store, directory, places.discarded)
            await drop(store, places.discarded)
    for directory in (places.buckets, places.task):
        await drop(store, directory)


async def _open(store: Store, path: str) -> PublishDirectories:
    places = PublishDirectories(path.rstrip("/"))
    await is_there(store, places.final)  # a store may learn its capabilities by a first request
    if not store.traits.atomic_directory_rename:
        raise UnsupportedError(
            f"{store.traits.name} cannot rename a directory atomically, so late tasks could add "
            "files to the published output: publish to another store, or let dedup clean the "
            "table"
        )
    return places


async def _publish(
    store: Store, places: PublishDirectories, reading: Reading | None, replaces: bool
) -> Published:
    if await is_there(store, places.taken):
        await _refuse_late(store, places, places.taken)
    else:
        await _settle(store, places)
        if not await is_there(store, places.written):
            return Published()
        if replaces:
            await _refuse_unmovable(store, places.final, places.written)
        await move(store, places.written, places.taken)
    cleaned = await _clean(store, places, reading or Reading())
    return replace(await (_replace if replaces else add)(store, places), dedup=cleaned)


async def _clean(store: Store, places: PublishDirectories, reading: Reading) -> Dedup:
    done = Dedup(dry_run=False, found=await scan_table(store, places.taken, reading))
    await drop(store, places.buckets)
    numbers = {path: number for number, path in enumerate(done.found.missing)}
    if numbers:
        await store.mkdir(places.buckets)

    async def put(path: str, data: bytes, *, overwrite: bool) -> None:
        written = f"{places.buckets}/{numbers[path]}"
        # A late retry that made another version would prevent the move.
        made = await store.put(written, data, overwrite=False)
        await store.rename(written, path, replace=overwrite, etag=made.etag)

    await change(store, done, put)
    return done


async def _settle(store: Store, places: PublishDirectories) -> None:
    """Finish, or undo, a replacement that an earlier run left incomplete."""
    if not await is_there(store, places.backup):
        return
    if not await is_there(store, places.final):
        await restore(store, places)
        return
    async with cleaning_up(places):
        await drop(store, places.backup)  # that run had only this left to do
    await _refuse_late(store, places, places.final)


async def _refuse_late(store: Store, places: PublishDirectories, taken: str) -> None:
    if await is_there(store, places.written):
        raise ManifestError(
            places.written,
            f"was written after {taken} was made of it, by a late task or another job: check it, "
            "move it away and publish again",
        )


async def _replace(store: Store, places: PublishDirectories) -> Published:
    replaced = await is_there(store, places.backup)
    if replaced:
        await _refuse_foreign(store, places)
    elif await is_there(store, places.final):
        await move(store, places.final, places.backup)
        replaced = True
    async with _putting_back(store, places):
        await move(store, places.taken, places.final)
    async with cleaning_up(places):
        await drop(store, places.backup)
    return Published(replaced=replaced)


async def _refuse_foreign(store: Store, places: PublishDirectories) -> None:
    if await is_there(store, places.final):
        raise ManifestError(
            places.final,
            f"exists, and so does {places.backup}, to which it was moved: another writer created "
            "it. Move one of them away and publish again",
        )


@asynccontextmanager
async def _putting_back(store: Store, places: PublishDirectories) -> AsyncIterator[None]:
    """Put back the replaced directory if the block certainly did nothing."""
    try:
        yield
    except OutcomeUnknownError:
        raise
    except StoreError as error:
        try:
            await restore(store, places)
        except StoreError as second:
            error.add_note(f"{places.backup} could not be restored: {second}")
        raise


async def _refuse_unmovable(store: Store, path: str, place: str) -> None:
    """Raise an error if a directory cannot be moved, or deleted in the end.

    A link would be replaced by a directory, and the old files would stay at its target.

    Args:
        store: any store.
        path: directory to be replaced; it may be missing.
        place: a directory beside it.

    Raises ``ManifestError`` for a link; ``RejectedError`` or ``DeniedError`` with the reason.
    """
    try:
        info = await store.head(path)
    except NotFoundError:
        return
    if store.traits.links and info.kind is Kind.OTHER:
        text = "a link cannot be replaced: publish to its target directory"
        raise ManifestError(path, text)
    if store.traits.probes:
        await cast(ProbingStore, store).probe(path, place)
        async for below in walk(store, path):
            if below.held:
                text = "a mount point, immutable or append-only, so its parent cannot be replaced"
                raise RejectedError("rename", below.path, text)

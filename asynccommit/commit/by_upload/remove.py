"""Delete the planned files, each only in its known version."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.status import has_begun
from asynccommit.commit.spill import Spill
from asynccommit.errors import NotFoundError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import remove_files

BATCH = 1_000
"""Maximum number of files that are deleted after one check of the commit record."""


async def remove_exactly(run: UploadContext, infos: Sequence[Info]) -> None:
    """Delete files of the destination whose etags are unchanged.

    Changed and missing files are left alone. If the store cannot make the etag a condition, it is
    read just before the deletion.
    """
    chosen = await _unchanged(run, infos)
    if chosen:
        await remove_files(run.store, chosen)


async def _unchanged(run: UploadContext, infos: Sequence[Info]) -> list[Info]:
    chosen = list(infos)
    if not run.store.traits.conditional_delete:
        chosen = []

        async def look(info: Info) -> None:
            try:
                there = await run.store.head(info.path)
            except NotFoundError:
                return
            if there.etag == info.etag:
                chosen.append(info)

        await for_each(infos, look, workers=run.workers)
    return chosen


async def remove_listed(run: UploadContext, rows: Spill) -> bool:
    """Delete files with the listed etags, as long as this commit exists.

    Returns false once another process has ended the commit: then this commit must not touch these
    places.
    """
    ended = False

    async def batches() -> AsyncIterator[list[Info]]:
        batch: list[Info] = []
        async for entry in rows.each():
            batch.append(Info(entry.dest, Kind.FILE, entry.size, entry.etag))
            if len(batch) == min(run.store.traits.bulk_delete, BATCH):
                yield batch
                batch = []
        if batch:
            yield batch

    async def remove(batch: list[Info]) -> None:
        nonlocal ended
        chosen = await _unchanged(run, batch)
        if not ended and not await has_begun(run):
            ended = True
        if chosen and not ended:
            await remove_files(run.store, chosen)
        run.meter.step(len(batch))

    await for_each(batches(), remove, workers=run.workers)
    return not ended


async def remove_old(run: UploadContext, old: Spill) -> bool:
    """Delete the files that a mode replaces, after the job is committed.

    See ``remove_listed``.
    """
    if not old.count:
        return True
    with run.meter.timed("op_delete_replaced", old.count):
        return await remove_listed(run, old)

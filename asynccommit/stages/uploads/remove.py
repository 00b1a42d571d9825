"""Deleting exactly what was planned: each file only while it is the one that is known."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from asynccommit.errors import NotFoundError
from asynccommit.parallel import for_each, remove_files
from asynccommit.stages.spill import Spill
from asynccommit.stages.uploads.run import UploadRun
from asynccommit.store import Info, Kind


async def remove_exactly(run: UploadRun, infos: Sequence[Info]) -> None:
    """Delete files of the destination that have their etags; others and those gone stay so.

    Where the store cannot make the etag a condition, it is asked for just before.
    """
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
    if chosen:
        await remove_files(run.store, chosen)


async def remove_old(run: UploadRun, old: Spill) -> None:
    """Delete what a mode replaces, now that the job is committed."""
    if not old.count:
        return

    async def batches() -> AsyncIterator[list[Info]]:
        batch: list[Info] = []
        async for entry in old.each():
            batch.append(Info(entry.dest, Kind.FILE, entry.size, entry.etag))
            if len(batch) == run.store.traits.bulk_delete:
                yield batch
                batch = []
        if batch:
            yield batch

    async def remove(batch: list[Info]) -> None:
        await remove_exactly(run, batch)
        run.step(len(batch))

    with run.timed("op_delete_replaced", old.count):
        await for_each(batches(), remove, workers=run.workers)

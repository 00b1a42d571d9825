"""Conflict checks of the partitioned committer's tasks."""

from __future__ import annotations

from collections.abc import Sequence

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.task.send import Sending
from asynccommit.errors import ExistsError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.tree import is_there, tree_pages

_REMEDY = "the conflict mode is fail: use append or replace, or another destination"


async def refuse_conflicts(run: UploadContext, files: Sequence[Sending]) -> None:
    """Raise ``ExistsError`` if a target partition has visible files.

    A file in the root of the table has no partition: only one of its own name is in its way.
    """
    partitions = {each.partition for each in files if each.partition}
    alone = [each.path for each in files if not each.partition]
    await for_each(partitions, lambda name: _refuse_partition(run, name), workers=run.workers)
    await for_each(alone, lambda path: _refuse_file(run, path), workers=run.workers)


async def _refuse_partition(run: UploadContext, name: str) -> None:
    base = f"{run.layout.root}/{name}"
    async for page in tree_pages(run.store, base):
        for info in page:
            if not info.is_dir and _is_seen(info.path[len(base) + 1 :]):
                raise ExistsError("put", base, f"{info.path} exists, and {_REMEDY}")


async def _refuse_file(run: UploadContext, path: str) -> None:
    if await is_there(run.store, path):
        raise ExistsError("put", path, f"it exists, and {_REMEDY}")


def _is_seen(name: str) -> bool:
    return not any(each.startswith(("_", ".")) for each in name.split("/"))

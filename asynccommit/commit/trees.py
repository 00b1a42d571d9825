"""Make directories, and move what is in one into another, file by file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import count

from asynccommit.commit.context import CommitContext
from asynccommit.commit.paths import leaves
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info
from asynccommit.stores.tree import walk

Keep = Callable[[CommitContext, str, str], Awaitable[None]]
"""Moves a file away from an occupied place; takes the commit, the path and the place."""


async def make_all(run: CommitContext, paths: Sequence[str]) -> None:
    """Make directories, in parallel."""

    async def make(path: str) -> None:
        run.check_lease()
        await run.store.mkdir(path)
        run.meter.step()

    await for_each(paths, make, workers=run.workers)


async def merge(run: CommitContext, source: str, dest: str, *, keep: Keep | None = None) -> int:
    """Move every file below ``source`` below ``dest``; return the number.

    Directories are made where they are missing, empty ones too.

    Args:
        run: the commit under way.
        source: the directory whose files are moved.
        dest: the directory that they go to.
        keep: is given each file whose place is taken, and that place.

    Raises ``ExistsError`` or ``PreconditionError`` if a place is taken and ``keep`` is not given.
    """
    moved = 0

    async def move(info: Info) -> None:
        nonlocal moved
        place = dest + info.path[len(source) :]
        try:
            await to_place(run, info, place)
        except (ExistsError, PreconditionError):
            if keep is None:
                raise
            await keep(run, info.path, place)
            return
        moved += 1

    try:
        found = [info async for info in walk(run.store, source)]
    except NotFoundError:
        return 0
    files = [info for info in found if not info.is_dir]
    if run.store.traits.directories:
        wanted = leaves([dest + info.path[len(source) :] for info in found if info.is_dir])
        with suppress(*(() if keep is None else (PreconditionError,))):
            await make_all(run, wanted)
    await for_each(files, move, workers=run.workers)
    return moved


async def to_place(run: CommitContext, info: Info, place: str) -> None:
    """Move a file to a free place; make the directory if it is missing."""
    run.check_lease()
    try:
        await run.store.rename(info.path, place, etag=info.etag)
    except NotFoundError:
        if not run.store.traits.directories:
            raise
        await run.store.mkdir(place.rpartition("/")[0])
    except PreconditionError:
        if not run.store.traits.file_etags:
            raise
        info = await run.store.head(info.path)  # whoever has it open has written to it since
    else:
        return
    await run.store.rename(info.path, place, etag=info.etag)


async def rename_to_free(run: CommitContext, path: str, kept: str) -> str:
    """Rename to ``kept``, or to that with a number if it is taken."""
    for number in count(2):
        with suppress(ExistsError):
            await run.store.rename(path, kept)
            break
        kept = f"{kept.removesuffix(f'.{number - 1}')}.{number}"
    return kept

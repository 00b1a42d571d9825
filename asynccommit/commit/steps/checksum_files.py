"""Hadoop's checksum files, moved aside and restored with their files.

It is moved first and restored last, so that no file is ever beside another's checksum.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.planning.plan import Aside
from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    PreconditionError,
    RejectedError,
)
from asynccommit.stores.base import Kind
from asynccommit.stores.filesystem_names import checksum_of, is_checksum_data

_MOST = 64 * 1024 * 1024


@asynccontextmanager
async def checksum_aside(run: CommitContext, aside: Aside, place: str) -> AsyncIterator[list[str]]:
    """Move a file's checksum aside; restore it if the file is not moved.

    Args:
        run: the commit under way.
        aside: the file that the block moves aside.
        place: the place that it is moved to.

    Yields a list; the block appends to it once the file has been moved.
    """
    moved: list[str] = []
    if not _has_one(run, aside):
        yield moved
        return
    taken = await _move(run, aside.path, place)
    try:
        yield moved
    finally:
        if taken and not moved:
            await _move(run, place, aside.path)


async def restore_checksum(run: CommitContext, aside: Aside, place: str) -> None:
    """Put back the checksum of a file that was moved aside with it."""
    if _has_one(run, aside):
        await _move(run, place, aside.path)


def _has_one(run: CommitContext, aside: Aside) -> bool:
    """Return whether a checksum may be beside a file; never for the marker.

    The marker's checksum is deleted when the marker is replaced.
    """
    known = run.store.traits.checksums and aside.kind is Kind.FILE
    return known and aside.path != run.layout.success


async def _move(run: CommitContext, path: str, place: str) -> bool:
    """Move the checksum of ``path`` beside ``place``; false if there is none."""
    with suppress(NotFoundError, ExistsError):
        if await _is_checksum(run, checksum_of(path)):
            await run.store.rename(checksum_of(path), checksum_of(place))
            return True
    return False


async def _is_checksum(run: CommitContext, path: str) -> bool:
    """Return whether a file is a checksum by its content, too."""
    try:
        data = await run.store.get(path, _MOST)
    except RejectedError:  # that of a file of gigabytes, and too long to look at
        return True
    except (PreconditionError, DeniedError):  # a directory or link; a file of somebody else
        return False
    return is_checksum_data(data[:8], len(data))

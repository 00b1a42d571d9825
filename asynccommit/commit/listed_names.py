"""Seeing that files have the names that they were given: some servers make others of them.

Whoever is asked for such a name makes the same other of it, and finds the file. Only a listing
tells: a backslash that became a slash, a dot that is gone, letters that were put together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from asynccommit.errors import NotFoundError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Store
from asynccommit.stores.tree import pages

CHANGED = (
    "is there, and no listing shows it under this name: the server makes another name of it. "
    "Choose names without backslashes, control characters, and dots or spaces at the end"
)
_ODD = re.compile(r"[\\\x00-\x1f\x7f]|[. ](/|$)")


def is_odd(path: str) -> bool:
    """Return whether servers are known to make other names of such as this."""
    return _ODD.search(path) is not None


async def unlisted(store: Store, paths: Sequence[str]) -> list[str]:
    """Return those of ``paths`` that no listing of their directories shows; one for each."""
    wanted: dict[str, set[str]] = {}
    for path in paths:
        wanted.setdefault(path.rpartition("/")[0], set()).add(path)

    async def look(directory: str) -> None:
        try:
            async for page in pages(store, directory or "/"):
                wanted[directory].difference_update([info.path for info in page])
        except (NotFoundError, PreconditionError):
            return  # nothing is there, or a file

    await for_each(sorted(wanted), look, workers=store.traits.workers)
    return sorted(path for left in wanted.values() for path in left)


async def refuse_changed(store: Store, paths: Sequence[str]) -> None:
    """Raise ``PreconditionError`` if a file that is there is not listed under its name."""
    if changed := await unlisted(store, paths):
        raise PreconditionError("list", changed[0], CHANGED)

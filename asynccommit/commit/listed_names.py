"""Check that the server lists files under their given names.

A request with such a name is changed in the same way, and finds the file. Only a listing shows the
change: a backslash that became a slash, a removed dot, normalized letters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from asynccommit.errors import NotFoundError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Store
from asynccommit.stores.tree import pages

CHANGED = (
    "exists, but no listing shows it under this name: the server changes the name. Choose names "
    "without backslashes, control characters, or dots and spaces at the end"
)
_ODD = re.compile(r"[\\\x00-\x1f\x7f]|[. ](/|$)")


def is_odd(path: str) -> bool:
    """Return whether some servers are known to change names like this path's."""
    return _ODD.search(path) is not None


async def unlisted(store: Store, paths: Sequence[str]) -> list[str]:
    """Return those of ``paths`` that the listings of their directories lack."""
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
    """Raise ``PreconditionError`` if a file is listed under another name."""
    if changed := await unlisted(store, paths):
        raise PreconditionError("list", changed[0], CHANGED)

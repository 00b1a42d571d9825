"""List everything below a directory, on any store."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

from asynccommit.engine.paths import checked_path
from asynccommit.stores.base import Info, Store
from asynccommit.stores.tree import tree_pages, walk


async def list_tree(store: Store, path: str | os.PathLike[str]) -> AsyncIterator[Info]:
    """Yield everything below ``path``, in no fixed order.

    A store that lists whole trees needs one request for a few thousand files; on any other, many
    directories are listed at once. Nothing is yielded where a bucket has no file below ``path``.

    Args:
        store: the store, as ``asynccommit.open_store`` opens it.
        path: absolute path of a directory.

    Raises ``OptionError`` for an invalid path, ``NotFoundError`` and the other errors of the store.
    """
    top = checked_path(path)
    if store.traits.bulk_delete:
        async for page in tree_pages(store, top):
            for info in page:
                yield info
        return
    async for info in walk(store, top):
        yield info

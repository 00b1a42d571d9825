"""The real content of a path: a listing may show a prefix that has nothing below it any more."""

from __future__ import annotations

from typing import cast

from asynccommit.errors import NotFoundError, PreconditionError
from asynccommit.stores.base import BulkStore, Store
from asynccommit.stores.tree import is_there


async def is_phantom(store: Store, path: str) -> bool:
    """Return whether a listing shows the directory ``path``, and no object is at it or below.

    Servers without directories may show an empty prefix for minutes after its last object is gone.
    """
    return not (store.traits.directories or await is_there(store, path))


async def first_below(store: Store, path: str) -> list[str]:
    """Return what one page of a listing shows at ``path`` and below; nothing if nothing is there.

    Where the store has directories it is the first level, and an empty directory is itself shown.
    """
    if store.traits.bulk_delete:
        page = await cast(BulkStore, store).list_tree(path)
        return sorted(info.path for info in page.entries if not info.is_dir or info.etag)
    try:
        page = await store.list(path)
    except NotFoundError:
        return []
    except PreconditionError:
        return [path]
    return sorted(info.path for info in page.entries) or [path]

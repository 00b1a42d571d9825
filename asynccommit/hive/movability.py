"""Check, before the first rename, that a directory to be replaced can be moved."""

from __future__ import annotations

from typing import cast

from asynccommit.errors import ManifestError, NotFoundError, RejectedError
from asynccommit.stores.base import Kind, ProbingStore, Store
from asynccommit.stores.tree import walk


async def refuse_unmovable(store: Store, path: str, place: str) -> None:
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
        text = "a link, which is not replaced: publish to the directory that it leads to"
        raise ManifestError(path, text)
    if store.traits.probes:
        await cast(ProbingStore, store).probe(path, place)
        async for below in walk(store, path):
            if below.held:
                text = "a mount point, immutable or append-only: what holds it cannot be replaced"
                raise RejectedError("rename", below.path, text)

"""Delete files only in their listed versions."""

from __future__ import annotations

from typing import cast

from asynccommit.errors import PreconditionError
from asynccommit.stores.base import BulkStore, Info, Store


def is_changed(store: Store, now: Info, then: Info) -> bool:
    """Return whether a file has changed since its listing, if that is known."""
    known = now.etag is not None and then.etag is not None
    return now.size != then.size or (known and not store.traits.same(now.etag, then.etag))


async def delete_unchanged(store: Store, info: Info) -> None:
    """Delete a file if it is unchanged; the store checks that if it can.

    Raises:
        NotFoundError: it is gone.
        PreconditionError: it has changed.
    """
    if is_changed(store, await store.head(info.path), info):
        raise PreconditionError("delete", info.path, "it has changed since the listing")
    if not store.traits.bulk_delete:
        await store.delete(info.path)
        return
    error = (await cast(BulkStore, store).delete_many([info]))[0]
    if error is not None:
        raise error

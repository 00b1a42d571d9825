"""Tell whether a file is still the one that was seen."""

from __future__ import annotations

from contextlib import suppress
from typing import cast

from asynccommit.errors import NotFoundError, PreconditionError, RejectedError, StoreError
from asynccommit.stores.base import BulkStore, Info, Store
from asynccommit.stores.filesystem_names import temporary_name

_RENUMBERS = (
    "this filesystem gives a file another inode number or time when it is renamed, so a commit "
    "does not recognise the files that it has moved"
)
ELSEWHERE = "write to the URL of the store behind the mount (s3://, gs://, abfss://) or to a disk"
"""The remedy for a mount that lacks what a commit needs."""


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


async def keeps_etag(store: Store, one: str, two: str) -> bool:
    """Rename ``one`` to ``two``; return whether it has kept its etag."""
    lasting, etag = store.traits.lasting, (await store.head(one)).etag
    try:
        await store.rename(one, two, etag=etag)
    except PreconditionError:  # each look finds another etag
        return False
    return lasting(etag) == lasting((await store.head(two)).etag)


async def refuse_renumbering(store: Store, written: Info) -> None:
    """Refuse a filesystem that gives a renamed file another etag.

    Args:
        store: any store; only one with ``Traits.file_etags`` is asked.
        written: the answer of a ``put``, which knows the file before it was renamed. So one more
            look is enough. A server that sets the time of a file when it is closed changes the etag
            too: therefore a file of its own is renamed before anything is refused.

    Raises ``RejectedError``.
    """
    if not store.traits.file_etags:
        return
    with suppress(NotFoundError):  # an abort was faster
        if not is_changed(store, await store.head(written.path), written):
            return
        folder = written.path.rpartition("/")[0]
        one, two = (f"{folder}/{temporary_name(f'probe-{name}')}" for name in ("one", "two"))
        try:
            await store.put(one, b"")
            if not await keeps_etag(store, one, two):
                raise RejectedError("rename", folder, f"{_RENUMBERS}: {ELSEWHERE}")
        finally:
            for path in (one, two):
                with suppress(StoreError):
                    await store.delete(path)

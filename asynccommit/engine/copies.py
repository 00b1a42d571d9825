"""Move one file by copy and delete, where a store has no rename."""

from __future__ import annotations

from typing import cast

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
)
from asynccommit.stores.base import BulkStore, Info, Kind, Store
from asynccommit.stores.multipart import MultipartStore


async def copy_and_delete(
    store: Store, source: str, dest: str, etag: str | None, *, replace: bool
) -> None:
    """Copy a file, compare sizes, and delete this version of the source.

    Without ``replace`` the destination is looked at first: a file that another writer puts there at
    the same moment may be replaced.

    Raises:
        ExistsError: a file is at ``dest`` and ``replace`` is false; nothing was done.
        PreconditionError: the source has another etag; or it was changed after the copy, which is
            then at ``dest``.
        OutcomeUnknownError: the copy does not have the source's size; the source is kept.
    """
    info = await store.head(source)
    if info.is_dir:
        raise PreconditionError("copy", source, "it is a directory")
    if etag is not None and info.etag != etag:
        raise PreconditionError("copy", source, "the file has changed: its etag differs")
    if not replace and await _is_file(store, dest):
        raise ExistsError("copy", source, f"something is at {dest}")
    if store.traits.multipart is not None and info.etag is not None:
        await cast(MultipartStore, store).copy_if(source, dest, info.etag)
    else:
        await store.copy(source, dest, overwrite=True)
    if (await store.head(dest)).size != info.size:
        text = f"the copy at {dest} does not have its size of {info.size} bytes; nothing is deleted"
        raise OutcomeUnknownError("copy", source, text)
    error = (await cast(BulkStore, store).delete_many([Info(source, Kind.FILE, etag=info.etag)]))[0]
    if error is not None and not isinstance(error, NotFoundError):
        raise error


async def _is_file(store: Store, path: str) -> bool:
    try:
        return not (await store.head(path)).is_dir
    except NotFoundError:
        return False

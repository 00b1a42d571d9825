"""Bring a file back under its former name, as a version of its own.

Where a rename may keep the version of a file, one that was lost could come late and take the file
away again that a rollback has brought back. So a copy is brought back, which has another version.
"""

from __future__ import annotations

from contextlib import suppress

from asynccommit.errors import ExistsError, NotFoundError, RejectedError
from asynccommit.stores.base import Info, Store
from asynccommit.stores.tree import remove_files

_ANEW = ".anew"


async def rename_anew(store: Store, source: str, dest: str, etag: str | None) -> None:
    """Rename ``source`` to ``dest`` as a new version, replacing nothing.

    It takes three steps: a copy beside the source, its rename, and the deletion of the source. A
    caller that is interrupted between them calls again: a copy is made again, and one that is at
    ``dest`` already is known by its content.

    Raises ``NotFoundError`` without the source, ``ExistsError`` if another file is at ``dest``, and
    ``RejectedError`` if the copy has the version of the source.
    """
    copied = await _copied(store, source, etag)
    try:
        await store.rename(copied.path, dest, etag=copied.etag)
    except ExistsError:
        there = await store.head(dest)
        content = store.traits.lasting(copied.etag)
        await remove_files(store, [copied])
        if content is None or store.traits.lasting(there.etag) != content:
            raise
    with suppress(NotFoundError):
        await remove_files(store, [copied._replace(path=source, etag=etag)])


async def _copied(store: Store, source: str, etag: str | None) -> Info:
    place = f"{source}{_ANEW}"
    await store.copy(source, place, overwrite=True)
    copied = await store.head(place)
    if store.traits.same(copied.etag, etag):
        said = "its copy has the same etag, so a late rename could move it again"
        raise RejectedError("copy", source, said)
    return copied

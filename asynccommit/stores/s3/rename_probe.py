"""Find out by requests whether a server renames as commits need it.

Every request is about objects of the caller's own. Nothing is left of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Protocol

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    PreconditionError,
    RejectedError,
    StoreError,
    UnavailableError,
)
from asynccommit.stores.base import Info, Kind, Traits
from asynccommit.stores.s3.abilities import PROBE, RenameAbilities

_CONTENT = b"-"
_REFUSED = (ExistsError, NotFoundError, PreconditionError, UnavailableError)
_REMEDY = "write to a directory bucket (NAME--ZONE--x-s3), or leave rename=true out"


class Renaming(Protocol):
    """The methods of a store that the probe calls."""

    traits: Traits

    async def put(self, path: str, data: bytes, *, overwrite: bool = True) -> Info:
        """See ``Store.put``."""
        ...

    async def head(self, path: str) -> Info:
        """See ``Store.head``."""
        ...

    async def rename(self, source: str, dest: str, *, etag: str | None = None) -> None:
        """See ``Store.rename``."""
        ...

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        """See ``Store.copy``."""
        ...

    async def delete_many(self, entries: Sequence[Info]) -> Sequence[StoreError | None]:
        """See ``BulkStore.delete_many``."""
        ...


async def find_renames(store: Renaming, folder: str, own: str, server: str) -> RenameAbilities:
    """Find out how the server renames.

    Args:
        store: of the server, without policies: each request is sent once.
        folder: a directory of the caller's.
        own: a new id, for names that nobody else uses.
        server: its name, for messages.

    Raises:
        RejectedError: a commit would not be safe; the error names what the server lacks.
        StoreError: no answer followed from a request: the server is to be asked again.
    """
    probe = _Probe(store, f"{folder}/{PROBE}{own}", server)
    try:
        return await probe.run()
    finally:
        for path in (probe.here, probe.there, probe.other):
            with suppress(StoreError):
                await store.delete_many([Info(path, Kind.FILE)])


class _Probe:
    """The requests about three objects."""

    def __init__(self, store: Renaming, path: str, server: str) -> None:
        self.here, self.there, self.other = (f"{path}-{name}" for name in "abc")
        self._store = store
        self._path = path
        self._server = server

    async def run(self) -> RenameAbilities:
        """Try everything; raise for what is missing."""
        store, here, there = self._store, self.here, self.there
        first = await store.put(here, _CONTENT, overwrite=False)
        again = store.put(here, _CONTENT, overwrite=False)
        self._need(await _refuses(again), "put", "passes over If-None-Match of PutObject")
        second = await store.put(here, _CONTENT)
        unlike = "gives two objects of one content the same etag, which tells no versions apart"
        self._need(not self._same(first, second), "put", unlike)
        try:
            await store.rename(here, there, etag=second.etag)
        except RejectedError as error:
            self._need(False, "rename", f"does not know RenameObject ({error.detail})")
        moved = await self._moved(second)
        await self._try_conditions(first, moved)
        await self._try_copy(moved)
        return RenameAbilities(keeps_etag=self._same(second, moved))

    async def _moved(self, sent: Info) -> Info:
        """Return what a rename made of an object."""
        try:
            moved = await self._store.head(self.there)
        except NotFoundError:
            moved = sent._replace(etag=None)
        lasting = self._store.traits.lasting
        kept = moved.etag is not None and lasting(moved.etag) == lasting(sent.etag)
        gone = await _refuses(self._store.head(self.here))
        self._need(kept and gone, "rename", "does not know RenameObject, or loses checksums")
        return moved

    async def _try_conditions(self, old: Info, moved: Info) -> None:
        store, here, there = self._store, self.here, self.there
        third = await store.put(here, _CONTENT)
        over = store.rename(here, there, etag=third.etag)
        self._need(await _refuses(over), "rename", "passes over If-None-Match of RenameObject")
        stale = store.rename(here, self.other, etag=old.etag)
        what = "passes over x-amz-rename-source-if-match"
        self._need(await _refuses(stale), "rename", what)
        said = await store.delete_many([moved._replace(etag=old.etag)])
        kept = said[0] is not None and not await _refuses(store.head(there))
        self._need(kept, "delete", "passes over the condition of a delete")

    async def _try_copy(self, moved: Info) -> None:
        await self._store.copy(self.there, self.here, overwrite=True)
        copied = await self._store.head(self.here)
        what = "gives a copy the etag of its source, so a late rename could move it again"
        self._need(not self._same(copied, moved), "copy", what)

    def _same(self, one: Info, other: Info) -> bool:
        return self._store.traits.same(one.etag, other.etag)

    def _need(self, is_so: bool, op: str, lack: str) -> None:
        if not is_so:
            raise RejectedError(op, self._path, f"{self._server} {lack}: {_REMEDY}")


async def _refuses(act: Awaitable[object]) -> bool:
    """Return whether a request is refused for the state of the objects."""
    try:
        await act
    except _REFUSED:
        return True
    return False

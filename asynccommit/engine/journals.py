"""The journal of a move: a small file, local or on the store of the move."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from asynccommit.commit.driver.owners import time_of
from asynccommit.commit.hints import quoted
from asynccommit.errors import (
    ExistsError,
    ManifestError,
    NotFoundError,
    OptionError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
)
from asynccommit.formats.move_journal import (
    MAX_JOURNAL_BYTES,
    JournalState,
    MoveJournal,
    decode_journal,
    encode_journal,
)
from asynccommit.options.checked import located
from asynccommit.stores.base import Kind, Store
from asynccommit.stores.opening import open_place
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.tree import read_if_there, remove_file
from asynccommit.stores.urls import Address, parse_url


@dataclass(slots=True)
class Journal:
    """An open journal.

    Attributes:
        store: the store of the file.
        place: the file.
        content: what the file says, once it is written or read.
    """

    store: Store
    place: Address
    content: MoveJournal | None = None

    @property
    def shown(self) -> str:
        """Return the file as command lines name it: a path if it is local."""
        return self.place.path if self.place.scheme == "file" else str(self.place)

    async def begin(self, content: MoveJournal) -> None:
        """Write the journal of a new move.

        Raises ``ExistsError`` that says what is there; that is left as it is.
        """
        data = encode_journal(content)
        if self.store.traits.directories:
            await self.store.mkdir(self.place.path.rpartition("/")[0] or "/")
        try:
            await self.store.put(self.place.path, data, overwrite=False)
        except (ExistsError, OutcomeUnknownError, PreconditionError) as error:
            there = await self._found()
            if there is None and isinstance(error, OutcomeUnknownError):
                raise
            if there != data:
                raise ExistsError("put", str(self.place), self._refusal(there)) from error
        await self._sync()
        self.content = content

    async def read(self) -> MoveJournal:
        """Return what the journal says.

        Raises ``NotFoundError`` without a journal, and ``ManifestError`` for another file.
        """
        data = await self.store.get(self.place.path, MAX_JOURNAL_BYTES)
        self.content = decode_journal(data, str(self.place))
        return self.content

    async def age(self, new_id: str) -> float:
        """Return how old the journal is, in seconds by its store's clock.

        ``new_id`` names a file that is written for that beside it.
        """
        written = (await self.store.head(self.place.path)).modified
        return await time_of(self.store, f"{self.place.path}.clock-{new_id}") - written

    async def confirm(self) -> None:
        """Check that the move was not given up by another process.

        Raises ``PreconditionError``.
        """
        data = await read_if_there(self.store, self.place.path, MAX_JOURNAL_BYTES)
        if self.content is None or data != encode_journal(self.content):
            text = "another process has ended this move, or begun another"
            raise PreconditionError("get", str(self.place), text)

    async def end(self, state: JournalState, files: int, now_ms: int) -> None:
        """Write how the move has ended, unless the journal is another's by now."""
        mine = self.content
        assert mine is not None
        with suppress(NotFoundError):
            if (await self.read()).job_id != mine.job_id:
                return
        self.content = replace(mine, state=state, ended_ms=now_ms, files=files)
        await self.store.put(self.place.path, encode_journal(self.content))
        await self._sync()

    async def discard(self) -> None:
        """Delete the journal of a move that has not begun.

        One that another move has begun since is kept.
        """
        mine = self.content
        try:
            if mine is not None and (await self.read()).job_id == mine.job_id:
                await remove_file(self.store, self.place.path)
        except NotFoundError:
            return

    async def _sync(self) -> None:
        if not self.store.traits.durable:
            await self.store.sync(self.place.path)
            await self.store.sync(self.place.path.rpartition("/")[0] or "/")

    async def _found(self) -> bytes | None:
        """Return the content of the file; ``None`` if there is none."""
        try:
            if (await self.store.head(self.place.path)).kind is Kind.FILE:
                return await self.store.get(self.place.path, MAX_JOURNAL_BYTES)
        except NotFoundError:
            return None
        except RejectedError:  # too long for a journal
            return b""
        return None

    def _refusal(self, data: bytes | None) -> str:
        try:
            state = decode_journal(data or b"", str(self.place)).state
        except ManifestError:
            what = "a link or directory" if data is None else "a file that is no journal"
            return f"{what} is there: choose another path for the journal"
        name = quoted(self.shown)
        if state is not JournalState.BEGUN:
            return f"it is the journal of a move that was {state}: delete it, or choose another"
        return (
            "it is the journal of a move that has begun. Finish it: asynccommit mv --resume "
            f"{name} - or undo it: asynccommit mv --rollback {name}"
        )


def read_local(path: str) -> MoveJournal:
    """Return what a local journal says; the calling thread waits.

    Raises ``NotFoundError``, and ``ManifestError`` for another file.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_JOURNAL_BYTES + 1)
    except OSError as error:
        raise NotFoundError("get", path, error.strerror or "cannot be read") from error
    return decode_journal(data[:MAX_JOURNAL_BYTES], path)


def journal_place(journal: str | os.PathLike[str]) -> Address:
    """Return the place of a journal: an absolute local path or a URL.

    Raises ``UrlError`` and ``OptionError``.
    """
    place = parse_url(located(os.fspath(journal)))
    if place.path == "/":
        raise OptionError(f"{place}: expected a file for the journal, not the root of a store")
    return place


@asynccontextmanager
async def opened(store: Wrapped, journal: str | os.PathLike[str]) -> AsyncIterator[Journal]:
    """Open a journal that is local or on ``store``; write nothing.

    Raises ``OptionError`` for another store.
    """
    place, address = journal_place(journal), store.address
    if address is None:
        raise OptionError("a journal needs a store that was opened by open_store, with its URL")
    if place.same_store(address):
        yield Journal(store, place)
        return
    if place.scheme != "file":
        raise OptionError(
            f"the journal {place} is neither a local file nor on the store of the files, {address}"
        )
    async with open_place(place) as local:
        yield Journal(local, place)

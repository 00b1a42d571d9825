"""The output of a task attempt: a directory, and ways to fill it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Protocol, cast

from asynccommit.commit.layouts.layout import SUCCESS, TEMPORARY
from asynccommit.commit.listed_names import is_odd, refuse_changed
from asynccommit.commit.name_lengths import Lengths, cut, longest_name, refuse_long_name
from asynccommit.commit.tasks.block_writer import Slots
from asynccommit.commit.tasks.stream_writer import StreamWriter
from asynccommit.commit.tasks.writers import Chunk, LocalWriter, WholeWriter, Writer, make_parents
from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OptionError,
    RejectedError,
    UnsupportedError,
)
from asynccommit.options.checked import NO_TEXT
from asynccommit.stores.base import Store
from asynccommit.stores.filesystem_names import is_unlisted
from asynccommit.stores.modes import MODES
from asynccommit.stores.streaming import Stream, StreamingStore
from asynccommit.stores.tree import remove_file
from asynccommit.stores.urls import Address

_TRIES = 5
_SHORT = 200  # characters of a path that no store refuses for their number
_IN_MEMORY = 5
"""Blocks of a file that is sent in blocks which are in memory at most."""


class Work(Protocol):
    """The output of one task attempt, by file names below the destination.

    All methods raise ``OptionError`` for a name that is absolute, leads out of the destination, or
    is one of the commit protocol; ``RejectedError`` for one that is too long for the store.
    """

    @property
    def directory(self) -> str:
        """Return the attempt's directory: a local path, or a URL.

        It is a URL if tasks have no local files.
        """
        ...

    @property
    def staged(self) -> str:
        """Return the ending of names that the commit removes; empty for none."""
        ...

    def path(self, name: str) -> str:
        """Return the local path for ``name``, and create its directory.

        Raises ``UnsupportedError`` if the task has no files on this machine.
        """
        ...

    async def put(self, name: str, data: Chunk) -> None:
        """Write one whole file. Raises ``StoreError``."""
        ...

    async def open(self, name: str) -> Writer:
        """Open a file for writing. Raises ``StoreError``."""
        ...

    async def remove(self, name: str) -> None:
        """Delete a file that was written before.

        Raises ``NotFoundError``, and ``UnsupportedError`` where files are uploaded.
        """
        ...


class StoreWork:
    """The output of a task in a directory of the destination's store.

    Args:
        store: the store.
        dest: the destination, for its scheme.
        base: the task attempt's directory, a decoded path.
        staged: see ``Work.staged``.
    """

    def __init__(self, store: Store, dest: Address, base: str, *, staged: str = "") -> None:
        self.staged = staged
        self._store = store
        self._dest = dest
        self._base = base
        self._local = dest.scheme == "file"
        self._modes = store.traits.modes or MODES
        self._slots = Slots(_IN_MEMORY)
        self._made: set[str] = set()
        self._longest = 0
        traits = store.traits
        self._lengths = (
            Lengths(len(base) + 1, traits.longest_text, letters=True)
            if traits.longest_text
            else Lengths(len(base.encode()) + 1, traits.longest_path)
        )

    @property
    def directory(self) -> str:
        """See ``Work.directory``."""
        return self._base if self._local else str(self._dest.at(self._base))

    def path(self, name: str) -> str:
        """See ``Work.path``."""
        if not self._local:
            raise UnsupportedError(
                f"{self._dest} is not a local filesystem: use Task.put or Task.open"
            )
        path = self._place(name)
        make_parents(path, self._base, self._modes)
        return path

    async def put(self, name: str, data: Chunk) -> None:
        """See ``Work.put``."""
        path = self._place(name)
        if self._local:
            await asyncio.to_thread(make_parents, path, self._base, self._modes)
        with self._named(name):
            if not self._local:
                await self._make_parent(path.rpartition("/")[0])
            await put_whole(self._store, path, bytes(data))
        await self._check_name(name)

    async def open(self, name: str) -> Writer:
        """Open a file for writing.

        It is sent in blocks if the store takes them, and otherwise kept in memory.
        """
        path, save = self._place(name), partial(self.put, name)
        if self._local:
            return LocalWriter(path, self._base, self._modes)
        rules = self._store.traits.streaming
        if rules is None:
            return WholeWriter(path, save)
        return StreamWriter(
            cast(StreamingStore[Stream], self._store),
            path,
            self._base,
            slots=self._slots,
            rules=rules,
            prepare=partial(self._make_parent, path.rpartition("/")[0]),
            save=save,
            complete=partial(self._check_name, name),
        )

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        """Name what the user gave in a refusal that may be for its length."""
        try:
            yield
        except RejectedError as error:
            own, size = name.removesuffix(self.staged), len(f"{self._base}/{name}")
            if size <= _SHORT:
                raise
            text = (
                f"{error.detail.rstrip('.')}. The path has {len(own):,} characters, and {size:,} "
                "in the directory of the task: if that is too long for the store, choose shorter "
                "names, or a destination nearer to the root"
            )
            raise RejectedError(error.op, cut(own), text) from error

    async def _check_name(self, name: str) -> None:
        if is_odd(name):  # its manifest would contain the name that the store changed it to
            await refuse_changed(self._store, [self._place(name)])

    async def remove(self, name: str) -> None:
        """See ``Work.remove``."""
        await remove_file(self._store, self._place(name))

    async def _make_parent(self, parent: str) -> None:
        """Make a directory once; where files imply theirs, none is made."""
        if self._store.traits.directories and parent not in self._made:
            await self._store.mkdir(parent)
            self._made.add(parent)

    def _place(self, name: str) -> str:
        check_relative(name)
        if any(map(is_unlisted, name.split("/"))):
            raise OptionError(f"{name!r} is hidden: Hadoop or the store does not list it")
        if self._local:
            self._longest = self._longest or longest_name(self._base)
            refuse_long_name(name, self.staged, longest=self._longest)
        self._lengths.refuse(name, self.staged)
        return f"{self._base}/{name}"


async def put_whole(store: Store, path: str, data: bytes) -> None:
    """Write a file of a task; it may replace an earlier one of the task.

    A request that is sent late could create another version of the file after its task has
    committed the first one. On such stores a write never replaces: the task's earlier file is
    deleted first, by its version. Raises ``StoreError``.
    """
    traits = store.traits
    if not (traits.atomic_put and traits.put_tokens):
        await store.put(path, data)
        return
    for _ in range(_TRIES - 1):
        try:
            await store.put(path, data, overwrite=False)
            return
        except ExistsError:
            with suppress(NotFoundError):
                await remove_file(store, path)
    await store.put(path, data, overwrite=False)


def check_relative(name: str) -> None:
    """Raise ``OptionError`` unless ``name`` is a file below a destination."""
    parts = name.split("/")
    if not name or any(part in ("", ".", "..") for part in parts):
        raise OptionError(f"{name!r} is not a relative path below the destination")
    if found := NO_TEXT.search(name):
        raise OptionError(f"{name!r} holds {found[0]!r}, which is not allowed in a path")
    if parts[0] in (TEMPORARY, SUCCESS):
        raise OptionError(f"{name!r} is reserved for the commit protocol")

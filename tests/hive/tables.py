"""Tables of Hive for tests: on every kind of store, filled by name and size."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Iterable, Mapping
from itertools import count
from pathlib import Path

from hypothesis import strategies as st

from asynccommit.stores.base import Info, Store
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.tree import walk
from asynccommit.stores.urls import Address
from asynccommit.testing.models.crashes import Process
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import S3Service
from tests.support.crashes import SimWorld

KINDS = ("local", "adls", "s3")

Content = str | bytes | int | None
"""Of a file, or so many bytes; ``None`` is a directory."""


class Table:
    """A store, and a place on it.

    Attributes:
        store: any.
        root: what paths of tests are below.
    """

    def __init__(self, store: Store, root: str = "") -> None:
        self.store = store
        self.root = root

    @property
    def path(self) -> str:
        """Where the table is."""
        return f"{self.root}/t"

    async def fill(self, files: Mapping[str, Content]) -> None:
        """Write files, whose names are relative to the table, and directories."""
        for name, content in files.items():
            path = f"{self.path}/{name}"
            if content is None:
                await self.store.mkdir(path)
                continue
            if self.store.traits.directories:
                await self.store.mkdir(path.rpartition("/")[0])
            await self.store.put(path, _bytes(content))

    async def tree(self, place: str = "t") -> dict[str, bytes]:
        """Return every file below a place, by its name relative to it."""
        found = {}
        async for info in walk(self.store, f"{self.root}/{place}"):
            if not info.is_dir:
                name = info.path.removeprefix(f"{self.root}/{place}/")
                found[name] = await self.store.get(info.path, 1 << 20)
        return dict(sorted(found.items()))

    async def directories(self) -> list[str]:
        """Return every directory of the table, relative to it."""
        found = [info.path async for info in walk(self.store, self.path) if info.is_dir]
        return sorted(path.removeprefix(f"{self.path}/") for path in found)

    def names(self, paths: Iterable[str | Info]) -> list[str]:
        """Return paths, or entries, relative to the table."""
        texts = [one.path if isinstance(one, Info) else one for one in paths]
        return [text.removeprefix(f"{self.path}/") for text in texts]


def _bytes(content: str | bytes | int) -> bytes:
    if isinstance(content, int):
        return b"x" * content
    return content.encode() if isinstance(content, str) else content


def open_table(kind: str, root: Path) -> Table:
    """Return an empty place on a store of a kind."""
    if kind == "local":
        return Table(LocalStore(), str(root))
    if kind == "adls":
        return Table(SimWorld.new().store(Process("one")))
    ids = map(str, count())
    service = S3Service(now=lambda: 0.0, new_id=lambda: next(ids))
    service.create_bucket("data")
    return Table(SimS3Store(Address("s3", "data", "/"), {"service": service}))


async def until_death(process: Process, act: Awaitable[object]) -> None:
    """Await what a process does until it dies."""
    try:
        await act
    except BaseException:
        if not process.dead:
            raise


def patient(store: Store, seed: int = 0) -> Wrapped:
    """Return a store as it is asked in life: what fails in passing is sent again."""
    return wrap(store, StoreSettings(random.Random(seed), attempts=20))


_PIECES = [
    *("0", "1", "000003", "_", "_0", "_copy_", "_copy_1", "_tmp.", ".gz", "(", ")", "-", "part-"),
    *("\n", "\r", "\u2028", "%2F", "%00", "\U0001f600", "e\u0301", "\uff10", "\x1b[31m", "\\", "="),
    *(" ", "*", "?", "..", ".crc", "a" * 60),
]
HOSTILE = (
    st.lists(st.sampled_from(_PIECES), min_size=1, max_size=6)
    .map("".join)
    .filter(lambda name: name != "..")
)
"""Names that a store may hold, made of what matters in them and of what hurts elsewhere."""

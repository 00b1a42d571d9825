"""Stores of every kind, with the policies of a commit, and a tree of files in each."""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from asynccommit.engine import list_tree
from asynccommit.errors import NotFoundError
from asynccommit.stores.base import Kind, Store
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.models.adls.account import AdlsAccount
from asynccommit.testing.models.adls.store import SimStore
from asynccommit.testing.models.fault_rules import FaultInjector
from tests.support.gcs_store import Direct, new_service, new_store
from tests.testing.models.s3.bench import open_store as open_bucket

T = TypeVar("T", bound=Callable[..., Any])
RENAMING = ("local", "adls", "gcs", "gcs with folders")
KINDS = (*RENAMING, "s3")


def on(kinds: Sequence[str]) -> Callable[[T], T]:
    """Run a test at a place of each kind; two of them in the quick selection."""

    def marked(test: T) -> T:
        spread = pytest.mark.parametrize("place", kinds, indirect=True)(test)
        return cast(T, pytest.mark.rotate("place", keep=2)(spread))

    return marked


@dataclass
class Place:
    """A directory of a store.

    Attributes:
        kind: one of ``KINDS``.
        store: the store.
        root: path of the directory.
        weather: the faults of the service; those of ADLS are used by tests.
    """

    kind: str
    store: Wrapped
    root: str
    weather: FaultInjector = field(
        default_factory=lambda: FaultInjector(random.Random(1), lambda: 0.0)
    )

    def __call__(self, name: str) -> str:
        """Return a path in the directory."""
        return f"{self.root}/{name}"

    @property
    def moves_directories(self) -> bool:
        """Whether the store renames a directory in one request."""
        return self.store.traits.atomic_directory_rename

    async def write(self, files: Mapping[str, str]) -> None:
        """Write files, with their directories."""
        for name, text in files.items():
            path = self(name)
            if self.store.traits.directories:
                await self.store.mkdir(path.rpartition("/")[0])
            await self.store.put(path, text.encode())

    async def files(self, name: str = "") -> dict[str, str]:
        """Return the content of all files below a directory, by name."""
        top, found = self(name) if name else self.root, dict[str, str]()
        if not await _exists(self.store, top):
            return {}
        async for info in list_tree(self.store, top):
            if info.kind is Kind.FILE:
                data = await self.store.get(info.path, 1_000)
                found[info.path[len(self.root) + 1 :]] = data.decode()
        return found

    async def exists(self, name: str) -> bool:
        """Return whether anything is at a path."""
        return await _exists(self.store, self(name))


async def _exists(store: Store, path: str) -> bool:
    try:
        await store.head(path)
    except NotFoundError:
        return False
    return True


def _open(kind: str, weather: FaultInjector) -> Store:
    if kind == "local":
        return LocalStore()
    if kind == "adls":
        ids = itertools.count()
        account = AdlsAccount("sim", now=lambda: 1.7e9, new_id=lambda: f"id-{next(ids)}")
        account.create_filesystem("data")
        options = {"account": account, "weather": weather, "workers": 8}
        return SimStore(parse_url("abfs://data@sim/"), options)
    if kind == "s3":
        return open_bucket()
    return new_store(Direct(GcsApp(new_service(hns=kind == "gcs with folders"))))


@pytest.fixture
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """A directory of a store of the kind that a test is parametrized with."""
    kind: str = request.param
    weather = FaultInjector(random.Random(1), lambda: 0.0)
    store = wrap(_open(kind, weather), StoreSettings(random.Random(1)))
    root = str(tmp_path) if kind == "local" else "/top"
    if store.traits.directories:
        await store.mkdir(root)
    yield Place(kind, store, root, weather)
    await store.aclose()

"""Jobs whose driver dies, and where they run: the model of a store, and a local directory."""

from __future__ import annotations

import asyncio
import copy
import os
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from asynccommit.options.job import Mode
from asynccommit.stores.base import Store
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.urls import Address
from asynccommit.testing.models.adls.account import AdlsAccount, Node
from asynccommit.testing.models.adls.nodes import find
from asynccommit.testing.models.adls.onelake import OneLakeAccount
from asynccommit.testing.models.crashes import LoopClock, Mortal, MortalStore, Process
from asynccommit.testing.models.fault_rules import ADLS, Climate, Dialect, FaultInjector
from asynccommit.testing.models.hdfs.namenode import HdfsNode
from asynccommit.testing.models.invariants import Item, Tree, marked, tree_of
from tests.support.strikes import CountedWeather

T = TypeVar("T")
M = TypeVar("M", bound="MemoryWorld")
N = TypeVar("N", Node, HdfsNode)

FILESYSTEM = "data"
AUTHORITY = f"{FILESYSTEM}@devstoreaccount1.dfs.core.windows.net"
EPOCH = 1_795_000_000.0
DEST = "/table"
_ENOUGH = 10  # problems


@dataclass(frozen=True)
class DyingJob:
    """A job whose driver dies, and what was at its destination before.

    Attributes:
        name: of the test case.
        tasks: of each task what it writes, relative path -> content.
        before: absolute paths with their content.
        mode: what the job does with what is there.
        options: how it is committed.
        messages: whether the commit is given the commit messages of the tasks.
    """

    name: str
    tasks: tuple[Mapping[str, str], ...]
    before: Mapping[str, str] = field(default_factory=dict)
    mode: Mode = Mode.APPEND
    options: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    messages: bool = field(default=True, kw_only=True)

    def __str__(self) -> str:
        return self.name

    @property
    def marks(self) -> bool:
        """Whether the commit leaves ``_SUCCESS``."""
        return bool(self.options.get("mark_success", True)) or self.mode is Mode.REPLACE_TABLE


def is_data(path: str, table: str) -> bool:
    """Return whether readers of a table look at a path in it."""
    names = path.removeprefix(f"{table}/").split("/")
    return path[-1] != "/" and not any(name[:1] in ("_", ".") for name in names)


class World(Protocol):
    """A store with what is on it, and the processes that ever reached it.

    Attributes:
        processes: by name.
        telling: whether a process's host says if another one of it is running.
        seed: what ids and waits are drawn from.
        words: whether late requests may leave words, see ``asynccommit.testing.models.invariants``.
    """

    processes: dict[str, Process]
    telling: bool
    seed: int
    words: bool

    def store(self, process: Process) -> Store:
        """Return the store as ``process`` reaches it, without any wrapper."""
        ...

    def address(self, path: str) -> Address:
        """Return the address of a path of the scenario."""
        ...

    def time(self) -> float:
        """Return seconds of a clock that counts everything."""
        ...

    def place(self, path: str, text: str) -> None:
        """Put a file, or a directory if ``path`` ends in ``/``, without any request."""
        ...

    def tree(self) -> dict[str, Item]:
        """Return everything that is there, by the paths of the scenario."""
        ...


class ModelWorld(World, Protocol):
    """A world in memory, whose requests can meet weather.

    Attributes:
        weather: what becomes of requests; fair if ``None``.
    """

    weather: FaultInjector | None

    def copy(self) -> Self:
        """Return one with the same content, whose processes are the same."""
        ...

    def storm(self, rng: random.Random, climate: Climate) -> None:
        """Let requests meet bad weather from now on."""
        ...


class Watch:
    """Looks after every change whether ``_SUCCESS`` tells the truth.

    ``problems`` collects what was found wrong, ``jobs`` says what each job has committed.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, Tree] = {}
        self.problems: list[str] = []

    def look(self, tree: Tree) -> None:
        """Check the tree as it is now; of it only single paths are looked up."""
        if self.jobs and len(self.problems) < _ENOUGH:
            self.problems += marked(tree, DEST, self.jobs)


class MemoryWorld:
    """What every world in memory has, whatever its store: processes, weather and a clock."""

    words = False
    dialect: Dialect = ADLS

    def __init__(self, seed: int = 0, weather: FaultInjector | None = None) -> None:
        self.weather = weather
        self.processes: dict[str, Process] = {}
        self.telling = True
        self.seed = seed

    def shared_with(self, made: M) -> M:
        """Give a copy the processes of this world, and return it."""
        made.processes = dict(self.processes)
        made.telling = self.telling
        return made

    def storm(self, rng: random.Random, climate: Climate) -> None:
        """See ``ModelWorld.storm``."""
        self.weather = CountedWeather(rng, self.time, climate, self.dialect)

    def time(self) -> float:
        """See ``World.time``."""
        return asyncio.get_running_loop().time()


class LazyTree(dict[str, Item]):
    """A tree of which single paths are looked up.

    Args:
        find: returns the item of a path, ``None`` if there is none.
    """

    def __init__(self, find: Callable[[str], Item | None]) -> None:
        super().__init__()
        self._find = find

    def get(self, path: str, default: Any = None) -> Any:
        """Return what is at ``path``."""
        found = self._find(path)
        return default if found is None else found


def descend(node: N | None, path: str) -> N | None:
    """Return the node at a path below another one."""
    for name in path[1:].split("/"):
        node = node.children.get(name) if node is not None and node.children else None
    return node


def cloned(node: N) -> N:
    """Return a copy of a node and all that is below it; the contents are shared."""
    made = copy.copy(node)
    if node.children is not None:
        made.children = {name: cloned(child) for name, child in node.children.items()}
    return made


class SimWorld(MemoryWorld):
    """An account of the model. See ``ModelWorld``."""

    root = ""  # the directory of the account where ``/`` of the scenarios is

    def __init__(
        self, account: AdlsAccount, weather: FaultInjector | None = None, seed: int = 0
    ) -> None:
        super().__init__(seed, weather)
        self.account = account

    @classmethod
    def new(cls, seed: int = 0, watch: Watch | None = None) -> SimWorld:
        """Return an empty one, on the running loop's clock."""
        kind = AdlsAccount if watch is None else partial(WatchedAccount, watch, cls.root)
        account = kind("sim", now=clock, new_id=Ids())
        account.create_filesystem(FILESYSTEM)
        return cls(account, seed=seed)

    def copy(self) -> SimWorld:
        """Return one with the same content, whose processes are the same."""
        account = copy.copy(self.account)
        account.new_id = copy.copy(self.account.new_id)
        filesystem = copy.copy(account.head_filesystem(FILESYSTEM))
        filesystem.root = cloned(filesystem.root)
        account._filesystems = {FILESYSTEM: filesystem}
        return self.shared_with(type(self)(account, None, self.seed))

    def store(self, process: Process) -> Store:
        """See ``World.store``."""
        options = {"account": self.account, "weather": self.weather, "patience": 0.5}
        return MortalStore(self.address("/"), options, process)

    def address(self, path: str) -> Address:
        """See ``World.address``."""
        return Address("abfs", AUTHORITY, f"{self.root}{path}".rstrip("/") or "/")

    def place(self, path: str, text: str) -> None:
        """See ``World.place``."""
        name = f"{self.root}{path}".strip("/")
        if path.endswith("/"):
            self.account.create(FILESYSTEM, name, directory=True)
            return
        self.account.create(FILESYSTEM, name)
        if text:
            self.account.append(FILESYSTEM, name, 0, text.encode(), flush=True)

    def tree(self) -> dict[str, Item]:
        """See ``World.tree``."""
        found, root = tree_of(self.account, FILESYSTEM), f"{self.root}/"
        return {path[len(self.root) :]: found[path] for path in found if path.startswith(root)}


class OneLakeWorld(SimWorld):
    """A managed folder of OneLake. See ``ModelWorld``."""

    root = "/Sales.Lakehouse/Files"

    @classmethod
    def new(cls, seed: int = 0, watch: Watch | None = None) -> OneLakeWorld:
        """Return an empty one, on the running loop's clock."""
        kind = OneLakeAccount if watch is None else partial(WatchedOneLake, watch, cls.root)
        account = kind("sim", now=clock, new_id=Ids())
        account.add_workspace(FILESYSTEM, ["Sales.Lakehouse"])
        return cls(account, seed=seed)


class Ids:
    """Makes ids; a copy goes on as this one would, so that equal runs have equal files."""

    def __init__(self) -> None:
        self._next = 0

    def __call__(self) -> str:
        """Return the next one."""
        self._next += 1
        return f"id-{self._next}"


def clock() -> float:
    """Return the time of the model: the running loop's, in this century."""
    return EPOCH + asyncio.get_running_loop().time()


class LocalWorld:
    """A local directory. See ``World``.

    Args:
        root: where ``/`` of the scenarios is.
    """

    words = False

    def __init__(self, root: Path, seed: int = 0) -> None:
        self.root = root
        self.processes: dict[str, Process] = {}
        self.telling = True
        self.seed = seed
        self._store = LocalStore()
        self._clock = LoopClock()

    def store(self, process: Process) -> Store:
        """See ``World.store``; threads are common to all."""
        return Wrapped(self._store, Mortal(process))

    async def aclose(self) -> None:
        """End the threads."""
        await self._store.aclose()

    def address(self, path: str) -> Address:
        """See ``World.address``."""
        return Address("file", "", f"{self.root}{path}" if path != "/" else str(self.root))

    def time(self) -> float:
        """See ``World.time``; threads of the store ask too."""
        return self._clock()

    def place(self, path: str, text: str) -> None:
        """See ``World.place``."""
        there = Path(f"{self.root}{path}")
        if path.endswith("/"):
            there.mkdir(parents=True, exist_ok=True)
            return
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(text)

    def tree(self) -> dict[str, Item]:
        """See ``World.tree``."""
        found: dict[str, Item] = {}
        for path in sorted(self.root.rglob("*")):
            name = str(path)[len(str(self.root)) :]
            if path.is_dir():
                found[name] = Item()
            else:
                stat = path.stat()
                found[name] = Item(path.read_bytes(), f"{stat.st_ino}-{stat.st_mtime_ns}")
        return found

    def keep(self) -> Path:
        """Move everything away, to be brought back by ``bring``; the files keep their identity."""
        kept = self.root.with_name(f"{self.root.name}.kept")
        self.root.rename(kept)
        return kept

    def start(self, kept: Path) -> None:
        """Start anew from what was kept, with no process but those that are gone."""
        self.processes = {}
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(kept, self.root, copy_function=os.link)


class WatchedAccount(AdlsAccount):
    """An account that is looked at after every change."""

    def __init__(self, watch: Watch, root: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._watch = watch
        self._root = root

    def create(self, *args: Any, **kwargs: Any) -> Node:
        """See ``AdlsAccount.create``."""
        return self._checked(super().create(*args, **kwargs))

    def append(self, *args: Any, **kwargs: Any) -> Node:
        """See ``AdlsAccount.append``."""
        return self._checked(super().append(*args, **kwargs))

    def rename(self, *args: Any, **kwargs: Any) -> Node:
        """See ``AdlsAccount.rename``."""
        return self._checked(super().rename(*args, **kwargs))

    def delete(self, *args: Any, **kwargs: Any) -> str | None:
        """See ``AdlsAccount.delete``."""
        return self._checked(super().delete(*args, **kwargs))

    def _checked(self, answer: T) -> T:
        root = find(self.head_filesystem(FILESYSTEM).root, self._root[1:])
        self._watch.look(LazyTree(lambda path: _item(descend(root, path))))
        return answer


class WatchedOneLake(WatchedAccount, OneLakeAccount):
    """The same, of which Fabric manages the items."""


def _item(node: Node | None) -> Item | None:
    if node is None:
        return None
    return Item() if node.is_dir else Item(node.read(), node.etag)

"""Where jobs run whose driver dies, on HDFS: the real store over the model of a NameNode."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Self

from asynccommit.errors import StoreError
from asynccommit.runtime.host import this_host
from asynccommit.stores.base import Page, Store, Traits
from asynccommit.stores.hdfs.store import HdfsStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.urls import Address
from asynccommit.testing.models.crashes import Process
from asynccommit.testing.models.fault_rules import AGAIN, TWICE, Climate
from asynccommit.testing.models.hdfs.client import MortalHdfsClient
from asynccommit.testing.models.hdfs.namenode import HdfsNameNode, HdfsNode, HdfsWriteOptions
from asynccommit.testing.models.invariants import Item
from tests.support.crashes import LazyTree, MemoryWorld, Watch, clock, cloned, descend

NAMENODE = "sim:8020"


class HdfsWorld(MemoryWorld):
    """A NameNode of the model, reached by the store that users have. See ``ModelWorld``."""

    def __init__(self, namenode: HdfsNameNode, seed: int = 0) -> None:
        super().__init__(seed)
        self.namenode = namenode
        self._ids = count()

    @classmethod
    def new(cls, seed: int = 0, watch: Watch | None = None) -> Self:
        """Return an empty one."""
        return cls(HdfsNameNode(clock) if watch is None else WatchedNameNode(watch), seed)

    def copy(self) -> Self:
        """Return one with the same content, whose processes are the same."""
        namenode = copy.copy(self.namenode)
        namenode.root = cloned(namenode.root)
        return self.shared_with(type(self)(namenode, self.seed))

    def storm(self, rng: random.Random, climate: Climate) -> None:
        """See ``ModelWorld.storm``; a NameNode executes a call that comes twice once."""
        rules = tuple(rule for rule in climate.faults if rule.kind not in (TWICE, AGAIN))
        super().storm(rng, replace(climate, faults=rules))

    def store(self, process: Process) -> Store:
        """See ``World.store``; a process is of the user whose name its own begins with."""
        user = "mallory" if process.name.startswith("mallory") else "alice"
        settings = {"weather": self.weather, "patience": 0.5}
        client = MortalHdfsClient(self.namenode, settings, process, user)
        # The names of temporary files are the same in every run of a seed.
        host = replace(this_host(), new_id=lambda: f"id-{process.name}-{next(self._ids)}")
        environ = {"HADOOP_USER_NAME": user}
        return HdfsStore(self.address("/"), environ=environ, client=client, host=host)

    def address(self, path: str) -> Address:
        """See ``World.address``."""
        return Address("hdfs", NAMENODE, path)

    def place(self, path: str, text: str) -> None:
        """See ``World.place``."""
        if path.endswith("/"):
            self.namenode.mkdirs(path, 0o755, True)
            return
        writer = self.namenode.create(path, HdfsWriteOptions())
        writer.write(text.encode())
        writer.close()

    def tree(self) -> dict[str, Item]:
        """See ``World.tree``."""
        return dict(_items(self.namenode.root, ""))


class BatchWorld(HdfsWorld):
    """The same, with several directories in a call, as a local disk takes them."""

    def store(self, process: Process) -> Store:
        """See ``World.store``."""
        return BatchHdfsStore(super().store(process))


class BatchHdfsStore(Wrapped):
    """HDFS with ``list_many``, whose listings fail one by one, and can be cut short.

    Args:
        store: lists each directory.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._traits = replace(store.traits, bulk_list=3)

    @property
    def traits(self) -> Traits:
        """The capabilities of the store."""
        return self._traits

    async def list_many(self, paths: Sequence[str]) -> Sequence[Page | None]:
        """See ``BatchListStore.list_many``."""
        found: list[Page | None] = []
        for path in paths[:-1]:
            try:
                found.append(await self.list(path))
            except StoreError:
                found.append(None)
        return [*found, None]


class WatchedNameNode(HdfsNameNode):
    """A NameNode that is looked at after every change of its names."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(clock)
        self._watch = watch

    def rename(self, source: str, dest: str, overwrite: bool) -> None:
        """See ``HdfsNameNode.rename``."""
        super().rename(source, dest, overwrite)
        self._look()

    def delete(self, path: str, recursive: bool) -> bool:
        """See ``HdfsNameNode.delete``."""
        found = super().delete(path, recursive)
        self._look()
        return found

    def _look(self) -> None:
        self._watch.look(LazyTree(lambda path: _found(descend(self.root, path))))


def _items(node: HdfsNode, path: str) -> list[tuple[str, Item]]:
    found = []
    for name, child in (node.children or {}).items():
        found.append((f"{path}/{name}", _item(child)))
        found += _items(child, f"{path}/{name}")
    return found


def _found(node: HdfsNode | None) -> Item | None:
    return None if node is None else _item(node)


def _item(node: HdfsNode) -> Item:
    return Item() if node.children is not None else Item(node.data, f"{node.number}-{node.time}")

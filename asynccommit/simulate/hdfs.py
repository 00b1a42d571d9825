"""Simulate commits on HDFS, on the model of a NameNode.

A NameNode changes its namespace under one lock: changes are done one after another, in the order in
which they come. Reads are done together, behind the changes that came before. Nothing is refused
for its rate; what comes faster waits.
"""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from asynccommit.simulate.model import PATIENCE, Site, StoreKind
from asynccommit.stores.hdfs.client import QUICK, SLOW
from asynccommit.stores.hdfs.errors import HdfsRequest
from asynccommit.stores.hdfs.store import HdfsStore
from asynccommit.stores.urls import parse_url
from asynccommit.testing.models.fault_rules import FaultInjector
from asynccommit.testing.models.hdfs.client import HDFS as DIALECT
from asynccommit.testing.models.hdfs.client import SimHdfsClient
from asynccommit.testing.models.hdfs.namenode import HdfsNameNode, HdfsNode
from asynccommit.testing.models.in_process import SimRequest
from asynccommit.testing.models.virtual_loop import pause

T = TypeVar("T")

CHANGES = frozenset({"create", "block", "complete", "mkdir", "rename", "delete"})
"""Requests that need the lock for themselves."""

PAGE = 1000
"""Entries of a directory in one response: ``dfs.ls.limit``."""

_DATA = "data"
_PARTS = {
    "put": ("block", _DATA, "complete", "head"),
    "copy": ("read", "block", _DATA, "complete", "head"),
    "get": (_DATA,),
}
"""What a function of the store sends besides its first request. Data goes to a DataNode."""

_DAY_MS = 86_400_000
_NEAR = 1024  # number of directories that are known to exist


class NamespaceLock:
    """The lock of a NameNode, which serves those who wait in their order.

    Args:
        clock: the time in seconds.
        rate: changes per second, and reads per second if they come one by one; ``None`` for a lock
            that nobody waits for.
    """

    def __init__(self, clock: Callable[[], float], rate: float | None) -> None:
        self._clock = clock
        self._seconds = 0.0 if rate is None else 1 / rate
        self._changed = self._read = 0.0

    async def hold(self, op: str) -> None:
        """Wait for the lock, and for the time that an operation holds it."""
        if not self._seconds or op == _DATA:
            return
        now = self._clock()
        if op in CHANGES:
            done = self._changed = max(now, self._changed, self._read) + self._seconds
        else:
            done = max(now, self._changed) + self._seconds
            self._read = max(self._read, done)
        await pause(done - now)


class _Hollow(HdfsNode):
    """A file of a declared size without content."""

    __slots__ = ("declared",)
    declared: int

    @classmethod
    def of(cls, number: int, time: int, size: int) -> _Hollow:
        made = cls(number, time)
        made.declared = size
        return made

    @property
    def size(self) -> int:
        """See ``HdfsNode.size``."""
        return self.declared


class _PackedFile(_Hollow):
    """An unchanging file stored compressed, such as a large manifest."""

    __slots__ = ("packed",)
    packed: bytes

    @classmethod
    def holding(cls, number: int, time: int, data: bytes) -> _PackedFile:
        made = cls(number, time)
        made.declared, made.packed = len(data), zlib.compress(data, 1)
        return made

    @property
    def data(self) -> bytes:
        """The decompressed content."""
        return zlib.decompress(self.packed)

    @data.setter
    def data(self, data: bytes) -> None:
        """Leave the empty content of a new file out."""


class _Client(SimHdfsClient):
    """The requests of one process, with its threads and latency."""

    def __init__(self, namenode: HdfsNameNode, weather: FaultInjector, site: Site) -> None:
        super().__init__(namenode, {"weather": weather, "patience": PATIENCE})
        limit = site.climate.limit
        self.written = 0
        self._faults = weather
        self._lock = NamespaceLock(site.host.clock, None if limit is None else limit.rate)
        self._latency, self._rng = site.climate.latency, site.seeds.rng("parts")
        self._quick = asyncio.Semaphore(min(site.in_flight, QUICK))
        self._slow = asyncio.Semaphore(SLOW)

    async def ask(self, request: HdfsRequest, call: Callable[[Any], T]) -> T:
        """See ``HdfsClient.ask``."""
        async with self._quick:
            return await super().ask(request, call)

    async def work(self, request: HdfsRequest, call: Callable[[Any], T]) -> T:
        """See ``HdfsClient.work``."""
        async with self._slow:
            found = await super().ask(request, call)
            parts = _PARTS.get(request.op, ())
            if request.op == "list" and isinstance(found, Sequence):
                parts = ("list",) * (len(found) // PAGE)
            for part in parts:
                await self._send(part)
            return found

    def close(self, client: Any, writer: Any, path: str, size: int) -> None:
        """See ``HdfsClient.close``."""
        super().close(client, writer, path, size)
        self.written += size

    async def _ask(self, asked: SimRequest, op: str, path: str, apply: Callable[[], T]) -> T:
        await self._lock.hold(op)
        return await super()._ask(asked, op, path, apply)

    async def _send(self, op: str) -> None:
        """Send a further request of a function, which meets no faults."""
        self._faults.requests[op] += 1
        await self._lock.hold(op)
        await pause(self._latency.draw(self._rng))


class Hdfs:
    """One NameNode; see ``Model``."""

    renamed_directories = 0  # They cost what files cost.

    refused = 0  # Nothing is refused for its rate.

    def __init__(self, site: Site) -> None:
        host = site.host
        self.dest = parse_url("hdfs://simulated:8020/table")
        self.namenode = HdfsNameNode(host.now)
        fair = replace(site.climate, limit=None)
        self.weather = FaultInjector(site.seeds.rng("weather"), host.clock, fair, DIALECT)
        self._client = _Client(self.namenode, self.weather, site)
        options: Mapping[str, Any] = {"max_concurrency": site.in_flight}
        self.store = HdfsStore(self.dest, options, environ={}, host=host, client=self._client)
        self._placed, self._began = 0, int(host.now() * 1000) - _DAY_MS
        self._known: set[str] = set()

    def put_file(self, path: str, size: int) -> str:
        """See ``Model.put_file``."""
        number, time = self._next()
        self._place(path, _Hollow.of(number, time, size))
        return f"{time:x}-{size:x}"

    def put_data(self, path: str, data: bytes) -> None:
        """See ``Model.put_data``."""
        self._place(path, _PackedFile.holding(*self._next(), data))

    def put_directory(self, path: str) -> None:
        """See ``Model.put_directory``."""
        self.namenode.mkdirs(path, 0o755, True)

    def files_in(self, path: str) -> int:
        """See ``Model.files_in``."""
        node = self.namenode.find(path)
        return 0 if node is None else len(node.children or ())

    def size(self) -> int:
        """See ``Model.size``: the bytes written, and the entries of directories."""
        root = self.namenode.find(self.dest.path)
        children = {} if root is None else root.children or {}
        return self._client.written + sum(
            sys.getsizeof(node.children) + sum(map(sys.getsizeof, node.children or ()))
            for name, node in children.items()
            if node.children is not None and not name.startswith("_")
        )

    def _place(self, path: str, node: HdfsNode) -> None:
        directory = path.rpartition("/")[0]
        if directory not in self._known:
            if len(self._known) >= _NEAR:
                self._known.clear()
            self.put_directory(directory)
            self._known.add(directory)
        self.namenode.place(path, node)

    def _next(self) -> tuple[int, int]:
        """Return number and time of a new file; other numbers are positive."""
        self._placed += 1
        return -self._placed, self._began + self._placed


HDFS = StoreKind(
    "hdfs", Hdfs, DIALECT, limit=18_000.0, counted="changes", in_flight=64, latency=2.0
)
"""The renames a second of a NameNode in ``docs/benchmarks.md``, and ``max_concurrency`` there."""

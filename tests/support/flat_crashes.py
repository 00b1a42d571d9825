"""Jobs of uploads on a flat account of Azure: the store that users have, over the emulator."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from asynccommit.runtime.host import Host
from asynccommit.stores.adls.flat.store import FlatBlobStore
from asynccommit.stores.adls.flat.wire import block_name
from asynccommit.stores.base import Store
from asynccommit.stores.http.base import READS
from asynccommit.stores.parts import Part
from asynccommit.stores.urls import Address
from asynccommit.testing.emulators.adls.blocks import Blocks
from asynccommit.testing.emulators.adls.call import AdlsCall
from asynccommit.testing.emulators.adls.dfs import AdlsRoute
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.emulators.adls.inprocess import InProcessAdls
from asynccommit.testing.emulators.saved_state import packed
from asynccommit.testing.models.adls.account import Node
from asynccommit.testing.models.adls.nodes import find
from asynccommit.testing.models.crashes import LINGERS, Crashed, InFlight, Process, When
from asynccommit.testing.models.fault_rules import ADLS
from tests.support.crashes import AUTHORITY, FILESYSTEM, clock
from tests.support.upload_jobs import SMALLEST, State, Watch, World

AGENT = "asynccommit-blob"
"""What the store says that it is."""


class Blob(NamedTuple):
    """A blob as ``World`` sees it."""

    key: str
    data: bytes
    etag: str


class FlatContainer:
    """The content of the container, read and changed without requests."""

    def __init__(self, emulator: AdlsEmulator) -> None:
        self.emulator = emulator

    @property
    def objects(self) -> dict[str, Blob]:
        """The blobs by name, those of directories apart."""
        return {blob.key: blob for blob in _blobs(self._root(), "")}

    def get(self, key: str) -> Blob | None:
        """Return one blob."""
        node = find(self._root(), key)
        return Blob(key, node.read(), node.etag) if node is not None and not node.is_dir else None

    def put(self, key: str, data: bytes) -> None:
        """Put a blob; a name that ends in a slash is a directory."""
        account, path = self.emulator.model, key.rstrip("/")
        account.create(FILESYSTEM, path, directory=key[-1] == "/")
        if key[-1] != "/":
            self.blocks.forget(_named(path))
            if data:
                account.append(FILESYSTEM, path, 0, data, flush=True)

    @property
    def blocks(self) -> Blocks:
        """The blocks that no list has named."""
        return self.emulator._blob._blocks

    def stage(self, key: str, upload_id: str, number: int, data: bytes) -> None:
        """Stage a block."""
        home = self.emulator.model.head_filesystem(FILESYSTEM)
        name = block_name(upload_id, number)
        self.blocks.stage(_named(key), home, name, data, clock())

    def _root(self) -> Node:
        return self.emulator.model.head_filesystem(FILESYSTEM).root


def _named(path: str) -> AdlsCall:
    made = SimpleNamespace(account="devstoreaccount1", filesystem=FILESYSTEM, path=path)
    return cast(AdlsCall, made)


def _blobs(node: Node, path: str) -> Iterator[Blob]:
    if node.children is None:
        yield Blob(path, node.read(), node.etag)
        return
    for name, child in node.children.items():
        yield from _blobs(child, f"{path}/{name}" if path else name)


class FlatWorld(World):
    """A container of a flat account. See ``World``."""

    dialect = ADLS

    def __init__(self, emulator: AdlsEmulator, seed: int = 0) -> None:
        super().__init__(cast(Any, FlatContainer(emulator)), seed)
        self.emulator = emulator
        self._watch = Watch()
        self._ids = count()
        self._known: frozenset[tuple[str, str]] | None = None

    @classmethod
    def new(cls, seed: int = 0, *, known: bool = True, **rules: Any) -> FlatWorld:
        """Return an empty one, on the running loop's clock; there are no ``rules``."""
        return cls(_emulator(), seed)

    @property
    def watch(self) -> Watch:
        """What looks after every change."""
        return self._watch

    def copy(self) -> FlatWorld:
        """See ``World.copy``."""
        made = FlatWorld(_emulator(), self.seed)
        made.emulator.restore(_unpacked(packed(self.emulator.state())))
        made.processes, made.tokens = dict(self.processes), self.tokens
        made._watch, made._known = self._watch, self._known
        return made

    def state(self) -> State:
        """See ``World.state``.

        Blocks cannot be deleted, so of the uploads only those count that were there when somebody
        looked first: nobody may end those of others.
        """
        files = {f"/{blob.key}": blob.data for blob in self.container.objects.values()}
        uploads = self._uploads()
        self._known = uploads if self._known is None else self._known
        return State(files, uploads & self._known)

    @property
    def container(self) -> FlatContainer:
        """Its content."""
        return cast(FlatContainer, cast(object, self.bucket))

    def _uploads(self) -> frozenset[tuple[str, str]]:
        found = set()
        for (_, _, path), staged in self.container.blocks._staged.items():
            for name in staged.blocks:
                found.add((f"/{path}", name[:52]))
        return frozenset(found)

    def upload(self, path: str, text: str, token: str = "") -> tuple[str, tuple[Part, ...]]:
        """See ``World.upload``."""
        upload_id, data = f"{'upload'.rjust(24, '_')}-{next(self._ids):016}", text.encode()
        if not data:
            self.container.stage(path[1:], upload_id, 0, b"-")
            return upload_id, (Part(f"{upload_id}.00000"),)
        pieces = [data[at : at + SMALLEST] for at in range(0, len(data), SMALLEST)]
        for number, piece in enumerate(pieces, 1):
            self.container.stage(path[1:], upload_id, number, piece)
        numbers = range(1, len(pieces) + 1)
        return upload_id, tuple(Part(f"{upload_id}.{number:05}") for number in numbers)

    def store(self, process: Process, *, known: bool, host: Host) -> Store:
        """See ``World.store``."""
        key = {"connection_string": self.emulator.connection_string}
        transport = MortalAdls(self, process)
        address = Address("abfs", AUTHORITY, "/")
        return FlatBlobStore(address, key, environ={}, host=host, transport=transport)


def _emulator() -> AdlsEmulator:
    numbers = count()
    host = Host(clock, lambda: f"{next(numbers):032x}", cast(Any, None))
    return AdlsEmulator(hns=False, filesystems=[FILESYSTEM], host=host)


def _unpacked(data: bytes) -> Any:
    return pickle.loads(data)


class MortalAdls(InProcessAdls):
    """The requests of one process, each of which it can die at.

    What is cancelled while it is on the wire takes effect.
    """

    def __init__(self, world: FlatWorld, process: Process) -> None:
        super().__init__(world.emulator, world.weather, patience=0.5, agent=AGENT)
        self._process = process
        self._world = world

    async def exchange(self, call: AdlsCall, route: AdlsRoute, apply: Callable[[], bytes]) -> bytes:
        """See ``InProcessAdls.exchange``."""
        writes = call.method not in READS
        what = f"{route.op} {call.place.removeprefix(FILESYSTEM)}" if writes else ""
        when = await self._process.before(writes, what)
        seen = self._seen(apply) if writes else apply
        if when is not None:
            self._die(when, seen)
        effect = InFlight(seen)
        try:
            return await super().exchange(call, route, effect)
        except asyncio.CancelledError:
            if writes:
                self.later(LINGERS, effect.linger)
            raise
        finally:
            await self._process.after()

    def _seen(self, apply: Callable[[], bytes]) -> Callable[[], bytes]:
        def act() -> bytes:
            answer = apply()
            self._world.watch.look(self._world.bucket)
            return answer

        return act

    def _die(self, when: When, apply: Callable[[], bytes]) -> None:
        crash = self._process.crash
        if when is When.LATE and crash is not None:
            self.later(crash.late, apply)
        if when is When.AFTER:
            apply()
        raise Crashed(self._process.name)

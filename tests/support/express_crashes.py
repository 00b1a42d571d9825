"""Where jobs run whose driver dies, on directory buckets: the real store over the model."""

from __future__ import annotations

import asyncio
import random
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.s3.renaming_store import S3RenamingStore
from asynccommit.stores.urls import Address
from asynccommit.testing.emulators.s3_express.app import ExpressApp
from asynccommit.testing.emulators.s3_express.call import ExpressCall
from asynccommit.testing.emulators.s3_express.inprocess import ExpressInProcess
from asynccommit.testing.emulators.s3_express.wire import ExpressResponse
from asynccommit.testing.models.crashes import LINGERS, Crashed, InFlight, Process, When
from asynccommit.testing.models.fault_rules import Climate, FaultInjector
from asynccommit.testing.models.invariants import Item
from asynccommit.testing.models.s3.directory_bucket import (
    DirectoryBucket,
    DirectoryRules,
    DirectoryService,
)
from asynccommit.testing.models.s3.objects import S3Object
from asynccommit.testing.models.s3.refusals import S3_EXPRESS
from tests.support.crashes import Ids, Watch, clock
from tests.support.express import BUCKET, OPTIONS
from tests.support.strikes import CountedWeather

_LONG = 1e9
"""Seconds of a session: a store without policies sends nothing again that one has ended for."""
KINDS: Mapping[str, DirectoryRules] = {
    "express": DirectoryRules(session=_LONG),
    "express-new-etags": DirectoryRules(
        session=_LONG, keeps_etag=False, remembers=1e9, missing="PreconditionFailed"
    ),
}
"""The undocumented points, each both ways."""


class ExpressWorld:
    """A directory bucket of the model, reached by the real store. See ``ModelWorld``."""

    words = True

    def __init__(
        self, service: DirectoryService, kind: str, seed: int = 0, watch: Watch | None = None
    ) -> None:
        self.service = service
        self.weather: FaultInjector | None = None
        self.kind = kind
        self.processes: dict[str, Process] = {}
        self.telling = True
        self.seed = seed
        self._watch = watch

    @classmethod
    def new(cls, kind: str = "express", seed: int = 0, watch: Watch | None = None) -> ExpressWorld:
        """Return an empty one, of one of ``KINDS``."""
        service = DirectoryService(now=clock, new_id=Ids())
        service.create_bucket(BUCKET, KINDS[kind])
        return cls(service, kind, seed, watch)

    def copy(self) -> ExpressWorld:
        """Return one with the same content, whose processes are the same."""
        made = ExpressWorld(self.service.copy(), self.kind, self.seed)
        made.processes = dict(self.processes)
        made.telling = self.telling
        return made

    def storm(self, rng: random.Random, climate: Climate) -> None:
        """See ``ModelWorld.storm``."""
        now = asyncio.get_running_loop().time
        self.weather = CountedWeather(rng, now, climate, S3_EXPRESS)

    def store(self, process: Process) -> Store:
        """See ``World.store``."""
        app = WatchedExpress(self.service, self._watch)
        transport = MortalExpress(app, self.weather, process)
        options = {**OPTIONS, "max_concurrency": 6, "conditional_put": True}
        rng = random.Random(self.seed)
        host = Host(now=clock, new_id=self.service.new_id, rng=rng)
        return S3RenamingStore(
            self.address("/"), options, environ={}, host=host, transport=transport
        )

    def address(self, path: str) -> Address:
        """See ``World.address``."""
        return Address("s3", BUCKET, path)

    def time(self) -> float:
        """See ``World.time``."""
        return asyncio.get_running_loop().time()

    @property
    def bucket(self) -> DirectoryBucket:
        """The model of the bucket."""
        return self.service.bucket(BUCKET)

    def place(self, path: str, text: str) -> None:
        """See ``World.place``."""
        self.bucket.put(path[1:], text.encode(), algorithm="CRC32")

    def tree(self) -> dict[str, Item]:
        """See ``World.tree``; what something is below of is a directory."""
        found: dict[str, Item] = {}
        for key, one in self.bucket.objects.items():
            found[f"/{key}".rstrip("/")] = item_of(one)
        for path in list(found):
            while (path := path.rpartition("/")[0]) and path not in found:
                found[path] = Item()
        return found


def item_of(one: S3Object) -> Item:
    """Return what an object is, known by its content; a placeholder is a directory."""
    if one.key.endswith("/"):
        return Item()
    return Item(one.data, f"{zlib.crc32(one.data):08x}", version=one.etag)


class WatchedExpress(ExpressApp):
    """The service as one that looks after every change."""

    def __init__(self, service: DirectoryService, watch: Watch | None) -> None:
        super().__init__(service)
        self._watch = watch

    def perform(self, call: ExpressCall) -> ExpressResponse:
        """See ``ExpressApp.perform``."""
        answer = super().perform(call)
        if call.writes and self._watch is not None:
            self._watch.look(_Lazy(self.service.bucket(BUCKET)))
        return answer


class _Lazy(dict[str, Item]):
    """The tree of the bucket, looked up path by path."""

    def __init__(self, bucket: DirectoryBucket) -> None:
        super().__init__()
        self._bucket = bucket

    def get(self, path: str, default: Any = None) -> Any:
        """Return what is at ``path``."""
        found = self._bucket.objects.get(path[1:])
        return default if found is None else item_of(found)


class MortalExpress(ExpressInProcess):
    """The requests of one process, each of which it can die at.

    What is cancelled while it is on the wire takes effect.
    """

    def __init__(self, app: ExpressApp, weather: FaultInjector | None, process: Process) -> None:
        super().__init__(app, weather, patience=0.5)
        self._process = process

    async def exchange(
        self, call: ExpressCall, apply: Callable[[], ExpressResponse]
    ) -> ExpressResponse:
        """See ``ExpressInProcess.exchange``."""
        what = f"{call.op} /{call.place}" if call.writes else ""
        when = await self._process.before(call.writes, what)
        if when is not None:
            self._die(when, apply)
        effect = InFlight(apply)
        try:
            return await super().exchange(call, effect)
        except asyncio.CancelledError:
            if call.writes:
                self.later(LINGERS, effect.linger)
            raise
        finally:
            await self._process.after()

    def _die(self, when: When, apply: Callable[[], ExpressResponse]) -> None:
        crash = self._process.crash
        if when is When.LATE and crash is not None:
            self.later(crash.late, apply)
        if when is When.AFTER:
            apply()
        raise Crashed(self._process.name)

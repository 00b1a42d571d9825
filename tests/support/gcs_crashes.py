"""Where jobs run whose driver dies, on Google Cloud Storage: the real store over the model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from asynccommit.stores.base import Store
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.urls import Address
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.emulators.gcs.call import GcsCall
from asynccommit.testing.emulators.gcs.inprocess import InProcess
from asynccommit.testing.emulators.gcs.wire import GcsResponse
from asynccommit.testing.models.crashes import LINGERS, Crashed, InFlight, Process, When
from asynccommit.testing.models.fault_rules import FaultInjector
from asynccommit.testing.models.gcs.model import BucketOptions, GcsService
from asynccommit.testing.models.gcs.refusals import GCS
from asynccommit.testing.models.invariants import Item, bucket_item, bucket_tree
from tests.support.crashes import Ids, LazyTree, MemoryWorld, Watch, clock

BUCKET = "data"
OPTIONS = {"endpoint_url": "http://gcs.test", "token": "anon", "max_concurrency": 6}


class GcsWorld(MemoryWorld):
    """A bucket of the model, reached by the store that users have. See ``ModelWorld``."""

    words = True
    dialect = GCS

    def __init__(
        self, service: GcsService, kind: str, seed: int = 0, watch: Watch | None = None
    ) -> None:
        super().__init__(seed)
        self.service = service
        self.kind = kind
        self._watch = watch

    @classmethod
    def new(cls, kind: str = "flat", seed: int = 0, watch: Watch | None = None) -> GcsWorld:
        """Return an empty one: ``flat``, ``hns``, or ``steps`` whose server knows no moves."""
        service = GcsService(now=clock, new_id=Ids())
        options = BucketOptions(hns=kind == "hns", moves=kind != "steps")
        service.create_bucket(BUCKET, options)
        return cls(service, kind, seed, watch)

    def copy(self) -> GcsWorld:
        """Return one with the same content, whose processes are the same."""
        return self.shared_with(GcsWorld(self.service.copy(), self.kind, self.seed))

    def store(self, process: Process) -> Store:
        """See ``World.store``."""
        app = GcsApp(self.service) if self._watch is None else WatchedApp(self.service, self._watch)
        transport = MortalTransport(app, self.weather, process)
        return GcsStore(self.address("/"), OPTIONS, environ={}, transport=transport)

    def address(self, path: str) -> Address:
        """See ``World.address``."""
        return Address("gs", BUCKET, path)

    def place(self, path: str, text: str) -> None:
        """See ``World.place``."""
        self.service.insert(BUCKET, path[1:], text.encode())

    def tree(self) -> dict[str, Item]:
        """See ``World.tree``; what something is below of is a directory."""
        found = bucket_tree(self.service, BUCKET)
        objects = self.service.held(BUCKET).objects
        for path, item in found.items():
            if item.data is not None:
                version = f"{objects[path[1:]].generation}-{item.etag}"
                found[path] = item._replace(version=version)
        for path in list(found):
            while (path := path.rpartition("/")[0]) and path not in found:
                found[path] = Item()
        return found


class WatchedApp(GcsApp):
    """The service as one that looks after every change, those of a batch one by one."""

    def __init__(self, service: GcsService, watch: Watch) -> None:
        super().__init__(service)
        self._watch = watch

    def perform(self, call: GcsCall) -> GcsResponse:
        """See ``GcsApp.perform``."""
        answer = super().perform(call)
        if call.writes:
            self._watch.look(LazyTree(partial(bucket_item, self.service, BUCKET)))
        return answer


class MortalTransport(InProcess):
    """The requests of one process, each of which it can die at.

    What is cancelled while it is on the wire takes effect.
    """

    def __init__(self, app: GcsApp, weather: FaultInjector | None, process: Process) -> None:
        super().__init__(app, weather, patience=0.5)
        self._process = process

    async def exchange(self, call: GcsCall, apply: Callable[[], GcsResponse]) -> GcsResponse:
        """See ``InProcess.exchange``."""
        what = f"{call.route.op} {call.place.removeprefix(BUCKET)}" if call.writes else ""
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

    def _die(self, when: When, apply: Callable[[], GcsResponse]) -> None:
        crash = self._process.crash
        if when is When.LATE and crash is not None:
            self.later(crash.late, apply)
        if when is When.AFTER:
            apply()
        raise Crashed(self._process.name)

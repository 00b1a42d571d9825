"""Jobs on models of the stores that respond to each request after 30 ms of virtual time.

As many requests are in flight as the real stores keep by default.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar, cast

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.by_upload.magic import MagicCommitter
from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.commit.layouts.uploads import MagicLayout
from asynccommit.options.job import Options
from asynccommit.stores.adls.flat.store import FlatBlobStore
from asynccommit.stores.base import Store
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.s3.renaming_store import S3RenamingStore
from asynccommit.stores.urls import Address, parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.emulators.adls.inprocess import InProcessAdls
from asynccommit.testing.emulators.s3_express.app import ExpressApp
from asynccommit.testing.emulators.s3_express.inprocess import ExpressInProcess
from asynccommit.testing.models.adls.account import AdlsAccount
from asynccommit.testing.models.adls.store import SimStore
from asynccommit.testing.models.fault_rules import CLEAR, FaultDecision, FaultInjector
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import S3Bucket
from asynccommit.testing.models.seeds import Seeds
from tests.support.express import BUCKET as EXPRESS_BUCKET
from tests.support.express import OPTIONS as EXPRESS_OPTIONS
from tests.support.express import new_service
from tests.support.storms import host

ANSWER = 0.03
ADLS = parse_url("abfs://data@sim.dfs.core.windows.net/table")
S3 = Address("s3", "data", "/table")

J = TypeVar("J", bound=ManifestCommitter | MagicCommitter)


class Cost(NamedTuple):
    """A number of requests, and how many of them one after the other."""

    requests: int
    trips: int


class JobCost(NamedTuple):
    """The cost of the first task's commit and of the job's; round trips to ``_SUCCESS``."""

    task: Cost
    job: Cost
    visible: int


@dataclass
class SteadyWeather:
    """The weather of a store that responds to each request after 30 ms."""

    seen: list[tuple[float, str, str]] = field(default_factory=list)

    def decide(self, op: str, path: str) -> FaultDecision:
        """Note a request."""
        self.seen.append((asyncio.get_running_loop().time(), op, f"/{path.lstrip('/')}"))
        return CLEAR._replace(before=ANSWER)

    def visible(self) -> float:
        """Return the time at which ``_SUCCESS`` is in its place."""
        ends = (
            ("rename", "/table/_SUCCESS"),
            ("put", "/table/_SUCCESS"),
            ("create", "/data/table/_SUCCESS"),
        )
        return next(at + ANSWER for at, *request in self.seen if tuple(request) in ends)


class _Measured(Generic[J]):
    job: J

    def __init__(self) -> None:
        self.seeds = Seeds(0)
        self.host = host(0)
        self.weather = SteadyWeather()
        self.messages: list[TaskCommit] = []

    def wrapped(self, inner: Store) -> Store:
        """Return a store with the usual policies."""
        return wrap(inner, StoreSettings(self.seeds.rng("store"), clock=self.host.clock))

    async def cost(self, step: Awaitable[object]) -> Cost:
        """Return the cost of a step."""
        begin, requests = asyncio.get_running_loop().time(), len(self.weather.seen)
        await step
        trips = (asyncio.get_running_loop().time() - begin) / ANSWER
        return Cost(len(self.weather.seen) - requests, round(trips))

    async def run_task(self, task: int, files: int, partitions: int) -> Cost:
        """Write and commit a task; return the cost of its commit, which is kept as a message."""
        task_id, attempt_id = self.job.layout.ids(task)
        base = await self.job.setup_task(attempt_id)
        for number in range(files):
            await self.write(base, attempt_id, f"day={number % partitions}", f"f{task}-{number}")
        return await self.cost(self._commit_task(task_id, attempt_id))

    async def run(self, files: int, tasks: int, partitions: int) -> JobCost:
        """Run and commit a job of ``files`` files."""
        await self.job.setup_job()
        share = files // tasks
        costs = [await self.run_task(number, share, partitions) for number in range(tasks)]
        await asyncio.sleep(1)  # In a job the tasks run elsewhere: the driver has nothing to send.
        begin = asyncio.get_running_loop().time()
        cost = await self.cost(self.job.commit_job(self.messages))
        return JobCost(costs[0], cost, round((self.weather.visible() - begin) / ANSWER))

    async def write(self, base: str, attempt_id: str, partition: str, name: str) -> None:
        """Write one file of a task."""
        await self.job.work(attempt_id).put(f"{partition}/{name}", b"x")

    async def _commit_task(self, task_id: str, attempt_id: str) -> None:
        self.messages.append(await self.job.commit_task(task_id, attempt_id))


class MeasuredJob(_Measured[ManifestCommitter]):
    """A job on ADLS whose requests are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.account = AdlsAccount("sim", now=self.host.now, new_id=self.seeds.ids("account"))
        self.account.create_filesystem("data")
        self.store = self.wrapped(
            SimStore(ADLS, {"account": self.account, "weather": self.weather, "workers": 512})
        )
        self.job = ManifestCommitter(self.store, Layout(ADLS, "job"), Options(), self.host)

    async def write(self, base: str, attempt_id: str, partition: str, name: str) -> None:
        """Write one file of a task."""
        await self.store.mkdir(f"{base}/{partition}")
        await self.store.put(f"{base}/{partition}/{name}", b"x")


class MeasuredUploads(_Measured[MagicCommitter]):
    """A job of uploads on S3 whose requests are counted."""

    def __init__(self) -> None:
        super().__init__()
        bucket = S3Bucket("data", now=self.host.now, new_id=self.seeds.ids("bucket"))
        self.store = self.wrapped(
            SimS3Store(S3, {"bucket": bucket, "weather": self.weather, "workers": 256})
        )
        layout = MagicLayout(S3, "0123abcd-0000-4000-8000-000000000001")
        self.job = MagicCommitter(self.store, layout, Options(), self.host)


class MeasuredBlocks(MeasuredUploads):
    """A job of block lists on a flat account of Azure, the store that users have."""

    def __init__(self) -> None:
        super().__init__()
        emulator = AdlsEmulator(hns=False, filesystems=["data"], host=self.host)
        weather = cast(FaultInjector, self.weather)
        transport = InProcessAdls(emulator, weather, agent="asynccommit-blob")
        options = {"connection_string": emulator.connection_string}
        address = parse_url("abfs://data@devstoreaccount1.dfs.core.windows.net/table")
        self.store = self.wrapped(
            FlatBlobStore(address, options, environ={}, host=self.host, transport=transport)
        )
        layout = MagicLayout(address, "0123abcd-0000-4000-8000-000000000001")
        self.job = MagicCommitter(self.store, layout, Options(), self.host)


class MeasuredExpress(_Measured[ManifestCommitter]):
    """A job in a directory bucket of S3 whose requests are counted."""

    def __init__(self) -> None:
        super().__init__()
        transport = ExpressInProcess(ExpressApp(new_service(host=self.host)), self.weather)
        options = {**EXPRESS_OPTIONS, "conditional_put": True}
        address = Address("s3", EXPRESS_BUCKET, "/table")
        self.store = self.wrapped(
            S3RenamingStore(address, options, environ={}, host=self.host, transport=transport)
        )
        self.job = ManifestCommitter(self.store, Layout(address, "job"), Options(), self.host)

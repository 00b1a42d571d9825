"""Jobs whose requests are executed twice: they end, with at most twice as many requests.

Something on the way may send a request twice. The client gets the response of the second execution,
or that of the first, and then the second comes at once or when other requests have been made.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.by_upload.magic import MagicCommitter
from asynccommit.commit.layouts.layout import SUCCESS, Layout
from asynccommit.commit.layouts.uploads import MagicLayout
from asynccommit.commit.tasks.output import Work
from asynccommit.errors import CommitError
from asynccommit.options.job import Options
from asynccommit.options.uploads import UploadOptions
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.tree import list_if_there
from asynccommit.stores.urls import Address, parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from asynccommit.testing.emulators.s3_proxy.emulator import S3Proxy
from asynccommit.testing.models.fault_rules import (
    AGAIN,
    BEFORE,
    CUT_BEFORE,
    TWICE,
    Climate,
    Fault,
    FaultInjector,
)
from asynccommit.testing.models.gcs.model import BucketOptions
from asynccommit.testing.models.latency import Latency
from tests.support.s3_servers import moto_url, new_bucket, options
from tests.support.storms import BUCKET, FILESYSTEM, ROOT, Size, host

__all__ = ["moto_url"]

SIZE = Size(tasks=2, files=6, partitions=3)
BLOCKS = {"adls": 16 << 10, "flat": 256 << 10, "hns": 256 << 10, "steps": 256 << 10, "s3": 5 << 20}
"""The least size of a block, or of a part, of each service."""
WAYS = {
    "second response": (TWICE, 0.0),
    "first response": (AGAIN, 0.0),
    "late": (AGAIN, 0.02),
}
Committer = ManifestCommitter | MagicCommitter
OPS = {
    "adls": ("create", "append", "rename", "delete", "mkdir", "*"),
    "flat": ("insert", "move", "delete", "*"),
    "hns": ("insert", "move", "folder", "*"),
    "steps": ("insert", "rewrite", "delete", "*"),
    "s3": ("put", "create_upload", "put_part", "complete_upload", "delete", "delete_many", "*"),
}
BLOCK_OPS = {
    "adls": ("flush", "append flush", "*"),
    "flat": ("insert upload", "*"),
    "steps": ("insert upload", "*"),
    "s3": ("put_part complete_upload", "*"),
}
DENIED = {
    "rename": "AuthorizationFailure",
    "move": "forbidden",
    "rewrite": "forbidden",
    "complete_upload": "AccessDenied",
}
MOVED = r"^[^/]+/table/(_temporary/.*/tasks/.*)?day="
"""What is moved or completed: rules know the source of a move on Google Cloud Storage."""
ENDS = ("commit", "resume", "rollback")


@dataclass
class Place:
    """A service, as one store reaches it.

    Attributes:
        store: sends the requests.
        dest: the destination of the job.
        weather: what becomes of them.
        denial: refuses what is moved or completed, but for the first.
        size: what a job writes.
        block: bytes of a block if files are written in blocks.
    """

    store: Wrapped
    dest: Address
    weather: FaultInjector
    denial: Fault
    size: Size = SIZE
    block: int = 0

    def committer(self) -> Committer:
        """Return the side of the job of a new process."""
        if self.store.traits.multipart is not None:
            uploads = MagicLayout(self.dest, "00000001-2222-3333-4444-555555555555", 0)
            options = Options(uploads=UploadOptions(part_size=BLOCKS["s3"]))
            return MagicCommitter(self.store, uploads, options, host(1))
        layout = Layout(self.dest, "job_202601010000_0001")
        return ManifestCommitter(self.store, layout, Options(), host(1))

    def content(self, name: str) -> bytes:
        """Return the bytes of a file: two full blocks and some more, if it has blocks."""
        return random.Random(name).randbytes(2 * self.block) + name.encode()

    async def write(self, work: Work, name: str) -> None:
        """Write a file of a task, in blocks or at once."""
        if not self.block:
            await work.put(name, self.content(name))
            return
        async with await work.open(name) as file:
            await file.write(self.content(name))

    async def visible(self) -> dict[str, bytes]:
        """Return the files that readers see and the marker, by their names."""
        found, folders = dict[str, bytes](), [self.dest.path]
        while folders:
            for info in await list_if_there(self.store, folders.pop()):
                name = info.path.removeprefix(f"{self.dest.path}/")
                if info.is_dir and not name.startswith(("_temporary", "__magic")):
                    folders.append(info.path)
                elif not info.is_dir:
                    found[name] = await self.store.get(info.path, 1 << 24)
        return found


@asynccontextmanager
async def placed(kind: str, climate: Climate, moto: str = "") -> AsyncIterator[Place]:
    """Open a service of ``OPS`` with these faults."""
    if kind == "adls":
        async with AdlsEmulator(climate=climate) as adls:
            adls.model.create_filesystem(FILESYSTEM)
            given: dict[str, Any] = {"connection_string": adls.connection_string}
            given["fs.azure.write.request.size"] = BLOCKS["adls"]
            async with _opened(f"{ROOT}/table", given, adls.weather, "rename") as place:
                yield place
        return
    if kind == "s3":
        bucket = await asyncio.to_thread(new_bucket, moto)
        async with S3Proxy(moto, climate=climate) as proxy:
            given, url = options(proxy.endpoint), f"s3://{bucket}/table"
            async with _opened(url, given, proxy.weather, "complete_upload") as place:
                yield place
        return
    buckets = {BUCKET: BucketOptions(hns=kind == "hns", moves=kind != "steps")}
    async with GcsEmulator(climate=climate, buckets=buckets) as gcs:
        given = {"endpoint_url": gcs.endpoint, "token": "anon", "chunk": BLOCKS[kind]}
        op = "rewrite" if kind == "steps" else "move"
        async with _opened(f"gs://{BUCKET}/table", given, gcs.weather, op) as place:
            yield place


@asynccontextmanager
async def _opened(
    url: str, given: dict[str, Any], weather: FaultInjector, op: str
) -> AsyncIterator[Place]:
    dest = parse_url(url)
    denial = Fault(BEFORE, op, path=MOVED, code=DENIED[op], skip=1)
    store = open_store(dest.at("/"), StoreSettings(random.Random(1), options=given))
    try:
        yield Place(store, dest, weather, denial)
    finally:
        await store.aclose()


async def run(place: Place, end: str) -> int:
    """Run a job to one of ``ENDS``; return the number of requests that were sent."""
    first = place.committer()
    await first.setup_job()
    commits = []
    for task in range(place.size.tasks):
        task_id, attempt_id = first.layout.ids(task)
        await first.setup_task(attempt_id)
        for name in place.size.names(task):
            await place.write(first.work(attempt_id), name)
        commits.append(await first.commit_task(task_id, attempt_id))
    if end == "commit":
        await first.commit_job(commits, strict=True)
        return place.weather.requests.total()
    doubled = place.weather.climate
    place.weather.climate = Climate((place.denial, *doubled.faults))
    with pytest.raises(CommitError):
        await first.commit_job(commits, strict=True)
    place.weather.climate = doubled
    second = place.committer()
    await (second.resume_job() if end == "resume" else second.rollback_job())
    return place.weather.requests.total()


async def ended(place: Place, end: str) -> int:
    """Run a job, check its end, and return the number of its requests."""
    sent = await run(place, end)
    place.weather.clear()
    await asyncio.sleep(0.05)  # what is late has come
    names = [name for task in range(place.size.tasks) for name in place.size.names(task)]
    wanted = {name: place.content(name) for name in names}
    found = await place.visible()
    marked = found.pop(SUCCESS, b"") != b""
    assert (found, marked) == (({}, False) if end == "rollback" else (wanted, True))
    return sent


def doubled(ops: Iterable[str], way: str) -> Climate:
    """Return a climate in which each of these requests is executed twice."""
    kind, delay = WAYS[way]
    return Climate(tuple(Fault(kind, op, delay=Latency(first=delay)) for op in ops))


@pytest.mark.every(3)
@pytest.mark.sample(12)
@pytest.mark.timeout(30)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind, op", [(kind, op) for kind, ops in OPS.items() for op in ops])
async def test_every_request_is_executed_twice(
    kind: str, op: str, way: str, end: str, request: pytest.FixtureRequest
) -> None:
    """The job ends as it does in calm weather, and sends at most twice the requests."""
    moto = request.getfixturevalue("moto_url") if kind == "s3" else ""
    async with placed(kind, Climate(), moto) as place:
        calm = await ended(place, end)
    async with placed(kind, doubled([op], way), moto) as place:
        sent = await ended(place, end)
        assert any(rule.startswith(WAYS[way][0]) for rule in place.weather.struck)

    assert sent <= 2 * calm


async def test_every_append_and_flush_is_executed_twice() -> None:
    """A commit on ADLS ends, and so does a resume: their drafts are moved under the new etag."""
    for end in ENDS:
        async with placed("adls", Climate()) as place:
            calm = await ended(place, end)
        async with placed("adls", doubled(["append", "flush"], "first response")) as place:
            assert await ended(place, end) <= 2 * calm


@pytest.mark.every(3)
@pytest.mark.sample(4)
@pytest.mark.timeout(60)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind, ops", [(kind, op) for kind, ops in BLOCK_OPS.items() for op in ops])
async def test_every_block_is_sent_twice(
    kind: str, ops: str, way: str, end: str, request: pytest.FixtureRequest
) -> None:
    """Files that tasks write in blocks have the exact bytes, after at most twice the requests."""
    moto = request.getfixturevalue("moto_url") if kind == "s3" else ""
    async with placed(kind, Climate(), moto) as place:
        place.size, place.block = Size(2, 3, 3), BLOCKS[kind]
        calm = await ended(place, end)
    async with placed(kind, doubled(ops.split(), way), moto) as place:
        place.size, place.block = Size(2, 3, 3), BLOCKS[kind]
        sent = await ended(place, end)
        struck = place.weather.struck

    assert {f"{WAYS[way][0]} {op}" for op in ops.split() if op != "*"} <= {*struck}, struck
    assert sent <= 2 * calm


@pytest.mark.parametrize("name", ["record", "outcome", "job-owner"])
async def test_a_lost_move_of_a_draft_whose_append_came_twice(name: str) -> None:
    """The draft is still there, so the move was not done: it is moved under its present etag."""
    (append,) = doubled(["append"], "first response").faults
    lost = Fault(CUT_BEFORE, "rename", path=rf"_temporary/.*{name}[^/]*\.json$", every=2)
    async with placed("adls", Climate((append, lost))) as place:
        await run(place, "commit")
        assert place.weather.struck["cut_before rename"] > 0
        place.weather.clear()
        assert len(await place.visible()) == SIZE.tasks * SIZE.files + 1

"""Batches of Spark's file sink whose drivers die, with tasks that outlive them."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable

import pytest

from asynccommit.errors import NotFoundError
from asynccommit.stores.base import Store
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.tree import remove_file
from asynccommit.streaming.batch_names import BatchNames, NamedRun, named_run, token_of
from asynccommit.streaming.entries import FOLDER
from asynccommit.streaming.expire import Discarded
from asynccommit.streaming.log import SinkFile
from asynccommit.testing.models.crashes import Crash, Process, When
from asynccommit.testing.models.fault_rules import Climate
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.test_sink_log import KINDS, LATENCY, dest, new, on, until_death, writer
from tests.support.crashes import ModelWorld
from tests.support.sink import announce, entry

FIRST, SECOND = "0f3e8a21-9c4d-4b1e", "aaaaaaaa-aaaa-4aaa"
LIMIT = 1 << 20
Work = Callable[[ModelWorld, Counter[str]], Awaitable[None]]


class Driver:
    """A driver that runs batches of two files, and does what the protocol has it do."""

    def __init__(self, world: ModelWorld, token: str, crash: Crash | None = None) -> None:
        self.world, self.token = world, token
        self.log, self.process = writer(world, token[:4], crash)
        self.store = store_of(world, f"{token[:4]}-names", self.process)
        self.names = BatchNames(self.store, dest(world), LIMIT)

    async def run(self, *, fails: bool = False) -> None:
        """Start, and run the batch that the log lacks, with an announcement for the next one."""
        newest = await self.log.latest()
        batch = 0 if newest is None else newest + 1
        left = await self.names.announced()
        run = NamedRun(batch, self.token, "q")
        await announce(self.store, dest(self.world), run)
        files = [await write(self.store, self.world, self.token, n) for n in range(2)]
        if fails:
            await self.names.abort(run, [file.path for file in files], sent=False)
            return
        await self.log.add(batch, files, query="q")
        await self.remove(run)
        ahead = NamedRun(batch + 1, f"{self.token[:-4]}4fff", "q")
        await announce(self.store, dest(self.world), ahead)
        await self.names.settle(one for one in left if one.batch <= batch)
        await self.remove(ahead)

    async def remove(self, run: NamedRun) -> None:
        """Remove an announcement."""
        await remove_file(self.store, dest(self.world).child(FOLDER, run.name).path)


def store_of(world: ModelWorld, name: str, process: Process | None = None) -> Store:
    """Return the store of a world as a process reaches it."""
    rng = random.Random(f"{world.seed} {name}")
    return wrap(world.store(process or Process(name)), StoreSettings(rng, attempts=20))


async def write(store: Store, world: ModelWorld, token: str, number: int) -> SinkFile:
    """Write a file as a task does, and return its entry."""
    name = f"part-{number:05d}-{token}-8000-0123456789ab-c000.parquet"
    await store.put(dest(world).child(name).path, b"rows")
    return entry(dest(world), name)


async def late_task(world: ModelWorld, seen: Counter[str]) -> None:
    """Write a file of the first run's, and then look whether that run has ended."""
    store = store_of(world, "task")
    file = await write(store, world, FIRST, 7)
    path = dest(world).child(file.path.rpartition("/")[2]).path
    try:
        await store.head(dest(world).child(FOLDER, NamedRun(0, FIRST, "q").name).path)
        seen["kept"] += 1
    except NotFoundError:
        seen["gave up"] += 1
        try:
            await remove_file(store, path)
        except NotFoundError:  # the later start was faster
            seen["both"] += 1


async def left(world: ModelWorld) -> tuple[set[str], list[str]]:
    """Return the files with a token that no batch lists, and the announcements."""
    reader, _ = writer(world, "reader")
    store = store_of(world, "eyes")
    listed = {file.path.rpartition("/")[2] for file in await reader.files()}
    table, log = dest(world).path, dest(world).child(FOLDER).path
    there = {info.path.rpartition("/")[2] for info in (await store.list(table)).entries}
    hidden = [info.path.rpartition("/")[2] for info in (await store.list(log)).entries]
    return {n for n in there - listed if token_of(n)}, [n for n in hidden if named_run(n)]


@pytest.mark.sample(1)
@pytest.mark.parametrize("when", When)
@pytest.mark.parametrize("kind", KINDS)
def test_a_death_at_every_write(kind: str, when: When) -> None:
    """Whatever the driver died at, and the next one too, two batches later there is no file that is
    in no batch, and no announcement."""

    async def work(world: ModelWorld) -> None:
        whole = Driver(world.copy(), FIRST)
        await whole.run()
        for number in range(1, len(whole.process.writes) + 1):
            again = world.copy()
            await until_death(Driver(again, FIRST, Crash(number, when)).run())
            for second in range(1, 12, 3):
                twice = again.copy()
                await until_death(Driver(twice, SECOND, Crash(second, when)).run())
                for last in ("bbbbbbbb-bbbb-4bbb", "cccccccc-cccc-4ccc"):
                    await Driver(twice, last).run()
                assert await left(twice) == (set(), []), (number, second)

    on(kind, work)


def weather(
    work: Callable[[ModelWorld, Counter[str]], Awaitable[None]], seeds: range
) -> Counter[str]:
    """Run a test with each seed in virtual time; return what was seen."""
    seen: Counter[str] = Counter()

    async def run(seed: int) -> None:
        await work(await new("adls", seed), seen)

    for seed in seeds:
        run_virtual(run(seed))
    return seen


async def outlived(world: ModelWorld, seen: Counter[str]) -> None:
    """Have a driver die before its batch is listed, and a task of its end at some later moment."""
    rng = random.Random(world.seed)
    world.storm(random.Random(world.seed), Climate.from_json({"latency": LATENCY}))
    await until_death(Driver(world, FIRST, Crash(4, When.BEFORE)).run())

    async def late() -> None:
        await asyncio.sleep(rng.uniform(0, 12))
        await late_task(world, seen)

    task = asyncio.create_task(late())
    await Driver(world, SECOND).run()
    await task
    seen["orphans"] += len((await left(world))[0])
    seen["runs"] += 1


async def aborted(world: ModelWorld, seen: Counter[str]) -> None:
    """Have a batch fail, or its driver die in the abort; a task of it died, another goes on."""
    rng = random.Random(world.seed)
    world.storm(random.Random(world.seed), Climate.from_json({"latency": LATENCY}))
    await write(store_of(world, "dead task"), world, FIRST, 9)
    crash = rng.choice([None, Crash(rng.randint(4, 6), rng.choice([*When]))])

    async def late() -> None:
        await asyncio.sleep(rng.uniform(0, 12))
        await late_task(world, seen)

    task = asyncio.create_task(late())
    await until_death(Driver(world, FIRST, crash).run(fails=True))
    seen["died"] += crash is not None
    await Driver(world, SECOND).run()
    await task
    seen["orphans"] += len((await left(world))[0])
    seen["rows"] += len(await writer(world, "reader")[0].files())


SEEDS = range(500_000, 500_060)


def test_tasks_that_outlive_their_driver() -> None:
    """Either the task sees that its run has ended, or the later start sees its file."""
    seen = weather(outlived, SEEDS)

    assert seen["orphans"] == 0, seen
    assert seen["kept"] > 0, seen
    assert seen["gave up"] > 0, seen


def test_tasks_that_outlive_an_abort() -> None:
    """A batch that failed leaves nothing after its next run, whatever its tasks wrote later."""
    seen = weather(aborted, SEEDS)

    assert seen["orphans"] == 0, seen
    assert seen["rows"] == 2 * len(SEEDS), seen
    assert min(seen["kept"], seen["gave up"], seen["died"]) > 0, seen


def test_announcement_that_goes_last_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a start that takes the announcement away after it has looked loses files."""

    async def later(self: BatchNames, run: NamedRun) -> list[str]:
        await self._store.put(self._path(NamedRun(run.batch, run.token, run.query, True)), b"")
        return []

    monkeypatch.setattr(BatchNames, "_end", later)

    assert weather(outlived, SEEDS)["orphans"] > 0


def test_abort_that_withdraws_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: an abort that takes its announcement away has nobody look for what comes later."""
    abort = BatchNames.abort

    async def withdrawn(
        self: BatchNames, run: NamedRun, files: Iterable[str], *, sent: bool
    ) -> Discarded:
        done = await abort(self, run, files, sent=sent)
        await self._remove(run)
        return done

    monkeypatch.setattr(BatchNames, "abort", withdrawn)

    assert weather(aborted, SEEDS)["orphans"] > 0

"""Sink logs whose writers die, race, or hear no answer: each batch is there once, or not at all."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count

import pytest

from asynccommit.errors import OutcomeUnknownError, SinkLogForeignError, SinkLogRaceError
from asynccommit.runtime.host import Host
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.urls import Address
from asynccommit.streaming.log import Added, SinkFile, SinkLog, SinkLogSettings
from asynccommit.testing.models.crashes import Crash, Crashed, Process, When
from asynccommit.testing.models.fault_profiles import LOSSY, STORM
from asynccommit.testing.models.fault_rules import Climate
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.worlds import KINDS as RENAMING
from tests.crash.worlds import new_world
from tests.support.crashes import ModelWorld, clock
from tests.support.s3_crashes import S3World
from tests.support.sink import entry

KINDS = (*RENAMING, "s3")
SETTINGS = SinkLogSettings(interval=3, keep=2, cleanup_delay=0.0)
BATCHES = 8
"""So many that the last ones compact and expire."""


def writer(
    world: ModelWorld,
    name: str,
    crash: Crash | None = None,
    settings: SinkLogSettings = SETTINGS,
) -> tuple[SinkLog, Process]:
    """Return the log as a new process reaches it."""
    process = Process(name, crash)
    rng = random.Random(f"{world.seed} {name}")
    numbers = count()
    host = Host(clock, lambda: f"{name}-{next(numbers)}", rng)
    store = wrap(world.store(process), StoreSettings(rng, attempts=20))
    return SinkLog(store, dest(world), settings, host=host), process


def dest(world: ModelWorld) -> Address:
    """Return the table."""
    return world.address("/table")


def files_of(world: ModelWorld, batch: int, who: str = "") -> list[SinkFile]:
    """Return what a batch adds; the fourth one nothing."""
    size = 0 if batch == 3 else 2
    return [entry(dest(world), f"part-{batch}-{n}{who}") for n in range(size)]


async def new(kind: str, seed: int = 0) -> ModelWorld:
    """Return a world with an empty table."""
    world: ModelWorld = S3World.new(seed) if kind == "s3" else new_world(kind, seed)
    world.place("/table/part-old", "x")
    return world


async def until_death(work: Awaitable[object]) -> None:
    """Let a process work until it dies."""
    try:
        await work
    except* Crashed:
        pass


def names(files: list[SinkFile]) -> list[str]:
    """Return the last names of files."""
    return [file.path.rpartition("/")[2] for file in files]


def on(kind: str, work: Callable[[ModelWorld], Awaitable[None]], seed: int = 0) -> None:
    """Run a test in virtual time."""

    async def run() -> None:
        await work(await new(kind, seed))

    run_virtual(run())


# --- crashes ---------------------------------------------------------------------------------


@pytest.mark.sample(8)
@pytest.mark.parametrize("when", When)
@pytest.mark.parametrize("kind", KINDS)
def test_a_crash_at_every_write(kind: str, when: When) -> None:
    """Whatever it died at, the batch is written again by a new process, and is there once."""

    async def work(world: ModelWorld) -> None:
        log, process = writer(world, "whole")
        for batch in range(BATCHES):
            before, done = world.copy(), len(process.writes)
            await log.add(batch, files_of(world, batch), query="q")
            writes = len(process.writes) - done
            assert writes > 0
            for write in range(1, writes + 1):
                await died(before.copy(), batch, Crash(write, when, late=30.0))

    on(kind, work)


async def died(world: ModelWorld, batch: int, crash: Crash) -> None:
    """Die while adding a batch, then add it again in a new process, with other files."""
    log, _ = writer(world, "first", crash)
    await until_death(log.add(batch, files_of(world, batch), query="q"))
    log, _ = writer(world, "second")
    for _ in range(2):
        await log.add(batch, files_of(world, batch, "-again"), query="q")
    await asyncio.sleep(60)  # whatever was late has come

    seen = names(await log.files())
    first = names([f for b in range(batch) for f in files_of(world, b)])
    once, again = names(files_of(world, batch)), names(files_of(world, batch, "-again"))
    assert seen in (first + once, first + again), crash
    await log.add(batch + 1, files_of(world, batch + 1), query="q")
    assert names(await log.files()) == seen + names(files_of(world, batch + 1))


@pytest.mark.parametrize("kind", KINDS)
def test_a_crash_in_the_query_after_a_batch(kind: str) -> None:
    """A query that dies before its checkpoint knows of a batch writes it again, to no effect."""

    async def work(world: ModelWorld) -> None:
        for batch in range(BATCHES):
            log, _ = writer(world, f"run-{batch}")
            assert await log.add(batch, files_of(world, batch), query="q") is Added.NEW
            log, _ = writer(world, f"rerun-{batch}")
            again = files_of(world, batch, "-again")
            assert await log.add(batch, again, query="q") is Added.ALREADY
            assert not set(names(again)) & set(names(await log.files()))

    on(kind, work)


# --- races -----------------------------------------------------------------------------------


@pytest.mark.sample(5)
@pytest.mark.parametrize("queries", [("q", "q"), ("q", "p")])
@pytest.mark.parametrize("kind", KINDS)
def test_two_writers_of_one_batch(kind: str, queries: tuple[str, str]) -> None:
    """Exactly one of two wins, whatever the batch is; the other is told, and loses no file."""

    async def work(world: ModelWorld) -> None:
        world.storm(random.Random(world.seed), Climate.from_json({"latency": LATENCY}))
        for batch in range(BATCHES):
            answers = await asyncio.gather(
                *(race(world, batch, who, query) for who, query in enumerate(queries))
            )
            assert answers.count("new") == 1
            winner = answers.index("new")
            seen = names(await writer(world, "reader")[0].files())
            wanted = names(files_of(world, batch, f"-{batch}-{winner}"))
            assert seen[len(seen) - len(wanted) :] == wanted
            assert len(seen) == len(set(seen)) == sum(2 for b in range(batch + 1) if b != 3)

    for seed in range(5):
        on(kind, work, seed)


LATENCY = {"model": "uniform", "low": 0.01, "high": 0.5}


async def race(world: ModelWorld, batch: int, who: int, query: str) -> str:
    """Add a batch while another does; returns what became of it."""
    log, _ = writer(world, f"racer-{batch}-{who}")
    try:
        added = await log.add(batch, files_of(world, batch, f"-{batch}-{who}"), query=query)
    except (SinkLogRaceError, SinkLogForeignError):
        return "lost"
    return added.value if batch == 3 or added is Added.NEW else "lost"


@pytest.mark.parametrize("kind", KINDS)
def test_two_writers_with_other_intervals(kind: str) -> None:
    """Of a plain and a compact file for one batch readers take the compact one; its rival hears."""

    async def work(world: ModelWorld) -> None:
        log, _ = writer(world, "first")
        for batch in range(2):
            await log.add(batch, files_of(world, batch), query="q")
        wide, process = writer(world, "wide", settings=SinkLogSettings(interval=10))

        async def between() -> None:
            await log.add(2, files_of(world, 2), query="q")

        process.hooks[1] = between
        with pytest.raises(SinkLogRaceError, match="with a different compact interval"):
            await wide.add(2, files_of(world, 2, "-x"), query="x")
        seen = names(await writer(world, "reader")[0].files())
        assert seen == names([f for b in range(3) for f in files_of(world, b)])

    on(kind, work)


@pytest.mark.parametrize("kind", KINDS)
def test_reading_while_batches_expire(kind: str) -> None:
    """A reader that listed before a compaction finds all files all the same."""

    async def work(world: ModelWorld) -> None:
        world.storm(random.Random(world.seed), Climate.from_json({"latency": LATENCY}))
        log, _ = writer(world, "writer")
        counts: list[int] = []
        done = False

        async def read() -> None:
            reader, _ = writer(world, "reader")
            while not done:
                seen = names(await reader.files())
                assert len(seen) == len(set(seen))
                counts.append(len(seen))

        reading = asyncio.create_task(read())
        for batch in range(3 * BATCHES):
            await log.add(batch, files_of(world, batch), query="q")
        done = True
        await reading
        assert counts == sorted(counts)
        assert len(set(counts)) > 3

    on(kind, work)


# --- lost responses ----------------------------------------------------------------------------


@pytest.mark.sample(5)
@pytest.mark.parametrize("climate", [LOSSY, STORM], ids=["lossy", "storm"])
@pytest.mark.parametrize("kind", KINDS)
def test_lost_answers(kind: str, climate: Climate) -> None:
    """In bad weather every batch is there once; whoever is not sure adds it again."""

    async def work(world: ModelWorld) -> None:
        world.storm(random.Random(world.seed), climate)
        wanted: list[str] = []
        for batch in range(2 * BATCHES):
            wanted += await persist(world, batch)
        world.storm(random.Random(0), Climate())
        assert names(await writer(world, "reader")[0].files()) == wanted

    for seed in range(5):
        on(kind, work, seed)


async def persist(world: ModelWorld, batch: int) -> list[str]:
    """Add a batch until it is known to be there; returns its files."""
    for attempt in range(10):
        log, _ = writer(world, f"{batch}-{attempt}")
        files = files_of(world, batch, f"-{attempt}")
        with suppress(OutcomeUnknownError):
            if await log.add(batch, files, query="q") is Added.NEW:
                return names(files)
            # An earlier attempt has it, though it did not hear so.
            seen = names(await log.files())
            return [name for name in seen if name.startswith(f"part-{batch}-")]
    raise AssertionError(f"batch {batch} is never settled")


SILENCE = Climate.from_json({"faults": [{"kind": "cut", "op": "*", "probability": 1.0}]})
"""Every request is done, and no answer comes."""
DROPPED = Climate.from_json(
    {
        "faults": [
            {
                "kind": "late",
                "op": "*",
                "probability": 1.0,
                "reply": "cut",
                "delay": {"model": "uniform", "low": 5000.0, "high": 5000.0},
            }
        ]
    }
)
"""Every request is done long after its sender has given up."""


REQUEST_OF_BATCH = {"adls": 3, "hdfs": 2}
"""Of the requests that write a batch, the one that makes it visible; elsewhere it is the first."""


@pytest.mark.sample(5)
@pytest.mark.parametrize("climate", [SILENCE, DROPPED], ids=["done", "late"])
@pytest.mark.parametrize("kind", KINDS)
def test_abort_after_a_lost_answer(kind: str, climate: Climate) -> None:
    """While nobody can tell whether a batch is in the log, or comes to it, no file of it goes."""

    async def work(world: ModelWorld) -> None:
        world.storm(random.Random(0), Climate())
        weather = world.weather
        assert weather is not None
        log, process = writer(world, "first")
        await log.add(0, files_of(world, 0), query="q")
        files = files_of(world, 1)
        for file in files:
            world.place(f"/table/{names([file])[0]}", "0123456789")

        async def silence() -> None:
            weather.climate = climate

        process.hooks[len(process.writes) + REQUEST_OF_BATCH.get(kind, 1)] = silence
        with pytest.raises(OutcomeUnknownError):
            await log.add(1, files, query="q")
        weather.clear()
        aborted = [
            await log.abort(1, files),
            await writer(world, "other")[0].abort(1, files, sent=True),
        ]
        assert [done.deleted for done in aborted] == [[], []]
        await asyncio.sleep(6000)

        added = await writer(world, "second")[0].add(1, files, query="q")
        assert added in (Added.ALREADY, Added.NEW)
        listed = names(await log.files())
        assert listed == names(files_of(world, 0) + files)
        assert set(names(files)) <= {path.rpartition("/")[2] for path in world.tree()}

    on(kind, work)

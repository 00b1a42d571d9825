"""The NameNode that jobs are simulated on."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.errors import CommitError, ThrottledError
from asynccommit.simulate import simulate
from asynccommit.simulate.hdfs import PAGE, Hdfs, NamespaceLock
from asynccommit.simulate.placed import ModelTaskWriter, visible
from asynccommit.simulate.run import Figures, World, run_commit
from asynccommit.simulate.setup import Setup
from asynccommit.stores.hdfs.client import QUICK
from asynccommit.testing.models.fault_profiles import CLIMATES
from asynccommit.testing.models.fault_rules import Climate, Fault
from asynccommit.testing.models.latency import Latency, RequestLimit
from asynccommit.testing.models.virtual_loop import VirtualLoop, run_virtual

SMALL = Setup(files=600, tasks=6, partitions=4, store="hdfs")


def _world(runner: asyncio.Runner, setup: Setup) -> tuple[World, Hdfs]:
    world = World(setup, runner.get_loop())
    assert isinstance(world.model, Hdfs)
    return world, world.model


def _runner() -> asyncio.Runner:
    return asyncio.Runner(loop_factory=lambda: VirtualLoop(math.inf))


def _at(setup: Setup, rate: float | None, latency: float) -> Figures:
    limit = None if rate is None else RequestLimit(rate, rate / 10)
    return run_commit(replace(setup, climate=Climate((), Latency(first=latency), limit)))


def test_every_file_is_renamed_once() -> None:
    """In fair weather there is one rename a file, and directories of many files move whole."""
    figures = run_commit(SMALL)
    whole = run_commit(replace(SMALL, tasks=2))

    assert SMALL.files <= figures.requests["rename"] < SMALL.files + 20
    assert whole.requests["rename"] < SMALL.files / 2 + 20
    assert (figures.struck, figures.refused, figures.recovered) == ({}, 0, {})


def test_the_destination_holds_the_job_and_nothing_else() -> None:
    """It is a commit: the marker is there, and nothing of the job's directory."""
    with _runner() as runner:
        world, model = _world(runner, SMALL)
        tasks = ModelTaskWriter(model, world.layout, world.setup).all_tasks(lambda files: None)
        runner.run(world.commit(tasks))

    found = [status.path for status in model.namenode.list_status("/table")]
    assert found == ["/table/_SUCCESS", *(f"/table/day={number:05}" for number in range(4))]
    assert visible(model, SMALL) == SMALL.files


def test_changes_are_done_one_after_another() -> None:
    """Behind a slow lock a commit takes as long as its changes, and nothing is refused."""
    setup = replace(SMALL, files=2_000, partitions=1_000)
    slow, quick = _at(setup, 1_000, 0.001), _at(setup, 4_000, 0.001)
    took = [one.stages["job_stage_rename_files"] for one in (slow, quick)]

    assert took == [pytest.approx(2.0, rel=0.05), pytest.approx(0.5, rel=0.1)]
    assert slow.refused == 0
    assert "rate" not in slow.waited


def test_without_a_lock_only_threads_and_latency_count() -> None:
    """As many requests are in flight as the client of the store has threads."""
    setup = replace(SMALL, files=2_000, partitions=1_000, in_flight=1_000)
    took = _at(setup, None, 0.01).stages["job_stage_rename_files"]

    assert took == pytest.approx(2_000 * 0.01 / QUICK, rel=0.3)


def test_the_lock_serves_in_order() -> None:
    """Reads are done together, behind the changes before them; a change waits for both."""

    async def run() -> list[tuple[str, float]]:
        loop = asyncio.get_running_loop()
        lock, done = NamespaceLock(loop.time, 10), list[tuple[str, float]]()

        async def hold(op: str) -> None:
            await lock.hold(op)
            done.append((op, round(loop.time(), 6)))

        ops = ("rename", "head", "list", "delete", "data", "mkdir")
        await asyncio.gather(*map(hold, ops))
        return done

    assert run_virtual(run()) == [
        ("data", 0.0),
        ("rename", 0.1),
        ("head", 0.2),
        ("list", 0.2),
        ("delete", 0.3),
        ("mkdir", 0.4),
    ]


def test_a_large_directory_takes_several_responses() -> None:
    """The NameNode answers a listing with so many entries at a time."""
    with _runner() as runner:
        _, model = _world(runner, SMALL)
        for number in range(2 * PAGE + 1):
            model.put_file(f"/table/large/{number}", 5)
        model.put_file("/table/small/0", 5)
        runner.run(_list(model, "/table/large"))
        large = model.weather.requests["list"]
        runner.run(_list(model, "/table/small"))

    assert large == 3
    assert model.weather.requests["list"] == large + 1


async def _list(model: Hdfs, path: str) -> None:
    await model.store.list(path)


def test_a_file_is_written_by_several_requests() -> None:
    """The traits of the store name as many as are counted."""
    with _runner() as runner:
        _, model = _world(runner, SMALL)
        model.put_directory("/table")
        before = model.weather.requests.total()
        runner.run(model.store.put("/table/x", b"content"))
        put = model.weather.requests.total() - before - model.weather.requests["data"]

    assert put + model.weather.requests["data"] == model.store.traits.costs["put"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["lossy", "throttled", "storm", "late"])
def test_a_job_is_committed_in_every_weather(name: str) -> None:
    """The named climates speak in the exceptions of a NameNode, and nothing is lost or doubled."""
    climate = replace(CLIMATES[name], latency=Latency(first=0.002), limit=RequestLimit(18_000, 1))
    figures = run_commit(replace(SMALL, partitions=300, climate=climate, seed=3))

    assert sum(figures.struck.values()) > 20
    assert figures.warnings == ()
    assert figures.requests["rename"] > SMALL.files


def test_an_exception_of_the_namenode_is_its_error() -> None:
    """A quota ends the commit with the remedy, and a busy NameNode is asked later."""
    full = Climate((Fault("before", "rename", "/day=", code="NSQuotaExceededException"),))
    with pytest.raises(CommitError, match=r"the quota of names is used up: .* -setQuota"):
        run_commit(replace(SMALL, climate=full))
    with _runner() as runner:
        _, model = _world(runner, SMALL)
        model.weather.add(Fault("before", "head"))
        with pytest.raises(ThrottledError, match="too busy"):
            runner.run(_head(model, "/"))


async def _head(model: Hdfs, path: str) -> None:
    await model.store.head(path)


def test_content_that_is_nowhere_has_a_size() -> None:
    """Files take no memory but for their names; manifests are packed and read as any file."""
    with _runner() as runner:
        _, model = _world(runner, SMALL)
        etag = model.put_file("/table/a/b", 1 << 27)
        model.put_data("/table/m", b"manifest" * 100)
        info = runner.run(model.store.head("/table/a/b"))
        other = runner.run(model.store.head("/table/m"))
        data = runner.run(model.store.get("/table/m", 1 << 20))

    assert (info.size, info.etag) == (1 << 27, etag)
    assert other.size == len(data) == 800
    assert data == b"manifest" * 100


def test_a_commit_that_died_is_resumed() -> None:
    """The model has the rules of a NameNode: what a failed commit has moved is not moved again."""
    with _runner() as runner:
        world, model = _world(runner, replace(SMALL, partitions=150))
        tasks = ModelTaskWriter(model, world.layout, world.setup).all_tasks(lambda files: None)
        rule = Fault("before", "rename", r"part-00003", code="AccessControlException", times=1)
        model.weather.add(rule)
        with pytest.raises(CommitError, match="AccessControlException"):
            runner.run(world.commit(tasks))
        half = visible(model, world.setup)
        report = runner.run(_committer(world).resume_job())

    assert 0 < half < SMALL.files
    assert report.resumed
    assert visible(model, world.setup) == SMALL.files


def _committer(world: World) -> ManifestCommitter:
    return world.committer(world.wrapped())


def test_a_large_job_is_extrapolated() -> None:
    """Time is proportional to files, so a job told from smaller ones takes what it takes."""
    setup = replace(SMALL, files=12_000, tasks=60, partitions=10)
    exact, told = simulate(setup), simulate(replace(setup, exact=6_000))

    assert told.extrapolated
    assert told.free is None
    assert told.figures.seconds == pytest.approx(exact.figures.seconds, rel=0.06)

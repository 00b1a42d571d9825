"""The bucket of Google Cloud Storage that jobs are simulated on."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest

from asynccommit.errors import ThrottledError
from asynccommit.simulate.gcs import BUCKET, Gcs
from asynccommit.simulate.placed import ModelTaskWriter, visible
from asynccommit.simulate.run import Figures, World, run_commit
from asynccommit.simulate.setup import Setup
from asynccommit.stores.base import Ramp
from asynccommit.testing.models.fault_profiles import CLIMATES
from asynccommit.testing.models.fault_rules import Climate
from asynccommit.testing.models.invariants import bucket_tree
from asynccommit.testing.models.latency import Latency, RequestLimit
from asynccommit.testing.models.virtual_loop import VirtualLoop

STORES = ("gcs", "gcs-hns")
SMALL = Setup(files=600, tasks=6, partitions=4, store="gcs")


def _world(runner: asyncio.Runner, setup: Setup) -> tuple[World, Gcs]:
    world = World(setup, runner.get_loop())
    assert isinstance(world.model, Gcs)
    return world, world.model


def _runner() -> asyncio.Runner:
    return asyncio.Runner(loop_factory=lambda: VirtualLoop(math.inf))


def _rename_at(setup: Setup, rate: float | None, latency: float = 0.01) -> Figures:
    limit = None if rate is None else RequestLimit(rate, rate / 10)
    return run_commit(replace(setup, climate=Climate((), Latency(first=latency), limit)))


@pytest.mark.sample(1)
@pytest.mark.parametrize("store", STORES)
def test_every_file_is_moved_once(store: str) -> None:
    """In fair weather there is one move a file, besides that of the marker."""
    figures = run_commit(replace(SMALL, store=store))

    assert figures.requests["move"] == SMALL.files + 1
    assert figures.struck == {}
    assert (figures.refused, figures.recovered) == (0, {})


@pytest.mark.parametrize("store", STORES)
def test_the_destination_holds_the_job_and_nothing_else(store: str) -> None:
    """It is a commit: the marker is there, and nothing of the job's directory."""
    with _runner() as runner:
        world, model = _world(runner, replace(SMALL, store=store))
        tasks = ModelTaskWriter(model, world.layout, world.setup).all_tasks(lambda files: None)
        runner.run(world.commit(tasks))

    files = {
        path for path, item in bucket_tree(model.service, BUCKET).items() if item.data is not None
    }
    assert len(files) == SMALL.files + 1
    assert "/table/_SUCCESS" in files
    assert visible(model, SMALL) == SMALL.files
    assert not any("_temporary" in path for path in bucket_tree(model.service, BUCKET))


@pytest.mark.sample(1)
@pytest.mark.full
@pytest.mark.parametrize("store, most", [("gcs", 1_000), ("gcs-hns", 8_000)])
def test_a_cold_bucket_sets_the_pace(store: str, most: float) -> None:
    """Renames go as fast as a bucket takes writes that nobody asked for much yet."""
    setup = Setup(files=4_000, tasks=8, partitions=4, store=store, in_flight=2_000)
    took = run_commit(setup).stages["job_stage_rename_files"]

    assert 0.9 * 4_000 / most < took < 1.1 * 4_000 / most + 2


def test_a_warm_bucket_takes_more() -> None:
    """``limit`` is what the bucket takes now, and the store is told the same."""
    cold, warm, free = (_rename_at(SMALL, rate) for rate in (100, 400, None))
    took = [one.stages["job_stage_rename_files"] for one in (cold, warm, free)]

    assert took[0] == pytest.approx(6, rel=0.1)
    assert took[1] == pytest.approx(1.5, rel=0.2)
    assert took[2] < took[1]
    assert cold.refused < 20


@pytest.mark.full
def test_the_rate_grows_by_and_by() -> None:
    """The more a bucket is asked for, the more it takes, and the store goes with it."""
    setup = Setup(files=2_000, tasks=4, partitions=4, store="gcs", share=10 / 1_200)
    slow, quick = _rename_at(replace(setup, share=100.0), 100), _rename_at(setup, 100)
    grown = 10 * math.log2(1 + 2_000 / 100 / 10 * math.log(2))

    assert slow.stages["job_stage_rename_files"] == pytest.approx(20, rel=0.05)
    assert quick.stages["job_stage_rename_files"] == pytest.approx(grown, rel=0.1)


def test_the_store_is_told_what_the_bucket_takes() -> None:
    """The store holds the ramp of the bucket, or none."""
    with _runner() as runner:
        _, cold = _world(runner, SMALL)
        _, warm = _world(runner, replace(SMALL, climate=Climate((), limit=RequestLimit(3_000, 1))))
        _, free = _world(runner, SMALL.unlimited())

    assert cold.store.traits.ramp == Ramp(5_000, 1_000, 1_200)
    assert warm.store.traits.ramp == Ramp(15_000, 3_000, 1_200)
    assert free.store.traits.ramp is None


def test_what_the_bucket_refuses_is_counted() -> None:
    """Who asks a cold bucket for more than it takes is refused, and the model knows how often."""
    with _runner() as runner:
        _, model = _world(runner, replace(SMALL, climate=Climate((), limit=RequestLimit(10, 5))))
        said = runner.run(_put(model, 20))

    assert said.count(True) == 15
    assert model.refused == 15


async def _put(model: Gcs, files: int) -> list[bool]:
    """Write files at once; returns for each whether it was refused for the rate."""
    paths = (f"/table/{number}" for number in range(files))
    done = await asyncio.gather(
        *(model.store.put(path, b"") for path in paths), return_exceptions=True
    )
    return [isinstance(one, ThrottledError) for one in done]


@pytest.mark.sample(2)
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("name", ["lossy", "throttled", "storm", "late"])
def test_a_job_is_committed_in_every_weather(store: str, name: str) -> None:
    """The named climates speak with the codes of the service, and nothing is lost or doubled."""
    climate = replace(CLIMATES[name], latency=Latency(first=0.01), limit=RequestLimit(2_000, 200))
    figures = run_commit(replace(SMALL, store=store, climate=climate, seed=3))

    assert sum(figures.struck.values()) > 20
    assert figures.warnings == ()
    assert figures.requests["move"] > SMALL.files


def test_content_that_is_nowhere_has_a_size_and_a_checksum() -> None:
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


@pytest.mark.parametrize("store", STORES)
def test_a_directory_is_what_the_store_would_make(store: str) -> None:
    """An empty directory is a placeholder, or a folder."""
    with _runner() as runner:
        _, model = _world(runner, replace(SMALL, store=store))
        model.put_directory("/table/empty")

        assert runner.run(model.store.head("/table/empty")).is_dir
    assert ("table/empty/" in model.service.get_bucket(BUCKET).objects) is (store == "gcs")
    assert ("table/empty/" in model.service.get_bucket(BUCKET).folders) is (store == "gcs-hns")


def test_a_job_that_stands_for_a_larger_one_waits_for_no_name() -> None:
    """Whether a name is waited for is chance, which must not be drawn out a hundred times."""
    with _runner() as runner:
        _, whole = _world(runner, SMALL)
        _, part = _world(runner, SMALL.of(60))

    assert whole.store.traits.name_interval == 1
    assert part.store.traits.name_interval == 0
    assert part.store.traits.ramp == Ramp(5_000, 1_000, 120)
    assert whole.service.get_bucket(BUCKET).options.quotas.name_interval == 1
    assert part.service.get_bucket(BUCKET).options.quotas.name_interval is None

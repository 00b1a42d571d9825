"""One simulated commit: its requests are counted, its time is that of the store's answers."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest

from asynccommit.commit.meter import Progress
from asynccommit.errors import CommitError, OptionError
from asynccommit.options.job import Options
from asynccommit.simulate.adls import FILESYSTEM, Adls
from asynccommit.simulate.placed import ModelTaskWriter, visible
from asynccommit.simulate.run import LOAD_STAGE, World, planning_seconds, run_commit
from asynccommit.simulate.setup import Setup
from asynccommit.simulate.steady import simulate
from asynccommit.testing.models.fault_profiles import LOSSY
from asynccommit.testing.models.fault_rules import Climate, Fault
from asynccommit.testing.models.latency import Latency, RequestLimit
from asynccommit.testing.models.virtual_loop import VirtualLoop

SMALL = Setup(files=600, tasks=6, partitions=4)


def test_every_file_is_renamed_once() -> None:
    """In fair weather there is one rename a file, besides those of the job's own files."""
    figures = run_commit(SMALL)

    assert SMALL.files <= figures.requests["rename"] < SMALL.files + 30
    assert figures.requests["mkdir"] >= SMALL.partitions
    assert figures.struck == {}
    assert (figures.refused, figures.recovered) == (0, {})
    assert sum(figures.stages.values()) <= figures.seconds


def test_the_destination_holds_the_job_and_nothing_else() -> None:
    """It is a commit: the marker is there, and nothing of the job's directory."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(math.inf)) as runner:
        world = World(SMALL, runner.get_loop())
        tasks = ModelTaskWriter(world.model, world.layout, SMALL).all_tasks(lambda files: None)
        runner.run(world.commit(tasks))

    assert isinstance(world.model, Adls)
    found = [name for name, _ in world.model.account.list(FILESYSTEM, "table").entries]
    assert found == ["table/_SUCCESS", *(f"table/day={number:05}" for number in range(4))]
    assert visible(world.model, SMALL) == SMALL.files


def test_time_is_that_of_the_answers() -> None:
    """Twice the latency is twice the time, where nothing else is waited for."""
    times = []
    for latency in (0.05, 0.1):
        climate = Climate((), Latency(first=latency), None)
        times.append(run_commit(Setup(files=50, tasks=2, partitions=2, climate=climate)).seconds)

    assert times[0] >= 10 * 0.05
    assert times[1] == pytest.approx(2 * times[0], rel=0.05)


def test_few_in_flight_bound_the_rate() -> None:
    """With one request at a time every rename takes a whole answer's time."""
    climate = Climate((), Latency(first=0.01), None)
    figures = run_commit(Setup(files=200, tasks=2, partitions=2, in_flight=1, climate=climate))

    assert figures.stages["job_stage_rename_files"] == pytest.approx(200 * 0.01, rel=0.05)


def test_a_limit_is_met() -> None:
    """Above the limit requests are refused, waited for, and done in the end."""
    climate = Climate((), Latency(first=0.01), RequestLimit(500, 50))
    figures = run_commit(Setup(files=3_000, tasks=6, partitions=1_500, climate=climate))

    assert figures.struck["limit"] == figures.refused > 0
    assert figures.waited["rate"] > 0
    assert figures.seconds > 3_000 / 500


def test_lost_answers_are_settled() -> None:
    """Of renames whose answer was lost most are found done, and none is done twice."""
    climate = Climate(LOSSY.faults, Latency(first=0.01), None)
    figures = run_commit(Setup(files=2_000, tasks=6, partitions=4, climate=climate))

    assert figures.struck["cut"] > 50
    assert figures.recovered["rename"] > 50
    assert SMALL.files < figures.requests["rename"] < 2_000 + 100


def test_the_seed_decides() -> None:
    """The same seed gives the same figures, another one others."""
    climate = Climate(LOSSY.faults, Latency("uniform", 0.01, 0.05), None)
    setups = [Setup(300, 3, 2, climate, seed=seed) for seed in (1, 1, 2)]
    told = [(found.seconds, found.requests) for found in map(run_commit, setups)]

    assert told[0] == told[1] != told[2]


def test_options_of_the_commit_count() -> None:
    """What a user sets for a commit holds in a simulated one."""
    usual = run_commit(SMALL)
    bare = Setup(600, 6, 4, options=Options(validate=False, mark_success=False))
    figures = run_commit(bare)

    assert figures.requests["list"] <= usual.requests["list"] - 4
    assert figures.requests["rename"] < usual.requests["rename"]


def test_progress_is_told_of_both_parts() -> None:
    """Who waits is told of the files that are put there, and of the commit, in real seconds."""
    told: list[Progress] = []
    run_commit(SMALL, told.append)
    stages = [progress.stage for progress in told]
    placed = [progress for progress in told if progress.stage == "place_files"]

    assert (placed[-1].done, placed[-1].total) == (600, 600)
    assert "job_stage_rename_files" in stages
    assert [one.seconds for one in told] == sorted(one.seconds for one in told)


def test_a_commit_that_fails_is_an_error() -> None:
    """What would fail the commit fails the simulation, with the commit's own error."""
    never = Climate((Fault("before", op="rename", code="AuthorizationFailure"),))

    with pytest.raises(CommitError, match="AuthorizationFailure"):
        run_commit(Setup(10, 1, 1, never))


def test_a_report_would_leave_the_simulation() -> None:
    """A directory for reports is on a real store, and is refused."""
    with pytest.raises(OptionError, match=r"summary\.report\.directory"):
        run_commit(Setup(10, 1, 1, options=Options(report_directory="file:///tmp")))


# A hundred requests a second of one processor are far below everything else that bounds the rate.
SLOW = Setup(files=300, tasks=3, partitions=3, cpu=0.01)


def test_requests_take_the_processor_one_after_another() -> None:
    """The commit takes as long as the processor does, which the stages show."""
    without, figures = (simulate(_).figures for _ in (replace(SLOW, cpu=0.0), SLOW))
    busy = sum(figures.requests.values()) * SLOW.cpu + planning_seconds(SLOW)

    assert without.seconds < 2 < busy <= figures.seconds < busy + 2
    assert figures.stages[LOAD_STAGE] >= planning_seconds(SLOW) == 0.21 * 3
    assert figures.requests == without.requests


def test_workers_have_a_processor_each() -> None:
    """Four workers take a quarter of the time that the processor takes."""
    one, four = (simulate(replace(SLOW, workers=_)).figures for _ in (1, 4))

    assert 3 < one.seconds / four.seconds < 4.2

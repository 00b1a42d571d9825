"""Every write of a job commit of FileOutputCommitter is a crash point, as in ``test_points``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from asynccommit.options.job import Mode
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import Scenario
from tests.crash.recovery import ready
from tests.crash.scenarios import OLD, OTHERS
from tests.crash.test_points import ACTS, Draw, end_twice, late_points, points, points_on_disk
from tests.support.crashes import DEST, LocalWorld

OTHER_CLASSIC = {
    f"{DEST}/_temporary/0/task_202601010000_0002_m_000000/day=1/part-9": "of another job",
    f"{DEST}/_temporary/0/_temporary/attempt_202601010000_0002_m_000001_0/day=1/part-9": "too",
}
"""Another job of FileOutputCommitter, whose directories are beside this one's."""

SMALLEST = Scenario("file_smallest", ({"day=1/part-0": "a", "part-1": "b"},), committer="file_v1")
WHOLE = Scenario(
    "file_whole",
    (
        {"day=1/part-0": "a", "day=1/part-1": "b", "day=1/part-2": "c", "day=1/none/": ""},
        {"day=1/part-3": "d", "day=1/hour=1/part-3": "e", "day=2/part-3": "f"},
    ),
    {**OTHERS, **OTHER_CLASSIC},
    committer="file_v1",
)
APPEND = Scenario(
    "file_append",
    (
        {"day=1/part-0": "a", "day=1/part-old-0": "new one", "new/deep/part-0": "c"},
        {"day=3/part-1": "e", "new/deep/part-1": "f", "new/deep/part-2": "g", "loose": "new loose"},
    ),
    {**OLD, **OTHERS, **OTHER_CLASSIC},
    committer="file_v1",
)
REPLACE = Scenario(
    "file_replace",
    ({"day=1/part-0": "a", "day=2/part-0": "b"}, {"day=1/part-1": "c", "day=3/hour=1/part-1": "d"}),
    {**OLD, **OTHER_CLASSIC},
    Mode.REPLACE_PARTITIONS,
    committer="file_v1",
)
UNNAMED = Scenario(
    "file_without_messages",
    ({"day=1/part-0": "a"}, {"day=1/part-1": "c"}),
    OLD,
    messages=False,
    committer="file_v1",
)
SCENARIOS = (SMALLEST, WHOLE, APPEND, REPLACE, UNNAMED)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_nobody_dies(scenario: Scenario) -> None:
    """The undisturbed run is as it must be: all files, nothing of this job left, others' kept."""

    async def run() -> list[str]:
        job, _ = await ready(scenario)
        return job.committed(job.wanted)

    assert run_virtual(run()) == []


@pytest.mark.every(3)
@pytest.mark.more
@pytest.mark.sample(3)
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_crash_at_every_write(scenario: Scenario, act: str) -> None:
    """Resumed, it ends as undisturbed; rolled back, as before; twice is once."""
    assert run_virtual(points(scenario, "adls", [act])) == []


@pytest.mark.rotate("act")
@pytest.mark.parametrize("act", ["resume", "rollback"])
@pytest.mark.parametrize("scenario", [SMALLEST, WHOLE], ids=str)
def test_a_write_that_comes_late(scenario: Scenario, act: str) -> None:
    """A directory that a dead process has sent, and that comes late, changes nothing any more."""
    assert run_virtual(late_points(scenario, "adls", act)) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("first", ["resume", "rollback"])
@pytest.mark.parametrize("scenario", [SMALLEST, WHOLE], ids=str)
def test_a_second_crash(scenario: Scenario, first: str) -> None:
    """A crash of the resume, or of the rollback, after one of the commit."""
    assert run_virtual(end_twice(scenario, "adls", first, Draw(str(scenario), 12))) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("act", ["resume", "rollback"])
async def test_a_crash_at_every_write_on_disk(
    act: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with directories of the local filesystem."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # nobody pulls a plug here
    world = LocalWorld(tmp_path / "root")
    world.root.mkdir()
    try:
        problems = await points_on_disk(WHOLE, world, act)
    finally:
        await world.aclose()

    assert problems == []

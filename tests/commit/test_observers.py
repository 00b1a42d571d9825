"""Observers of jobs and stages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from asynccommit import api, open_job
from asynccommit.commit.observers import (
    ObservedWork,
    OnEnd,
    WorkEnd,
    add_observer,
    observed,
    remove_observer,
)


class Seen:
    """An observer that keeps what it sees."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, str, str]] = []

    def __call__(self, work: ObservedWork) -> OnEnd:
        """Keep the end of the work: kind, name and outcome."""
        return lambda ended: self.ended.append((work.kind, work.name, ended.outcome))

    @property
    def jobs(self) -> list[tuple[str, str]]:
        """Return operation and outcome of the jobs."""
        return [(name, outcome) for kind, name, outcome in self.ended if kind == "job"]


@pytest.fixture
def seen() -> Iterator[Seen]:
    """Return an observer of this test."""
    observer = Seen()
    add_observer(observer)
    yield observer
    remove_observer(observer)


async def test_commit_is_one_job_with_stages(seen: Seen, tmp_path: Path) -> None:
    """Stages end before the job does, and the job says how it ended."""
    async with open_job(tmp_path / "table") as job, job.task(0) as task:
        await task.put("part-0", b"x")

    assert seen.jobs == [("commit", "committed")]
    assert [kind for kind, _, _ in seen.ended[-2:]] == ["job", "run"]
    assert ("stage", "job_stage_rename_files", "done") in seen.ended


async def test_error_in_the_block_is_an_abort(seen: Seen, tmp_path: Path) -> None:
    """A job that its block aborts is an abort; there is no commit."""
    with pytest.raises(ValueError, match="user"):
        async with open_job(tmp_path / "table"):
            raise ValueError("user")

    assert seen.jobs == [("abort", "aborted")]


async def test_dry_run_is_no_commit(seen: Seen, tmp_path: Path) -> None:
    """A dry run is an operation of its own, whose outcome is a plan."""
    async with open_job(tmp_path / "table") as job:
        async with job.task(0) as task:
            await task.put("part-0", b"x")
        await api.job(tmp_path / "table", job.job_id).plan()

    assert seen.jobs == [("dry run", "planned"), ("commit", "committed")]


@pytest.mark.parametrize("when", ["begin", "end"])
async def test_observer_that_fails_stops_nothing(
    when: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An error of an observer is logged, and the job is committed."""

    def broken(work: ObservedWork) -> Callable[[WorkEnd], object] | None:
        if when == "begin":
            raise OSError("no collector")
        return refuse

    def refuse(ended: WorkEnd) -> object:
        raise OSError("no collector")

    add_observer(broken)
    try:
        with caplog.at_level(logging.WARNING, "asynccommit"):
            async with open_job(tmp_path / "table") as job, job.task(0) as task:
                await task.put("part-0", b"x")
    finally:
        remove_observer(broken)

    assert (tmp_path / "table/_SUCCESS").exists()
    assert "an observer failed: OSError: no collector" in caplog.text


def test_an_observer_that_blocks_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """With its seconds, at the begin and at the end: no lease is renewed in them."""
    now = [0.0]

    def block(seconds: float) -> None:
        now[0] += seconds

    def observer(work: ObservedWork) -> OnEnd:
        block(12.3)
        return lambda ended: block(0.5)

    add_observer(observer)
    try:
        with observed(ObservedWork("stage", "stage", "job"), lambda: now[0]):
            pass
    finally:
        remove_observer(observer)

    (record,) = caplog.records
    assert "blocked the event loop for 12.3 s: no lease was renewed" in record.getMessage()

"""Jobs that an error keeps: the next call goes on with the tasks that have committed."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from asynccommit import CommittedError, OwnedError, sync
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.committers import open_kept_job
from asynccommit.sync import BlockingJob
from asynccommit.testing.pytest_plugin import adls_emulator_thread, gcs_emulator_thread
from tests.support.engine_places import Place, place
from tests.support.jobs import visible
from tests.support.s3_servers import moto_url

__all__ = ["adls_emulator_thread", "gcs_emulator_thread", "moto_url", "place"]

OPTIONS = {"asynccommit.job.key": "nightly"}


def _kept(url: str | Path, job_id: str, **given: Any) -> AbstractContextManager[BlockingJob]:
    return sync.blocking_job(open_kept_job(url, job_id, **given))


def _failed(dest: str | Path, *numbers: int) -> list[TaskCommit]:
    """Run tasks in a job whose block fails; return their messages."""
    commits = []
    with pytest.raises(ConnectionError), _kept(dest, "j", options=OPTIONS):
        for number in numbers:
            with sync.job(dest, "j", options=OPTIONS).task(number) as task:
                task.put(f"part-{number}", str(number).encode())
            assert task.commit is not None
            commits.append(task.commit)
        raise ConnectionError
    return commits


def test_a_kept_job_goes_on(tmp_path: Path) -> None:
    """Tasks of two calls are one commit; one whose message is not accepted is left out."""
    dest = tmp_path / "out"
    commits = _failed(dest, 1, 2)
    assert visible(dest) == {}
    commits += _failed(dest, 3)

    with _kept(dest, "j", options=OPTIONS) as job:
        job.accept(commits[0])
        job.accept(commits[2])
        with job.task(4) as task:
            task.put("part-4", b"4")

    assert visible(dest) == {"part-1": "1", "part-3": "3", "part-4": "4"}
    assert job.report.files == 3
    with pytest.raises(CommittedError), _kept(dest, "j", options=OPTIONS):
        pass


def test_a_job_that_runs_is_not_taken_over(tmp_path: Path) -> None:
    """The error names the driver, and the first job goes on."""
    dest = tmp_path / "out"
    with _kept(dest, "j", options=OPTIONS) as job:
        with (
            pytest.raises(OwnedError, match="another driver may be running it"),
            _kept(dest, "j", options=OPTIONS),
        ):
            pass
        with job.task(0) as task:
            task.put("part-0", b"0")

    assert visible(dest) == {"part-0": "0"}


def test_a_kept_job_is_dead_and_alive_again(tmp_path: Path) -> None:
    """Its status says that the driver gave it up, and then that another one runs it."""
    dest = tmp_path / "out"
    commits = _failed(dest, 1)
    (before,) = sync.job_statuses(dest)
    with _kept(dest, "j", options=OPTIONS) as job:
        (during,) = sync.job_statuses(dest)
        job.accept(commits[0])

    assert (before.alive, during.alive) == (False, True)
    assert visible(dest) == {"part-1": "1"}


@pytest.mark.full
def test_any_store_keeps_a_job(place: Place) -> None:
    """The tasks of a job that failed are committed by the next call."""
    url, storage = place
    commits = []
    for number in range(2):
        try:
            with _kept(url, "j", options=OPTIONS, storage_options=storage) as job:
                same = sync.job(url, "j", options=OPTIONS, storage_options=storage)
                with same.task(number) as task:
                    task.put(f"part-{number}", b"1")
                assert task.commit is not None
                commits.append(task.commit)
                if number == 0:
                    raise ConnectionError
                for commit in commits:
                    job.accept(commit)
        except ConnectionError:
            continue
    assert job.report.files == 2

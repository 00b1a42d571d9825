"""Tracebacks of blocking calls end at the public function."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from asynccommit import AsyncCommitError, PreflightError, spark, sync
from asynccommit.engine import BulkError

MOST = 4
"""Frames of an error at most: the user's, and three of the public function."""


def frames(error: BaseException) -> list[str]:
    """Return the functions in all tracebacks that Python would print."""
    whole = traceback.TracebackException.from_exception(error)
    names: list[str] = []
    found: traceback.TracebackException | None = whole
    while found is not None:
        names += [frame.name for frame in found.stack]
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    return names


def resume_nothing(table: Path) -> None:
    """Resume a job that is not there."""
    sync.job(table, "nothing").resume()


def commit_twice(table: Path) -> None:
    """Commit two tasks with one destination."""
    with sync.open_job(table) as job:
        for number in range(2):
            with job.task(number) as task:
                task.put("part-0", b"x")


def put_outside(table: Path) -> None:
    """Write outside of the task."""
    with sync.open_job(table) as job, job.task(0) as task:
        task.put("../part-0", b"x")


def delete_missing(table: Path) -> None:
    """Delete a file that is not there, and stop."""
    with sync.open_store(table) as store:
        store.rename_files([(table / "a", table / "b")])


def resume_as_in_a_session(table: Path) -> None:
    """Resume a job that is not there, by the call for Spark."""
    spark.resume(str(table), "nothing")


CASES = [
    (resume_as_in_a_session, PreflightError),
    (resume_nothing, PreflightError),
    (commit_twice, PreflightError),
    (put_outside, AsyncCommitError),
    (delete_missing, BulkError),
]


@pytest.mark.parametrize("call,kind", CASES)
def test_traceback_ends_at_the_public_call(
    call: Callable[[Path], None], kind: type[Exception], tmp_path: Path
) -> None:
    """The frames of the event loop are gone, from the causes too; the user's line is there."""
    with pytest.raises(kind) as caught:
        call(tmp_path)

    names = frames(caught.value)
    assert call.__name__ in names
    assert len(names) <= 1 + MOST  # the test itself besides


def test_public_function_is_named(tmp_path: Path) -> None:
    """The last frame has the name of the function that was called."""
    with pytest.raises(PreflightError) as caught:
        resume_nothing(tmp_path)

    assert frames(caught.value)[-2:] == ["resume_nothing", "resume"]


def test_users_own_error_keeps_its_frames(tmp_path: Path) -> None:
    """An error of the block of a job is the user's, and is left as it is."""

    def deep(left: int) -> None:
        if not left:
            raise ValueError("mine")
        deep(left - 1)

    with pytest.raises(ValueError, match="mine") as caught, sync.open_job(tmp_path / "t"):
        deep(8)

    assert frames(caught.value).count("deep") == 9


@pytest.mark.parametrize("how", ["environment", "logger"])
def test_full_traceback_is_to_be_had(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A variable or the level DEBUG keeps all frames."""
    if how == "environment":
        monkeypatch.setenv("ASYNCCOMMIT_TRACEBACK", "full")
    else:
        caplog.set_level(logging.DEBUG, "asynccommit")

    with pytest.raises(PreflightError) as caught:
        resume_nothing(tmp_path)

    assert len(frames(caught.value)) > 8

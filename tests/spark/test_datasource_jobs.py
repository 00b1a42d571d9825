"""Jobs of the Data Source on every kind of store, and task attempts that outlive them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from asynccommit.errors import DeniedError, NotFoundError, RejectedError
from asynccommit.options.job import Options
from asynccommit.runtime.loop_thread import submit
from asynccommit.spark.datasource import jobs
from asynccommit.spark.datasource.jobs import SourceJob
from asynccommit.spark.datasource.options import SourceOptions
from asynccommit.spark.datasource.tasks import SparkAttempt, TaskMessage, run_task
from asynccommit.stores.local.store import LocalStore
from tests.support.source_places import BATCH, ROWS, Place, adls, gcs, ids, moto_url, place

__all__ = ["adls", "gcs", "moto_url", "place"]
pytestmark = pytest.mark.rotate("place", keep=2)

PARTED = SourceOptions("/t", partition_by=("p",))


def run(job: SourceJob, number: int, batches: Any, *, task: int = 0) -> TaskMessage:
    """Run a task attempt."""
    return run_task(job, PARTED, ROWS, SparkAttempt(task, number), "tag", batches)


def test_rows_are_there_after_the_commit(place: Place) -> None:
    """Nothing can be seen before the commit, and afterwards files and marker, and nothing else."""
    job = place.job()
    written = run(job, 1, [BATCH])
    before = [name for name in place.files() if not name.startswith(("_temporary", "__magic"))]

    submit(jobs.commit(job, [written.commit]))

    found = place.files()
    assert before == []
    assert ids(found) == list(range(100))
    assert sorted(found) == sorted(["_SUCCESS", *(name for name, _ in written.files)])
    assert {name: len(found[name]) for name, _ in written.files} == dict(written.files)


def test_attempt_that_nobody_names(place: Place) -> None:
    """Of two attempts that both ran to their end, the one that the messages name counts.

    Surprises 2 and 7: whether an attempt may commit is asked after it has written.
    """
    job = place.job()
    first = run(job, 1, [BATCH])
    run(job, 2, [BATCH.slice(0, 10)])

    submit(jobs.commit(job, [first.commit]))

    assert ids(place.files()) == list(range(100))
    assert sorted(place.files()) == sorted(["_SUCCESS", *(name for name, _ in first.files)])
    assert place.uploads() == 0


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_attempt_that_starts_too_late(place: Place, end: str) -> None:
    """An attempt that starts when its job has ended finds out, and makes nothing.

    Surprises 5 and 7: attempts start seconds after an abort or a commit.
    """
    job = place.job()
    written = run(job, 1, [BATCH])
    end_of(job, written, end)
    before = place.files()

    with pytest.raises(NotFoundError, match="has ended"):
        run(job, 2, [BATCH], task=1)

    assert place.files() == before
    assert place.uploads() == 0


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_attempt_that_outlives_its_job(place: Place, end: str) -> None:
    """An attempt whose job ends while it writes finds out, and leaves nothing behind.

    Surprises 5 and 7: the stage fails, or a speculative copy wins, while others still run.
    """
    job = place.job()
    written = run(job, 1, [BATCH])
    before: list[dict[str, bytes]] = []
    # moto fails at parts of uploads that are gone, and would be asked again for long.
    at_once = replace(PARTED, memory=1) if not place.url.startswith("s3a") else PARTED

    def batches() -> Iterator[pa.RecordBatch]:
        yield BATCH
        end_of(job, written, end)
        before.append(place.files())
        yield BATCH

    with pytest.raises(Exception, match=r".") as ended:
        run_task(job, at_once, ROWS, SparkAttempt(1, 2), "tag", batches())

    assert not isinstance(ended.value, AssertionError)
    assert place.files() == before[0]
    assert place.uploads() == 0
    assert leftover_directories(place) == []


def test_attempt_that_was_killed(place: Place) -> None:
    """What a killed attempt has left is gone after the commit; the next attempt's rows count.

    Surprises 1, 6 and 10: a killed attempt runs no handler, and there is no callback for it.
    """
    job = place.job()
    abandon(job)

    written = run(job, 2, [BATCH])
    submit(jobs.commit(job, [written.commit]))

    assert ids(place.files()) == list(range(100))
    assert place.uploads() == 0
    assert leftover_directories(place) == []


def test_abort_looks_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a task makes between the end of its job and its own is removed all the same.

    Surprises 5 and 6: abort is called at once, and tasks are killed seconds later.
    """
    if place.url.startswith("/"):
        pytest.skip("on a local filesystem nothing can come back")
    job = place.job()
    abandon(job)
    looked: list[float] = []

    async def sleep(seconds: float) -> None:
        looked.append(seconds)
        async with jobs.opened(job) as committer:
            _, attempt = committer.layout.ids(1)
            await committer.work(attempt).put("p=1/part", b"late")

    monkeypatch.setattr(jobs, "pause", sleep)
    submit(jobs.abort(job, running=True))

    assert looked == [jobs.GRACE]
    assert place.files() == {}
    assert place.uploads() == 0


def test_abort_twice_and_after_a_commit(place: Place) -> None:
    """Abort is harmless whenever it comes, and never touches what is published.

    Surprise 9: it is called with all messages after a commit that raised.
    """
    job = place.job()
    submit(jobs.abort(job, running=False))
    submit(jobs.abort(job, running=False))
    job = place.job()
    submit(jobs.commit(job, [run(job, 1, [BATCH]).commit]))
    submit(jobs.abort(job, running=False))

    assert ids(place.files()) == list(range(100))


def test_task_that_fails(place: Place) -> None:
    """An attempt that fails removes what it wrote, and the next one can write. Surprise 4."""
    job = place.job()

    def batches() -> Iterator[pa.RecordBatch]:
        yield BATCH
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        run_task(job, replace(PARTED, memory=1), ROWS, SparkAttempt(0, 1), "tag", batches())
    assert ids(place.files()) == []
    submit(jobs.commit(job, [run(job, 2, [BATCH]).commit]))

    assert ids(place.files()) == list(range(100))
    assert place.uploads() == 0


def test_many_small_and_one_large_file(place: Place) -> None:
    """Files that are rolled while they are written are all committed."""
    job = place.job()
    small = replace(PARTED, row_group_rows=10, file_bytes=1, open_files=2)

    written = run_task(job, small, ROWS, SparkAttempt(0, 1), "tag", [BATCH, BATCH])
    submit(jobs.commit(job, [written.commit]))

    assert len(written.files) > 8
    assert ids(place.files()) == sorted([*range(100)] * 2)


def end_of(job: SourceJob, written: TaskMessage, end: str) -> None:
    """End a job in one of the two ways."""
    if end == "commit":
        submit(jobs.commit(job, [written.commit]))
    else:
        submit(jobs.abort(job, running=False))


def abandon(job: SourceJob) -> None:
    """Leave what a task attempt has when it is killed: open uploads, half of its files."""

    async def begin() -> None:
        async with jobs.opened(job) as committer:
            _, attempt = committer.layout.ids(1)
            await committer.setup_task(attempt)
            file = await committer.work(attempt).open("p=1/part-00000-tag.c000.snappy.parquet")
            await file.write(b"x" * 1000)
            await committer.work(attempt).put("p=2/part-00000-tag.c000.snappy.parquet", b"half")

    submit(begin())


def leftover_directories(place: Place) -> list[str]:
    """Return directories that a finished job leaves on a local filesystem."""
    if not place.url.startswith("/"):
        return []
    return (
        [name for name in os.listdir(place.url) if name.startswith("_temp")]
        if os.path.isdir(place.url)
        else []
    )


def test_setup_that_fails_and_whose_abort_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was wrong at first is raised, and says what was left behind and why."""
    mkdir = LocalStore.mkdir

    async def full(self: LocalStore, path: str) -> None:
        if path.endswith(jobs.ALIVE):
            raise RejectedError("mkdir", path, "no space left")
        await mkdir(self, path)

    async def stuck(self: LocalStore, path: str) -> None:
        raise DeniedError("delete_tree", path, "not yours")

    monkeypatch.setattr(LocalStore, "mkdir", full)
    monkeypatch.setattr(LocalStore, "delete_tree", stuck)
    job = SourceJob(str(tmp_path / "t"), "job-1", Options(), {})
    with pytest.raises(RejectedError, match="no space left") as failed:
        submit(jobs.set_up(job))

    (note,) = failed.value.__notes__
    assert "and the abort failed" in note
    assert "not yours" in note

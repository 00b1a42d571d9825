"""``status``, ``resume`` and ``rollback`` as a program with a session calls them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from asynccommit.errors import NotFoundError
from asynccommit.results import JobState
from asynccommit.spark import bridge, recovery, resume, rollback, sessions, status
from tests.support.spark import leftovers, visible


@pytest.fixture
def stopped(frame: Any, table: Path) -> str:
    """Return the job whose commit failed half-way; what it missed is there again."""
    hidden: list[tuple[Path, Path]] = []

    def hide(progress: Any) -> None:
        if progress.stage == "job_stage_rename_files" and not hidden:
            path = next(table.glob("_temporary/*/00/tasks/*/p=1/*.parquet"))
            hidden.append((path, path.rename(table.parent / "hidden")))

    frame.write.partitionBy("p").parquet(str(table))
    bridge.on_progress = hide
    try:
        with pytest.raises(PySparkException):
            frame.write.mode("append").partitionBy("p").parquet(str(table))
    finally:
        bridge.on_progress = None
    [(path, place)] = hidden
    place.rename(path)
    return path.relative_to(table).parts[1]


def test_status_names_the_job(table: Path, stopped: str) -> None:
    """It says which job has stopped, that it can be finished, and why it stopped."""
    [job] = status(str(table))

    assert (job.job_id, job.state, job.files) == (stopped, JobState.STOPPED, 6)
    assert job.unfinished
    assert "p=1" in job.error


def test_resume_finishes(spark: Any, table: Path, stopped: str) -> None:
    """The table is as if nothing had happened; a second time there is nothing to resume."""
    report = resume(str(table))

    assert (report.job_id, report.resumed, report.files) == (stopped, True, 6)
    assert spark.read.parquet(str(table)).count() == 40
    assert leftovers(table) == []
    with pytest.raises(NotFoundError):
        resume(str(table))


def test_rollback_undoes(spark: Any, table: Path, stopped: str) -> None:
    """The table is as before the job."""
    report = rollback(str(table), stopped)

    assert report.rolled_back
    assert spark.read.parquet(str(table)).count() == 20
    assert leftovers(table) == []


def test_takeover_finishes(spark: Any, table: Path, stopped: str) -> None:
    """It asks no owner."""
    assert resume(str(table), stopped, force=True).resumed
    assert spark.read.parquet(str(table)).count() == 40


def test_next_write_is_refused(spark: Any, frame: Any, table: Path, stopped: str) -> None:
    """Until one of them was called, a write says which job is in the way and what to type."""
    with pytest.raises(PySparkException) as caught:
        frame.write.mode("append").partitionBy("p").parquet(str(table))
    text = str(caught.value).partition("JVM stacktrace")[0]

    assert stopped in text
    assert f"asynccommit resume 'file:{table}'" in text
    assert "asynccommit abort" in text
    assert len(text.strip().splitlines()) < 12
    assert [job.job_id for job in status(str(table))] == [stopped]


def test_next_write_finishes_or_undoes(
    spark: Any, frame: Any, table: Path, stopped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By option it settles what is in its way first, and shows the progress of both jobs."""
    heard: set[str] = set()
    monkeypatch.setattr(bridge, "on_progress", lambda progress: heard.add(progress.job_id))
    frame.write.mode("append").option("asynccommit.on.unfinished", "rollback").partitionBy(
        "p"
    ).parquet(str(table))

    assert spark.read.parquet(str(table)).count() == 40
    assert len(visible(table)) == 12
    assert status(str(table)) == []
    assert stopped in heard
    assert len(heard) == 2


def test_paths_are_those_of_spark(spark: Any, frame: Any) -> None:
    """A relative path means what it means to ``df.write``, in every thread of the program."""
    made = sessions.qualified(spark, "some/where")
    with ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(recovery.active_session).result()
    absolute = sessions.qualified(spark, "/some/where")

    assert made == f"file:{Path.cwd()}/some/where"
    assert absolute == "file:/some/where"
    assert elsewhere is spark
    assert recovery.url_of("some/where", None) == f"{Path.cwd()}/some/where"
    assert recovery.url_of("abfs://c@a/some", None) == "abfs://c@a/some"


def test_settings_are_those_of_the_session(spark: Any) -> None:
    """What the user has set for commits and stores is taken over, and no default of Hadoop's."""
    ours = {"spark.asynccommit.lease": "70", "mapreduce.manifest.committer.io.threads": "4"}
    theirs = {
        "fs.azure.account.key.a.dfs.core.windows.net": "c2VjcmV0",
        "fs.gs.auth.type": "UNAUTHENTICATED",
        "google.cloud.token.server.url": "http://127.0.0.1:1/token",
    }
    for key, value in {**ours, **theirs}.items():
        spark.conf.set(key, value)
    try:
        conf, storage = sessions.settings_of(spark)
    finally:
        for key in {**ours, **theirs}:
            spark.conf.unset(key)

    # Spark 4.0 to 4.2 sets two options itself, just as a user would.
    start = "spark.hadoop.fs.s3a.vectored.read."
    said = dict(spark.sparkContext.getConf().getAll())
    sparks = {key[len("spark.hadoop.") :]: said[key] for key in said if key.startswith(start)}

    assert conf.items() >= ours.items()
    assert storage == {**sparks, **theirs}
    assert all("asynccommit" in key or key in ours for key in conf)

"""Overwriting a table, one partition, or what is written to: what goes, what stays, what fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from asynccommit.spark import bridge, last_report, resume, rollback
from tests.support.spark import TASK_FAILURES, leftovers, settles, visible

OLD = [*range(20), 50]
HOWS = {
    "table": ("static", "insert overwrite flights select id, s, p from new"),
    "partition": (
        "static",
        "insert overwrite flights partition (p = 1) select id, s from new where p = 1",
    ),
    "dynamic": ("dynamic", "insert overwrite flights select id, s, p from new"),
}
"""How a table can be overwritten: mode and statement."""

AFTER = {
    "table": [101, 150],
    "partition": sorted([i for i in OLD if i == 50 or i % 3 != 1] + [101]),
    "dynamic": sorted([i for i in range(20) if i % 3 != 1] + [101, 150]),
}
"""The ids that are in the table then."""


@pytest.fixture
def elsewhere(spark: Any, frame: Any, table: Path, tmp_path: Path) -> Iterator[Path]:
    """Make a table with a partition that lives elsewhere, and files that are none of its data."""
    place = tmp_path / "else where%" / "p50"
    place.mkdir(parents=True)
    frame.write.partitionBy("p").option("path", str(table)).saveAsTable("flights")
    spark.sql(f"alter table flights add partition (p = 50) location '{place}'")
    spark.sql("select 50L as id, 'x' as s, 50L as p").write.insertInto("flights")
    (table / "_notes").write_text("mine")
    (table / ".hidden").mkdir()
    (table / ".hidden" / "x").write_text("mine")
    (table / "p=1" / "_index").write_text("mine")
    (place / "_index").write_text("mine")
    spark.sql(
        "select 101L as id, 'x' as s, 1L as p union all select 150L, 'x', 50L"
    ).createOrReplaceTempView("new")
    yield place
    spark.sql("drop table if exists flights")


def overwrite(spark: Any, how: str, **conf: str) -> None:
    """Overwrite the table in one of the ways."""
    mode, statement = HOWS[how]
    conf = {"spark.sql.sources.partitionOverwriteMode": mode, **conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        spark.sql(statement)
    finally:
        for key in conf:
            spark.conf.unset(key)


def ids(spark: Any) -> list[int]:
    """Return the ids in the table."""
    return sorted(row.id for row in spark.table("flights").collect())


def content(*folders: Path) -> dict[str, bytes]:
    """Return every file below some folders with what it holds."""
    return {
        str(path): path.read_bytes()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.sample(2)
@pytest.mark.parametrize("how", HOWS)
def test_replaces(spark: Any, table: Path, elsewhere: Path, how: str) -> None:
    """Old rows go where new ones come; what is no data stays, and nothing else is left."""
    overwrite(spark, how)

    assert ids(spark) == AFTER[how]
    assert leftovers(table) == leftovers(elsewhere) == []
    assert (table / "_notes").read_text() == (table / ".hidden" / "x").read_text() == "mine"
    assert (elsewhere / "_index").read_text() == "mine"
    report = last_report()
    assert report is not None
    assert report.replaced > 0


@pytest.mark.parametrize("how", ["partition", "dynamic"])
def test_hidden_names_in_a_replaced_partition_stay(
    spark: Any, table: Path, elsewhere: Path, how: str
) -> None:
    """A partition that is replaced keeps what readers do not see."""
    overwrite(spark, how)

    assert (table / "p=1" / "_index").read_text() == "mine"
    assert len(visible(table / "p=1")) == 1


@pytest.mark.rotate("how")
@pytest.mark.parametrize("how", HOWS)
def test_failed_task_changes_nothing(spark: Any, table: Path, elsewhere: Path, how: str) -> None:
    """A job that fails in its tasks leaves every file as it was."""
    before = content(table, elsewhere)
    spark.sql(
        "select 101L as id, cast(assert_true(false, 'boom') as string) as s, 1L as p"
    ).createOrReplaceTempView("new")
    with pytest.raises(TASK_FAILURES, match="boom"):
        overwrite(spark, how)

    assert settles(table)
    assert content(table, elsewhere) == before
    assert ids(spark) == OLD


@contextmanager
def one_file_missing(table: Path) -> Iterator[Callable[[], None]]:
    """Hide a file of a task when the renames begin; yield what puts it back."""
    hidden: list[tuple[Path, Path]] = []

    def hide(progress: Any) -> None:
        if progress.stage == "job_stage_rename_files" and not hidden:
            path = next(table.glob("_temporary/*/00/tasks/*/p=1/*.parquet"))
            hidden.append((path, path.rename(table.parent / "hidden")))

    def put_back() -> None:
        for path, place in hidden:
            place.rename(path)

    bridge.on_progress = hide
    try:
        yield put_back
    finally:
        bridge.on_progress = None


@pytest.mark.rotate("how")
@pytest.mark.parametrize("how", HOWS)
def test_failed_commit_is_rolled_back(spark: Any, table: Path, elsewhere: Path, how: str) -> None:
    """By option a commit that fails half-way puts everything back before the user hears of it."""
    before = content(table, elsewhere)
    policy = {"spark.asynccommit.on.failure": "rollback"}
    with (
        one_file_missing(table),
        pytest.raises(PySparkException, match="was rolled back"),
    ):
        overwrite(spark, how, **policy)

    assert content(table, elsewhere) == before
    assert leftovers(table) == []
    assert ids(spark) == OLD


@pytest.mark.rotate("how")
@pytest.mark.parametrize("how", HOWS)
def test_failed_commit_is_kept_and_resumed(
    spark: Any, table: Path, elsewhere: Path, how: str
) -> None:
    """Otherwise it is kept, and ``resume`` in the same session makes the table whole."""
    with (
        one_file_missing(table) as put_back,
        pytest.raises(PySparkException, match=r"asynccommit resume"),
    ):
        overwrite(spark, how)
    put_back()
    spark.conf.set("spark.asynccommit.resume.outside", "true")  # to the partition elsewhere
    try:
        report = resume(str(table))
    finally:
        spark.conf.unset("spark.asynccommit.resume.outside")

    assert report.resumed
    spark.sql("refresh table flights")
    assert ids(spark) == AFTER[how]
    assert leftovers(table) == leftovers(elsewhere) == []


@pytest.mark.rotate("how")
@pytest.mark.parametrize("how", HOWS)
def test_failed_commit_is_kept_and_undone(
    spark: Any, table: Path, elsewhere: Path, how: str
) -> None:
    """``rollback`` in the same session puts back what was there, byte by byte."""
    before = content(table, elsewhere)
    with one_file_missing(table), pytest.raises(PySparkException):
        overwrite(spark, how)
    spark.conf.set("spark.asynccommit.resume.outside", "true")  # to the partition elsewhere
    try:
        report = rollback(str(table))
    finally:
        spark.conf.unset("spark.asynccommit.resume.outside")

    assert report.rolled_back
    assert content(table, elsewhere) == before
    assert leftovers(table) == leftovers(elsewhere) == []


def test_table_with_a_sink_log(frame: Any, table: Path) -> None:
    """A table of a stream refuses what only adds to it; what replaces it takes its log away."""
    frame.write.parquet(str(table))
    (table / "_spark_metadata").mkdir()
    (table / "_spark_metadata" / "0").write_text("v1")
    before = content(table)
    with pytest.raises(PySparkException, match="_spark_metadata"):
        frame.write.mode("append").parquet(str(table))
    assert content(table) == before

    frame.write.mode("overwrite").parquet(str(table))

    assert not (table / "_spark_metadata").exists()
    assert leftovers(table) == []

"""Tables of the catalogue: saveAsTable, SQL inserts, custom locations, dynamic overwrite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asynccommit.spark import last_report, reports
from tests.support.spark import TASK_FAILURES, leftovers, settles, visible


@pytest.fixture
def name(spark: Any, table: Path) -> Iterator[str]:
    """Return the name of a table that is dropped afterwards."""
    yield "flights"
    spark.sql("drop table if exists flights")


def ids(spark: Any, name: str) -> list[int]:
    """Return the ids in a table of the catalogue."""
    return sorted(row.id for row in spark.table(name).collect())


def test_save_as_table_in_every_mode(spark: Any, frame: Any, table: Path, name: str) -> None:
    """A table is made, added to, and replaced."""
    write = frame.write.partitionBy("p").option("path", str(table))
    write.saveAsTable(name)
    write.mode("append").saveAsTable(name)
    assert ids(spark, name) == sorted([*range(20), *range(20)])
    frame.where("id < 3").write.mode("overwrite").partitionBy("p").option(
        "path", str(table)
    ).saveAsTable(name)

    assert ids(spark, name) == [0, 1, 2]
    assert leftovers(table) == []


def test_managed_table(spark: Any, frame: Any, name: str) -> None:
    """A table without a location is committed into the warehouse."""
    frame.write.saveAsTable(name)

    report = last_report()
    assert report is not None
    assert report.dest.endswith("/warehouse/flights")
    assert ids(spark, name) == list(range(20))


@pytest.mark.sample(1)
@pytest.mark.parametrize("fmt", ["parquet", "orc"])
def test_ctas(spark: Any, frame: Any, table: Path, name: str, fmt: str) -> None:
    """CREATE TABLE AS SELECT, partitioned, with a location of its own."""
    frame.createOrReplaceTempView("source")
    spark.sql(
        f"create table {name} using {fmt} partitioned by (p) location '{table}' "
        "as select id, s, p from source"
    )

    assert ids(spark, name) == list(range(20))
    assert leftovers(table) == []
    assert (table / "_SUCCESS").exists()


def make(spark: Any, frame: Any, table: Path, name: str) -> None:
    """Make a partitioned table of twenty rows."""
    frame.write.partitionBy("p").option("path", str(table)).saveAsTable(name)


def test_insert_into(spark: Any, frame: Any, table: Path, name: str) -> None:
    """INSERT INTO with a static partition, with a dynamic one, with VALUES and insertInto."""
    make(spark, frame, table, name)
    spark.sql(f"insert into {name} partition (p = 7) select 100, 'x'")
    spark.sql(f"insert into {name} select 101, 'x', 8")
    spark.sql(f"insert into {name} values (102, 'x', 9)")
    spark.sql("select 103L as id, 'x' as s, 9L as p").write.insertInto(name)

    assert ids(spark, name) == [*range(20), 100, 101, 102, 103]
    assert leftovers(table) == []


def test_insert_overwrite_of_a_static_partition(
    spark: Any, frame: Any, table: Path, name: str
) -> None:
    """Only the named partition is replaced."""
    make(spark, frame, table, name)
    spark.sql(f"insert overwrite {name} partition (p = 0) select 100, 'x'")

    assert ids(spark, name) == sorted([100, *(i for i in range(20) if i % 3)])
    assert leftovers(table) == []


def test_insert_overwrite_directory(spark: Any, frame: Any, table: Path) -> None:
    """INSERT OVERWRITE DIRECTORY replaces what is there."""
    frame.createOrReplaceTempView("source")
    for low in (0, 18):
        spark.sql(
            f"insert overwrite directory '{table}' using parquet "
            f"select * from source where id >= {low}"
        )

    assert sorted(row.id for row in spark.read.parquet(str(table)).collect()) == [18, 19]
    assert leftovers(table) == []


def test_custom_partition_location(
    spark: Any, frame: Any, table: Path, name: str, tmp_path: Path
) -> None:
    """Scenario 59: a partition that lives elsewhere gets its files there, and no staging is left.
    Scenario 59: a partition that lives elsewhere gets its files there, and no staging is left."""
    elsewhere = tmp_path / "else where%" / "p0"
    elsewhere.mkdir(parents=True)
    make(spark, frame, table, name)
    spark.sql(f"alter table {name} add partition (p = 50) location '{elsewhere}'")
    spark.sql("select 100L as id, 'x' as s, 50L as p").write.insertInto(name)

    assert len(visible(elsewhere)) == 1
    assert ids(spark, name) == [*range(20), 100]
    assert leftovers(table) == leftovers(elsewhere) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_overwrite_with_a_custom_location(
    spark: Any, frame: Any, table: Path, name: str, tmp_path: Path, mode: str
) -> None:
    """Scenario 59: overwriting replaces the files of a partition that lives elsewhere."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    make(spark, frame, table, name)
    spark.sql(f"alter table {name} add partition (p = 50) location '{elsewhere}'")
    new = spark.sql("select 100L as id, 'x' as s, 50L as p")
    new.write.insertInto(name)
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", mode)
    try:
        new.selectExpr("id + 1", "s", "p").write.insertInto(name, overwrite=True)
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")

    assert ids(spark, name) == ([101] if mode == "static" else [*range(20), 101])
    assert leftovers(table) == leftovers(elsewhere) == []


def dynamic(frame: Any) -> Any:
    """Return a writer that replaces the partitions it writes to."""
    return frame.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")


def test_dynamic_overwrite_replaces_the_partitions_it_writes(
    spark: Any, frame: Any, table: Path
) -> None:
    """Scenario 59: other partitions stay, files in the touched ones go, and the marker is there."""
    names = "'a b%' || (p % 2) as q"
    whole = frame.selectExpr("id", "p", names)
    whole.write.partitionBy("p", "q").parquet(str(table))
    dynamic(whole.where("p = 1").selectExpr("id + 100 as id", "p", "q")).partitionBy(
        "p", "q"
    ).parquet(str(table))

    found = sorted(row.id for row in spark.read.parquet(str(table)).collect())
    assert found == sorted(i + 100 if i % 3 == 1 else i for i in range(20))
    assert leftovers(table) == []
    assert (table / "_SUCCESS").exists()


def test_dynamic_overwrite_of_nothing_touches_nothing(spark: Any, frame: Any, table: Path) -> None:
    """Scenario 59: an empty frame replaces no partition."""
    frame.write.partitionBy("p").parquet(str(table))
    before = visible(table)
    dynamic(frame.where("id < 0")).partitionBy("p").parquet(str(table))

    assert visible(table) == before
    assert leftovers(table) == []


def test_dynamic_overwrite_that_fails_loses_nothing(spark: Any, frame: Any, table: Path) -> None:
    """Scenario 59: a job that fails leaves every partition as it was."""
    frame.write.partitionBy("p").parquet(str(table))
    before = visible(table)
    bad = frame.selectExpr("id", "p", "cast(assert_true(id < 0, 'boom') as string) as s")
    with pytest.raises(TASK_FAILURES, match="boom"):
        dynamic(bad).partitionBy("p").parquet(str(table))

    assert visible(table) == before
    assert settles(table)


def test_bucketed_table(spark: Any, frame: Any, table: Path, name: str) -> None:
    """Bucketed and sorted files keep their names, in which the bucket's number is."""
    frame.write.bucketBy(2, "id").sortBy("id").option("path", str(table)).saveAsTable(name)

    assert ids(spark, name) == list(range(20))
    assert {file.split("_")[1][:5] for file in visible(table)} == {"00000", "00001"}


def test_concurrent_writers(spark: Any, frame: Any, table: Path) -> None:
    """Tasks that keep several files open instead of sorting commit the same."""
    spark.conf.set("spark.sql.maxConcurrentOutputFileWriters", "5")
    try:
        frame.write.partitionBy("p").parquet(str(table))
    finally:
        spark.conf.unset("spark.sql.maxConcurrentOutputFileWriters")

    assert len(visible(table)) == 6
    assert leftovers(table) == []


def test_every_job_has_an_id_of_its_own(frame: Any, table: Path) -> None:
    """Jobs launched in the same second do not share an id."""
    for _ in range(3):
        frame.write.mode("append").json(str(table))

    assert len({report.job_id for report in reports()[-3:]}) == 3

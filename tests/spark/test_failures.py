"""Tasks and jobs that fail, answers that are lost, and what is left of each."""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster
from pyspark.errors import PySparkException
from pyspark.sql.functions import lit, udf

from asynccommit.runtime.apart import OnLoop
from asynccommit.spark import bridge, last_report
from asynccommit.spark.bridge import BRIDGE
from asynccommit.stores.urls import decode_uri
from tests.support.spark import TASK_FAILURES, answered_by, below, leftovers, visible, wait_until


def failing(frame: Any, attempts: int) -> Any:
    """Return a frame whose first task fails in its first ``attempts`` attempts."""

    def fail(value: int) -> int:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 0 and context.attemptNumber() < attempts:
            raise ValueError("boom")
        return value

    return frame.withColumn("id", udf(fail, "long", useArrow=False)("id"))


def test_failed_task_is_run_again(spark: Any, frame: Any, table: Path) -> None:
    """Scenario 51: what the first attempt wrote is not in the table, what the second wrote is."""
    failing(frame, 1).write.partitionBy("p").parquet(str(table))

    assert sorted(row.id for row in spark.read.parquet(str(table)).collect()) == list(range(20))
    assert leftovers(table) == []
    report = last_report()
    assert report is not None
    assert report.files == len(visible(table))


@pytest.mark.sample(1)
@pytest.mark.parametrize("partitioned", [False, True])
def test_job_that_fails_for_good_leaves_nothing(frame: Any, table: Path, partitioned: bool) -> None:
    """Nothing is visible and nothing is left, the destination that it made included."""
    writer = failing(frame, 99).write
    with pytest.raises(TASK_FAILURES, match="boom"):
        (writer.partitionBy("p") if partitioned else writer).parquet(str(table))

    assert wait_until(lambda: not table.exists(), 20), below(table)


@pytest.mark.skipif(not Path("/proc").is_mount(), reason="needs a filesystem without directories")
def test_destination_that_cannot_be_made_is_named_with_its_parent(frame: Any) -> None:
    """The error says where the directory cannot be made, and whose that place is."""
    with pytest.raises(Exception, match=r"cannot make the directory .*/proc/flights") as caught:
        frame.write.parquet("/proc/flights")

    assert re.search(
        r"no permission to write, or no space, in file:/proc \(\S+ root:root\)", str(caught.value)
    )


@pytest.mark.parametrize("name", ["_SUCCESS", "_temporary/x"])
def test_task_that_leaves_a_name_of_the_protocol(frame: Any, table: Path, name: str) -> None:
    """It fails as a task, and names the file; the job commit is not even tried."""
    place = str(table)

    def leave(value: int) -> int:
        for task in Path(place).glob("_temporary/*/00/tasks/*"):
            with suppress(FileNotFoundError, FileExistsError):  # of an attempt that has failed
                (task / name).parent.mkdir(exist_ok=True)
                (task / name).write_text("x")
        return value

    with pytest.raises(TASK_FAILURES, match=f"{name.partition('/')[0]}.*belongs to the commit"):
        frame.withColumn("id", udf(leave, "long", useArrow=False)("id")).write.parquet(place)

    assert wait_until(lambda: not table.exists(), 20), below(table)


def test_partition_that_hadoop_does_not_list(frame: Any, table: Path) -> None:
    """A partition whose directory looks like a checksum fails its task: it would be lost."""
    odd = frame.withColumn(".k", lit("1.crc"))
    with pytest.raises(TASK_FAILURES, match=r"\.k=1\.crc.*would not be committed"):
        odd.write.partitionBy(".k").parquet(str(table))

    assert wait_until(lambda: not table.exists(), 20), below(table)


def test_job_that_fails_leaves_the_table_as_it_was(frame: Any, table: Path) -> None:
    """Files, an empty directory and another job's work in progress stay."""
    frame.write.parquet(str(table))
    (table / "_temporary" / "other" / "00" / "tasks").mkdir(parents=True)
    before = below(table)
    with pytest.raises(TASK_FAILURES, match="boom"):
        failing(frame, 99).write.mode("append").parquet(str(table))

    assert wait_until(lambda: below(table) == before, 20)


def test_straggler_leaves_nothing(spark: Any, table: Path) -> None:
    """A task that outlives its failed job removes what it writes after the job's end."""

    def fail_or_linger(value: int) -> int:
        import time

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 0:
            time.sleep(0.5)
            raise ValueError("boom")
        time.sleep(0.25)
        return value

    slow = spark.range(0, 20, 1, 2).withColumn(
        "v", udf(fail_or_linger, "long", useArrow=False)("id")
    )
    with pytest.raises(TASK_FAILURES, match="boom"):
        slow.write.option("maxRecordsPerFile", 1).parquet(str(table))

    tracker = spark.sparkContext.statusTracker()
    assert wait_until(lambda: not tracker.getActiveStageIds(), 20)
    assert wait_until(lambda: not table.exists(), 20), below(table)


def test_refusal_is_one_readable_error(spark: Any, frame: Any, table: Path) -> None:
    """What Python says comes first in the one exception that the user sees."""
    with (
        answered_by(spark, lambda _: json.dumps({"ok": False, "error": "the disk is full"})),
        pytest.raises(PySparkException) as caught,
    ):
        frame.write.parquet(str(table))

    assert str(caught.value).startswith("the disk is full")
    assert "INTERNAL_ERROR" not in str(caught.value)
    assert not table.exists()


def test_refusal_reaches_sql_tables_and_v2_alike(spark: Any, frame: Any, table: Path) -> None:
    """The same error comes through CTAS and through Spark's second file writer."""
    frame.createOrReplaceTempView("source")
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        with answered_by(spark, lambda _: json.dumps({"ok": False, "error": "the disk is full"})):
            with pytest.raises(PySparkException, match=r"^the disk is full"):
                frame.write.mode("append").parquet(str(table))
            spark.conf.unset("spark.sql.sources.useV1SourceList")
            with pytest.raises(PySparkException, match="the disk is full"):
                spark.sql(
                    f"create table x using parquet location '{table}' as select * from source"
                )
    finally:
        spark.conf.unset("spark.sql.sources.useV1SourceList")


def test_real_refusal_names_the_file(spark: Any, frame: Any, table: Path) -> None:
    """A manifest that vanished with its task's files fails the job, and the error says which."""

    def spoil(request: str) -> str:
        for task in json.loads(request)["tasks"]:
            manifest = Path(decode_uri(task["manifest"]).path)
            manifest.unlink()
            directory = manifest.parent.parent / "tasks" / task["attemptId"]
            directory.rename(directory.with_name("gone-" + task["taskId"]))
        return BRIDGE.apply(request)

    with answered_by(spark, spoil), pytest.raises(PySparkException) as caught:
        frame.write.parquet(str(table))

    first = str(caught.value).splitlines()[0]
    assert first.startswith("job ")
    assert "-manifest.json" in first
    assert not table.exists()


def test_late_loser_does_not_win(spark: Any, frame: Any, table: Path) -> None:
    """A manifest that another attempt put in the place of the committed one is not used."""

    def overwrite(request: str) -> str:
        task = json.loads(request)["tasks"][0]
        manifest = Path(decode_uri(task["manifest"]).path)
        loser = json.loads(manifest.read_text())
        loser |= {"taskAttemptID": loser["taskAttemptID"] + "9", "files": [], "directories": []}
        loser["taskAttemptDir"] += "9"
        manifest.write_text(json.dumps(loser))
        return BRIDGE.apply(request)

    with answered_by(spark, overwrite):
        frame.write.partitionBy("p").parquet(str(table))

    assert sorted(row.id for row in spark.read.parquet(str(table)).collect()) == list(range(20))
    report = last_report()
    assert report is not None
    assert any("is not the committed one" in text for text in report.warnings)


def refuse(text: str) -> Any:
    """Return an answer of a Python that says no."""
    return lambda _: json.dumps({"ok": False, "error": text})


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_refused_before_any_task_runs(spark: Any, frame: Any, table: Path, mode: str) -> None:
    """What Python says comes first, no task has run, and only this job's directory is gone."""
    frame.write.parquet(str(table))
    (table / "_temporary" / "other" / "00" / "tasks").mkdir(parents=True)
    before = below(table)
    with (
        answered_by(spark, BRIDGE.apply, checks=refuse("not now")),
        pytest.raises(PySparkException) as caught,
    ):
        failing(frame, 99).write.mode(mode).parquet(str(table))

    assert str(caught.value).startswith("not now")
    assert "INTERNAL_ERROR" not in str(caught.value)
    assert below(table) == before


def test_refused_before_any_task_runs_in_a_new_place(spark: Any, frame: Any, table: Path) -> None:
    """A destination that this job has made goes with it."""
    with (
        answered_by(spark, BRIDGE.apply, checks=refuse("not now")),
        pytest.raises(PySparkException, match=r"^not now"),
    ):
        frame.write.parquet(str(table))

    assert not table.exists()


def test_no_answer_before_any_task_runs(spark: Any, frame: Any, table: Path) -> None:
    """A Python that is gone before the job begins is one readable error too."""

    def vanish(request: str) -> str:
        raise ConnectionError

    with (
        answered_by(spark, BRIDGE.apply, checks=vanish),
        pytest.raises(PySparkException, match=r"^asynccommit: no answer .* was not begun"),
    ):
        failing(frame, 99).write.parquet(str(table))

    assert not table.exists()


def test_python_is_told_what_a_job_is_about_to_do(spark: Any, frame: Any, table: Path) -> None:
    """Before any task runs it hears what is replaced, whose the place is, and the options."""
    asked: list[dict[str, Any]] = []

    def listen(request: str) -> str:
        asked.append(json.loads(request))
        return BRIDGE.apply(request)

    spark.conf.set("spark.asynccommit.lease", "70")
    try:
        with answered_by(spark, listen, checks=listen):
            frame.write.option("asynccommit.job.key", "k").mode("overwrite").parquet(str(table))
            frame.write.mode("overwrite").parquet(str(table))
            dynamic = frame.write.option("partitionOverwriteMode", "dynamic").mode("overwrite")
            dynamic.partitionBy("p").parquet(str(table))
    finally:
        spark.conf.unset("spark.asynccommit.lease")

    said = [(one["what"], len(one["overwrite"]), one["dynamic"]) for one in asked]
    assert said == [
        *[("check", 0, False), ("commit", 0, False)],
        *[("check", 1, False), ("commit", 1, False)],
        *[("check", 0, True), ("commit", 0, True)],
    ]
    assert [one["madeDestination"] for one in asked] == [True, True, False, False, False, False]
    assert decode_uri(asked[2]["overwrite"][0]).path == str(table)
    assert [one["conf"].get("asynccommit.job.key") for one in asked] == ["k", "k", *[None] * 4]
    assert {one["conf"]["spark.asynccommit.lease"] for one in asked} == {"70"}


def _attempt_dir(request: str) -> Path:
    what = json.loads(request)
    return Path(decode_uri(what["dest"]).path, "_temporary", what["jobId"], "00")


def test_no_answer_before_the_record_removes_this_job_only(
    spark: Any, frame: Any, table: Path
) -> None:
    """The JVM cleans up after itself, and leaves another job's directory alone."""

    def vanish(request: str) -> str:
        raise ConnectionError

    other = table / "_temporary" / "other" / "00"
    other.mkdir(parents=True)
    with answered_by(spark, vanish), pytest.raises(PySparkException, match="no answer"):
        frame.write.mode("append").parquet(str(table))

    assert below(table) == [other.parent.parent, other.parent, other]


def test_no_answer_after_the_record_deletes_nothing(spark: Any, frame: Any, table: Path) -> None:
    """Once the record is there, manifests and files stay for whoever finishes the commit."""
    seen: list[Path] = []

    def begin_and_vanish(request: str) -> str:
        attempt = _attempt_dir(request)
        (attempt / "commit-record.json").write_text("{}")
        seen.extend(below(attempt))
        raise ConnectionError

    with answered_by(spark, begin_and_vanish), pytest.raises(PySparkException, match="no answer"):
        frame.write.partitionBy("p").parquet(str(table))

    assert len([path for path in seen if path.suffix == ".parquet"]) == 6
    assert all(path.exists() for path in seen)


def test_rollback_leaves_a_python_that_lives(
    spark: Any, frame: Any, table: Path, blockbuster: BlockBuster
) -> None:
    """A Python that did not answer and commits all the same is not undone by another."""
    begun, may_end = threading.Event(), threading.Event()

    def linger(progress: Any) -> None:
        if progress.stage == "job_stage_rename_files":
            begun.set()
            may_end.wait(60)

    def begin_and_vanish(request: str) -> str:
        committing.append(pool.submit(BRIDGE.apply, request))
        assert begun.wait(60)
        raise ConnectionError

    committing: list[Future[str]] = []
    writer = frame.write.option("asynccommit.on.failure", "rollback").partitionBy("p")
    blockbuster.deactivate()  # the hook holds the event loop, and the commit with it
    bridge.on_progress = OnLoop(linger)
    try:
        with (
            ThreadPoolExecutor(1) as pool,
            answered_by(spark, begin_and_vanish),
            pytest.raises(PySparkException, match=r"no answer .* was not undone: .*takeover"),
        ):
            try:
                writer.parquet(str(table))
            finally:
                may_end.set()
    finally:
        bridge.on_progress = None

    assert json.loads(committing[0].result())["ok"]
    assert spark.read.parquet(str(table)).count() == 20
    assert leftovers(table) == []


def test_refusal_after_the_record_deletes_nothing(spark: Any, frame: Any, table: Path) -> None:
    """A commit that fails half-way keeps what a resume needs, though Spark calls abort."""

    def lose_a_file(progress: Any) -> None:
        if progress.stage == "job_stage_rename_files":
            for path in list(table.glob("_temporary/*/00/tasks/*/p=1/*.parquet"))[:1]:
                path.unlink()

    bridge.on_progress = lose_a_file
    try:
        with pytest.raises(PySparkException, match=r"p=1/part-0.*No such file"):
            frame.write.partitionBy("p").parquet(str(table))
    finally:
        bridge.on_progress = None

    records = list(table.glob("_temporary/*/00/commit-record.json"))
    assert len(records) == 1
    assert len(list(records[0].parent.rglob("*-manifest.json"))) == 2
    assert not (table / "_SUCCESS").exists()


def test_lost_reply_of_a_committed_job_is_success(spark: Any, frame: Any, table: Path) -> None:
    """The marker that names the job tells the JVM what the answer would have been."""

    def commit_and_vanish(request: str) -> str:
        BRIDGE.apply(request)
        raise ConnectionError

    with answered_by(spark, commit_and_vanish):
        frame.write.parquet(str(table))

    assert sorted(row.id for row in spark.read.parquet(str(table)).collect()) == list(range(20))
    assert leftovers(table) == []


def test_abort_of_a_committed_job_changes_nothing(spark: Any, frame: Any, table: Path) -> None:
    """Without a marker the JVM cannot know, so Spark aborts: the table stays whole."""

    def commit_and_vanish(request: str) -> str:
        BRIDGE.apply(request)
        raise ConnectionError

    writer = frame.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    with answered_by(spark, commit_and_vanish), pytest.raises(PySparkException, match="not known"):
        writer.parquet(str(table))

    assert sorted(row.id for row in spark.read.parquet(str(table)).collect()) == list(range(20))


def test_destination_that_is_a_file_is_refused(frame: Any, table: Path) -> None:
    """The error names the place, and the file stays."""
    table.write_text("mine")
    with pytest.raises(PySparkException, match="ta ble%20/t"):
        frame.write.mode("append").parquet(str(table))

    assert table.read_text() == "mine"


def test_scheme_without_a_store_is_delegated(spark: Any, frame: Any, table: Path) -> None:
    """Spark's own protocol writes it, static overwrite included."""
    before = last_report()
    spark.conf.set("spark.asynccommit.schemes", "abfs")
    try:
        for _ in range(2):
            frame.write.mode("overwrite").partitionBy("p").parquet(str(table))
    finally:
        spark.conf.set("spark.asynccommit.schemes", "file")

    assert last_report() is before
    assert sorted(row.id for row in spark.read.parquet(str(table)).collect()) == list(range(20))


def test_scheme_without_a_store_is_refused_by_option(spark: Any, frame: Any, table: Path) -> None:
    """With ``refuse`` nothing runs, nothing is deleted, and the error names the option."""
    frame.write.parquet(str(table))
    before = visible(table)
    spark.conf.set("spark.asynccommit.schemes", "abfs")
    spark.conf.set("spark.asynccommit.unsupportedScheme", "refuse")
    try:
        for mode in ("append", "overwrite"):
            with pytest.raises(PySparkException, match="unsupportedScheme=delegate"):
                frame.write.mode(mode).parquet(str(table))
    finally:
        spark.conf.set("spark.asynccommit.schemes", "file")
        spark.conf.set("spark.asynccommit.unsupportedScheme", "delegate")

    assert visible(table) == before
    assert leftovers(table) == []


@pytest.mark.parametrize("said", ["session", "write"])
def test_job_key_is_refused_where_nothing_remembers_it(
    spark: Any, frame: Any, table: Path, said: str
) -> None:
    """Spark's own protocol leaves no key, so a second run would write again; nothing is deleted."""
    frame.write.parquet(str(table))
    before = visible(table)
    write = frame.write
    spark.conf.set("spark.asynccommit.schemes", "abfs")
    if said == "session":
        spark.conf.set("spark.asynccommit.job.key", "of July")
    else:
        write = write.option("asynccommit.job.key", "of July")
    try:
        for mode in ("append", "overwrite"):
            with pytest.raises(PySparkException, match=r"job\.key is 'of July', but there is no"):
                write.mode(mode).parquet(str(table))
    finally:
        spark.conf.set("spark.asynccommit.schemes", "file")
        spark.conf.unset("spark.asynccommit.job.key")

    assert visible(table) == before
    assert leftovers(table) == []

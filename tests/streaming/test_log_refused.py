"""Sink logs that are not as Spark writes them, batches that no log should have, bad settings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from asynccommit.errors import (
    OptionError,
    SinkLogCorruptError,
    SinkLogError,
    SinkLogGapError,
    UnsupportedError,
)
from asynccommit.streaming.entries import encode_entry
from asynccommit.streaming.log import Added, SinkFile, SinkLog, SinkLogSettings
from tests.support.sink import DEST, Table, batch, entry, on_table

A, B = entry(DEST, "a"), entry(DEST, "b")
FOREIGN = replace(A, path="s3a://data/other/a")
COMPACT_9 = {"9.compact": batch(A)}
BAD: dict[str, tuple[dict[str, bytes], type[SinkLogError], str]] = {
    "gap": ({"0": batch(A), "2": batch(B)}, SinkLogGapError, "/1: is missing"),
    "no beginning": ({"5": batch(A)}, SinkLogGapError, "/0: is missing"),
    "there cannot be a compact file": (
        {str(number): batch() for number in range(13)},
        SinkLogGapError,
        "/9.compact: is missing, .* 10 batches apart, and 9 was written with another interval",
    ),
    "name": ({"0": batch(A), "007": batch(B)}, SinkLogCorruptError, "/007: has a name that Spark"),
    "directory": ({"0": batch(A), "1/x": b""}, SinkLogCorruptError, "/1: is a directory"),
    "intervals": (
        {"9.compact": batch(A), "12.compact": batch(B)},
        SinkLogCorruptError,
        "/12.compact: 3 batches after 9.compact there cannot be a compact file",
    ),
    "empty": ({"0": b""}, SinkLogCorruptError, "/0: it is empty"),
    "version": ({"0": b"v2"}, SinkLogCorruptError, "/0: its version is v2"),
    "twice": (
        {"0": batch(A, A)},
        SinkLogCorruptError,
        "/0: lists '.*/a' again: it would be read twice",
    ),
    "twice in two": ({**COMPACT_9, "10": batch(A)}, SinkLogCorruptError, "/10: lists .* again"),
    "outside": ({"0": batch(FOREIGN)}, SinkLogCorruptError, "/0: .*silently skip: .*other"),
    "above": (
        {"0": batch(replace(A, path="s3a://data/t/../x"))},
        SinkLogCorruptError,
        "/0: .*has a segment '..'",
    ),
    "other scheme": (
        {"0": batch(replace(A, path="s3://data/t/a"))},
        SinkLogCorruptError,
        "/0: .*not in the same store",
    ),
    "relative": ({"0": batch(replace(A, path="a"))}, SinkLogCorruptError, "/0: .*has no scheme"),
    "of the log": (
        {"0": batch(entry(DEST, "_spark_metadata/0"))},
        SinkLogCorruptError,
        "/0: .*belongs to the log itself",
    ),
    "deleted": (
        {"0": batch(replace(A, action="delete"))},
        SinkLogCorruptError,
        "/0: line 2: action is 'delete'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_log_is_not_read(name: str) -> None:
    """A log that is not as Spark writes it is an error that names the file and the remedy."""
    files, kind, problem = BAD[name]

    async def work(table: Table) -> None:
        await table.put(files)
        with pytest.raises(kind, match=problem) as caught:
            await table.log().files()
        assert "asynccommit sink-log verify s3a://data/t shows" in str(caught.value)

    on_table(work)


@pytest.mark.parametrize(
    "name", ["gap", "no beginning", "there cannot be a compact file", "name", "intervals"]
)
def test_bad_log_is_not_continued(name: str) -> None:
    """No batch is added to a log of which readers would see nothing."""
    files, kind, _ = BAD[name]

    async def work(table: Table) -> None:
        await table.put(files)
        before = await table.names()
        with pytest.raises(kind):
            await table.log().add(99, [table.file(99)], query="q")
        assert await table.names() == before

    on_table(work)


@pytest.mark.parametrize("name", ["empty", "version", "twice", "outside", "deleted"])
def test_bad_batch_is_not_compacted(name: str) -> None:
    """What readers stumble over, or pass over in silence, gets into no compact file."""
    files, kind, _ = BAD[name]

    async def work(table: Table) -> None:
        await table.put(files)
        with pytest.raises(kind):
            await table.log(interval=2).add(1, [table.file(1)], query="q")
        assert "1.compact" not in await table.names()

    on_table(work)


def test_entry_without_a_key() -> None:
    """A key that is missing is named with its line."""

    async def work(table: Table) -> None:
        await table.put({"0": b"v1\n" + encode_entry(A).replace(b'"size":10,', b"")})
        with pytest.raises(SinkLogCorruptError, match="/0: line 2: size is null or missing"):
            await table.log().files()

    on_table(work)


def test_file_of_the_log_that_is_too_large() -> None:
    """What is larger than allowed is not read."""

    async def work(table: Table) -> None:
        await table.put({"0": batch(A)})
        with pytest.raises(SinkLogCorruptError, match="/0: holds more than 50 bytes"):
            await table.log(max_bytes=50).files()

    on_table(work)


def test_hostile_numbers_take_no_time() -> None:
    """Two compact files two thousand million batches apart are a gap at once."""

    async def work(table: Table) -> None:
        await table.put({f"{n}.compact": batch() for n in (999_999_999, 1_999_999_999)})
        await table.put({"2100000000": batch()})
        with pytest.raises(SinkLogGapError, match="/2000000000: is missing"):
            await table.log().files()

    on_table(work)


def test_first_batch_of_a_log() -> None:
    """A log begins with batch 0; with another one only if that is asked for, as a compact file."""

    async def work(table: Table) -> None:
        with pytest.raises(SinkLogGapError, match=r"begins with batch 57\. .*begin\.anywhere"):
            await table.log().add(57, [A], query="q")
        assert await table.log(begin_anywhere=True).add(57, [A], query="q") is Added.NEW
        assert await table.names() == ["57.compact"]
        assert await table.log().add(58, [B], query="q") is Added.NEW
        assert await table.log().files() == [A, B]
        with pytest.raises(SinkLogGapError, match="batch 60 cannot follow batch 58"):
            await table.log(begin_anywhere=True).add(60, [], query="q")

    on_table(work)


@pytest.mark.parametrize(
    "number,files,query,problem",
    [
        (-1, [], "q", "expected 0 to"),
        (2**31, [], "q", "expected 0 to"),
        (0, [FOREIGN], "q", "batch 0: .* not below"),
        (0, [A, A], "q", "is listed twice"),
        (0, [entry(DEST, "_spark_metadata/0")], "q", "belongs to the log itself"),
        (0, [replace(A, is_dir=True)], "q", "not a file that can be added"),
        (0, [replace(A, action="delete")], "q", "not a file that can be added"),
        (0, [replace(A, size=-1)], "q", "not a file that can be added"),
        (0, [A], "", "1 to 200 characters"),
        (0, [A], "q" * 201, "1 to 200 characters"),
    ],
)
def test_bad_batch(number: int, files: list[SinkFile], query: str, problem: str) -> None:
    """A batch that no log should have is refused before anything is written."""

    async def work(table: Table) -> None:
        with pytest.raises(OptionError, match=problem):
            await table.log().add(number, files, query=query)
        assert await table.names() == []

    on_table(work)


def test_store_that_keeps_no_condition() -> None:
    """Where nothing can be made only if it is not there, two queries could write one batch."""
    table = Table()
    table.store._traits = replace(table.store.traits, conditional_put=False)

    with pytest.raises(UnsupportedError, match="only if it does not exist"):
        table.log()


def test_table_inside_of_a_log() -> None:
    """Scenario 58: in the directory of a log readers look at no log."""
    table = Table()

    with pytest.raises(OptionError, match="inside a sink log"):
        SinkLog(table.store, DEST.child("_spark_metadata", "x"))


# --- settings --------------------------------------------------------------------------------


def test_settings_under_sparks_names() -> None:
    """Spark's keys are read as Spark reads them; a bare time is in milliseconds."""
    prefix = "spark.sql.streaming.fileSink.log."
    conf = {
        f"{prefix}compactInterval": "3",
        f"{prefix}deletion": "False",
        f"{prefix}cleanupDelay": "1500",
        "spark.sql.streaming.minBatchesToRetain": "7",
        "retention": "2d",
        "asynccommit.sink.adopt": "true",
        "spark.app.name": "x",
    }

    assert SinkLogSettings.from_conf(conf) == SinkLogSettings(
        interval=3, deletion=False, cleanup_delay=1.5, keep=7, retention=172_800.0, adopt=True
    )
    assert SinkLogSettings.from_conf({}) == SinkLogSettings()


@pytest.mark.parametrize(
    "key,value",
    [
        ("retention", "soon"),
        ("retention", "-1"),
        ("retention", "3 weeks"),
        ("spark.sql.streaming.fileSink.log.compactInterval", "0"),
        ("spark.sql.streaming.fileSink.log.deletion", "no"),
    ],
)
def test_bad_setting(key: str, value: str) -> None:
    """A value that cannot be read is named with its key."""
    with pytest.raises(OptionError, match=key):
        SinkLogSettings.from_conf({key: value})


@pytest.mark.parametrize("given", [{"interval": 0}, {"keep": 0}, {"retention": -1.0}])
def test_bad_setting_by_name(given: dict[str, int]) -> None:
    """So is one that is given as a number."""
    with pytest.raises(OptionError, match=next(iter(given))):
        SinkLogSettings(**given)  # type: ignore[arg-type]

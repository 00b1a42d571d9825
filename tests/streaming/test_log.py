"""The log of a streaming sink: adding, reading, compacting, expiring, aborting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import (
    DeniedError,
    SinkLogCorruptError,
    SinkLogForeignError,
    SinkLogRaceError,
)
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Call, Op, Wrapped
from asynccommit.stores.tree import list_if_there
from asynccommit.stores.urls import parse_url
from asynccommit.streaming.entries import LogFileWriter, Wrote
from asynccommit.streaming.log import Added, SinkFile, SinkLog, SinkLogSettings
from tests.support.sink import DEST, Table, batch, entry, on_table

A, B = entry(DEST, "a"), entry(DEST, "b")
FOREIGN = entry(DEST.at("/other"), "a")


class Meanwhile:
    """Lets something happen after the first listing that is asked for."""

    def __init__(self, work: Callable[[], Awaitable[object]]) -> None:
        self._work: Callable[[], Awaitable[object]] | None = work

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def done(op: Op) -> object:
            answer = await call(op)
            if op.name == "list" and self._work is not None:
                work, self._work = self._work, None
                await work()
            return answer

        return done


class Denied:
    """Refuses to delete anything."""

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def done(op: Op) -> object:
            if op.name == "delete_many":
                raise DeniedError("delete_many", op.path, "not permitted")
            return await call(op)

        return done


# --- batches ---------------------------------------------------------------------------------


def test_batches_are_seen_as_they_are_added() -> None:
    """Each batch is one file, every tenth a compact one; a reader sees all, in order."""

    async def work(table: Table) -> None:
        log, files = table.log(), []
        assert await log.latest() is None
        assert await log.files() == []
        for number in range(23):
            new = [table.file(number, n) for n in range(number % 3)]
            files += new
            assert await log.add(number, new, query="q") is Added.NEW
            assert await log.latest() == number
            assert await log.files() == files
        compacts = {9: "9.compact", 19: "19.compact"}
        assert await table.names() == [compacts.get(n, str(n)) for n in range(23)]

    on_table(work)


def test_batch_written_again_by_its_query() -> None:
    """Scenario 58: the same query's batch is in the log already, whatever its files are called
    now."""

    async def work(table: Table) -> None:
        log = table.log(interval=3)
        for number in range(7):
            await log.add(number, [table.file(number)], query="q")
            before = await table.names()
            again = await table.log(interval=3).add(number, [table.file(number, 9)], query="q")
            assert again is Added.ALREADY
            assert await table.names() == before
        assert await log.add(1, [table.file(1, 7)], query="q") is Added.ALREADY
        assert len(await log.files()) == 7

    on_table(work)


def test_batch_of_an_expired_file_written_again() -> None:
    """Where the file of an old batch has gone, the newest tells whose the log is."""

    async def work(table: Table) -> None:
        log = table.log(interval=3, keep=1, cleanup_delay=0.0)
        for number in range(12):
            await log.add(number, [table.file(number)], query="q")
        assert await table.names() == ["8.compact", "9", "10", "11.compact"]
        assert await log.add(4, [table.file(4, 1)], query="q") is Added.ALREADY
        with pytest.raises(SinkLogForeignError, match="of query 'q'"):
            await log.add(4, [table.file(4, 1)], query="p")

    on_table(work)


@pytest.mark.parametrize("query", ["other", None])
def test_new_checkpoint_on_an_old_log(query: str | None) -> None:
    """A query that begins below the newest batch is told so; Spark's sink drops its batches."""

    async def work(table: Table) -> None:
        log = table.log()
        for number in range(3):
            await log.add(number, [table.file(number)], query="q")
        for number in range(3):
            with pytest.raises(SinkLogForeignError, match=r"of query 'q', and ends with batch 2"):
                await log.add(number, [table.file(number, 1)], query=query)
        assert len(await log.files()) == 3

    on_table(work)


def test_batch_that_says_nothing_of_its_query() -> None:
    """A batch of Spark's own sink is nobody's, unless it lists the same files or is adopted."""

    async def work(table: Table) -> None:
        await table.put({"0": batch(table.file(0))})
        again = [table.file(0, 1)]
        with pytest.raises(
            SinkLogForeignError, match=r"If it is the same query, set asynccommit.sink.adopt"
        ):
            await table.log().add(0, again, query="q")
        assert await table.log().add(0, [table.file(0)], query="q") is Added.ALREADY
        assert await table.log(adopt=True).add(0, again, query="q") is Added.ALREADY

    on_table(work)


def test_author_of_another_batch() -> None:
    """An author that others have carried on into a compact file is not that of its batch."""

    async def work(table: Table) -> None:
        data = LogFileWriter(Wrote(0, "q")).add_all(map(table.file, range(10))).data()
        await table.put({"9.compact": data})
        with pytest.raises(SinkLogForeignError, match="of an unnamed query"):
            await table.log().add(9, [table.file(9, 1)], query="q")

    on_table(work)


def test_batch_without_files() -> None:
    """An empty batch adds nothing, so nothing is lost whoever wrote it."""

    async def work(table: Table) -> None:
        log = table.log()
        assert await log.add(0, [], query="q") is Added.NEW
        assert await table.data("0") == b"v1"
        assert await log.add(0, [], query="p") is Added.ALREADY
        with pytest.raises(SinkLogForeignError):
            await log.add(0, [table.file(0)], query="p")

    on_table(work)


def test_two_queries_after_each_other() -> None:
    """Who wrote a batch last is who may write it again."""

    async def work(table: Table) -> None:
        log = table.log(interval=2)
        await log.add(0, [table.file(0)], query="q")
        await log.add(1, [table.file(1)], query="p")
        assert await log.add(1, [table.file(1, 1)], query="p") is Added.ALREADY
        with pytest.raises(SinkLogForeignError, match="of query 'p'"):
            await log.add(1, [table.file(1, 1)], query="q")

    on_table(work)


# --- compaction and expiry -------------------------------------------------------------------


def test_retention_is_applied_when_compacting() -> None:
    """Scenario 57: files that are too old leave the log with the next compact file, and not
    before."""

    async def work(table: Table) -> None:
        log = table.log(interval=3, retention=100.0)
        await log.add(0, [table.file(0), table.file(0, 1, age=101)])
        table.now += 60
        await log.add(1, [table.file(1)])
        assert len(await log.files()) == 3
        table.now += 41
        await log.add(2, [table.file(2), table.file(2, 1, age=99), table.file(2, 2, age=101)])
        left = [file.path.rpartition("/")[2] for file in await log.files()]
        assert left == ["part-00000-1.parquet", "part-00000-2.parquet", "part-00001-2.parquet"]

    on_table(work)


@pytest.mark.parametrize("skew", [-5 * 86_400.0, 5 * 86_400.0])
def test_the_store_dates_what_expires(skew: float) -> None:
    """A writer whose clock is days ahead drops nothing young, and one behind keeps nothing old."""

    async def work(table: Table) -> None:
        table.host = replace(table.host, now=lambda: table.now + skew)
        log = table.log(interval=3, keep=1, cleanup_delay=600.0, retention=600.0)
        for number in range(6):
            await log.add(number, [table.file(number)])
        assert len(await table.names()) == 6
        assert len(await log.files()) == 6
        table.now += 601
        for number in range(6, 9):
            await log.add(number, [table.file(number)])
        assert await table.names() == ["5.compact", "6", "7", "8.compact"]
        assert len(await log.files()) == 3

    on_table(work)


def test_expiry_waits_for_its_delay() -> None:
    """Scenario 57: what no reader wants is deleted when it is older than the delay, and no
    earlier."""

    async def work(table: Table) -> None:
        log = table.log(interval=3, keep=2, cleanup_delay=600.0)
        for number in range(9):
            await log.add(number, [table.file(number)])
        assert len(await table.names()) == 9
        table.now += 599
        await log.add(9, [])
        assert len(await table.names()) == 10
        table.now += 1
        await log.add(10, [])
        assert await table.names() == ["8.compact", "9", "10"]
        assert len(await log.files()) == 9

    on_table(work)


def test_expiry_can_be_off() -> None:
    """Without deletion nothing ever goes."""

    async def work(table: Table) -> None:
        log = table.log(interval=2, keep=1, cleanup_delay=0.0, deletion=False)
        for number in range(8):
            await log.add(number, [])
        assert len(await table.names()) == 8

    on_table(work)


def test_nothing_expires_without_the_compact_file() -> None:
    """Where the compact file that has to be kept is not there, what is older is all there is."""

    async def work(table: Table) -> None:
        await table.put({str(n): batch(table.file(n)) for n in (*range(9), *range(10, 13))})
        await table.put({"9.compact": batch(*map(table.file, range(10)))})
        log = table.log(interval=3, keep=8, cleanup_delay=0.0)
        assert await log.add(13, [table.file(13)]) is Added.NEW
        assert len(await table.names()) == 14

    on_table(work)


@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(1, 8),
    st.lists(st.integers(0, 2), min_size=1, max_size=30),
)
def test_log_against_a_list(interval: int, later: int, keep: int, sizes: Sequence[int]) -> None:
    """Whatever the settings, also changed half-way: what is read is what was added, in order."""

    async def work(table: Table) -> None:
        files: list[SinkFile] = []
        for number, size in enumerate(sizes):
            # Half-way the query is started again with another interval: two compact files tell
            # that the log has its own, one may not (see docs/sink-log.md).
            told = sum(name.endswith(".compact") for name in await table.names()) > 1
            chosen = later if number > len(sizes) // 2 and told else interval
            deletion = later == interval
            log = table.log(interval=chosen, keep=keep, cleanup_delay=0.0, deletion=deletion)
            new = [table.file(number, n) for n in range(size)]
            files += new
            assert await log.add(number, new, query="q") is Added.NEW
            assert await log.files() == files
            again = [table.file(number, 9)][: len(new)]
            assert await log.add(number, again, query="q") is Added.ALREADY

    on_table(work)


def test_reading_what_has_just_expired() -> None:
    """Scenario 57: a reader whose listing is out of date when it reads looks again, and sees all.
    Scenario 57: a reader whose listing is out of date when it reads looks again, and sees all."""

    async def work(table: Table) -> None:
        log = table.log(interval=2, keep=1, cleanup_delay=0.0)
        for number in range(3):
            await log.add(number, [table.file(number)])

        async def between() -> None:
            for number in range(3, 9):
                await log.add(number, [table.file(number)])

        reader = SinkLog(Wrapped(table.store, Meanwhile(between)), DEST)
        assert await reader.files() == [table.file(number) for number in range(9)]

    on_table(work)


def test_larger_batch_of_another() -> None:
    """Scenario 58: a batch that comes between looking and writing is another's, also if it is not
    to be read."""

    async def work(table: Table) -> None:
        await table.log().add(0, [])

        async def between() -> None:
            await table.log().add(1, [table.file(1, n) for n in range(9)], query="p")

        slow = SinkLog(Wrapped(table.store, Meanwhile(between)), DEST, host=table.host)
        with pytest.raises(SinkLogRaceError, match="make sure that only one query writes"):
            await slow.add(1, [table.file(1)], query="q")
        assert len(await table.log().files()) == 9

    on_table(work)


def test_expired_file_that_cannot_be_deleted() -> None:
    """The batch is in the log all the same, and a warning names what stays."""

    async def work(table: Table) -> None:
        settings = SinkLogSettings(interval=2, keep=1, cleanup_delay=0.0)
        log = SinkLog(Wrapped(table.store, Denied()), DEST, settings, host=table.host)
        for number in range(4):
            assert await log.add(number, [table.file(number)]) is Added.NEW
        assert len(log.warnings) == 2
        assert "0 is no longer needed but could not be deleted: " in log.warnings[0]
        assert "not permitted" in log.warnings[0]

    on_table(work)


# --- aborting --------------------------------------------------------------------------------


def test_abort_deletes_what_no_batch_lists() -> None:
    """Scenario 58: the files of a failed batch go; what the log lists, is outside or is of the log
    stays."""

    async def work(table: Table) -> None:
        log, lost = table.log(), entry(DEST, "lost")
        for name in ("a", "lost", "other/b"):
            await table.store.put(f"/t/{name}", b"x" * 10)
        await table.store.put("/other/a", b"x")
        await log.add(0, [A], query="q")
        of_log = entry(DEST, "_spark_metadata/0")

        done = await log.abort(1, [A, lost, FOREIGN, of_log, entry(DEST, "never")])

        assert done.deleted == [lost.path, entry(DEST, "never").path]
        assert done.kept[A.path] == "the log lists it"
        assert "not below" in done.kept[FOREIGN.path]
        assert done.kept[of_log.path] == "it belongs to the log"
        left = [info.path for info in await list_if_there(table.store, "/t")]
        assert "/t/a" in left
        assert "/t/lost" not in left

    on_table(work)


def test_abort_where_another_may_have_added() -> None:
    """While a late write may bring the batch yet nothing is deleted; once it is there, it tells."""

    async def work(table: Table) -> None:
        log = table.log()
        for name in ("a", "b"):
            await table.store.put(f"/t/{name}", b"x" * 10)
        done = await log.abort(0, [A, B], sent=True)
        assert (done.deleted, len(done.kept)) == ([], 2)
        await log.add(0, [A], query="q")
        done = await log.abort(0, [A, B], sent=True)
        assert (done.deleted, list(done.kept)) == ([B.path], [A.path])

    on_table(work)


def test_abort_with_a_log_that_cannot_be_read() -> None:
    """Where nobody can tell what is listed nothing is deleted."""

    async def work(table: Table) -> None:
        await table.put({"0": b"v2"})
        await table.store.put("/t/a", b"x")
        with pytest.raises(SinkLogCorruptError):
            await table.log().abort(1, [A])
        assert (await table.store.head("/t/a")).size == 1

    on_table(work)


def test_abort_that_may_not_delete() -> None:
    """What could not be deleted is kept, with the reason."""

    async def work(table: Table) -> None:
        await table.store.put("/t/a", b"x" * 10)
        log = SinkLog(Wrapped(table.store, Denied()), DEST)
        done = await log.abort(0, [A])
        assert done.deleted == []
        assert "not permitted" in done.kept[A.path]

    on_table(work)


async def test_abort_deletes_no_directory(tmp_path: Path) -> None:
    """An entry that names a directory takes nothing along."""
    store, dest = LocalStore(), parse_url(str(tmp_path))
    (tmp_path / "day=1").mkdir()
    (tmp_path / "part-0").write_bytes(b"x")

    done = await SinkLog(store, dest).abort(0, [entry(dest, "day=1"), entry(dest, "part-0")])
    await store.aclose()

    assert done.kept == {entry(dest, "day=1").path: "it is a directory"}
    assert [path.name for path in tmp_path.iterdir()] == ["day=1"]

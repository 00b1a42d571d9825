"""What is said to be wrong with a sink log, and what of it is repaired."""

from __future__ import annotations

from dataclasses import replace

import pytest

from asynccommit.errors import OptionError, SinkLogRaceError
from asynccommit.stores.policies.funnel import Call, Op, Wrapped
from asynccommit.stores.urls import Address
from asynccommit.streaming.entries import LogFileWriter, Wrote, encode_entry
from asynccommit.streaming.log import SinkFile, SinkLogSettings
from asynccommit.streaming.repair import Repaired, repair
from asynccommit.streaming.verify import Wrong, verify
from tests.support.sink import DEST, LOG, Table, batch, entry, on_table

A, B, C = (entry(DEST, name) for name in "abc")
OLD = Address("s3a", "old", "/w/t")
EMPTY = batch()
LINE = encode_entry(A)

FOUND: dict[str, tuple[dict[str, bytes], list[tuple[str, Wrong]]]] = {
    "sound": ({"0": batch(A), "1": batch(B)}, []),
    "no batch": ({"0": batch(A), "2": batch(B)}, [("1", Wrong.BATCH)]),
    "there cannot be a compact file": (
        {str(n): EMPTY for n in range(12)},
        [("9.compact", Wrong.COMPACT)],
    ),
    "names": ({"0": EMPTY, "007": EMPTY, "1/x": EMPTY}, [("007", Wrong.NAME), ("1", Wrong.NAME)]),
    "intervals": (
        {"9.compact": EMPTY, "12.compact": EMPTY},
        [("12.compact", Wrong.INTERVAL)],
    ),
    "empty": ({"0": b""}, [("0", Wrong.EMPTY)]),
    "version": ({"0": b"v2\n" + LINE}, [("0", Wrong.HEADER)]),
    "lines": (
        {"0": b"v1\nx\n\n" + LINE + b"\n{}"},
        [("0", Wrong.LINE), ("0", Wrong.BLANK), ("0", Wrong.LINE)],
    ),
    "twice": ({"0": batch(A, A), "1": batch(A)}, [("0", Wrong.TWICE), ("1", Wrong.TWICE)]),
    "differs": ({"0": batch(A, replace(A, size=11))}, [("0", Wrong.DIFFERS)]),
    "outside": ({"0": batch(entry(OLD, "a"), B)}, [("0", Wrong.OUTSIDE)]),
    "of the log": ({"0": batch(entry(DEST, "_spark_metadata/0"))}, [("0", Wrong.OUTSIDE)]),
    "deleted": ({"0": batch(replace(A, action="delete"))}, [("0", Wrong.LINE)]),
}


@pytest.mark.parametrize("name", FOUND)
def test_all_that_is_wrong_is_found(name: str) -> None:
    """Each thing that is wrong is named with its file; what is not wrong is not."""
    files, expected = FOUND[name]

    async def work(table: Table) -> None:
        await table.put(files)
        found = await verify(table.store, DEST, SinkLogSettings(), data=False)
        assert [(one.file, one.wrong) for one in found.findings] == expected
        assert all(one.problem for one in found.findings)

    on_table(work)


def test_files_of_the_table() -> None:
    """What is listed and gone, or another, is found; what is not listed is counted."""

    async def work(table: Table) -> None:
        await table.put({"0": batch(A, B, C)})
        for name, size in (("a", 10), ("b", 9), ("x", 1), ("y=1/z", 1), ("_SUCCESS", 0)):
            await table.store.put(f"/t/{name}", bytes(size))
        found = await verify(table.store, DEST, SinkLogSettings())
        assert [one.wrong for one in found.findings] == [Wrong.SIZE, Wrong.GONE]
        assert found.unlisted == 2
        assert list(found.files) == ["/t/a", "/t/b", "/t/c"]

    on_table(work)


def test_findings_are_bounded() -> None:
    """A file of a million blank lines is not kept line by line."""

    async def work(table: Table) -> None:
        await table.put({"0": b"v1" + b"\n" * 100_000 + LINE})
        found = await verify(table.store, DEST, SinkLogSettings())
        assert len(found.findings) == 1000
        assert found.more == 99_000

    on_table(work)


async def repaired(
    table: Table, *, moved_from: Address | None = None, dry_run: bool = False
) -> Repaired:
    """Repair the log."""
    settings = SinkLogSettings()
    return await repair(
        table.store, DEST, settings, table.host, moved_from=moved_from, dry_run=dry_run
    )


@pytest.mark.parametrize(
    "files,name,seen",
    [
        ({"0": batch(A, B, A)}, "0", [A, B]),
        ({"0": batch(A), "1": batch(A, B)}, "1", [A, B]),
        ({"0": b"v1\n" + LINE + b"\n\n" + encode_entry(B)}, "0", [A, B]),
        ({str(n): batch(entry(DEST, str(n))) for n in range(12)}, "9.compact", None),
        ({"9.compact": batch(A), **{str(n): EMPTY for n in range(10, 20)}}, "19.compact", [A]),
        ({**{str(n): EMPTY for n in range(10)}, "9.compact": b"", "8": batch(A)}, "9.compact", [A]),
    ],
)
def test_what_can_be_repaired(
    files: dict[str, bytes], name: str, seen: list[SinkFile] | None
) -> None:
    """It says first what it would do; done, readers see each listed file once."""

    async def work(table: Table) -> None:
        await table.put(files)
        would = await repaired(table, dry_run=True)
        assert [change.name for change in would.changes] == [name]
        assert {one: await table.data(one) for one in files} == files

        done = await repaired(table)
        assert done.changes == would.changes
        assert done.left == []
        expected = seen or [entry(DEST, str(n)) for n in range(12)]
        assert await table.log().files() == expected
        kept = [await table.data(one) for one in done.kept]
        assert kept == [change.old for change in done.changes if change.old is not None]
        assert (await repaired(table)).changes == []

    on_table(work)


@pytest.mark.parametrize(
    "name", ["no batch", "empty", "version", "differs", "deleted", "intervals", "names"]
)
def test_what_cannot_be_repaired(name: str) -> None:
    """Nothing is invented: what is not there, or means two things, is left and named."""
    files, expected = FOUND[name]

    async def work(table: Table) -> None:
        await table.put(files)
        before = await table.names()
        done = await repaired(table)
        assert done.changes == []
        assert [(one.file, one.wrong) for one in done.left] == expected
        assert await table.names() == before

    on_table(work)


def test_compact_file_whose_own_batch_is_lost() -> None:
    """A compact file is not made again without what its own batch added."""
    files = {f"{n}.compact" if n == 9 else str(n): batch(entry(DEST, str(n))) for n in range(19)}

    async def work(table: Table) -> None:
        await table.put({**files, "20": batch(A)})
        done = await repaired(table)
        assert done.changes == []
        assert [one.file for one in done.left] == ["19.compact"]

    on_table(work)


def test_other_keys_of_an_entry_stay() -> None:
    """What is repaired keeps what entries say besides, and who wrote the batch."""

    async def work(table: Table) -> None:
        data = LogFileWriter(Wrote(0, "q")).add_all([A, A]).data()
        await table.put({"0": data})
        await repaired(table)
        assert await table.data("0") == LogFileWriter(Wrote(0, "q")).add_all([A]).data()

    on_table(work)


def test_table_that_was_moved() -> None:
    """Entries that name where the table was are made to name where it is, if it is all there."""
    there = [entry(OLD, name) for name in ("a b", "p=x%3D1/b")]
    here = [entry(DEST, name) for name in ("a b", "p=x%3D1/b")]

    async def work(table: Table) -> None:
        await table.put({"0": batch(there[0]), "1": batch(there[1])})
        await table.store.put("/t/a b", bytes(10))
        with pytest.raises(OptionError, match="p=x%3D1/b does not exist with 10 bytes"):
            await repaired(table, moved_from=OLD)
        await table.store.put("/t/p=x%3D1/b", bytes(10))
        done = await repaired(table, moved_from=OLD)
        assert done.left == []
        assert await table.log().files() == here

    on_table(work)


def test_log_that_changes_meanwhile() -> None:
    """A file that has changed since it was read is not written over."""

    async def work(table: Table) -> None:
        await table.put({"0": batch(A, A)})
        changed = batch(A, B, B)

        class Writer:
            """Another that writes to the log as soon as the old file is kept."""

            def around(self, call: Call) -> Call:
                """See ``Policy.around``."""

                async def done(op: Op) -> object:
                    answer = await call(op)
                    if op.name == "put" and op.path.endswith(".old"):
                        await table.store.put(f"{LOG}/0", changed)
                    return answer

                return done

        store = Wrapped(table.store, Writer())
        with pytest.raises(SinkLogRaceError, match="has changed since it was read"):
            await repair(store, DEST, SinkLogSettings(), table.host, dry_run=False)
        assert await table.data("0") == changed

    on_table(work)


def test_broken_batch_gets_into_no_compact_file() -> None:
    """A compact file is not made of batches of which one cannot be read."""

    async def work(table: Table) -> None:
        await table.put({**{str(n): EMPTY for n in range(12)}, "4": b"v2"})
        done = await repaired(table)
        assert done.changes == []
        assert [one.file for one in done.left] == ["9.compact"]

    on_table(work)


def test_hostile_numbers() -> None:
    """Names of batches that are far apart take no time, and are left."""

    async def work(table: Table) -> None:
        await table.put({f"{n}.compact": EMPTY for n in (999_999_999, 1_999_999_999)})
        await table.put({"2100000000": EMPTY})
        done = await repaired(table)
        assert done.changes == []
        assert len(done.left) == 1000

    on_table(work)

"""Tables that Hive wrote: what is superfluous in them, and what becomes of it."""

from __future__ import annotations

import gzip
import random
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from asynccommit.errors import ManifestError, NotFoundError, OptionError
from asynccommit.hive.deduplication import Dedup, Reading, dedup
from asynccommit.hive.empty_files import Format
from asynccommit.hive.names import HiveRules, parse_name
from asynccommit.stores.base import Store
from asynccommit.stores.policies.funnel import Call, Op, Wrapped
from asynccommit.testing.models.crashes import Crash, Process, When
from asynccommit.testing.models.fault_profiles import STORM
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.worlds import new_world
from tests.hive.tables import HOSTILE, KINDS, Content, Table, open_table, patient, until_death
from tests.support.faults import Faults

SPARK = "part-00000-7b0c4a1e-1111-4000-8000-000000000000-c000"


@pytest.fixture(params=KINDS)
async def table(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Table]:
    """An empty table, on a store of every kind."""
    made = open_table(request.param, tmp_path)
    yield made
    await made.store.aclose()


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Table]:
    """An empty table in a directory."""
    made = open_table("local", tmp_path)
    yield made
    await made.store.aclose()


async def run(table: Table, **how: Any) -> Dedup:
    """Remove the duplicates of a table."""
    return await dedup(table.store, table.path, Reading(**how), dry_run=False)


async def test_a_task_that_ran_twice(table: Table) -> None:
    """Both attempts gave their file its final name; one survives, and nothing else is touched."""
    await table.fill(
        {
            "000000_0": "one\ntwo\n",
            "000001_0": "three\nfo",
            "000001_1": "three\nfour\n",
            "000002_0.gz": "five",
            "000003_0_copy_1": "six",
            "_SUCCESS": "",
            ".hidden_0": "h",
            "README": "r",
            "sub/000000_0": "below",
            "sub/000000_1": "below it",
        }
    )
    before = await table.tree()
    said = await dedup(table.store, table.path)

    assert (said.dry_run, said.deleted) == (True, [])
    assert table.names(said.found.losers) == ["000001_0"]
    assert table.names([one.winner for one in said.found.duplicates]) == ["000001_1"]
    assert await table.tree() == before

    done = await run(table)
    del before["000001_0"]

    assert table.names(done.deleted) == ["000001_0"]
    assert (done.kept, done.created, done.removed) == ({}, [], [])
    assert table.names(done.found.passed) == ["sub"]
    assert await table.tree() == before

    again = await run(table)

    assert (again.found.duplicates, again.deleted) == ([], [])


@pytest.mark.parametrize(
    "rules,left",
    [(HiveRules.TWO, "000000_0"), (HiveRules.THREE, "000000_1"), (HiveRules.FOUR, "000000_1")],
)
async def test_rules(table: Table, rules: HiveRules, left: str) -> None:
    """Of two files as large it depends on the rules which stays."""
    await table.fill({"000000_0": 3, "000000_1": 3})
    await run(table, rules=rules)

    assert list(await table.tree()) == [left]


@pytest.mark.parametrize(
    "files,rules,why",
    [
        ({"000000_0": 9, "000000_1": 5}, HiveRules.THREE, "is the newer attempt and smaller"),
        (
            {"000000_1": 9, "000000_1.gz": 5},
            HiveRules.FOUR,
            "belongs to the same attempt as 000000_1",
        ),
        (
            {"part-m-00000": 9, "part-r-00000": 5},
            HiveRules.TWO,
            "does not have a name in Hive's format",
        ),
        (
            {"2026_01.csv": 9, "2026_02.csv": 5},
            HiveRules.TWO,
            "does not have a name in Hive's format",
        ),
        (
            {"20261121_1": 9, "20261121_2": 5},
            HiveRules.FOUR,
            "does not have a name in Hive's format",
        ),
        (
            {"000000_1": 9, "000000_1.gz": 5},
            HiveRules.TWO,
            "belongs to the same attempt as 000000_1",
        ),
    ],
)
async def test_without_a_winner_nothing_is_changed(
    table: Table, files: Mapping[str, Content], rules: HiveRules, why: str
) -> None:
    """A dry run says all that the rules cannot decide; otherwise it is an error, at once."""
    await table.fill({**files, "000007_0": 1, "000007_1": 2, "_tmp.000008_0": 1})
    before = await table.tree()
    said = await dedup(table.store, table.path, Reading(rules))

    assert [reason[: len(why)] for reason in said.found.conflicts.values()] == [why]
    with pytest.raises(ManifestError, match=why):
        await run(table, rules=rules)
    assert await table.tree() == before


async def test_spark_names_are_refused(table: Table) -> None:
    """The rules would take files of different tasks for attempts of one, and delete good data."""
    await table.fill({f"{SPARK}.parquet": 3, f"{SPARK.replace('00000', '00001', 1)}.parquet": 5})

    with pytest.raises(ManifestError, match="has a name in Spark's format"):
        await dedup(table.store, table.path)
    assert len(await table.tree()) == 2

    await run(table, force=True)

    assert len(await table.tree()) == 1


async def test_names_of_others_without_duplicates(local: Table) -> None:
    """Names that nobody takes for attempts of one task are no reason to refuse."""
    await local.fill({"part-m-00000": 9, "part-m-00001": 5, "data.csv": 1, "other.csv": 1})
    done = await run(local)

    assert (done.found.conflicts, done.deleted, done.found.files) == ({}, [], 4)


async def test_copies_are_kept(table: Table) -> None:
    """What a later statement added is nobody's attempt; Hive 2.3 deletes two of these."""
    files = {
        "000000_0": 5,
        "000000_0_copy_1": 9,
        "000000_0_copy_2": 2,
        "000001_0_copy_1.gz": 3,
        "000002_0_copy_1.gz": 4,
        "1_0": 5,
    }
    await table.fill(files)
    await run(table)

    assert list(await table.tree()) == sorted(files)


async def test_partitions(table: Table) -> None:
    """Only directories so deep are looked at; one without files is removed."""
    await table.fill(
        {
            "y=1/m=1/000000_0": 1,
            "y=1/m=1/000000_1": 2,
            "y=1/m=__HIVE_DEFAULT_PARTITION__/000000_0": 1,
            "y=1/m=2": None,
            "y=1/m=3/_tmp.000000_0": 7,
            "y=1/m=4/_SUCCESS": 0,
            "y=2/000000_0": 1,
            "y=2/000000_1": 2,
            "y=2/m=1/deep/000000_0": 3,
            "_hidden/m=1/000000_0": 1,
            "_hidden/m=1/000000_1": 2,
            ".hive-staging/m=1": None,
        }
    )
    done = await run(table, partitions=2)

    assert table.names(done.deleted) == ["y=1/m=1/000000_0", "y=1/m=3/_tmp.000000_0"]
    assert table.names(done.removed) == ["y=1/m=2", "y=1/m=3"]
    assert table.names(done.found.passed) == ["y=2/000000_0", "y=2/000000_1", "y=2/m=1/deep"]
    assert (done.found.directories, done.found.files) == (6, 3)
    assert "y=1/m=2" not in await table.directories()
    assert len(await table.tree()) == 8


async def test_a_transactional_table_keeps_its_empty_directories(table: Table) -> None:
    """An empty base says that all before it is deleted: without it old rows would come back."""
    await table.fill({"base_0000005": None, "delta_0000001_0000001_0000/bucket_00000": 3})
    done = await run(table, partitions=1)

    assert (done.removed, done.deleted) == ([], [])
    assert len(await table.tree()) == 1


async def test_an_empty_table_stays(table: Table) -> None:
    """Only a partition is removed when it is empty, not the table."""
    await table.fill({"_tmp.000000_0": 3})
    done = await run(table)

    assert (table.names(done.deleted), done.removed) == (["_tmp.000000_0"], [])


async def test_missing_buckets(table: Table) -> None:
    """A bucket has an empty file, named as the others; a copy is a bucket's file too."""
    await table.fill(
        {
            "d=1/000001_0": "small",
            "d=1/000001_3": "larger",
            "d=2/000000_0_copy_1": "a",
            "d=2/000003_0": "b",
            "d=3": None,
        }
    )
    done = await run(table, partitions=1, buckets=4)

    assert await table.tree() == {
        "d=1/000000_3": b"",
        "d=1/000001_3": b"larger",
        "d=1/000002_3": b"",
        "d=1/000003_3": b"",
        "d=2/000000_0_copy_1": b"a",
        "d=2/000001_0": b"",
        "d=2/000002_0": b"",
        "d=2/000003_0": b"b",
    }
    assert len(done.created) == 5
    assert table.names(done.removed) == ["d=3"]
    assert (await run(table, partitions=1, buckets=4)).created == []


async def test_missing_buckets_of_copies_only(local: Table) -> None:
    """An empty file is no copy."""
    await local.fill({"000000_0_copy_1.gz": gzip.compress(b"a\n")})
    await run(local, buckets=2)

    assert gzip.decompress((await local.tree())["000001_0.gz"]) == b""


@pytest.mark.parametrize(
    "files,why",
    [
        ({"000004_0": "x"}, "has bucket 4, but --buckets 4"),
        ({"000000_0": b"RCF\x01"}, "an empty RCFile cannot be made"),
        ({"000000_0": ""}, "no neighboring file has content"),
        ({"data.csv": "x"}, "its name has no number"),
        ({"000000_0": b"PAR1 and no more"}, "is not a parquet file"),
    ],
)
async def test_buckets_that_cannot_be_made(
    local: Table, files: Mapping[str, Content], why: str
) -> None:
    """It is known before anything is changed."""
    await local.fill({**files, "_tmp.000000_0": "t"})
    before = await local.tree()

    with pytest.raises(ManifestError, match=why):
        await run(local, buckets=4)
    assert await local.tree() == before


async def test_empty_text_files_by_option(local: Table) -> None:
    """Where no file tells the format it can be said."""
    await local.fill({"000000_0": ""})
    done = await run(local, buckets=2, format=Format.TEXT)

    assert local.names(done.created) == ["000001_0"]


async def test_a_missing_table(local: Table) -> None:
    """A directory that is not there is an error."""
    with pytest.raises(NotFoundError):
        await dedup(local.store, local.path, Reading(partitions=2))


class Vanishing:
    """A partition is deleted as soon as the table has been listed."""

    def around(self, call: Call) -> Call:
        """Return the call that lets it happen."""

        async def vanish(op: Op) -> Any:
            if op.name == "list" and op.args[0].endswith("d=1"):
                await call(Op("delete_tree", op.args[:1], True, False))
            return await call(op)

        return vanish


async def test_a_partition_that_vanishes(local: Table) -> None:
    """A partition that somebody deletes meanwhile is as good as an empty one."""
    await local.fill({"d=1/000000_0": 1, "d=2/000000_0": 1, "d=2/000000_1": 2})
    store = Wrapped(local.store, Vanishing())
    done = await dedup(store, local.path, Reading(partitions=1), dry_run=False)

    assert list(await local.tree()) == ["d=2/000000_1"]
    assert done.kept == {}


class Rival:
    """Somebody makes a bucket right before it is made."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def around(self, call: Call) -> Call:
        """Return the call that comes too late."""

        async def late(op: Op) -> Any:
            if op.name == "put":
                await self.store.put(op.args[0], b"rows")
            return await call(op)

        return late


async def test_a_bucket_that_somebody_makes(table: Table) -> None:
    """A file that is there by now is not written over."""
    await table.fill({"000000_0": "a"})
    store = Wrapped(table.store, Rival(table.store))
    done = await dedup(store, table.path, Reading(buckets=2), dry_run=False)

    assert (await table.tree())["000001_0"] == b"rows"
    assert done.kept == {f"{table.path}/000001_0": "something was written there since the listing"}


@pytest.mark.parametrize("how", [{"partitions": -1}, {"buckets": -1}, {"buckets": 10**7}])
def test_numbers_without_sense(how: dict[str, Any]) -> None:
    """Numbers that mean nothing are refused before anything is looked at."""
    with pytest.raises(OptionError):
        Reading(**how)


class Meddling:
    """Something happens to a file right before the first look at any file."""

    def __init__(self, store: Store, path: str, size: int | None) -> None:
        self.store, self.path, self.size = store, path, size

    def around(self, call: Call) -> Call:
        """Return the call that lets it happen."""

        async def meddle(op: Op) -> Any:
            if op.name == "head" and self.path:
                changed, self.path = self.path, ""
                if self.size is None:
                    await self.store.delete(changed)
                else:
                    await self.store.put(changed, bytes(self.size))
            return await call(op)

        return meddle


@pytest.mark.parametrize(
    "name,size,why",
    [
        ("000000_1", None, "000000_1 is gone"),
        ("000000_1", 1, "000000_1 has changed since the listing"),
        ("000000_0", None, "it is gone"),
        ("000000_0", 5, "it has changed since the listing"),
    ],
)
async def test_a_table_that_changes(table: Table, name: str, size: int | None, why: str) -> None:
    """What is not as it was listed any more is left, with the reason."""
    await table.fill({"000000_0": 5, "000000_1": 9})
    meddled = Wrapped(table.store, Meddling(table.store, f"{table.path}/{name}", size))
    done = await dedup(meddled, table.path, dry_run=False)

    assert done.deleted == []
    assert list(done.kept) == [f"{table.path}/000000_0"]
    assert done.kept[f"{table.path}/000000_0"].endswith(why)


class Late:
    """A deletion is asked for when another file has just taken the place."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def around(self, call: Call) -> Call:
        """Return the call that lets it happen."""

        async def late(op: Op) -> Any:
            if op.name == "delete_many":
                await self.store.put(op.args[0][0].path, b"new")
            return await call(op)

        return late


async def test_deletions_depend_on_the_etag(tmp_path: Path) -> None:
    """A file that changes after the last look is left, on a store that can see to that."""
    table = open_table("s3", tmp_path)
    await table.fill({"000000_0": 5, "000000_1": 9})
    done = await dedup(Wrapped(table.store, Late(table.store)), table.path, dry_run=False)

    assert list(done.kept.values()) == ["it has changed since the listing"]
    assert (await table.tree())["000000_0"] == b"new"


MESSY: dict[str, Content] = {
    "d=1/000000_0": "first",
    "d=1/000000_1": "second, larger",
    "d=1/000000_2": "3rd",
    "d=1/000003_0": "x",
    "d=2/_tmp.000000_0": "unfinished",
    "d=3": None,
    "d=4/000001_0": "same",
    "d=4/000001_1": "same",
}
CLEAN = {
    "d=1/000000_1": b"second, larger",
    "d=1/000001_1": b"",
    "d=1/000002_1": b"",
    "d=1/000003_0": b"x",
    "d=4/000000_0": b"",
    "d=4/000001_0": b"same",
    "d=4/000002_0": b"",
    "d=4/000003_0": b"",
}
MESSY_READING = Reading(partitions=1, buckets=4)


@pytest.mark.parametrize("kind", ["adls", "flat"])
def test_a_crash_at_every_write(kind: str) -> None:
    """Whichever write a run dies at, another run ends where an undisturbed one does."""

    async def scenario() -> int:
        world = new_world(kind)
        await Table(world.store(Process("writer"))).fill(MESSY)
        whole = Process("whole")
        await _dedup(world.copy().store(whole))
        for crash in _crashes(len(whole.writes)):
            there = world.copy()
            dying = Process("dying", crash)
            await until_death(dying, _dedup(there.store(dying)))
            after = there.store(Process("after"))
            await _dedup(after)

            assert await Table(after).tree() == CLEAN, f"{crash}: {dying.writes[-1]}"
            assert await Table(after).directories() == ["d=1", "d=4"]
        return len(whole.writes)

    assert run_virtual(scenario()) >= 11


async def _dedup(store: Store) -> Dedup:
    return await dedup(patient(store), "/t", MESSY_READING, dry_run=False)


def _crashes(writes: int) -> list[Crash]:
    return [Crash(n, when) for n in range(1, writes + 1) for when in (When.BEFORE, When.AFTER)]


@pytest.mark.parametrize("kind", ["adls", "flat"])
@pytest.mark.parametrize("seed", range(5))
def test_in_storms(kind: str, seed: int) -> None:
    """Throttled requests and lost responses change nothing about the outcome."""

    async def scenario() -> dict[str, bytes]:
        world = new_world(kind)
        await Table(world.store(Process("writer"))).fill(MESSY)
        world.storm(random.Random(seed), STORM)
        await _dedup(world.store(Process("one")))
        world.weather = None
        return await Table(world.store(Process("reader"))).tree()

    assert run_virtual(scenario()) == CLEAN


tables: st.SearchStrategy[dict[str, int]] = st.dictionaries(
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["", "d=1/", "d=2/"]),
        st.sampled_from(["000000", "000001", "(x=1)000000"]),
        st.sampled_from(["", "_0", "_1", "_1.gz", "_2.gz", "_0_copy_1", "_0_copy_1.gz"]),
    ),
    st.integers(0, 3),
    max_size=12,
)


def expected(sizes: Mapping[str, int]) -> set[str]:
    """Return what stays in the partitions by the rules up to 2.3, worked out from pairs."""

    def better(one: str, other: str) -> bool:
        same = one.split("_")[0].split(".")[0] == other.split("_")[0].split(".")[0]
        return same and "copy" not in one and (-sizes[one], one) < (-sizes[other], other)

    return {
        name
        for name in sizes
        if "/" not in name or "copy" in name or not any(better(one, name) for one in sizes)
    }


@given(tables)
def test_any_table(sizes: dict[str, int]) -> None:
    """Whatever was written, what stays is what the rule says, and a second run finds nothing."""

    async def scenario() -> tuple[set[str], list[str]]:
        table = open_table("s3", Path())
        await table.fill({"_SUCCESS": 0, **sizes})
        await run(table, partitions=1, force=True)
        again = await run(table, partitions=1, force=True)
        return set(await table.tree()) - {"_SUCCESS"}, again.deleted

    assert run_virtual(scenario()) == (expected(sizes), [])


@given(
    st.dictionaries(HOSTILE, st.integers(0, 5), min_size=1, max_size=15),
    st.sampled_from(HiveRules),
    st.booleans(),
    st.sampled_from([0, 3]),
)
@example({"(": 1, "0_copy_1_copy_1": 0}, HiveRules.TWO, False, 3)
def test_any_names(sizes: dict[str, int], rules: HiveRules, force: bool, buckets: int) -> None:
    """Of whatever names, nothing is lost but what is said, and what stays is of the same task."""

    async def scenario() -> None:
        table = open_table("s3", Path())
        files = {f"d=1/{name}": size for name, size in sizes.items()}
        await table.fill({"_SUCCESS": 0, **files})
        before = await table.tree()
        reading = Reading(rules, 1, buckets, force=force)
        try:
            done = await dedup(table.store, table.path, reading, dry_run=False)
        except ManifestError:
            assert await table.tree() == before
            return
        after = await table.tree()

        assert done.kept == {}
        assert set(before) - set(after) == set(table.names(done.deleted))
        assert set(after) - set(before) == set(table.names(done.created))
        assert after | before == before | {name: after[name] for name in table.names(done.created)}
        for one in done.found.duplicates:
            ids = {_id(info.path, rules) for info in (one.winner, *one.losers)}
            assert len(ids) == 1
        again = await dedup(table.store, table.path, reading, dry_run=False)
        assert (again.deleted, again.created) == ([], [])

    run_virtual(scenario())


def _id(path: str, rules: HiveRules) -> str:
    found = parse_name(path.rpartition("/")[2], rules)
    assert found is not None
    return found.id


async def test_very_many_files(tmp_path: Path) -> None:
    """Looking at a partition takes the pages of its listing, and no request for a file."""
    table = open_table("s3", tmp_path)
    await table.fill(
        {f"d=1/{task:06}_{attempt}": attempt for task in range(5000) for attempt in (0, 1)}
    )
    seen = Faults()
    said = await dedup(Wrapped(table.store, seen), table.path, Reading(partitions=1))

    assert len(said.found.losers) == 5000
    assert {op.name for op in seen.seen} == {"list"}
    assert len(seen.seen) <= 12

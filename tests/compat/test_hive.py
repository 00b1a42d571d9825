"""Duplicates of Hive's tasks: what we keep is what Hive's own class keeps, and where it is not."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc
from pyarrow import parquet as pq

from asynccommit.hive.deduplication import Dedup, Reading, dedup
from asynccommit.hive.names import (
    is_copy,
    is_temporary,
    parse_name,
    replace_task,
    task_temporary_path,
    temporary_path,
)
from asynccommit.hive.publishing import publish
from asynccommit.stores.local.store import LocalStore
from tests.support.hadoop import Hadoop, HadoopError, read_tree, write_tree

pytestmark = pytest.mark.jvm

UTILITIES = "org.apache.hadoop.hive.ql.exec.Utilities"
TREES = 12

ORDINARY = [
    *("000000_0", "000000_0.gz", "000123_12.snappy.orc", "000000", "000000.", "7", "1_0.a.b"),
    *("(ds%3D1)000002_3", "(a)(b)1_2", "((1)2", "()1", "(a)x1", "x)1_0", "tmp_000001_2"),
    *("attempt_201101010000_0001_m_000003_1", "_tmp.000000_0", "part-00000-aaa-0.parquet"),
    *("000001_1234567", "12_34_56", "a1.b2_0", "\uff101", "é1_1\U0001f600.x", "000000_0_1"),
    *("", "abc", "a.b", "(", "1x", "a\n1", "1\n", "1\r_0", "\x851", "1\u2028", "1.\u2029"),
]
COPIES = ["000000_0_copy_1", "000003_1_copy_12", "7_0_copy_999999"]
READ_OTHERWISE = {
    # name -> the task that Hive 2.3 takes: the number of a copy, or one in a partition's value.
    "000000_0_copy_1": "1",
    "000000_0_copy_1.gz": "1",
    "000000_copy_2": "2",
    "(ds=1.5)000002_3": "1",
    "000000_0_copy_abcdef0123456789": "0123456789",
}


ONE = [""]  # folder: a table without partitions


def utilities(hadoop: Hadoop) -> Any:
    """Return Hive's class."""
    return hadoop.java(UTILITIES)


@pytest.mark.parametrize("name", ORDINARY, ids=repr)
def test_task_ids_as_hive(hadoop: Hadoop, name: str) -> None:
    """The task in a name is the one that Hive finds, and so is the prefix of its id."""
    hive, found = utilities(hadoop), parse_name(name)

    assert hive.getTaskIdFromFilename(name) == (name if found is None else found.task)
    assert hive.getPrefixedTaskIdFromFilename(name) == (name if found is None else found.id)
    assert hive.isCopyFile(name) is is_copy(name)


def test_task_ids_of_many_names_as_hive(hadoop: Hadoop) -> None:
    """Of names made of what matters in them, all but copies are read as Hive reads them."""
    rng, hive = random.Random(6), utilities(hadoop)
    pieces = ["0", "12", "000003", "_", "_", ".", "(", ")", "a", "-", "\n", "1234567", "é"]
    names = {"".join(rng.choices(pieces, k=rng.randint(1, 9))) for _ in range(600)}
    for name in sorted(names):
        found = parse_name(name)

        assert hive.getPrefixedTaskIdFromFilename(name) == (found.id if found else name), name
        if found is not None and not found.prefix:
            assert hive.getTaskIdFromFilename(name) == found.task, name


@pytest.mark.parametrize("name", COPIES)
def test_copies_as_hive(hadoop: Hadoop, name: str) -> None:
    """What Hive takes for a copy is one."""
    assert utilities(hadoop).isCopyFile(name)
    assert is_copy(name)


@pytest.mark.parametrize("name,task", READ_OTHERWISE.items())
def test_task_ids_that_hive_reads_otherwise(hadoop: Hadoop, name: str, task: str) -> None:
    """Hive takes a number of something else for the task; later releases do not."""
    found = parse_name(name)

    assert utilities(hadoop).getTaskIdFromFilename(name) == task
    assert found is not None
    assert found.task in {"000000", "000002"}


@pytest.mark.parametrize(
    "name,task",
    [
        ("000000_0.gz", 12),
        ("(ds%3D1)000002_3", 7),
        ("tmp_000001_2", 3),
        ("000001_0", 1234567),
        ("000000", 5),
    ],
)
def test_replaced_tasks_as_hive(hadoop: Hadoop, name: str, task: int) -> None:
    """The name of another bucket is Hive's."""
    assert utilities(hadoop).replaceTaskIdFromFilename(name, task) == replace_task(name, task)


@pytest.mark.parametrize(
    "name,theirs,ours",
    [
        ("000000_0_copy_1", "000000_0_copy_4", "000004_0_copy_1"),
        ("1_1", "4_", "4_1"),
        ("(ds=1.5)000002_3", "(ds=4.5)000002_3", "(ds=1.5)000004_3"),
    ],
)
def test_replaced_tasks_that_are_not_hives(
    hadoop: Hadoop, name: str, theirs: str, ours: str
) -> None:
    """Hive replaces the same digits elsewhere in the name, or loses some."""
    assert utilities(hadoop).replaceTaskIdFromFilename(name, 4) == theirs
    assert replace_task(name, 4) == ours


@pytest.mark.parametrize("name", ["_tmp.x", "_tmp_x", "_task_tmp.x", "x_tmp.y", "tmp", "x"])
def test_temporary_names_as_hive(hadoop: Hadoop, name: str) -> None:
    """The same names are temporary, and temporary names are made alike."""
    path = hadoop.path(f"/w/{name}")
    status = hadoop.new("org.apache.hadoop.fs.FileStatus", 1, False, 1, 1, 1, path)

    assert utilities(hadoop).isTempPath(status) is is_temporary(name)
    assert utilities(hadoop).toTempPath(f"/w/{name}").toString() == temporary_path(f"/w/{name}")
    made = utilities(hadoop).toTaskTempPath(hadoop.new("org.apache.hadoop.fs.Path", f"/w/{name}"))
    assert made.toString() == task_temporary_path(f"/w/{name}")


class Twins:
    """One tree twice: for Hive and for us."""

    def __init__(self, hadoop: Hadoop, root: Path, files: Mapping[str, bytes]) -> None:
        self.hadoop = hadoop
        self.theirs, self.ours = root / "theirs", root / "ours"
        for folder in (self.theirs, self.ours):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            write_tree(folder, files)

    def hive(self, levels: int = 0, buckets: int = 0) -> list[str]:
        """Let Hive remove duplicates; return the buckets that it would make."""
        hive, fs = utilities(self.hadoop), self.hadoop.filesystem()
        path = self.hadoop.path(str(self.theirs))
        with self.hadoop.errors():
            if not levels:
                hive.removeTempOrDuplicateFiles(fs, path)
                return []
            context = self.hadoop.new("org.apache.hadoop.hive.ql.plan.DynamicPartitionCtx")
            context.setNumDPCols(levels)
            context.setNumBuckets(buckets)
            conf = self.hadoop.configuration()
            made = hive.removeTempOrDuplicateFiles(fs, path, context, None, conf)
            return [str(one.toUri().getPath()) for one in made or ()]

    def we(self, **how: Any) -> Dedup:
        """Remove duplicates ourselves."""

        async def run() -> Dedup:
            store = LocalStore()
            try:
                return await dedup(store, str(self.ours), Reading(**how), dry_run=False)
            finally:
                await store.aclose()

        return asyncio.run(run())

    def trees(self) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """Return what Hive left, and what we left."""
        return read_tree(self.theirs), read_tree(self.ours)


def draw(rng: random.Random, folders: list[str], *, copies: bool = True) -> dict[str, bytes]:
    """Return files as Hive's tasks may leave them."""
    ends = ["", "_0", "_1", "_2", "_1.gz", "_0.orc", "_10"] + ["_0_copy_1", "_1_copy_2"] * copies
    files: dict[str, bytes] = {"_SUCCESS": b"", "_hidden/x=1/000000_0": b"h", "README": b"r"}
    sizes = count(1)
    for folder in folders:
        if rng.random() < 0.15:
            files[f"{folder}empty/"] = b""
        for _ in range(rng.randint(3, 12)):
            prefix = rng.choice(["", "", "", "(ds%3D1)"])
            name = f"{folder}{prefix}{rng.randint(0, 3):06}{rng.choice(ends)}"
            # The local file system lists in no order, so the first of two as large is not known.
            files[name] = bytes(rng.randint(0, 4) if folders == ONE else next(sizes))
    return files


def test_random_trees_as_hive(hadoop: Hadoop, tmp_path: Path) -> None:
    """Of many trees of one level the same files are left."""
    rng = random.Random(23)
    deleted = 0
    for number in range(TREES):
        files = {name: data for name, data in draw(rng, ONE).items() if name != "empty/"}
        twins = Twins(hadoop, tmp_path, files)
        twins.hive()
        deleted += len(twins.we(force=True).deleted)
        theirs, ours = twins.trees()

        assert ours == theirs, number
    assert deleted > TREES


def test_random_partitions_as_hive(hadoop: Hadoop, tmp_path: Path) -> None:
    """Of many trees with two levels of partitions the same files and partitions are left."""
    rng = random.Random(24)
    removed = 0
    for number in range(TREES):
        folders = [f"y={y}/m={m}/" for y in range(2) for m in range(rng.randint(1, 3))]
        files = draw(rng, folders) | {f"{folders[0]}_tmp.000009_0": b"unfinished", "y=5/m=7/": b""}
        files = {name.replace("/empty/", "x/"): data for name, data in files.items()}
        twins = Twins(hadoop, tmp_path, files)
        twins.hive(levels=2)
        removed += len(twins.we(partitions=2, force=True).removed)
        theirs, ours = twins.trees()

        assert ours == theirs, number
    assert removed > TREES


def test_random_buckets_as_hive(hadoop: Hadoop, tmp_path: Path) -> None:
    """The same buckets are missing in every partition."""
    rng = random.Random(25)
    for number in range(TREES):
        files = draw(rng, ["d=1/", "d=2/", "d=3/"], copies=False)
        # Hive takes a file beside the partitions for one, and fails on empty ones and prefixes.
        files = {
            name: data
            for name, data in files.items()
            if "(" not in name and name != "README" and not name.endswith("empty/")
        }
        twins = Twins(hadoop, tmp_path, files | {f"d={d}/000003_0": b"x" for d in (1, 2, 3)})
        wanted = twins.hive(levels=1, buckets=6)
        done = twins.we(partitions=1, buckets=6, force=True)

        assert sorted(map(_bucket, done.created)) == sorted(map(_bucket, wanted)), number
    assert len(done.created) >= 6


def _bucket(path: str) -> tuple[str, str]:
    """Return the partition of a bucket, and its task; the attempt is that of any file beside."""
    folder, _, name = path.rpartition("/")
    found = parse_name(name)
    assert found is not None
    return folder.rpartition("/")[2], found.id


def test_good_data_that_hive_deletes(hadoop: Hadoop, tmp_path: Path) -> None:
    """Copies with an extension are different rows: Hive 2.3 takes them for attempts of one task."""
    files = {"000004_0_copy_2.gz": b"rows", "000005_0_copy_2.gz": b"other rows"}
    twins = Twins(hadoop, tmp_path, files)
    twins.hive()
    twins.we()
    theirs, ours = twins.trees()

    assert theirs == {"000005_0_copy_2.gz": b"other rows"}
    assert ours == files


def test_an_empty_partition_of_a_bucketed_table(hadoop: Hadoop, tmp_path: Path) -> None:
    """Hive 2.3 removes the partition and then fails on it; here it is removed."""
    twins = Twins(hadoop, tmp_path, {"d=1/000000_0": b"x", "d=2/": b""})
    with pytest.raises(HadoopError, match="FileNotFoundException"):
        twins.hive(levels=1, buckets=2)
    done = twins.we(partitions=1, buckets=2)

    assert [path.rpartition("/")[2] for path in done.removed + done.created] == ["d=2", "000001_0"]


def test_spark_names_that_hive_deletes(hadoop: Hadoop, tmp_path: Path) -> None:
    """Of two files of different tasks Hive's class deletes one; here only when it is forced."""
    files = {"part-00000-aaa-0.parquet": b"rows", "part-00001-bbb-0.parquet": b"other rows"}
    twins = Twins(hadoop, tmp_path, files)
    twins.hive()
    twins.we(force=True)
    theirs, ours = twins.trees()

    assert theirs == ours == {"part-00001-bbb-0.parquet": b"other rows"}


def test_publishing_as_hive(hadoop: Hadoop, tmp_path: Path) -> None:
    """The same files are published to a new place; only what Hive leaves behind is gone too."""
    files = {
        "_tmp.X/000000_0": b"one",
        "_tmp.X/000000_1": b"one, whole",
        "_tmp.X/000001_0": b"two",
        "_task_tmp.X/_tmp.000000_3": b"never closed",
    }
    twins = Twins(hadoop, tmp_path, files)
    log = hadoop.java("org.slf4j.LoggerFactory").getLogger("hive")
    with hadoop.errors():
        place = hadoop.path(str(twins.theirs / "X"))
        conf = hadoop.configuration()
        utilities(hadoop).mvFileToFinalPath(place, conf, True, log, None, None, None)
    _publish(twins.ours / "X")
    theirs, ours = twins.trees()

    assert theirs == ours == {"X/000000_1": b"one, whole", "X/000001_0": b"two"}


def _publish(place: Path) -> None:
    async def run() -> None:
        store = LocalStore()
        try:
            await publish(store, str(place))
        finally:
            await store.aclose()

    asyncio.run(run())


ROWS = pa.table(
    {
        "n": pa.array([1, 2], pa.int32()),
        "price": pa.array([1, None], pa.decimal128(10, 2)),
        "tags": pa.array([["a"], []], pa.list_(pa.string())),
        "at": pa.array([0, 1], pa.timestamp("ns")),
    }
)


def test_empty_orc_buckets_are_read_by_orc(hadoop: Hadoop, tmp_path: Path) -> None:
    """A bucket that was missing has the columns of the others and no rows."""
    twins = Twins(hadoop, tmp_path, {})
    orc.write_table(ROWS, str(twins.ours / "000000_0"))
    twins.we(buckets=2)
    factory, schemas = hadoop.java("org.apache.orc.OrcFile"), []
    with hadoop.errors():
        for name in ("000000_0", "000001_0"):
            path = hadoop.path(str(twins.ours / name))
            reader = factory.createReader(path, factory.readerOptions(hadoop.configuration()))
            schemas.append(reader.getSchema().toString())

    assert reader.getNumberOfRows() == 0
    assert schemas[0] == schemas[1]


@pytest.mark.parametrize("int96", [True, False])
def test_empty_parquet_buckets_are_read_by_parquet(
    hadoop: Hadoop, tmp_path: Path, int96: bool
) -> None:
    """A bucket that was missing has the columns of the others and no rows."""
    twins = Twins(hadoop, tmp_path, {})
    pq.write_table(ROWS, twins.ours / "000000_0", use_deprecated_int96_timestamps=int96)
    twins.we(buckets=2)
    reader = hadoop.java("org.apache.parquet.hadoop.ParquetFileReader")
    found = []
    with hadoop.errors():
        for name in ("000000_0", "000001_0"):
            path = hadoop.path(str(twins.ours / name))
            footer = reader.readFooter(hadoop.configuration(), path)
            found.append(footer.getFileMetaData().getSchema().toString())

    assert footer.getBlocks().isEmpty()
    assert found[0] == found[1]

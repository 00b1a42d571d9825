"""Ray Data: datasets written to a sink, on a local Ray."""

from __future__ import annotations

import gc
import json
import os
import pickle
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from pyarrow.fs import FSSpecHandler, PyFileSystem

from asynccommit import OptionError, UnsupportedError, sync
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.errors import PreflightError
from asynccommit.parallel import partition_directory
from asynccommit.testing.pytest_plugin import adls_emulator_thread, gcs_emulator_thread
from tests.support.engine_drivers import RAY_DRIVER, killed_and_rerun
from tests.support.engine_places import place, tables_at, values_at
from tests.support.engine_writers import READERS, WRITERS, by_ray, read_by_ray
from tests.support.engines import (
    VALUES,
    DyingFileSystem,
    dies_while_writing,
    directories,
    files,
    once,
    running_ray,
    values_of,
)
from tests.support.s3_servers import moto_url
from tests.support.selection import amount

ray = pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("ray.data", reason="ray[data] is not installed", exc_type=ImportError)

from asynccommit.ray import Sink  # noqa: E402

__all__ = ["adls_emulator_thread", "gcs_emulator_thread", "moto_url", "place"]

KILLS = amount("ASYNCCOMMIT_KILLS", quick=1, full=2)
GROUPS = 40
ROWS = GROUPS * 25
# What Ray itself does, in its newest version with the newest Python packages.
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Run a Ray of two CPUs on loopback."""
    with running_ray() as made:
        yield made
    gc.collect()


def _rows(count: int = 12, blocks: int = 3) -> Any:
    items = [{"k": VALUES[v % len(VALUES)], "v": v} for v in range(count)]
    return ray.data.from_items(items, override_num_blocks=blocks)


def test_a_sink_is_pickled_without_its_job(tmp_path: Path) -> None:
    """Workers get the place of the job; a sink has a report once it has written."""
    sink = Sink(tmp_path / "out", partition_cols="k", storage_options={"account_key": "secret"})
    there = pickle.loads(pickle.dumps(sink))

    assert there.job_id == sink.job_id
    assert there.min_rows_per_write is None
    assert "secret" not in f"{sink!r} {sink._place!r}"
    with pytest.raises(OptionError, match="has not written"):
        _ = sink.report


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({"form": "orc"}, "expected one of parquet"),
        ({"mode": "ignore"}, "writes and commits in one call"),
        ({"mode": "ignored"}, "expected one of"),
        ({"partition_cols": ["k", "k"]}, "each column once"),
        ({"row_group": 3}, "options of parquet files"),
    ],
)
def test_invalid_arguments_are_refused(
    tmp_path: Path, arguments: dict[str, Any], text: str
) -> None:
    """The error names the argument."""
    with pytest.raises(OptionError, match=text):
        Sink(tmp_path / "out", **arguments)


@pytest.mark.every(3)
@pytest.mark.full
def test_a_write_task_is_a_task(tmp_path: Path, cluster: Any) -> None:
    """All blocks are one commit, in directories named as Spark names them."""
    sink = Sink(tmp_path / "out", partition_cols="k")
    _rows().write_datasink(sink)

    assert len(sink.report.tasks) == 3
    assert len(directories(tmp_path / "out")) == len(VALUES) - 1
    assert values_of(tmp_path / "out", "v") == once(range(12))
    with pytest.raises(OptionError, match="make a new Sink"):
        _rows().write_datasink(sink)


@pytest.mark.full
def test_modes_of_a_second_write(tmp_path: Path, cluster: Any) -> None:
    """Appended files have other names; the other modes replace, or refuse; no rows are a job."""
    dest = tmp_path / "out"
    for _ in range(2):
        _rows().write_datasink(Sink(dest, partition_cols="k"))
    assert values_of(dest, "v") == once([*range(12), *range(12)])

    with pytest.raises(PreflightError):
        _rows().write_datasink(Sink(dest, mode="fail"))
    _rows(1, 1).write_datasink(Sink(dest, partition_cols="k", mode="replace_partitions"))
    kept = [v for v in range(12) if v % len(VALUES)]
    assert values_of(dest, "v") == once([0, *kept, *kept])

    empty = ray.data.from_arrow(pa.table({"k": pa.array([], "string")}))
    empty.write_datasink(Sink(dest, mode="overwrite"))
    assert files(dest) == []


@pytest.mark.full
def test_a_failed_write_leaves_nothing(tmp_path: Path, cluster: Any) -> None:
    """The error of a task is raised, and the job is aborted."""

    def fail(batch: dict[str, Any]) -> dict[str, Any]:
        if 7 in batch["v"]:
            raise ConnectionError("the source went away")
        return batch

    with pytest.raises(Exception, match="the source went away"):
        _rows().map_batches(fail).write_datasink(Sink(tmp_path / "out"))

    assert not (tmp_path / "out").exists()


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.filterwarnings("ignore:Checkpointing with non-file datasink")
def test_checkpoints_of_ray_are_refused(tmp_path: Path, cluster: Any) -> None:
    """A checkpoint would skip rows in the next run whose job was never committed."""
    context = ray.data.DataContext.get_current()
    (tmp_path / "checkpoint").mkdir()
    own = {"id_column": "v", "checkpoint_path": str(tmp_path / "checkpoint")}
    _rows(6, 1).write_parquet(tmp_path / "in")
    context.checkpoint_config = own
    try:
        with pytest.raises(UnsupportedError, match="checkpoint of Ray Data"):
            ray.data.read_parquet(tmp_path / "in").write_datasink(Sink(tmp_path / "out"))
    finally:
        context.checkpoint_config = None
    assert not (tmp_path / "out").exists()


TABLE = pa.table(
    {"k": pa.array([VALUES[v % len(VALUES)] for v in range(12)], pa.string()), "v": range(12)}
)


def _pairs(table: Any) -> list[tuple[Any, Any]]:
    """Return the rows of a table; an empty text is a null, as Spark reads it."""
    rows = table.select(["k", "v"]).to_pylist()
    return sorted(((row["k"] or None, row["v"]) for row in rows), key=lambda row: row[1])


@pytest.mark.full
# The reader of Dask calls pandas in a way that its newest version deprecates.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_each_engine_reads_a_table_of_ray(tmp_path: Path, cluster: Any) -> None:
    """Rows and partitions are those that the sink was given."""
    by_ray(TABLE, tmp_path / "out", by=["k"])

    for engine, read in READERS.items():
        assert _pairs(read(tmp_path / "out", pa.string())) == _pairs(TABLE), engine


@pytest.mark.every(2, 0)
@pytest.mark.full
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_ray_reads_a_table_of_each_engine(tmp_path: Path, cluster: Any) -> None:
    """Rows and partitions are the same, whoever has written them."""
    for engine, write in {**WRITERS, "ray": by_ray}.items():
        write(TABLE, tmp_path / engine, by=["k"])
        assert _pairs(read_by_ray(tmp_path / engine, pa.string())) == _pairs(TABLE), engine


@pytest.mark.full
@pytest.mark.parametrize("by", [None, ["k"]], ids=["flat", "parts"])
def test_any_store_takes_a_dataset(place: Any, cluster: Any, by: Any) -> None:
    """Workers write to a store without local files; the driver makes it visible."""
    url, storage = place
    report = by_ray(TABLE, url, by=by, storage_options=storage)

    found = tables_at(url, storage)
    folders = {partition_directory({"k": value}) for value in VALUES} if by else {""}
    assert {name.rpartition("/")[0] for name in found} == folders
    assert report.files == len(found)
    assert len(report.tasks) == 2
    assert values_at(url, storage) == [*range(12)]


class _Arm:
    """Have the worker die while it writes, once for each block; rows of a rerun may differ."""

    def __init__(self, root: Path, flags: Path, moving: bool = False) -> None:
        self.root, self.flags, self.moving = root, flags, moving

    def __call__(self, rows: Any) -> Any:
        flag = self.flags / f"{rows['id'][0].as_py() // ROWS}"
        moved = GROUPS if self.moving and flag.exists() else 0
        days = [value % GROUPS + moved for value in rows["id"].to_pylist()]
        dies_while_writing(self.root, flag)
        return rows.append_column("day", pa.array(days))


def _armed(tmp_path: Path, blocks: int, moving: bool = False) -> Any:
    flags = tmp_path / "flags"
    flags.mkdir()
    arm = _Arm(tmp_path / "out", flags, moving)
    data = ray.data.range(ROWS * blocks, override_num_blocks=blocks)
    return data.map_batches(arm.__call__, batch_size=None, batch_format="pyarrow")


@pytest.mark.full
def test_a_killed_worker_changes_nothing(tmp_path: Path, cluster: Any) -> None:
    """Each block kills the worker that writes it; the rerun's files alone are committed."""
    sink = Sink(tmp_path / "out", partition_cols="day")
    _armed(tmp_path, KILLS).write_datasink(sink)

    died = len(list((tmp_path / "flags").iterdir()))
    assert (
        max(1, KILLS - 1) <= died <= len(sink.report.tasks) == KILLS
    )  # the last may end too early
    assert values_of(tmp_path / "out", "id") == once(range(ROWS * KILLS))
    assert len(files(tmp_path / "out")) == GROUPS * KILLS


def _moved(rows: Any, flag: Path) -> Any:
    """Return rows whose day is another one once the flag is there, as that of a changed source."""
    moved = GROUPS if flag.exists() else 0
    return rows.append_column("day", pa.array([v % GROUPS + moved for v in rows["id"].to_pylist()]))


@pytest.mark.full
def test_rays_own_writer_doubles_rows(tmp_path: Path, cluster: Any) -> None:
    """A worker dies before its task returns; its files stay, beside those that its rerun wrote."""
    flag = tmp_path / "flag"
    data = ray.data.range(ROWS, override_num_blocks=1).map_batches(
        _moved, fn_args=(flag,), batch_size=None, batch_format="pyarrow"
    )
    data.write_parquet(
        tmp_path / "out",
        partition_cols=["day"],
        filesystem=PyFileSystem(FSSpecHandler(DyingFileSystem(str(flag), GROUPS))),
    )

    assert flag.exists()
    assert directories(tmp_path / "out") == {f"day={day}" for day in range(2 * GROUPS)}
    assert values_of(tmp_path / "out", "id") == once([*range(ROWS), *range(ROWS)])


@pytest.mark.full
def test_ours_is_exact_in_the_same_weather(tmp_path: Path, cluster: Any) -> None:
    """The rerun writes to other directories, and only its files are committed."""
    sink = Sink(tmp_path / "out", partition_cols="day")
    _armed(tmp_path, 1, moving=True).write_datasink(sink)

    assert values_of(tmp_path / "out", "id") == once(range(ROWS))
    assert len(files(tmp_path / "out")) == GROUPS


class _DyingActor:
    """An actor that dies when another process has begun to write, and is started again."""

    def __init__(self, root: Path, flag: Path) -> None:
        self._flag = flag
        dies_while_writing(root, flag)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        if batch["id"].max() >= ROWS * 5:  # the last block waits for the first to be written
            ends = time.monotonic() + 60
            while not self._flag.exists() and time.monotonic() < ends:
                time.sleep(0.01)
        return {**batch, "day": batch["id"] % GROUPS}


@pytest.mark.every(3)
@pytest.mark.full
def test_a_killed_actor_changes_nothing(tmp_path: Path, cluster: Any) -> None:
    """Blocks that Ray makes again after an actor's death are written once."""
    sink = Sink(tmp_path / "out", partition_cols="day")
    data = ray.data.range(ROWS * 6, override_num_blocks=6).map_batches(
        _DyingActor,
        fn_constructor_args=(tmp_path / "out", tmp_path / "flag"),
        compute=ray.data.ActorPoolStrategy(size=1),
        batch_size=None,
    )
    data.write_datasink(sink)

    assert (tmp_path / "flag").exists()
    assert values_of(tmp_path / "out", "id") == once(range(ROWS * 6))


@pytest.mark.every(3)
@pytest.mark.full
def test_a_killed_actor_doubles_no_row_of_rays_own_writer(tmp_path: Path, cluster: Any) -> None:
    """Ray writes in tasks of their own, and drops what a restarted actor returns again."""
    data = ray.data.range(ROWS * 6, override_num_blocks=6).map_batches(
        _DyingActor,
        fn_constructor_args=(tmp_path / "out", tmp_path / "flag"),
        compute=ray.data.ActorPoolStrategy(size=1),
        batch_size=None,
    )
    data.write_parquet(tmp_path / "out", partition_cols=["day"])

    assert (tmp_path / "flag").exists()
    assert values_of(tmp_path / "out", "id") == once(range(ROWS * 6))


class _WritingActor:
    """An actor that writes files itself, and dies once when a file is complete."""

    def __init__(self, dest: Path, flag: Path, job_id: str) -> None:
        self.dest, self.flag, self.job_id = dest, flag, job_id

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        rows, message = pa.table({"id": batch["id"]}), ""
        if self.job_id:
            number = int(batch["id"][0]) // ROWS
            with sync.job(self.dest, self.job_id).task(number) as task:
                parquet.write_table(rows, task.path(f"part-{task.attempt_id}.parquet"))
            assert task.commit is not None
            message = json.dumps(task.commit.to_json())
        else:
            parquet.write_table(rows, self.dest / f"part-{uuid4()}.parquet")
        if not self.flag.exists():
            self.flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"message": [message]}


def _written_by_an_actor(dest: Path, flag: Path, job_id: str) -> list[str]:
    data = ray.data.range(ROWS * 2, override_num_blocks=2).map_batches(
        _WritingActor,
        fn_constructor_args=(dest, flag, job_id),
        compute=ray.data.ActorPoolStrategy(size=1),
        batch_size=None,
    )
    return [row["message"] for row in data.take_all()]


@pytest.mark.every(3)
@pytest.mark.full
def test_an_actor_that_writes_doubles_rows_unless_it_is_a_task(
    tmp_path: Path, cluster: Any
) -> None:
    """Ray calls a restarted actor again: its first file stays, but is not committed."""
    own, ours = tmp_path / "own", tmp_path / "ours"
    own.mkdir()
    _written_by_an_actor(own, tmp_path / "own-flag", "")
    with sync.open_job(ours) as job:
        for message in _written_by_an_actor(ours, tmp_path / "ours-flag", job.job_id):
            job.accept(TaskCommit.from_json(json.loads(message)))

    counts = values_of(own, "id")
    twice = sorted(value for value, rows in counts.items() if rows == 2)
    assert twice in ([*range(ROWS)], [*range(ROWS, ROWS * 2)]), "the block that came first"
    assert len(counts) == ROWS * 2
    assert values_of(ours, "id") == once(range(ROWS * 2))
    assert len(files(ours)) == 2


@pytest.mark.every(3, 1)
@pytest.mark.full
def test_a_killed_driver_is_resumed_by_the_next_run(tmp_path: Path) -> None:
    """A program dies in a task or in its commit, and is run again: the table is exact."""
    for number in range(amount("ASYNCCOMMIT_DRIVER_KILLS", quick=1, full=1)):
        dest = tmp_path / f"out-{number}"
        ended = killed_and_rerun(RAY_DRIVER, dest, number)

        assert ended.count("killed") == 1, ended
        assert values_of(dest, "id") == once(range(4000)), ended

"""Dask: DataFrames and delayed calls as jobs, with threads, processes and a cluster."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asynccommit import OptionError, UnsupportedError, sync
from asynccommit.errors import PreflightError
from asynccommit.testing.pytest_plugin import adls_emulator_thread
from tests.support.engine_drivers import DASK_DRIVER, killed_and_rerun
from tests.support.engines import (
    VALUES,
    DyingFileSystem,
    dies_while_writing,
    directories,
    files,
    once,
    table_of,
    values_of,
)
from tests.support.selection import amount

pandas = pytest.importorskip("pandas")
dask = pytest.importorskip("dask", reason="Dask is not installed")
dataframe = pytest.importorskip("dask.dataframe", reason="dask[dataframe] is not installed")

from asynccommit.dask import commit_delayed, to_parquet  # noqa: E402

__all__ = ["adls_emulator_thread"]

# Dask's own reader and writer call pandas in a way that its newest version deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")

KILLS = amount("ASYNCCOMMIT_KILLS", quick=1, full=3)
GROUPS = 40
NAMES = {
    "k=a b%2Fc%3Ad%3Dé",
    "k=__HIVE_DEFAULT_PARTITION__",
    "k=%7B%5B%5E%5D}%25%23",
    "k=x+y&z",
    "k=plain",
}


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what pools leave here, and not on the event loop, which may not block."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Run a local cluster of two worker processes, and yield its client."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    conf = {
        "distributed.scheduler.allowed-failures": 1000,
        # On a busy machine a worker takes longer than the default of 15 seconds to start again.
        "distributed.deploy.lost-worker-timeout": "10 minutes",
    }
    with (
        dask.config.set(conf),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            silence_logs=50,
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


def _frame(count: int = 12, partitions: int = 3) -> Any:
    keys = [VALUES[number % len(VALUES)] for number in range(count)]
    return dataframe.from_pandas(
        pandas.DataFrame({"k": keys, "v": range(count)}), npartitions=partitions
    )


@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_a_partition_is_a_task(tmp_path: Path, scheduler: str) -> None:
    """All partitions are one commit, in directories named as Spark names them."""
    report = to_parquet(
        _frame(),
        tmp_path / "out",
        partition_on="k",
        write_index=False,
        compute_kwargs={"scheduler": scheduler},
    )

    assert len(report.tasks) == 3
    assert directories(tmp_path / "out") == NAMES
    assert values_of(tmp_path / "out", "v") == once(range(12))
    assert all(report.job_id in name for name in files(tmp_path / "out"))


@pytest.mark.full
def test_processes_write_one_job(tmp_path: Path) -> None:
    """The scheduler of processes pickles the writer and returns the messages."""
    report = to_parquet(_frame(), tmp_path / "out", compute_kwargs={"scheduler": "processes"})

    assert len(report.tasks) == 3
    assert values_of(tmp_path / "out", "v") == once(range(12))


def test_dask_reads_what_it_wrote(tmp_path: Path) -> None:
    """The index, types and metadata are those that Dask itself writes."""
    own = _frame().set_index("v")
    to_parquet(own, tmp_path / "ours", custom_metadata={"by": "us"})
    own.to_parquet(tmp_path / "theirs")

    ours = dataframe.read_parquet(tmp_path / "ours")
    theirs = dataframe.read_parquet(tmp_path / "theirs")
    assert ours.compute().equals(theirs.compute())
    assert table_of(tmp_path / "ours").schema.metadata[b"by"] == b"us"


def test_modes_of_a_second_write(tmp_path: Path) -> None:
    """Appended files have other names; the other modes replace, or refuse."""
    dest = tmp_path / "out"
    to_parquet(_frame(), dest, partition_on="k")
    to_parquet(_frame(), dest, partition_on="k")
    assert values_of(dest, "v") == once([*range(12), *range(12)])

    with pytest.raises(PreflightError):
        to_parquet(_frame(), dest, partition_on="k", mode="fail")
    plain = dataframe.from_pandas(pandas.DataFrame({"k": ["plain"], "v": [99]}), npartitions=1)
    to_parquet(plain, dest, partition_on="k", mode="replace_partitions")
    left = [v for v in range(12) if VALUES[v % len(VALUES)] != "plain"]
    assert values_of(dest, "v") == once([*left, *left, 99])

    to_parquet(plain, dest, partition_on="k", mode="overwrite")
    assert values_of(dest, "v") == once([99])


def test_a_table_is_replaced_by_what_is_read_from_it(tmp_path: Path) -> None:
    """The old files stay readable until the job commits."""
    dest = tmp_path / "out"
    to_parquet(_frame(), dest, write_index=False)
    read = dataframe.read_parquet(dest)
    to_parquet(read[read.v < 6], dest, write_index=False, mode="overwrite")

    assert values_of(dest, "v") == once(range(6))


def test_names_of_files_are_those_of_the_caller(tmp_path: Path) -> None:
    """``name_function`` names the file of a partition in each directory."""
    to_parquet(_frame(), tmp_path / "out", name_function=lambda number: f"p-{number}.parquet")
    assert files(tmp_path / "out") == ["p-0.parquet", "p-1.parquet", "p-2.parquet"]

    with pytest.raises(OptionError, match="a name twice"):
        to_parquet(_frame(), tmp_path / "out", name_function=lambda number: "p")


def test_a_delayed_write_begins_with_compute(tmp_path: Path) -> None:
    """``compute=False`` does nothing yet, and refuses to be computed as part of a graph."""
    write = to_parquet(_frame(), tmp_path / "out", compute=False)
    assert not (tmp_path / "out").exists()
    with pytest.raises(UnsupportedError, match="call its compute"):
        dask.compute(write)

    assert write.compute(scheduler="sync").files == 3


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({"partition_on": "none"}, "no column 'none'"),
        ({"partition_on": ["k", "v"]}, "all columns are partition columns"),
        ({"partition_on": ["k", "k"]}, "each column once"),
        ({"overwrite": True}, "mode='overwrite'"),
        ({"schema": {"w": None}}, "the column 'w'"),
        ({"custom_metadata": {"pandas": "x"}}, "custom_metadata"),
        ({"mode": "ignored"}, "expected one of"),
    ],
)
def test_invalid_arguments_are_refused(
    tmp_path: Path, arguments: dict[str, Any], text: str
) -> None:
    """The error names the argument, and nothing is written."""
    with pytest.raises(OptionError, match=text):
        to_parquet(_frame(), tmp_path / "out", **arguments)

    assert not (tmp_path / "out").exists()


def _write_day(task: sync.BlockingTask, day: int, rows: Any) -> None:
    task.put(f"day={day}/part.csv", "\n".join(map(str, rows)).encode())
    if day == 9:
        raise ConnectionError("the source went away")


def test_delayed_calls_are_tasks(tmp_path: Path) -> None:
    """Arguments may be delayed; a call that fails leaves nothing."""
    rows = dask.delayed(range)(3)
    report = commit_delayed(tmp_path / "out", [(_write_day, day, rows) for day in range(4)])
    assert (report.files, report.bytes) == (4, 20)

    with pytest.raises(ConnectionError):
        commit_delayed(tmp_path / "out2", [(_write_day, day, rows) for day in (8, 9)])
    assert not (tmp_path / "out2").exists()


def test_an_account_takes_the_partitions(adls_emulator_thread: Any) -> None:
    """On a store without local files, pyarrow writes through the task's filesystem."""
    emulator = adls_emulator_thread
    emulator.do(lambda running: running.model.create_filesystem("data"))
    report = to_parquet(
        _frame(),
        f"abfs://data@{emulator.account}.dfs.core.windows.net/out",
        partition_on="k",
        name_function=lambda number: f"p{number}.parquet",
        storage_options={"connection_string": emulator.connection_string},
    )

    assert (report.files, len(report.tasks)) == (11, 3)


def _arm(frame: Any, root: Path, flags: Path, moving: bool = False) -> Any:
    """Have this worker die while it writes, once; with ``moving`` rows of a rerun differ in day."""
    first = int(frame.v.iloc[0])
    flag = flags / f"{first}"
    frame = frame.assign(day=frame.v % GROUPS)
    if moving and flag.exists():
        frame = frame.assign(day=frame.day + GROUPS)
    dies_while_writing(root, flag)
    return frame


def _armed(tmp_path: Path, partitions: int, moving: bool = False) -> Any:
    rows = GROUPS * 25
    flags = tmp_path / "flags"
    flags.mkdir()
    own = dataframe.from_pandas(
        pandas.DataFrame({"v": range(rows * partitions)}), npartitions=partitions
    )
    meta = {"v": "int64", "day": "int64"}
    return own.map_partitions(_arm, tmp_path / "out", flags, moving, meta=meta)


@pytest.mark.timeout(300)
@pytest.mark.full
def test_a_killed_worker_changes_nothing(tmp_path: Path, cluster: Any) -> None:
    """Each partition kills the worker that writes it; the rerun's files alone are committed."""
    report = to_parquet(
        _armed(tmp_path, KILLS), tmp_path / "out", partition_on="day", write_index=False
    )

    died = len(list((tmp_path / "flags").iterdir()))
    assert max(1, KILLS - 1) <= died <= len(report.tasks) == KILLS  # the last may end too early
    assert values_of(tmp_path / "out", "v") == once(range(GROUPS * 25 * KILLS))
    assert len(files(tmp_path / "out")) == GROUPS * KILLS


def _moved(frame: Any, flag: Path) -> Any:
    """Return rows whose day is another one once the flag is there, as that of a changed source."""
    return frame.assign(day=frame.v % GROUPS + (GROUPS if flag.exists() else 0))


@pytest.mark.full
@pytest.mark.timeout(120)
def test_dasks_own_writer_doubles_rows(tmp_path: Path, cluster: Any) -> None:
    """A worker dies with ten files complete; they stay, beside those that its rerun wrote."""
    flag, rows = tmp_path / "flag", GROUPS * 25
    own = dataframe.from_pandas(pandas.DataFrame({"v": range(rows)}), npartitions=1)
    own.map_partitions(_moved, flag, meta={"v": "int64", "day": "int64"}).to_parquet(
        tmp_path / "out",
        partition_on="day",
        write_index=False,
        filesystem=DyingFileSystem(str(flag), 10),
    )

    assert flag.exists()
    kept = {f"day={day}" for day in range(10)}
    assert directories(tmp_path / "out") == kept | {
        f"day={day}" for day in range(GROUPS, 2 * GROUPS)
    }
    twice = [value for value in range(rows) if value % GROUPS < 10]
    assert values_of(tmp_path / "out", "v") == once([*range(rows), *twice])


@pytest.mark.full
@pytest.mark.timeout(120)
def test_ours_is_exact_in_the_same_weather(tmp_path: Path, cluster: Any) -> None:
    """The rerun writes to other directories, and only its files are committed."""
    to_parquet(
        _armed(tmp_path, 1, moving=True), tmp_path / "out", partition_on="day", write_index=False
    )

    assert values_of(tmp_path / "out", "v") == once(range(GROUPS * 25))
    assert len(files(tmp_path / "out")) == GROUPS


def _fail_twice(task: sync.BlockingTask, number: int, flags: Path) -> None:
    task.put(f"part-{number}.csv", b"1\n")
    count = len(list(flags.iterdir()))
    if count < 2:
        (flags / str(count)).touch()
        raise ConnectionError("the source went away")


@pytest.mark.full
def test_retries_of_dask_are_attempts(tmp_path: Path, cluster: Any) -> None:
    """``retries`` of Dask repeats a call that failed, as another attempt of the task."""
    (tmp_path / "flags").mkdir()
    report = commit_delayed(
        tmp_path / "out",
        [(_fail_twice, number, tmp_path / "flags") for number in range(3)],
        compute_kwargs={"retries": 2},
    )

    assert (report.files, len(report.tasks)) == (3, 3)


def _write_where(task: sync.BlockingTask, number: int, seen: Path) -> None:
    """Write a file; hold the worker until another one has begun a task, too."""
    (seen / str(os.getpid())).touch()
    ends = time.monotonic() + 60
    while len(list(seen.iterdir())) < 2 and time.monotonic() < ends:
        time.sleep(0.01)
    task.put(f"part-{number}.csv", f"{os.getpid()}\n".encode())


@pytest.mark.full
@pytest.mark.timeout(120)
def test_stolen_tasks_are_written_once(tmp_path: Path, cluster: Any) -> None:
    """All tasks queue at one worker, which is busy until the other has stolen some of them."""
    (tmp_path / "seen").mkdir()
    first = sorted(cluster.scheduler_info()["workers"])[0]
    report = commit_delayed(
        tmp_path / "out",
        [(_write_where, number, tmp_path / "seen") for number in range(8)],
        compute_kwargs={"workers": [first], "allow_other_workers": True},
    )

    assert (report.files, len(report.tasks)) == (8, 8)
    assert files(tmp_path / "out") == [f"part-{number}.csv" for number in range(8)]
    writers = {(tmp_path / "out" / name).read_text() for name in files(tmp_path / "out")}
    assert len(writers) == 2
    assert cluster.run_on_scheduler(_steals) > 0


def _steals(dask_scheduler: Any) -> int:
    count: int = dask_scheduler.extensions["stealing"].count
    return count


@pytest.mark.every(2, 0)
@pytest.mark.full
@pytest.mark.timeout(300)
def test_a_killed_client_is_resumed_by_the_next_run(tmp_path: Path, cluster: Any) -> None:
    """A program dies in a task or in its commit, and is run again: the table is exact."""
    address = cluster.scheduler.address
    for number in range(amount("ASYNCCOMMIT_DRIVER_KILLS", quick=2, full=2)):
        dest = tmp_path / f"out-{number}"
        ended = killed_and_rerun(DASK_DRIVER, dest, number, address)

        assert ended.count("killed") == 1, ended
        assert values_of(dest, "v") == once(range(4000)), ended

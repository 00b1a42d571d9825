"""Checkpoints of Ray Data: a rerun skips exactly the rows that its job commits."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from pyarrow.fs import LocalFileSystem

from asynccommit import CommittedError, OptionError, UnsupportedError, sync
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.testing.pytest_plugin import adls_emulator_thread, gcs_emulator_thread
from tests.support.engine_drivers import RAY_CHECKPOINT_DRIVER, killed_at
from tests.support.engine_places import place, values_at
from tests.support.engines import files, once, running_ray, values_of
from tests.support.s3_servers import moto_url
from tests.support.selection import amount

ray = pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("ray.data", reason="ray[data] is not installed", exc_type=ImportError)
checkpoint = pytest.importorskip("ray.data.checkpoint", reason="Ray Data has no checkpoints")
if not hasattr(checkpoint, "CheckpointManager"):
    pytest.skip("Ray Data has no checkpoints that can be checked", allow_module_level=True)

from asynccommit.ray import Sink  # noqa: E402
from asynccommit.ray.checkpoints import TaskRecord, disjoint  # noqa: E402

__all__ = ["adls_emulator_thread", "gcs_emulator_thread", "moto_url", "place"]

# What Ray itself does, in its newest version with the newest Python packages; and its warning that
# a sink which does not know its checkpoints may write rows twice.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Checkpointing with non-file datasink"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.timeout(300),
]
KEY = {"asynccommit.job.key": "nightly", "asynccommit.on.unfinished": "resume"}
ROWS, BLOCKS = 40, 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Run a Ray of two CPUs on loopback."""
    with running_ray() as made:
        yield made
    gc.collect()


class _Fail:
    """Raise an error for the last block, once its other blocks have been written."""

    def __init__(self, seen: Path, root: Path, wanted: int) -> None:
        self.seen, self.root, self.wanted = seen, root, wanted

    def __call__(self, rows: Any) -> Any:
        first = rows["id"][0].as_py()
        with self.seen.open("a") as file:
            file.write("".join(f"{value}\n" for value in rows["id"].to_pylist()))
        if first == ROWS - 10 and self.wanted:
            _wait(lambda: len(list(self.root.rglob("records/*.parquet"))) >= self.wanted)
            raise ConnectionError("the source went away")
        return rows


def _wait(is_over: Callable[[], bool]) -> None:
    import time

    ends = time.monotonic() + 60
    while not is_over() and time.monotonic() < ends:
        time.sleep(0.01)


def _write(url: Any, root: Path, wanted: int = 0, **given: Any) -> tuple[Any, Path]:
    """Write with a checkpoint; return the sink, and a file of the rows that were worked on."""
    seen = root / "seen"
    seen.write_text("")
    sink = Sink(url, options=KEY, **given)
    context = ray.data.DataContext.get_current()
    context.checkpoint_config = sink.checkpoint("id", str(root / "checkpoints"))
    try:
        data = ray.data.range(ROWS, override_num_blocks=BLOCKS)
        fail = _Fail(seen, root, wanted)
        data.map_batches(fail.__call__, batch_size=None, batch_format="pyarrow").write_datasink(
            sink
        )
    finally:
        context.checkpoint_config = None
    return sink, seen


def _failed(url: Any, root: Path, **given: Any) -> None:
    with pytest.raises(Exception, match="the source went away"):
        _write(url, root, wanted=BLOCKS - 1, **given)


@pytest.mark.every(3)
@pytest.mark.full
def test_a_rerun_writes_what_is_left(tmp_path: Path, cluster: Any) -> None:
    """Nothing is visible after an error; the next run skips the rows whose tasks it commits."""
    _failed(tmp_path / "out", tmp_path)
    assert files(tmp_path / "out") == []

    sink, seen = _write(tmp_path / "out", tmp_path)

    assert [int(line) for line in seen.read_text().split()] == [*range(ROWS - 10, ROWS)]
    assert values_of(tmp_path / "out", "id") == once(range(ROWS))
    assert len(sink.report.tasks) == BLOCKS
    assert list((tmp_path / "checkpoints").iterdir()) == []


@pytest.mark.full
def test_a_run_that_is_done_is_not_repeated(tmp_path: Path, cluster: Any) -> None:
    """A checkpoint that outlived its job skips nothing: the job key says that the work is done."""
    _failed(tmp_path / "out", tmp_path)
    kept = tmp_path / "kept"
    (tmp_path / "checkpoints").rename(kept)
    _write(tmp_path / "out", tmp_path)
    (tmp_path / "checkpoints").rmdir()
    kept.rename(tmp_path / "checkpoints")

    with pytest.raises(CommittedError, match="done before"):
        _write(tmp_path / "out", tmp_path)

    assert values_of(tmp_path / "out", "id") == once(range(ROWS))
    assert list((tmp_path / "checkpoints").iterdir()) == []


@pytest.mark.full
def test_rows_of_an_aborted_job_are_written_again(tmp_path: Path, cluster: Any) -> None:
    """A checkpoint of a job that was given up skips nothing."""
    _failed(tmp_path / "out", tmp_path)
    (status,) = sync.job_statuses(tmp_path / "out")
    assert status.alive is False
    sync.job(tmp_path / "out", status.job_id).abort()

    _, seen = _write(tmp_path / "out", tmp_path)

    assert len(seen.read_text().split()) == ROWS
    assert values_of(tmp_path / "out", "id") == once(range(ROWS))


@pytest.mark.full
def test_a_lost_checkpoint_doubles_nothing(tmp_path: Path, cluster: Any) -> None:
    """The tasks of an earlier run whose rows are written again are not committed."""
    _failed(tmp_path / "out", tmp_path)
    (tmp_path / "checkpoints").rename(tmp_path / "lost")

    sink, seen = _write(tmp_path / "out", tmp_path)

    assert len(seen.read_text().split()) == ROWS
    assert values_of(tmp_path / "out", "id") == once(range(ROWS))
    assert any("no task commit message" in text for text in sink.report.warnings)


@pytest.mark.every(3)
@pytest.mark.full
def test_any_store_takes_a_rerun(place: Any, tmp_path: Path, cluster: Any) -> None:
    """Tasks of an earlier run are committed on stores without local files, too."""
    url, storage = place
    _failed(url, tmp_path, storage_options=storage)

    _, seen = _write(url, tmp_path, storage_options=storage)

    assert len(seen.read_text().split()) == 10
    assert values_at(url, storage, "id") == [*range(ROWS)]


@pytest.mark.full
def test_a_dataset_without_the_checkpoint_is_refused(tmp_path: Path, cluster: Any) -> None:
    """The checkpoint must be set before the dataset is read, and be that of the sink."""
    context = ray.data.DataContext.get_current()
    data = ray.data.range(ROWS)
    sinks = [Sink(tmp_path / "out", options=KEY) for _ in range(2)]
    configs = [sink.checkpoint("id", str(tmp_path / "checkpoints")) for sink in sinks]
    with pytest.raises(OptionError, match="before the dataset is read"):
        data.write_datasink(sinks[0])
    context.checkpoint_config = configs[1]
    try:
        with pytest.raises(OptionError, match="of this sink"):
            ray.data.range(ROWS).write_datasink(sinks[0])
    finally:
        context.checkpoint_config = None
    assert not (tmp_path / "out").exists()


def test_what_a_checkpoint_needs(tmp_path: Path) -> None:
    """Without a job key nothing tells which job a rerun continues."""
    with pytest.raises(OptionError, match=r"the option asynccommit\.job\.key"):
        Sink(tmp_path / "out").checkpoint("id", str(tmp_path))
    with pytest.raises(UnsupportedError, match="use 'manifest'"):
        Sink(tmp_path / "out", options=KEY, committer="file_v2").checkpoint("id", str(tmp_path))
    with pytest.raises(OptionError, match="have no column 'id'"):
        Sink(tmp_path / "out", options=KEY).checkpoint("id", str(tmp_path)).check(pa.table({}))


def _record(number: int, ids: list[Any]) -> TaskRecord:
    message = TaskCommit(
        f"task_{number}", f"attempt_{number}", "file:/m", f"sha256:{'0' * 64}", 1, 9
    )
    return TaskRecord(message, pa.array(ids))


def test_records_that_share_a_row_are_not_both_kept() -> None:
    """A task that ran twice has two records, of which one counts; the order decides."""
    found = [_record(0, [1, 2]), _record(1, [2, 3]), _record(2, [3, 4]), _record(3, [5])]

    assert [each.commit.task_id for each in disjoint(found)] == ["task_0", "task_2", "task_3"]


def test_a_record_is_read_as_it_was_saved(tmp_path: Path) -> None:
    """The ids and the message come back; another file is refused, and named."""
    _record(7, ["a", "b"]).save(LocalFileSystem(), str(tmp_path), "id")
    (path,) = tmp_path.iterdir()
    read = TaskRecord.read(LocalFileSystem(), str(path))

    assert (read.commit.task_id, read.ids.to_pylist()) == ("task_7", ["a", "b"])
    parquet.write_table(pa.table({"id": [1]}), tmp_path / "other.parquet")
    with pytest.raises(OptionError, match=r"other\.parquet is not a record"):
        TaskRecord.read(LocalFileSystem(), str(tmp_path / "other.parquet"))


@pytest.mark.every(3, 0)
@pytest.mark.full
def test_a_killed_driver_is_continued_by_the_next_run(tmp_path: Path) -> None:
    """A driver dies between write tasks, then in its commit; the table is exact."""
    for number in range(amount("ASYNCCOMMIT_DRIVER_KILLS", quick=1, full=1)):
        dest, seen = tmp_path / f"out-{number}", tmp_path / f"seen-{number}"
        moments = ["_checkpoints/*/records/*.parquet", "_temporary/*/*/commit-record.json"]
        ended = killed_at(moments, RAY_CHECKPOINT_DRIVER, dest, str(seen))

        assert ended == ["killed", "killed", "done"], ended
        assert values_of(dest, "id") == once(range(800)), ended
        worked_on = len(seen.read_text().split())
        assert 800 <= worked_on < 1600, ended

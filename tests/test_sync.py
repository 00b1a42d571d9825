"""The blocking facade: the same jobs without an event loop of one's own."""

from __future__ import annotations

import inspect
import os
import pickle
from pathlib import Path

import pytest
from blockbuster import BlockBuster

from asynccommit import JobState, Mode, OptionError, Progress, sync
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.errors import CommitError, PreflightError, UnsupportedError
from asynccommit.testing.emulators.adls.emulator import EmulatorThread
from tests.cli.support import TASKS, cut_short, prepare
from tests.support.jobs import JOB, visible, write


def test_a_job_in_a_with_block(tmp_path: Path) -> None:
    """Leaving the block commits what the tasks wrote."""
    with sync.open_job(tmp_path / "out") as job:
        for number in range(3):
            with job.task(number) as task:
                Path(task.path(f"p={number}/part")).write_text(str(number))

    assert visible(tmp_path / "out") == {f"p={n}/part": str(n) for n in range(3)}
    assert job.report is not None
    assert job.report.files == 3


def test_a_task_writes_whole_files(tmp_path: Path) -> None:
    """``put`` blocks until the file is there, also in a task of a job that was set up elsewhere."""
    with sync.open_job(tmp_path / "out") as job:
        with job.task(0) as task:
            task.put("p=0/part", b"0")
        with sync.job(tmp_path / "out", job.job_id).task(1) as other:
            other.put("p=1/part", b"1")
        assert other.commit is not None
        job.accept(other.commit)

    assert visible(tmp_path / "out") == {"p=0/part": "0", "p=1/part": "1"}
    assert (task.attempt_id, other.task_id) != ("", "")
    assert repr(other).startswith("BlockingTask(")


def test_a_task_writes_to_an_account(adls_emulator_thread: EmulatorThread) -> None:
    """The same on a store that has no local paths."""
    emulator = adls_emulator_thread
    emulator.do(lambda running: running.model.create_filesystem("data"))
    url = f"abfs://data@{emulator.account}.dfs.core.windows.net/out"
    options = {"connection_string": emulator.connection_string}
    with sync.open_job(url, storage_options=options) as job, job.task(0) as task:
        task.put("p=0/part", b"zero")
        with pytest.raises(UnsupportedError, match=r"use Task\.put"):
            task.path("p=0/other")

    assert job.report is not None
    assert job.report.files == 1
    read = emulator.do(lambda running: running.model.read("data", "out/p=0/part"))
    assert read[1] == b"zero"


def test_an_exception_aborts_the_job(tmp_path: Path) -> None:
    """An exception in the block leaves nothing behind and is raised as it was."""
    with pytest.raises(ZeroDivisionError), sync.open_job(tmp_path / "out") as job:
        with job.task(0) as task:
            Path(task.path("part")).write_text("x")
        _ = 1 / 0

    assert not (tmp_path / "out").exists()


def test_a_failed_task_can_be_run_again(tmp_path: Path) -> None:
    """A task that raised is aborted; its next attempt counts."""
    with sync.open_job(tmp_path / "out") as job:
        with pytest.raises(OSError, match="flaky"), job.task(0) as task:
            Path(task.path("bad")).write_text("x")
            raise OSError("flaky")
        with job.task(0, attempt=1) as task:
            Path(task.path("good")).write_text("y")

    assert visible(tmp_path / "out") == {"good": "y"}


async def test_in_a_notebook(tmp_path: Path, blockbuster: BlockBuster) -> None:
    """The facade works while an event loop is running in this thread."""
    blockbuster.deactivate()
    with sync.open_job(tmp_path / "out") as job, job.task(0) as task:
        path = task.path("part")

    assert job.job_id in path


def test_tasks_in_other_processes(tmp_path: Path) -> None:
    """A child runs a task by the job's id and hands back its commit message as JSON."""
    with sync.open_job(tmp_path / "out") as job:
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            with sync.job(tmp_path / "out", job.job_id).task(5) as task:
                Path(task.path("part-5")).write_text("five")
            assert task.commit is not None
            os.write(send, pickle.dumps(task.commit.to_json()))
            os._exit(0)
        os.close(send)
        job.accept(TaskCommit.from_json(pickle.loads(os.read(receive, 65536))))
        os.close(receive)
        os.waitpid(child, 0)

    assert visible(tmp_path / "out") == {"part-5": "five"}


def test_a_job_is_not_used_across_a_fork(tmp_path: Path) -> None:
    """A child that uses its parent's job is told what to do instead."""
    with sync.open_job(tmp_path / "out") as job:
        child = os.fork()
        if child == 0:
            try:
                with job.task(0):
                    os._exit(1)
            except UnsupportedError as error:
                os._exit(0 if "before a fork" in str(error) else 2)
        _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0


def test_a_job_cannot_be_pickled(tmp_path: Path) -> None:
    """Pickling is refused, and the error says what to hand over instead."""
    with sync.open_job(tmp_path / "out") as job, pytest.raises(UnsupportedError, match="job_id"):
        pickle.dumps(job)


def test_committing_a_job_that_was_set_up_elsewhere(tmp_path: Path) -> None:
    """A refused job stays as it is; it can be planned, committed with options, or aborted."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/part").write_text("old")
    with (
        pytest.raises(PreflightError),
        sync.open_job(tmp_path / "out", job_id="j") as job,
        job.task(0) as task,
    ):
        Path(task.path("part")).write_text("new")
    replacing = {"mapreduce.manifest.committer.delete.target.files": "true"}
    plan = sync.job(tmp_path / "out", "j", options=replacing).plan()

    assert (plan.files, plan.replaced) == (1, 1)
    assert visible(tmp_path / "out") == {"part": "old"}

    sync.job(tmp_path / "out", "j", options=replacing).commit()

    assert visible(tmp_path / "out") == {"part": "new"}
    assert sync.job(tmp_path / "out", "j").abort().outcome == "nothing to clean up"


def test_a_destination_that_is_a_file(tmp_path: Path) -> None:
    """A file as destination is refused at once."""
    (tmp_path / "out").write_text("x")
    with pytest.raises(CommitError, match="out"), sync.open_job(tmp_path / "out"):
        pass

    assert (tmp_path / "out").read_text() == "x"


def test_ending_commits_that_were_cut_short(tmp_path: Path) -> None:
    """The blocking calls see, finish and undo what a dead process left."""
    old = {"day=2/old": "old"}
    write(tmp_path, old)
    cut_short(tmp_path)

    (status,) = sync.job_statuses(tmp_path)
    assert (status.job_id, status.state) == (JOB, JobState.STOPPED)
    report = sync.job(tmp_path).rollback()
    assert (report.rolled_back, visible(tmp_path)) == (True, old)

    cut_short(tmp_path)
    told: list[Progress] = []
    assert sync.job(tmp_path).resume(on_progress=told.append).files == 3
    assert visible(tmp_path) == {**old, **TASKS[0], **TASKS[1]}
    assert told


def test_commit_job_resumes(tmp_path: Path) -> None:
    """Whoever has the job's messages may just commit again."""
    cut_short(tmp_path)

    assert sync.job(tmp_path, JOB).commit().resumed
    assert visible(tmp_path) == {**TASKS[0], **TASKS[1]}


def test_modes(tmp_path: Path) -> None:
    """A job, a commit and a plan take a mode, by name as well."""
    write(tmp_path, {"p=1/old": "old", "p=2/old": "old"})
    prepare(tmp_path, ({"p=1/part": "new"},))

    plan = sync.job(tmp_path, JOB).plan(mode="replace_partitions")
    assert plan.replacing == (f"{tmp_path}/p=1",)
    sync.job(tmp_path, JOB).commit(mode=Mode.REPLACE_PARTITIONS)
    assert visible(tmp_path) == {"p=1/part": "new", "p=2/old": "old"}
    with sync.open_job(tmp_path, mode="replace_table") as job, job.task(0) as task:
        task.put("p=3/part", b"newer")
    assert visible(tmp_path) == {"p=3/part": "newer"}
    with pytest.raises(OptionError, match="replace_table"):
        sync.job(tmp_path, "j").commit(mode="replace")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["job", "open_job", "open_store", "job_statuses"])
def test_functions_can_be_sent_to_another_process(name: str) -> None:
    """A blocking function goes by its own name, as Spark's closures need it."""
    function = getattr(sync, name)

    assert pickle.loads(pickle.dumps(function)) is function
    assert inspect.signature(function).parameters["url"].name == "url"


def test_a_handle_can_be_sent_to_another_process(tmp_path: Path) -> None:
    """It is a place and a name, so a worker gets it as it is."""
    with sync.open_job(tmp_path, job_id="j") as job:
        sent = pickle.loads(pickle.dumps(sync.job(tmp_path, "j")))
        with sent.task(0) as task:
            task.put("part", b"x")
        status = sent.status()
        job.accept(task.commit)

    assert status is not None
    assert status.state == "running"
    assert visible(tmp_path) == {"part": "x"}
    assert sent.status() is None


def test_a_handle_without_an_id(tmp_path: Path) -> None:
    """What needs an id says so; an empty id is one, and not the only job that is there."""
    cut_short(tmp_path)

    with pytest.raises(OptionError, match="expected the id of a job under"):
        sync.job(tmp_path).commit()
    with pytest.raises(OptionError, match="the job id ''"):
        sync.job(tmp_path, "").rollback()
    assert sync.job(tmp_path).resume().resumed


@pytest.mark.parametrize("at", ["task", "commit"])
def test_a_job_that_is_aborted_under_its_feet(tmp_path: Path, at: str) -> None:
    """The program is told that its job was taken away, not that its output is kept."""
    with (
        pytest.raises(CommitError, match="another process has aborted the job") as failed,
        sync.open_job(tmp_path / "out", job_id="live") as job,
    ):
        with job.task(0) as task:
            task.put("part", b"x")
        sync.job(tmp_path / "out", "live").abort(force=True)
        if at == "task":
            with job.task(1) as task:
                task.put("late", b"x")

    assert "is kept" not in str(failed.value)
    assert isinstance(failed.value, PreflightError) is (at == "commit")
    assert visible(tmp_path) == {}

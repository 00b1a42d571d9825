"""Commits beside other attempts, forks, broken callbacks and lost responses: nothing is lost."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster

from asynccommit import api, open_job, sync
from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.meter import Progress
from asynccommit.errors import (
    CommitError,
    CommitUnknownError,
    DeniedError,
    OutcomeUnknownError,
    PreflightError,
)
from asynccommit.runtime.loop_thread import Engine
from asynccommit.stores.policies.funnel import Call, Op
from tests.support.faults import Fault, Faults
from tests.support.jobs import committer, ids, left, run_task, visible, write


async def half_done(dest: Path) -> ManifestCommitter:
    """Return a job whose commit failed half-way, with an old file moved aside."""
    write(dest, {"a/f": "old"})
    job = committer(dest, Faults(Fault("rename", DeniedError, "b/f")), delete_target_files=True)
    await job.setup_job()
    await run_task(job, 0, {"a/f": "new", "b/f": "new"})
    with pytest.raises(CommitError):
        await job.commit_job()
    return job


async def test_another_attempt_keeps_a_half_done_commit(tmp_path: Path) -> None:
    """A second job attempt neither deletes nor commits over what the first has begun."""
    await half_done(tmp_path / "out")
    before = left(tmp_path / "out")
    second = committer(tmp_path / "out", attempt=1)
    await second.setup_job()
    await run_task(second, 0, {"c": "c"})
    with pytest.raises(CommitError, match="another attempt of this job"):
        await second.commit_job()
    report = await second.abort_job()

    assert "is kept" in report.kept
    assert set(before) <= set(left(tmp_path / "out"))


async def test_an_attempt_removes_dead_ones_of_its_job(tmp_path: Path) -> None:
    """A job that is committed cleans up attempts of it that never began to commit."""
    for attempt in range(2):
        job = committer(tmp_path / "out", attempt=attempt)
        await job.setup_job()
        await run_task(job, 0, {"f": str(attempt)})
    await job.commit_job()

    assert visible(tmp_path / "out") == {"f": "1"}
    assert left(tmp_path / "out") == []


async def test_abort_task_after_the_commit_began(tmp_path: Path) -> None:
    """Once a commit has begun an aborted task attempt takes nothing away."""
    job = await half_done(tmp_path / "out")
    before = left(tmp_path / "out")
    await job.abort_task(*ids(0))

    assert left(tmp_path / "out") == before


async def test_an_abort_that_races_with_a_commit(tmp_path: Path) -> None:
    """A commit that begins after an abort has looked is not deleted: one of the two gives way."""
    write(tmp_path / "out", {"old": "o"})

    class Meet:
        """Hold the abort before it renames until the commit has failed half-way."""

        def around(self, call: Call) -> Call:
            async def meeting(op: Op) -> Any:
                if op.name == "rename" and op.args[1].endswith(".aborted"):
                    with pytest.raises(CommitError):
                        await job.commit_job(overwrite=[str(tmp_path / "out")])
                return await call(op)

            return meeting

    job = committer(tmp_path / "out", Faults(Fault("rename", DeniedError, "tasks/")))
    await job.setup_job()
    await run_task(job, 0, {"f": "x"})
    report = await committer(tmp_path / "out", Meet()).abort_job()

    assert report.outcome.startswith("kept")
    assert Path(job.layout.record).exists()
    assert (Path(job.layout.epoch_dir(1)) / "aside/in/old").read_text() == "o"


async def test_an_uncleaned_job_is_committed_already(tmp_path: Path) -> None:
    """With the job's directory still there, the marker tells that it is committed."""
    faults = Faults(Fault("delete_tree", DeniedError, times=3))
    job = committer(tmp_path / "out", faults)
    await job.setup_job()
    await run_task(job, 0, {"f": "x"})
    first = await job.commit_job()

    assert "could not be deleted" in first.warnings[0]

    faults.rules.clear()
    again = await job.commit_job(overwrite=[str(tmp_path / "out")])

    assert again.already_committed
    assert visible(tmp_path / "out") == {"f": "x"}


async def test_a_late_setup_does_not_undo_a_commit(tmp_path: Path) -> None:
    """A job's directory that a lost request makes again after cleanup is no new job.

    Else a repeated commit with ``overwrite`` would put nothing in the table's place.
    """
    job = committer(tmp_path / "out")
    await job.setup_job()
    await run_task(job, 0, {"f": "x"})
    await job.commit_job(overwrite=[str(tmp_path / "out")])
    Path(job.layout.manifests_dir).mkdir(parents=True)
    again = await job.commit_job(overwrite=[str(tmp_path / "out")])

    assert again.already_committed
    assert visible(tmp_path / "out") == {"f": "x"}


async def test_a_job_id_of_every_night(tmp_path: Path) -> None:
    """An id that is used again is a new job: last night's marker does not stand for it."""
    for night in ("monday", "tuesday"):
        job = committer(tmp_path / "out", job_id="nightly")
        await job.setup_job()
        await run_task(job, 0, {night: "x"})
        report = await job.commit_job()

        assert not report.already_committed
    assert visible(tmp_path / "out") == {"monday": "x", "tuesday": "x"}


async def test_a_link_on_the_way_to_a_source(tmp_path: Path) -> None:
    """A manifest cannot move files from behind a link into the table."""
    write(tmp_path / "secret", {"passwd": "s"})
    job = committer(tmp_path / "out")
    await job.setup_job()
    await run_task(job, 0, {"p=1/passwd": "x"})
    real = Path(job.layout.task_attempt_dir(ids(0)[1])) / "p=1"
    (real / "passwd").unlink()
    real.rmdir()
    real.symlink_to(tmp_path / "secret")
    with pytest.raises(PreflightError, match="files behind it are not of this job"):
        await job.commit_job()

    assert visible(tmp_path / "secret") == {"passwd": "s"}
    assert visible(tmp_path / "out") == {}


async def test_a_link_in_a_sources_place(tmp_path: Path) -> None:
    """A manifest of others cannot put a link into the table: nothing is renamed."""
    write(tmp_path / "secret", {"passwd": "s"})
    job = committer(tmp_path / "out")
    await job.setup_job()
    await run_task(job, 0, {"p=1/f": "x", "p=1/passwd": "y"})
    file = Path(job.layout.task_attempt_dir(ids(0)[1])) / "p=1/passwd"
    file.unlink()
    file.symlink_to(tmp_path / "secret/passwd")
    with pytest.raises(PreflightError, match="p=1/passwd: a link"):
        await job.commit_job()

    assert visible(tmp_path / "out") == {}


@pytest.mark.parametrize("stage", ["job_stage_rename_files", "job_stage_cleanup", ""])
async def test_progress_that_fails(tmp_path: Path, stage: str) -> None:
    """A progress callback that raises, as into a closed pipe, costs a warning and no commit."""

    def tell(progress: Progress) -> None:
        if progress.stage == stage or not stage:
            raise BrokenPipeError("nobody listens")

    job = committer(tmp_path / "out")
    await job.setup_job()
    await run_task(job, 0, {f"f{i}": "x" for i in range(100)})
    report = await job.commit_job(on_progress=tell)

    assert report.files == 100
    assert "nobody listens" in report.warnings[0]


async def test_an_error_after_success_says_so(tmp_path: Path) -> None:
    """A lost response in cleanup does not make a committed job unknown."""
    faults = Faults(Fault("delete_tree", OutcomeUnknownError))
    job = committer(tmp_path / "out", faults, on_cleanup_failure="fail")
    await job.setup_job()
    await run_task(job, 0, {"f": "x"})
    with pytest.raises(CommitError, match="the job is committed, but") as failed:
        await job.commit_job()

    assert not isinstance(failed.value, CommitUnknownError)


@pytest.mark.parametrize("after", [True, False])
async def test_a_lost_answer_to_the_record(tmp_path: Path, after: bool) -> None:
    """Whether the record was written is seen by reading it."""
    faults = Faults(Fault("put", OutcomeUnknownError, "commit-record", after=after, times=1))
    job = committer(tmp_path / "out", faults)
    await job.setup_job()
    await run_task(job, 0, {"f": "x"})
    if after:
        assert (await job.commit_job()).files == 1
    else:
        with pytest.raises(CommitUnknownError):
            await job.commit_job()


async def test_an_aborted_attempt_spares_its_successor(
    tmp_path: Path, blockbuster: BlockBuster
) -> None:
    """A manifest that another attempt commits while this one aborts is put back."""
    blockbuster.deactivate()  # the intruder writes its files in the midst of a request

    class Intrude:
        """Let attempt 1 commit between the look of attempt 0 and its deed."""

        done = False

        def around(self, call: Call) -> Call:
            async def intruding(op: Op) -> Any:
                if op.name == "rename" and op.args[1].endswith(".aborted") and not self.done:
                    self.done = True
                    await run_task(committer(tmp_path / "out"), 0, {"f": "one"}, attempt=1)
                return await call(op)

            return intruding

    job = committer(tmp_path / "out", Intrude())
    await job.setup_job()
    await run_task(job, 0, {"f": "zero"}, attempt=0)
    await job.abort_task(*ids(0, 0))
    await job.commit_job()

    assert visible(tmp_path / "out") == {"f": "one"}


def test_a_fork_leaves_its_parents_job_alone(tmp_path: Path) -> None:
    """A child that leaves the block of a job by an exception aborts nothing."""
    with sync.open_job(tmp_path / "out") as job:
        with job.task(0) as task:
            Path(task.path("f")).write_text("x")
        child = 0
        try:
            child = os.fork()
            if child == 0:
                with job.task(1):
                    pass
        except BaseException:
            os._exit(0 if child == 0 else 1)
        os.waitpid(child, 0)

    assert visible(tmp_path / "out") == {"f": "x"}


async def test_the_cause_stays_when_the_abort_fails_too(tmp_path: Path) -> None:
    """The user's exception arrives as it was, with the abort's as a note."""
    with pytest.raises(ValueError, match="mine") as failed:
        async with open_job(tmp_path / "out") as job:
            job.committer.store = None  # type: ignore[assignment, misc]
            raise ValueError("mine")

    assert "the abort failed" in failed.value.__notes__[0]


async def test_a_bad_report_directory_does_not_hide_a_cancel(tmp_path: Path) -> None:
    """A cancelled job ends as cancelled, whatever its reports."""
    write(tmp_path, {"file": ""})

    async def run() -> None:
        options = {"mapreduce.manifest.committer.summary.report.directory": "relative"}
        async with open_job(tmp_path / "out", options=options):
            entered.set()
            await asyncio.sleep(3600)

    entered = asyncio.Event()
    running = asyncio.create_task(run())
    await entered.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert running.cancelled()


def test_an_exit_inside_does_not_kill_the_engine() -> None:
    """``sys.exit`` in a callback ends its caller, and the engine serves the next."""

    async def leave() -> None:
        raise SystemExit(3)

    async def answer() -> int:
        return 1

    engine = Engine()
    try:
        with pytest.raises(SystemExit):
            engine.submit(leave())

        assert engine.submit(answer()) == 1
    finally:
        engine.close()


async def test_a_task_that_nobody_accepted(tmp_path: Path) -> None:
    """A task that committed elsewhere and was not handed to the job is not thrown away."""
    with pytest.raises(PreflightError, match="passed to the job"):
        async with (
            open_job(tmp_path / "out") as job,
            api.job(tmp_path / "out", job.job_id).task(0) as task,
        ):
            await task.put("f", b"x")

    assert any(path.endswith("/f") for path in left(tmp_path / "out"))


async def test_a_report_of_names_that_are_no_text(tmp_path: Path) -> None:
    """A name that is not UTF-8 does not keep the report from being written."""
    dest = tmp_path / "out"
    dest.mkdir()
    Path(os.fsdecode(bytes(dest) + b"/\xff")).write_text("x")
    job = committer(
        dest,
        Faults(Fault("rename", DeniedError, os.fsdecode(b"\xff"))),
        report_directory=str(tmp_path / "reports"),
    )
    await job.setup_job()
    await run_task(job, 0, {"f": "x"})
    with pytest.raises(CommitError):
        await job.commit_job(overwrite=[str(dest)])

    assert len(list((tmp_path / "reports").iterdir())) == 1


@pytest.mark.parametrize(
    "overwrite, says",
    [
        ("{dest}/..", "is not an absolute path"),
        ("{parent}", "contains the job itself"),
        ("{dest}/_temporary", "contains the job itself"),
        ("relative", "is not an absolute path"),
    ],
)
async def test_places_that_cannot_be_replaced(tmp_path: Path, overwrite: str, says: str) -> None:
    """Replacing a place that holds the job itself is refused before anything moves."""
    dest = tmp_path / "out"
    write(dest, {"old": "o"})
    job = committer(dest)
    await job.setup_job()
    await run_task(job, 0, {"f": "x"})
    with pytest.raises(PreflightError, match=says):
        await job.commit_job(overwrite=[overwrite.format(dest=dest, parent=tmp_path)])

    assert visible(dest) == {"old": "o"}


async def test_nested_places_are_replaced_once(tmp_path: Path) -> None:
    """A place within another that is replaced, or with slashes at its end, is no trouble."""
    dest = tmp_path / "out"
    write(dest, {"a/b/c/old": "o", "a-b/old": "stays"})
    job = committer(dest)
    await job.setup_job()
    await run_task(job, 0, {"a/b/c/f": "x"})
    await job.commit_job(overwrite=[f"{dest}/a/b/c", f"{dest}/a/", f"{dest}//a/b"])

    assert visible(dest) == {"a/b/c/f": "x", "a-b/old": "stays"}


async def test_the_markers_place_is_taken(tmp_path: Path) -> None:
    """A directory called ``_SUCCESS`` is found before anything moves."""
    write(tmp_path / "out/_SUCCESS", {"x": ""})
    job = committer(tmp_path / "out")
    await job.setup_job()
    await run_task(job, 0, {"f": "x"})
    with pytest.raises(PreflightError, match="_SUCCESS"):
        await job.commit_job()

    assert visible(tmp_path / "out") == {}


async def test_a_straggler_does_not_revive_an_aborted_job(tmp_path: Path) -> None:
    """A task that starts after its job was aborted fails and leaves nothing."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    await job.abort_job()
    with pytest.raises(CommitError):
        await job.setup_task(ids(0)[1])

    assert not (tmp_path / "out").exists()


def older(dest: Path, job_id: str) -> None:
    """Let a job have the layout of Hadoop before 3.4.1."""
    job = dest / "_temporary" / job_id
    for path in job.glob("*/manifests/*.json"):
        text = path.read_text().replace(f"_temporary/{job_id}/", f"_temporary/manifest_{job_id}/")
        path.write_text(text)
    job.rename(dest / "_temporary" / f"manifest_{job_id}")


async def test_older_jobs_are_aborted_too(tmp_path: Path) -> None:
    """A job in the layout of older Hadoop can be planned and aborted."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    await run_task(job, 0, {})
    older(tmp_path / "out", job.layout.job_id)

    assert (await job.plan_job()).files == 0

    await job.abort_job()

    assert left(tmp_path / "out") == []


async def test_many_existing_targets_are_named_in_part(tmp_path: Path) -> None:
    """Of many conflicts twenty are named, and not all of them are asked for."""
    files = {f"f{i:03}": "x" for i in range(300)}
    write(tmp_path / "out", files)
    faults = Faults()
    job = committer(tmp_path / "out", faults, workers=4)
    await job.setup_job()
    await run_task(job, 0, files)
    with pytest.raises(PreflightError):
        await job.commit_job()

    assert faults.count("head") < 60


async def test_an_error_while_saving_the_marker(tmp_path: Path) -> None:
    """From the decision on the job is committed: the error says so, and how to finish it."""
    faults = Faults(Fault("rename", lambda op, path: RuntimeError("boom"), "_SUCCESS", after=True))
    job = committer(tmp_path / "out", faults)
    await job.setup_job()
    await run_task(job, 0, {"f": "x"})
    with pytest.raises(CommitError, match=r"is committed, but its marker.*asynccommit resume"):
        await job.commit_job()

    assert (tmp_path / "out/_SUCCESS").exists()

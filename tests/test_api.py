"""Jobs and tasks from asyncio."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from asynccommit import (
    CommitError,
    CommittedError,
    JobState,
    Mode,
    OptionError,
    Options,
    OwnedError,
    PreflightError,
    Progress,
    UnfinishedError,
    api,
    job_statuses,
    open_job,
)
from asynccommit.api import JobRef
from asynccommit.errors import NotFoundError
from tests.cli.support import TASKS, cut, cut_short, let_live, prepare
from tests.support.jobs import JOB, left, visible, write


async def test_leaving_commits(tmp_path: Path) -> None:
    """The example of the documentation works, with tasks at once."""

    async def one(number: int) -> None:
        async with job.task(number) as task:
            await task.put(f"day={number}/part-0", b"x" * number)

    told: list[Progress] = []
    async with open_job(tmp_path / "out", on_progress=told.append) as job:
        await asyncio.gather(*(one(number) for number in range(4)))

    assert visible(tmp_path / "out") == {f"day={n}/part-0": "x" * n for n in range(4)}
    assert {progress.stage for progress in told} >= {"job_stage_rename_files"}
    assert all(progress.job_id == job.job_id for progress in told)


async def test_tasks_elsewhere(tmp_path: Path) -> None:
    """A task opened by the job's id hands its message to the job, and has none before its end."""
    async with open_job(tmp_path / "out") as job:
        async with api.job(tmp_path / "out", job.job_id).task(3) as task:
            with pytest.raises(OptionError, match="is running: it has no commit message"):
                _ = task.commit
            await task.put("part-3", b"3")
        job.accept(task.commit)

    assert visible(tmp_path / "out") == {"part-3": "3"}


async def test_same_call_is_another_attempt(tmp_path: Path) -> None:
    """A scheduler that makes a call again gets a free attempt; the message accepted last counts."""
    dest = tmp_path / "out"
    async with open_job(dest) as job:
        ids = []
        for text in (b"lost", b"kept"):
            async with api.job(dest, job.job_id).task(3) as task:
                await task.put("part-3", text)
            ids.append(task.attempt_id.rpartition("_")[2])
            assert task.commit is not None
            job.accept(task.commit)
        with pytest.raises(CommitError):
            async with api.job(dest, job.job_id).task(3, 0):
                pass
        async with job.task(3) as task:
            ids.append(task.attempt_id.rpartition("_")[2])
            await task.put("part-3", b"last")

    assert ids == ["0", "1", "2"]
    assert visible(dest) == {"part-3": "last"}


async def test_job_of_elsewhere_is_planned_and_committed(tmp_path: Path) -> None:
    """``plan_job`` changes nothing and says so; ``commit_job`` does what was planned."""
    dest = tmp_path / "out"
    async with JobRef(dest, "j").open() as opened:
        await opened.setup_job()
    async with api.job(dest, "j").task(0) as task:
        await task.put("part-0", b"0")
    assert task.commit is not None

    planned = await api.job(dest, "j").plan()
    assert (planned.files, planned.dry_run, visible(dest)) == (1, True, {})
    report = await api.job(dest, "j").commit([task.commit])
    assert (report.files, report.dry_run, visible(dest)) == (1, False, {"part-0": "0"})


async def test_job_of_elsewhere_is_aborted(tmp_path: Path) -> None:
    """``abort_job`` leaves nothing of a job whose commit has not begun."""
    dest = tmp_path / "out"
    async with JobRef(dest, "j").open() as opened:
        await opened.setup_job()
    report = await api.job(dest, "j").abort(reason="no input")

    assert report.outcome == "job directory deleted"
    assert left(dest) == []


async def test_report_is_there_after_the_block(tmp_path: Path) -> None:
    """A job has no report before its commit, and says so; afterwards it is a ``JobReport``."""
    async with open_job(tmp_path / "out", job_id="j") as job:
        with pytest.raises(OptionError, match="job j is not committed"):
            _ = job.report
    assert job.report.files == 0


async def test_cancelling_aborts(tmp_path: Path) -> None:
    """A cancelled job is aborted: nothing is left."""

    async def run() -> None:
        async with open_job(tmp_path / "out") as job, job.task(0) as task:
            await task.put("part", b"x")
            await asyncio.sleep(60)

    running = asyncio.create_task(run())
    while not (tmp_path / "out").exists():  # noqa: ASYNC110  a file has no event
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a//b", "a/./b", "a/.."])
async def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    """A task writes below its directory and nowhere else."""
    async with open_job(tmp_path / "out") as job, job.task(0) as task:
        with pytest.raises(OptionError, match="relative path"):
            task.path(name)
        with pytest.raises(OptionError):
            await task.put(name, b"")


async def test_modes(tmp_path: Path) -> None:
    """A taken name is refused, unless a mode replaces what is there; a mode may be a text."""
    write(tmp_path / "out", {"part": "old", "p=1/old": "old", "p=2/old": "old"})
    with pytest.raises(PreflightError):
        async with open_job(tmp_path / "out") as job, job.task(0) as task:
            await task.put("part", b"new")
    async with (
        open_job(tmp_path / "out", mode="replace_partitions") as job,
        job.task(0) as task,
    ):
        await task.put("p=1/part", b"new")

    assert visible(tmp_path / "out") == {"part": "old", "p=1/part": "new", "p=2/old": "old"}

    async with open_job(tmp_path / "out", mode=Mode.REPLACE_TABLE) as job, job.task(0) as task:
        await task.put("part", b"new")

    assert visible(tmp_path / "out") == {"part": "new"}


async def test_mode_fail(tmp_path: Path) -> None:
    """With ``fail`` a destination that holds something is refused before a task runs."""
    write(tmp_path / "out", {"part": "old"})

    with pytest.raises(CommitError, match="not empty"):
        async with open_job(tmp_path / "out", mode="fail"):
            pytest.fail("a task could have run")
    assert left(tmp_path / "out") == []


async def test_mode_that_is_none(tmp_path: Path) -> None:
    """A mode that does not exist is named with those that do, and nothing is made."""
    with pytest.raises(OptionError, match="replace_partitions"):
        async with open_job(tmp_path / "out", mode="replace"):  # type: ignore[arg-type]
            pass
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("job_id", ["", "..", "a/b", "a\nb", "x" * 300])
async def test_job_ids_that_are_no_names(tmp_path: Path, job_id: str) -> None:
    """A job id becomes a directory's name, so it must be one."""
    with pytest.raises(OptionError, match="job id"):
        async with open_job(tmp_path / "out", job_id=job_id or " /"):
            pass


async def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    """A name longer than the filesystem takes is named, and the job is aborted."""
    with pytest.raises(Exception, match="too long") as failed:
        async with open_job(tmp_path / "out") as job, job.task(0) as task:
            await task.put("n" * 300, b"")

    assert "n" * 300 in str(failed.value)
    assert not (tmp_path / "out").exists()


async def test_a_job_id_is_used_once(tmp_path: Path) -> None:
    """A second job with the id of a living one is refused, and the first one goes on."""
    async with open_job(tmp_path / "out", job_id="j") as job:
        with pytest.raises(CommitError, match="exists already"):
            async with open_job(tmp_path / "out", job_id="j"):
                pass
        async with job.task(0) as task:
            await task.put("part", b"x")

    assert visible(tmp_path / "out") == {"part": "x"}


# --- commits that were cut short ---------------------------------------------------------------

WHOLE = {**TASKS[0], **TASKS[1]}


def test_resume_job(tmp_path: Path) -> None:
    """The one commit that was cut short is found, finished, and finished once."""
    prepare(tmp_path, job_id="other")
    cut_short(tmp_path)

    report = asyncio.run(api.job(tmp_path).resume())

    assert (report.job_id, report.resumed, report.files) == (JOB, True, 3)
    assert visible(tmp_path) == WHOLE
    assert asyncio.run(api.job(tmp_path, JOB).resume()).already_committed
    with pytest.raises(NotFoundError, match="no unfinished commit"):
        asyncio.run(api.job(tmp_path).resume())


def test_rollback_job(tmp_path: Path) -> None:
    """The same, undone: what was there before is there again."""
    write(tmp_path, {"day=2/old": "old"})
    cut_short(tmp_path)

    report = asyncio.run(api.job(tmp_path).rollback())

    assert (report.rolled_back, report.files) == (True, 1)
    assert visible(tmp_path) == {"day=2/old": "old"}
    assert not asyncio.run(api.job(tmp_path, JOB).rollback()).rolled_back


def test_job_statuses(tmp_path: Path) -> None:
    """Every job under a destination is told of, whatever its state."""
    prepare(tmp_path, job_id="other")
    cut_short(tmp_path)

    found = {status.job_id: status for status in asyncio.run(job_statuses(tmp_path))}

    assert {job_id: status.state for job_id, status in found.items()} == {
        "other": JobState.RUNNING,
        JOB: JobState.STOPPED,
    }
    assert (found[JOB].files, found[JOB].done, found[JOB].unfinished) == (3, None, True)
    assert asyncio.run(job_statuses(tmp_path / "none")) == []


def test_a_living_owner(tmp_path: Path) -> None:
    """A commit whose owner may live is left alone, unless it is taken by force."""
    let_live(cut_short(tmp_path))
    before = left(tmp_path)

    with pytest.raises(OwnedError, match="takeover"):
        asyncio.run(api.job(tmp_path).resume())
    with pytest.raises(OwnedError):
        asyncio.run(api.job(tmp_path).rollback())
    assert left(tmp_path) == before
    assert asyncio.run(api.job(tmp_path).resume(force=True)).resumed
    assert visible(tmp_path) == WHOLE


def test_several_that_were_cut_short(tmp_path: Path) -> None:
    """Of several the one has to be named; the error names them all."""
    for job_id in "ab":
        prepare(tmp_path, ({f"{job_id}/part": "x"},), job_id=job_id)
    for job_id in "ab":
        cut(tmp_path, f"{job_id}/part", job_id=job_id)

    with pytest.raises(OptionError, match=r"--job-id a; asynccommit resume .* --job-id b"):
        asyncio.run(api.job(tmp_path).resume())
    assert asyncio.run(api.job(tmp_path, "b").resume()).files == 1
    assert asyncio.run(api.job(tmp_path).resume()).job_id == "a"


def test_adopting(tmp_path: Path) -> None:
    """A half-done commit of Hadoop's, which has no record, is adopted if that is asked for."""
    attempt = prepare(tmp_path)
    (tmp_path / "day=2").mkdir()
    next(attempt.glob("tasks/*/day=2/part-0")).rename(tmp_path / "day=2/part-0")

    with pytest.raises(NotFoundError):
        asyncio.run(api.job(tmp_path).resume())
    assert asyncio.run(api.job(tmp_path).resume(adopt=True)).files == 3
    assert visible(tmp_path) == WHOLE


def test_a_rerun_after_a_crash(tmp_path: Path) -> None:
    """A new job beside a commit that was cut short is refused, or ends it first, by option."""
    cut_short(tmp_path)

    heard: list[str] = []

    def note(progress: Progress) -> None:
        heard.append(progress.job_id)

    async def rerun(**options: str) -> None:
        opened = open_job(tmp_path, options=options, on_progress=note)
        async with opened as job, job.task(0) as task:
            await task.put(f"day=3/{job.job_id}", b"x")

    with pytest.raises(UnfinishedError, match=f"asynccommit resume file:{tmp_path}") as refused:
        asyncio.run(rerun())
    assert refused.value.jobs == (JOB,)
    asyncio.run(rerun(**{"asynccommit.on.unfinished": "rollback"}))
    assert len(visible(tmp_path)) == 1
    assert heard[0] == JOB
    assert len({*heard}) == 2


@pytest.mark.parametrize("policy", ["refuse", "resume", "rollback"])
def test_a_policy_as_text_is_that_policy(tmp_path: Path, policy: str) -> None:
    """The name of a policy in ``Options`` never means another one: what was cut short is safe."""
    cut_short(tmp_path)
    options = Options(on_unfinished=policy)  # type: ignore[arg-type]

    async def rerun() -> None:
        async with open_job(tmp_path, options=options) as job, job.task(0) as task:
            await task.put(f"day=3/{job.job_id}", b"x")

    if policy == "rollback":
        asyncio.run(rerun())
    else:
        with pytest.raises((UnfinishedError, CommittedError)):
            asyncio.run(rerun())
    kept = job_statuses(tmp_path)
    assert [job.job_id for job in asyncio.run(kept)] == ([JOB] if policy == "refuse" else [])
    assert (visible(tmp_path) == WHOLE) is (policy == "resume")


def test_a_job_key(tmp_path: Path) -> None:
    """Work that has a key is done once: a rerun is told so, before it writes anything."""
    options = {"asynccommit.job.key": "of monday"}

    async def run() -> None:
        async with open_job(tmp_path / "out", options=options) as job, job.task(0) as task:
            await task.put(job.job_id, b"x")

    asyncio.run(run())
    with pytest.raises(CommittedError, match="of monday"):
        asyncio.run(run())
    assert len(visible(tmp_path / "out")) == 1


def test_rollback_on_failure(tmp_path: Path) -> None:
    """By option a commit that fails half-way is undone at once."""
    options = {"asynccommit.on.failure": "rollback"}

    async def run() -> None:
        async with open_job(tmp_path / "out", options=options) as job:
            async with job.task(0) as task:
                await task.put("a/part", b"x")
                await task.put("b/part", b"x")
            (lost,) = (tmp_path / "out").glob("_temporary/*/00/tasks/*/b/part")
            lost.unlink()

    with pytest.raises(CommitError, match="rolled back"):
        asyncio.run(run())
    assert visible(tmp_path / "out") == {}

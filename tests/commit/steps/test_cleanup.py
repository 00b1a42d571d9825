"""Cleaning up: section 6.4 of the reference's catalogue, with ten task attempts."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.job.cleanup import CleanupResult
from asynccommit.commit.steps.cleanup import begun_attempts, clean_up
from asynccommit.errors import CommitError, DeniedError, UnavailableError
from asynccommit.options.job import OnCleanupFailure
from tests.support.commits import At, Dies, Site
from tests.support.faults import Fault, Faults
from tests.support.jobs import committer, ids, run_task


async def ten(dest: Path, *policies: Faults, **options: Any) -> ManifestCommitter:
    """Return a job with ten task attempt directories."""
    job = committer(dest, *policies, **options)
    await job.setup_job()
    for task in range(10):
        await job.setup_task(ids(task)[1])
    return job


@pytest.mark.parametrize(
    "options, outcome, deletes",
    [
        ({}, CleanupResult.PARALLEL_DELETE, 11),
        ({"parallel_delete": False}, CleanupResult.DELETED, 1),
        ({"delete_base_first": True}, CleanupResult.DELETED, 1),
        ({"delete_base_first": True, "parallel_delete": False}, CleanupResult.DELETED, 1),
        ({"cleanup_skipped": True}, CleanupResult.DISABLED, 0),
    ],
)
async def test_ways_to_clean_up(
    tmp_path: Path, options: dict[str, bool], outcome: CleanupResult, deletes: int
) -> None:
    """Each way deletes what it says with as many requests as the reference; again is nothing."""
    faults = Faults()
    job = await ten(tmp_path / "out", faults, **options)

    assert await clean_up(job._run()) is outcome
    assert faults.count("delete_tree") == deletes
    assert (tmp_path / "out/_temporary").exists() is (outcome is CleanupResult.DISABLED)
    if outcome is not CleanupResult.DISABLED:
        assert await clean_up(job._run()) is CleanupResult.NOTHING


async def test_a_few_tasks_need_no_request_of_their_own(tmp_path: Path) -> None:
    """Up to four task attempts are deleted with the directory of the job attempt."""
    faults = Faults()
    job = committer(tmp_path / "out", faults)
    await job.setup_job()
    for task in range(4):
        await job.setup_task(ids(task)[1])

    assert await clean_up(job._run()) is CleanupResult.DELETED
    assert faults.count("delete_tree") == 1
    assert not (tmp_path / "out/_temporary").exists()


async def test_one_attempt_directory_resists(tmp_path: Path) -> None:
    """A failed delete of one task attempt is made up for by the delete of the whole."""
    faults = Faults(Fault("delete_tree", UnavailableError, "000003_0", times=1))
    job = await ten(tmp_path / "out", faults)

    assert await clean_up(job._run()) is CleanupResult.DELETED
    assert faults.count("delete_tree") == 11
    assert not (tmp_path / "out/_temporary").exists()


async def test_base_first_falls_back_to_parallel(tmp_path: Path) -> None:
    """When the one big delete fails the task attempts are deleted in parallel."""
    faults = Faults(Fault("delete_tree", UnavailableError, "", times=1))
    job = await ten(tmp_path / "out", faults, delete_base_first=True)

    assert await clean_up(job._run()) is CleanupResult.PARALLEL_DELETE
    assert faults.count("delete_tree") == 12


async def test_no_tasks_directory(tmp_path: Path) -> None:
    """A job whose tasks never started is deleted with one request."""
    faults = Faults()
    job = committer(tmp_path / "out", faults)
    await job.setup_job()

    assert await clean_up(job._run()) is CleanupResult.DELETED
    assert faults.count("delete_tree") == 1


async def test_other_jobs_are_left_alone(tmp_path: Path) -> None:
    """Only this job's directory is deleted, where the reference deletes all of ``_temporary``."""
    other = committer(tmp_path / "out", job_id="other")
    await other.setup_job()
    job = await ten(tmp_path / "out")
    await job.cleanup()

    assert [path.name for path in (tmp_path / "out/_temporary").iterdir()] == ["other"]


@pytest.mark.parametrize("action", OnCleanupFailure)
async def test_cleanup_fails_after_success(tmp_path: Path, action: OnCleanupFailure) -> None:
    """A failed cleanup warns, is ignored or is an error, as the option says; output is there."""
    faults = Faults(Fault("delete_tree", DeniedError))
    job = committer(tmp_path / "out", faults, on_cleanup_failure=action)
    await job.setup_job()
    await run_task(job, 0, {"f": "x"})
    if action is OnCleanupFailure.FAIL:
        with pytest.raises(CommitError, match="committed, but its marker or clean-up failed"):
            await job.commit_job()
    else:
        report = await job.commit_job()
        assert len(report.warnings) == (action is OnCleanupFailure.WARN)

    assert (tmp_path / "out/_SUCCESS").exists()
    assert (tmp_path / "out/f").read_text() == "x"


async def test_abort_tells_of_its_failure(tmp_path: Path) -> None:
    """Where the reference swallows the error of an abort, ours raises it."""
    job = await ten(tmp_path / "out", Faults(Fault("delete_tree", DeniedError)))
    with pytest.raises(CommitError) as failed:
        await job.abort_job()

    assert isinstance(failed.value.failures[0], DeniedError)


# --- commits that have begun ------------------------------------------------------------------

FILES = {"day=1/a": "1", "day=2/b": "2"}


@pytest.mark.parametrize(
    "name, match",
    [("mkdir", "commit-epoch"), ("", "commit-plan"), ("put", "commit-record")],
)
async def test_an_abort_while_a_commit_begins(site: Site, name: str, match: str) -> None:
    """Whoever is first: the job is committed whole, or nothing of it is there."""
    aborting = site.job()
    when = (name, match) if name else site.saves_plan
    job = await site.ready(FILES, At(*when, aborting.abort_job))
    with pytest.raises(CommitError):
        await job.commit_job()
    await site.job().abort_job()

    assert site.files() == {}
    assert site.left() == []


async def test_an_abort_that_finds_a_record_puts_all_back(site: Site) -> None:
    """A commit that began while an abort took its directory away has it again."""
    job = await site.ready(FILES)
    ends: list[BaseException | None] = []

    async def commit() -> None:
        try:
            await job.commit_job()
        except CommitError as error:
            ends.append(error)
        else:
            ends.append(None)

    aborting = site.job(At("rename", "00.aborted", commit))
    report = await aborting.abort_job()

    assert ends == [None]
    assert site.files() == FILES
    assert report.kept == ""


async def test_an_abort_that_dies_with_a_commit_in_its_hands(site: Site) -> None:
    """A commit whose directory an abort had taken, and not put back, is found again."""
    await site.cut(FILES, Dies("rename", "/tasks/"))
    job = site.job()
    await job.store.rename(job.layout.attempt_dir, job.layout.ended("aborted"))
    await site.job(job_id="asking").job_statuses()
    assert (await site.job().abort_job()).kept
    await site.job().resume_job()

    assert site.files() == FILES
    assert site.left() == []


async def test_an_abort_that_died_while_it_deleted(site: Site) -> None:
    """What another abort had begun to delete is deleted."""
    job = await site.ready(FILES)
    await job.store.rename(job.layout.attempt_dir, job.layout.ended("aborted"))
    await site.job().abort_job()

    assert site.left() == []


@pytest.mark.parametrize("verb", ["commit", "rollback"])
async def test_clean_up_that_died_while_it_deleted(site: Site, verb: str) -> None:
    """A commit, or its rollback, whose process died in its clean-up has ended; a second ends it."""
    site.place({"/table/day=1/old": "o"})
    if verb == "commit":
        await site.cut(FILES, Dies("delete_tree", ""))
    else:
        await site.cut(FILES, Dies("put", "commit-outcome"))
        at = Dies("delete_tree", "")
        with pytest.raises(BaseException):  # noqa: B017, PT011  # it died
            await site.job(at).rollback_job()
    site.alive["1.one"] = False
    await site.job(job_id="other").check_job()
    if verb == "commit":
        assert (await site.job(process="2.two").commit_job()).already_committed
    else:
        await site.job(process="2.two").rollback_job()

    assert site.files() == (FILES if verb == "commit" else {}) | {"day=1/old": "o"}
    assert site.left() == []


async def test_a_rollback_that_cannot_delete(site: Site) -> None:
    """What was taken back stays taken back when the job's directory cannot be deleted."""
    site.place({"/table/day=1/old": "o"})
    before = site.tree()
    await site.cut(FILES, Dies("put", "commit-outcome"))
    with pytest.raises(CommitError):
        await site.job(Faults(Fault("delete_tree", DeniedError))).rollback_job()
    assert site.files() == {"day=1/old": "o"}
    await site.job().rollback_job()

    assert site.tree() == before


async def test_the_commits_of_a_job_that_have_begun(site: Site) -> None:
    """Every attempt of the job with a record counts, and those that have ended do not."""
    first = await site.cut(FILES, Dies("rename", "/tasks/"))
    second = site.job(attempt=1)
    run = second._run()

    assert await begun_attempts(run) == [first.layout.attempt_dir]
    assert await begun_attempts(site.job()._run()) == [first.layout.attempt_dir]
    assert await begun_attempts(site.job()._run(), others=True) == []
    await site.job().rollback_job()
    assert await begun_attempts(run) == []


async def test_another_attempt_of_the_job_is_refused(site: Site) -> None:
    """Of two attempts of one job only one can be committed."""
    await site.cut(FILES, Dies("rename", "/tasks/"))
    before = site.files()
    second = site.job(attempt=1)
    await second.store.mkdir(second.layout.manifests_dir)
    await site.task(second, 0, {"c": "3"})
    with pytest.raises(CommitError, match="another attempt"):
        await second.commit_job()
    assert site.files() == before
    await site.job().rollback_job()
    await site.job(attempt=1).commit_job()

    assert site.files() == {"c": "3"}


async def test_an_older_attempt_that_wakes_is_refused(site: Site) -> None:
    """Nor can an older one, which was held up before its record, be committed beside."""
    second = site.job(attempt=1)

    async def other() -> None:
        await second.store.mkdir(second.layout.manifests_dir)
        await site.task(second, 0, {"c": "3"})
        with suppress(CommitError):
            await second.commit_job()

    first = await site.ready(FILES, At("put", "00/commit-record", other))
    with suppress(CommitError):
        await first.commit_job()

    assert site.files() in (FILES, {"c": "3"}, {})


async def test_of_two_attempts_that_begin_at_once_neither_commits(site: Site) -> None:
    """Who finds the other's record right after its own gives way before it has moved a file."""
    second = site.job(Dies("rename", "/tasks/"), process="2.two", attempt=1)

    async def other() -> None:
        await second.store.mkdir(second.layout.manifests_dir)
        task_id, attempt_id = second.layout.ids(0)
        base = await second.setup_task(attempt_id)
        await second.store.put(f"{base}/c", b"3")
        await second.commit_task(task_id, attempt_id)
        with suppress(BaseException):
            await second.commit_job()

    first = await site.ready(FILES, At("put", "00/commit-record", other), process="3.three")
    with pytest.raises(CommitError, match="another attempt of this job"):
        await first.commit_job()

    assert site.files() == {}

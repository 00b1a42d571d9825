"""Links where a job has its directories: none is deleted, and nothing behind one is."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit.commit.by_rename.file_output_v1 import FileV1Committer
from asynccommit.commit.layout_file_output import FileLayout
from asynccommit.errors import CommitError, PreconditionError, PreflightError
from asynccommit.options.job import Mode, Options
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.urls import Address
from tests.support.jobs import HOST, committer, ids, left, run_task, visible, write

OTHER = "job_202601010000_0002"


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    """A table whose ``_temporary`` is a link to a directory elsewhere."""
    table = tmp_path / "table"
    table.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (table / "_temporary").symlink_to(tmp_path / "elsewhere")
    return table


@pytest.mark.parametrize("ending", ["commit", "abort"])
async def test_a_linked_temporary_outlives_the_job(dest: Path, ending: str) -> None:
    """The first of two jobs that ends leaves the link, and the other one commits."""
    first, second = committer(dest), committer(dest, job_id=OTHER)
    await first.setup_job()
    await second.setup_job()
    await run_task(first, 0, {"day=1/a": "1"})
    await run_task(second, 1, {"day=2/b": "2"})
    await (first.commit_job() if ending == "commit" else first.abort_job())
    report = await second.commit_job()

    assert report.warnings == ()
    assert visible(dest) == ({"day=1/a": "1"} if ending == "commit" else {}) | {"day=2/b": "2"}
    assert (dest / "_temporary").is_symlink()
    assert list((dest / "_temporary").iterdir()) == []


async def test_a_linked_temporary_of_file_output_committer(dest: Path) -> None:
    """The same where jobs share the directories of application attempts."""
    layout = FileLayout(Address("file", "", str(dest)), "job_202601010000_0001")
    job = FileV1Committer(LocalStore(), layout, Options(), HOST)
    await job.setup_job()
    task_id, attempt_id = ids(0)
    write(await job.setup_task(attempt_id), {"day=1/a": "1"})
    await job.commit_task(task_id, attempt_id)
    assert (await job.commit_job()).warnings == ()

    assert visible(dest) == {"day=1/a": "1"}
    assert (dest / "_temporary").is_symlink()
    assert left(dest) == []


async def test_what_is_replaced_holds_a_linked_temporary(dest: Path) -> None:
    """A directory is not replaced while a job is at work behind a link in it."""
    running = committer(dest)
    await running.setup_job()
    job = committer(dest.parent, job_id=OTHER)
    await job.setup_job()
    await run_task(job, 0, {"table/b": "2"})
    with pytest.raises(PreflightError, match="table/_temporary: another job"):
        await job.commit_job(mode=Mode.REPLACE_PARTITIONS)

    await run_task(running, 1, {"a": "1"})
    await running.commit_job()
    assert visible(dest) == {"a": "1"}


async def test_a_jobs_directory_that_is_a_link(tmp_path: Path) -> None:
    """A job is not set up through a link, and neither its abort nor its clean-up goes there."""
    dest = tmp_path / "table"
    theirs = {"01/keep": "k", "02/tasks/keep": "k"}
    write(tmp_path / "theirs", theirs)
    (dest / "_temporary").mkdir(parents=True)
    job = committer(dest)
    Path(job.layout.job_dir).symlink_to(tmp_path / "theirs")
    for request in (job.setup_job, job.abort_job, job.cleanup, job.commit_job):
        with pytest.raises(
            CommitError, match="a link is in the place of the job directory"
        ) as info:
            await request()
        assert isinstance(info.value.failures[0], PreconditionError)

    assert {name: (tmp_path / "theirs" / name).read_text() for name in theirs} == theirs
    assert Path(job.layout.job_dir).is_symlink()


async def test_a_table_that_is_a_link(tmp_path: Path) -> None:
    """The destination itself may be a link: it stays, with the job's files behind it."""
    (tmp_path / "real").mkdir()
    dest = tmp_path / "table"
    dest.symlink_to(tmp_path / "real")
    job = committer(dest)
    await job.setup_job()
    await run_task(job, 0, {"day=1/a": "1"})
    await job.commit_job(mode=Mode.REPLACE_TABLE)

    assert dest.is_symlink()
    assert visible(tmp_path / "real") == {"day=1/a": "1"}
    assert not (tmp_path / "real/_temporary").exists()

"""What a task may not leave: it fails as a task, and says which file it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit.commit.planning.uncommittable import refuse_over
from asynccommit.errors import CommitError, PreconditionError, RejectedError
from tests.support.commits import Site
from tests.support.jobs import committer, ids, run_task, visible, write

NAMES = ["_SUCCESS", "_SUCCESS/x", "_temporary/x", "_temporary/"]
UNLISTED = [".x.crc", ".crc", "day=1/.x.crc/part-0", ".x.crc/.y/part-0"]


@pytest.mark.parametrize("name", NAMES)
async def test_names_of_the_protocol_fail_the_task(site: Site, name: str) -> None:
    """No job commit could publish them; the job goes on without the task."""
    job = site.job()
    await job.setup_job()
    good = await site.task(job, 0, {"part-0": "x"})
    with pytest.raises(CommitError, match=f"task_stage.*{name.rstrip('/')}.*commit protocol"):
        await site.task(job, 1, {"part-1": "x", name: "x"})
    await job.abort_task(*ids(1))

    assert (await job.commit_job([good])).files == 1


@pytest.mark.parametrize("name", UNLISTED)
async def test_names_that_hadoop_hides_fail_the_task(tmp_path: Path, name: str) -> None:
    """Hadoop's listings leave them out, so its readers would never see the file."""
    job = committer(tmp_path)
    await job.setup_job()
    with pytest.raises(CommitError, match=r"task_stage.*\.crc.*does not list") as failed:
        await run_task(job, 0, {"part-0": "x", name: "x"})

    assert isinstance(failed.value.failures[0], PreconditionError)
    assert failed.value.failures[0].path.endswith(name)


@pytest.mark.parametrize("name", [".asynccommit-12-3.tmp", "day=1/.asynccommit-a-b.tmp/part-0"])
async def test_names_of_temporary_files_fail_the_task(tmp_path: Path, name: str) -> None:
    """The store would leave the file out of its listings: it was lost without a word."""
    job = committer(tmp_path)
    await job.setup_job()
    with pytest.raises(CommitError, match=r"task_stage.*a temporary file of its own: rename it"):
        await run_task(job, 0, {"part-0": "x", name: "x"})
    await job.abort_task(*ids(0))
    assert (await job.commit_job([await run_task(job, 0, {"part-0": "x"}, 1)])).files == 1


async def test_names_that_only_begin_like_temporary_files(site: Site) -> None:
    """They are committed like any others, and seen by the next job."""
    names = {".asynccommit-1.tmp": "a", "day=1/.asynccommit-x.tmp/part-0": "b"}
    job = site.job()
    await job.setup_job()
    report = await job.commit_job([await site.task(job, 0, names)])

    assert report.files == 2
    assert site.files() == names
    again = site.job(job_id="second")
    await again.setup_job()
    with pytest.raises(CommitError, match="exists already"):
        await again.commit_job([await site.task(again, 0, names)])


async def test_checksums_beside_their_files_are_no_files_of_the_task(tmp_path: Path) -> None:
    """Hadoop's local filesystem writes them, and none is published."""
    job = committer(tmp_path)
    await job.setup_job()
    task_id, attempt_id = ids(0)
    directory = Path(await job.setup_task(attempt_id))
    write(directory, {"part-0": "x", ".part-0.crc": "crc\0"})
    (directory / ".renamed.crc").write_bytes(b"crc\0")
    commit = await job.commit_task(task_id, attempt_id)

    assert commit.files == 1
    await job.commit_job([commit])
    assert visible(tmp_path) == {"part-0": "x"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_SUCCESS", "part-0"]


async def test_a_reserved_name_in_an_attempt_that_is_read_again(tmp_path: Path) -> None:
    """Where the manifest is lost, a name of the protocol in the directory fails the job."""
    job = committer(tmp_path)
    await job.setup_job()
    commit = await run_task(job, 0, {"a/SUCCESS": "x"})
    directory = Path(job.layout.task_attempt_dir(ids(0)[1]))
    (directory / "a/SUCCESS").rename(directory / "_SUCCESS")
    (directory / "a").rmdir()
    Path(job.layout.manifest(ids(0)[0])).unlink()

    with pytest.raises(CommitError, match="commit protocol"):
        await job.commit_job([commit])
    assert not (tmp_path / "_SUCCESS").exists()


def test_a_path_may_be_as_long_as_the_store_takes() -> None:
    """Letters count as the bytes that they are."""
    refuse_over("/a", "/" + "é" * 5, 11)
    with pytest.raises(RejectedError, match="too long"):
        refuse_over("/a", "/" + "é" * 5, 10)

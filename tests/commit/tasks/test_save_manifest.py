"""Saving a task manifest: section 6.3 of the reference's catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit.commit.tasks.save_manifest import ATTEMPTS
from asynccommit.errors import (
    CommitError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    UnavailableError,
)
from asynccommit.formats.manifest import UNKNOWN, decode_manifest
from tests.support.faults import Fault, Faults
from tests.support.jobs import committer, ids, run_task


async def test_missing_work_directory_fails(tmp_path: Path) -> None:
    """A task attempt without a directory cannot commit."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    with pytest.raises(CommitError) as failed:
        await job.commit_task(*ids(0))

    assert failed.value.stage == "task_stage_scan_directory"
    assert isinstance(failed.value.failures[0], NotFoundError)


async def test_empty_work_directory_makes_an_empty_manifest(tmp_path: Path) -> None:
    """A task that wrote nothing has a manifest, and its job commits without files."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    await run_task(job, 0, {})
    report = await job.commit_job()

    assert (report.files, list(report.filenames)) == (0, [])


@pytest.mark.parametrize("after", [False, True], ids=["before it acts", "after it acted"])
@pytest.mark.parametrize("failures", [1, ATTEMPTS - 1, ATTEMPTS])
async def test_rename_times_out(tmp_path: Path, failures: int, after: bool) -> None:
    """A rename without an answer is settled by what is in place, or repeated, five times."""
    faults = Faults(
        Fault("rename", OutcomeUnknownError, "-manifest.json", after=after, times=failures)
    )
    job = committer(tmp_path / "out", faults)
    await job.setup_job()
    if failures == ATTEMPTS and not after:
        with pytest.raises(CommitError) as failed:
            await run_task(job, 0, {"f": "x"})
        assert isinstance(failed.value.failures[0], OutcomeUnknownError)
        return
    commit = await run_task(job, 0, {"f": "x"})

    assert faults.rules[0].struck == (1 if after else failures)
    assert (await job.commit_job([commit])).files == 1


async def test_an_acted_rename_is_not_done_again(tmp_path: Path) -> None:
    """Where the reference deletes the good manifest and writes it anew, ours sees that it is good.

    So there is no moment without a manifest.
    """
    faults = Faults(Fault("rename", OutcomeUnknownError, "-manifest.json", after=True, times=1))
    job = committer(tmp_path / "out", faults)
    await job.setup_job()
    faults.seen.clear()
    await run_task(job, 0, {"f": "x"})

    assert faults.count("put") == 1
    assert faults.count("delete") == 0


@pytest.mark.parametrize("failures, ends_well", [(ATTEMPTS - 1, True), (ATTEMPTS, False)])
async def test_writing_the_manifest_fails(tmp_path: Path, failures: int, ends_well: bool) -> None:
    """A write that the store refuses is repeated, five times at most."""
    faults = Faults(Fault("put", UnavailableError, "-manifest.json", times=failures))
    job = committer(tmp_path / "out", faults)
    await job.setup_job()
    if ends_well:
        assert (await run_task(job, 0, {"f": "x"})).files == 1
    else:
        with pytest.raises(CommitError):
            await run_task(job, 0, {"f": "x"})


@pytest.mark.parametrize("which", ["manifest", "manifest_temp"])
async def test_a_directory_has_the_manifests_name(tmp_path: Path, which: str) -> None:
    """A directory in the place of the manifest, or of its temporary file, is removed."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    task_id, attempt_id = ids(0)
    name = task_id if which == "manifest" else attempt_id
    (Path(getattr(job.layout, which)(name)) / "child").mkdir(parents=True)
    await run_task(job, 0, {"f": "x"})
    data = Path(job.layout.manifest(task_id)).read_bytes()

    assert decode_manifest(data, "m").task_attempt_id == attempt_id


async def test_a_second_attempt_replaces_without_a_gap(tmp_path: Path) -> None:
    """The later manifest is renamed over the earlier one, which is never deleted before."""
    faults = Faults()
    job = committer(tmp_path / "out", faults)
    await job.setup_job()
    await run_task(job, 0, {"f": "x"}, attempt=0)
    await run_task(job, 0, {"f": "y"}, attempt=1)

    renames = [op for op in faults.seen if op.name == "rename"]
    assert [op.options["replace"] for op in renames] == [True, True]
    assert faults.count("delete") == faults.count("delete_tree") == 0


async def test_abort_removes_only_its_own_manifest(tmp_path: Path) -> None:
    """An aborted attempt takes its manifest along, and leaves another attempt's alone."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    await run_task(job, 0, {"f": "x"}, attempt=0)
    await job.abort_task(*ids(0, 1))

    assert Path(job.layout.manifest(ids(0)[0])).exists()

    await job.abort_task(*ids(0, 0))

    assert not Path(job.layout.manifest(ids(0)[0])).exists()


async def test_a_link_in_the_work_directory_is_refused(tmp_path: Path) -> None:
    """A symbolic link could lead out of the task's directory, so the task does not commit."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    base = Path(await job.setup_task(ids(0)[1]))
    (base / "link").symlink_to("/etc")
    with pytest.raises(CommitError, match="neither a file nor a directory") as failed:
        await job.commit_task(*ids(0))

    assert isinstance(failed.value.failures[0], PreconditionError)


async def test_destination_directories_are_not_looked_at(tmp_path: Path) -> None:
    """Directory entries carry their depth, and Hadoop's code for what nobody has looked at."""
    dest = tmp_path / "out"
    (dest / "there/deep").mkdir(parents=True)
    (dest / "file").write_text("x")
    job = committer(dest)
    await job.setup_job()
    files = {"there/deep/f": "", "there/new/f": "", "file/f": "", "new/deep/f": ""}
    await run_task(job, 0, files)
    manifest = decode_manifest(Path(job.layout.manifest(ids(0)[0])).read_bytes(), "m")
    found = {entry.dest.rpartition("/out/")[2]: entry[1:] for entry in manifest.directories}

    assert found == {
        "file": (UNKNOWN, 1),
        "new": (UNKNOWN, 1),
        "new/deep": (UNKNOWN, 2),
        "there": (UNKNOWN, 1),
        "there/deep": (UNKNOWN, 2),
        "there/new": (UNKNOWN, 2),
    }

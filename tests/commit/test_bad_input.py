"""Places that cannot take the job: each is a named error, and nothing is renamed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from asynccommit import open_job
from asynccommit.errors import (
    CommitError,
    DeniedError,
    PreconditionError,
    PreflightError,
    RejectedError,
)
from tests.support.faults import Fault, Faults
from tests.support.jobs import committer, ids, left, run_task, visible, write

NOBODY = 65534


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a filesystem of 64 KiB; skips where that is not permitted."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small filesystem is not permitted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


async def test_a_destination_that_is_a_file(tmp_path: Path) -> None:
    """A file as destination is refused when the job is set up."""
    write(tmp_path, {"out": "x"})
    with pytest.raises(CommitError) as failed:
        await committer(tmp_path / "out").setup_job()

    assert isinstance(failed.value.failures[0], PreconditionError)
    assert str(tmp_path / "out") in str(failed.value)


async def test_a_full_disk_when_the_task_commits(small_disk: Path) -> None:
    """A task whose manifest does not fit fails, and the disk is named."""
    job = committer(small_disk / "out")
    await job.setup_job()
    base = Path(await job.setup_task(ids(0)[1]))
    with pytest.raises(OSError, match="No space left"):
        (base / "big").write_bytes(bytes(1 << 20))
    with pytest.raises(CommitError, match="no space left on the disk of") as failed:
        await job.commit_task(*ids(0))

    assert isinstance(failed.value.failures[0], RejectedError)


async def test_a_full_disk_when_the_job_commits(small_disk: Path) -> None:
    """A job that cannot write its commit record renames nothing."""
    job = committer(small_disk / "out")
    await job.setup_job()
    await run_task(job, 0, {"f": "x"})
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "ballast").write_bytes(bytes(1 << 20))
    with pytest.raises(PreflightError, match="no space left on the disk of"):
        await job.commit_job()

    assert visible(small_disk / "out") == {}
    (small_disk / "ballast").unlink()
    assert (await job.commit_job()).files == 1


async def test_a_partition_on_another_filesystem(small_disk: Path) -> None:
    """Renames do not cross filesystems: a partition that is a mount is refused before any."""
    dest = small_disk.parent
    job = committer(dest)
    await job.setup_job()
    await run_task(job, 0, {"small/f": "x", "a/f": "y"})
    with pytest.raises(PreflightError, match="on a different filesystem") as failed:
        await job.commit_job()

    assert isinstance(failed.value.failures[0], RejectedError)
    assert visible(dest) == {}


async def test_an_absolute_destination_on_another_filesystem(tmp_path: Path) -> None:
    """The same for a file whose destination is elsewhere."""
    elsewhere = Path("/dev/shm")
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second filesystem at /dev/shm")
    job = committer(tmp_path / "out")
    await job.setup_job()
    commit = await run_task(job, 0, {"f": "x"})
    staged = Path(job.layout.absolute_dir) / commit.attempt_id
    write(staged, {"a": "abs"})
    absolute = {job.layout.url(f"{staged}/a"): job.layout.url("/dev/shm/asynccommit-no/a")}
    with pytest.raises(PreflightError, match="on a different filesystem"):
        await job.commit_job([replace(commit, absolute=absolute)])

    assert visible(tmp_path / "out") == {}


async def test_an_absolute_destination_with_too_long_a_name(tmp_path: Path) -> None:
    """A name that no file can have is found before anything is renamed."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    commit = await run_task(job, 0, {"f": "x"})
    staged = Path(job.layout.absolute_dir) / commit.attempt_id
    write(staged, {"a": "abs"})
    absolute = {job.layout.url(f"{staged}/a"): job.layout.url(str(tmp_path / ("n" * 300)))}
    with pytest.raises(PreflightError, match="a name longer than 255 bytes"):
        await job.commit_job([replace(commit, absolute=absolute)])

    assert visible(tmp_path / "out") == {}


async def _run(dest: Path) -> str:
    try:
        async with open_job(dest) as job, job.task(0) as task:
            await task.put("p=1/f", b"x")
            await task.put("a/f", b"x")
    except CommitError as error:
        return f"{type(error).__name__} {type(error.failures[0]).__name__} {error}"
    return "committed"


def as_nobody(dest: Path) -> str:
    """Run a job in a child without the superuser's rights and return what became of it."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        if os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        os.write(send, asyncio.run(_run(dest)).encode())
        os._exit(0)
    os.close(send)
    with os.fdopen(receive) as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


@pytest.fixture
def shared_dir() -> Iterator[Path]:
    """Return a directory that every user can reach."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def test_no_permission_for_the_destination(shared_dir: Path) -> None:
    """A destination that may not be written to is named when the job is set up."""
    dest = shared_dir / "out"
    dest.mkdir(mode=0o555)
    said = as_nobody(dest)

    assert said.startswith("CommitError DeniedError")
    assert str(dest) in said


def test_no_permission_for_one_partition(shared_dir: Path) -> None:
    """A partition that may not be written to is found before any rename into the others."""
    dest = shared_dir / "out"
    dest.mkdir()
    (dest / "p=1").mkdir(mode=0o555)
    if os.geteuid() == 0:
        os.chown(dest, NOBODY, NOBODY)
    said = as_nobody(dest)

    assert said.startswith("PreflightError DeniedError")
    assert "no permission to create and remove files in this directory" in said
    assert visible(dest) == {}


async def test_permission_lost_while_renaming(tmp_path: Path) -> None:
    """A refusal half-way keeps what is left, and the error says where."""
    job = committer(tmp_path / "out", Faults(Fault("rename", DeniedError, "d5/")))
    await job.setup_job()
    await run_task(job, 0, {f"d{i}/f": "x" for i in range(10)})
    with pytest.raises(CommitError, match=r"kept in .*/00") as failed:
        await job.commit_job()

    assert not isinstance(failed.value, PreflightError)
    assert any(path.endswith("d5/f") for path in left(tmp_path / "out"))

"""Mounts that number files anew as they are renamed, or lack what a commit needs: refused first."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from asynccommit import open_job
from asynccommit.errors import CommitError, DeniedError, PreflightError
from asynccommit.inspect.doctor import check_place
from asynccommit.options.job import Mode, Options
from asynccommit.stores.unchanged import ELSEWHERE
from asynccommit.stores.urls import Address
from tests.support.faults import Fault, Faults
from tests.support.fuse import fuse
from tests.support.jobs import committer, left, run_task, visible, write
from tests.support.namespaces import ForbiddenError, in_namespace

OLD = {"day=1/old": "1", "day=2/old": "2"}
NEW = {"day=1/new": "n", "day=2/new": "m"}
MODES = (Mode.APPEND, Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS)
AFTER = {Mode.APPEND: {**OLD, **NEW}, Mode.REPLACE_TABLE: NEW, Mode.REPLACE_PARTITIONS: NEW}


async def refused_job(dest: Path, mode: Mode, *, validate: bool | None) -> str:
    """Return why a job is refused before its tasks; the table is as before."""
    before = visible(dest)
    with pytest.raises(CommitError) as failed:
        async with open_job(str(dest), mode=mode, options=Options(validate=validate)):
            pytest.fail("a task could have run")
    assert visible(dest) == before
    return str(failed.value)


async def refused_commit(
    dest: Path, job_id: str, mode: Mode, server: int, *, validate: bool
) -> str:
    """Return why a job is refused that was set up before the mount began to renumber."""
    before = visible(dest)
    job = committer(dest, job_id=job_id, validate=validate)
    await job.setup_job(mode=mode)
    await run_task(job, 0, NEW)
    os.kill(server, signal.SIGUSR1)
    with pytest.raises(PreflightError) as failed:
        await job.commit_job(mode=mode)
    assert visible(dest) == before
    assert not Path(job.layout.record).exists()
    return str(failed.value)


# --- other numbers -------------------------------------------------------------------------------


async def _refuse_jobs(root: str, numbers: str) -> list[str]:
    fuse(root, numbers)
    dest, said = Path(root, "table"), []
    write(dest, OLD)
    for mode in (*MODES, Mode.FAIL):
        for validate in (None, False):
            place = Path(root, f"new-{validate}") if mode is Mode.FAIL else dest
            said.append(await refused_job(place, mode, validate=validate))
            # Where each look finds another number, no directory can be deleted with care either.
            assert numbers == "look" or not left(place)
    return said


@pytest.mark.rotate("numbers", keep=1)
@pytest.mark.parametrize("numbers", ["rename", "look"])
def test_a_mount_that_renumbers_is_refused_at_the_setup(tmp_path: Path, numbers: str) -> None:
    """No task runs, and nothing has changed, in any mode and with ``validate=false`` too."""
    for said in in_namespace(_refuse_jobs, str(tmp_path), numbers):
        assert "job_stage_setup" in said
        assert "gives a file another inode number or time when it is renamed" in said
        assert "write to the URL of the store behind the mount" in said


async def _refuse_commits(root: str) -> list[str]:
    said = []
    for number, mode in enumerate(MODES):
        for validate in (True, False):
            place = Path(root, f"{number}{validate}")
            server = fuse(place)
            write(place / "table", OLD)
            said.append(
                await refused_commit(
                    place / "table", f"job_{number}", mode, server.pid, validate=validate
                )
            )
    return said


@pytest.mark.full
def test_a_mount_that_renumbers_is_refused_by_the_commit(tmp_path: Path) -> None:
    """So it is for a job that another program or mount has set up, before the record exists."""
    for said in in_namespace(_refuse_commits, str(tmp_path)):
        assert "gives a file another inode number or time when it is renamed" in said
        assert "Nothing under " in said


async def _commit_unvalidated(root: str, mode: str) -> dict[str, str]:
    fuse(root, "below")
    dest = Path(root, "table")
    write(dest, OLD)
    job = committer(dest, validate=False)
    await job.setup_job(mode=Mode(mode))
    await run_task(job, 0, NEW)
    report = await job.commit_job(mode=Mode(mode))
    assert report.warnings == ()
    return visible(dest)


@pytest.mark.full
@pytest.mark.parametrize("mode", MODES)
def test_old_files_with_other_numbers_do_not_come_back(tmp_path: Path, mode: Mode) -> None:
    """A replaced file is not taken for one that was written late because its number changed."""
    assert in_namespace(_commit_unvalidated, str(tmp_path), mode.value) == AFTER[mode]


async def _forget(root: str, mode: str) -> list[Any]:
    server = fuse(root)
    said = []
    for begun in (False, True):
        dest = Path(root, f"table-{begun}")
        write(dest, OLD)
        faults = [Faults(Fault("rename", DeniedError, "day=2"))] if begun else []
        job = committer(dest, *faults, validate=False, job_id=f"job_{begun}")
        await job.setup_job(mode=Mode(mode))
        await run_task(job, 0, NEW)
        if begun:
            with pytest.raises(CommitError):
                await job.commit_job(mode=Mode(mode))
        server.send_signal(signal.SIGUSR2)
        again = committer(dest, validate=False, job_id=f"job_{begun}")
        with pytest.raises(CommitError):
            await again.commit_job(mode=Mode(mode))
        report = await again.rollback_job(force=True)
        said.append(
            [visible(dest), [path.removeprefix(f"{dest}/") for path in report.not_restored]]
        )
    return said


@pytest.mark.full
@pytest.mark.parametrize("mode", MODES)
def test_numbers_that_a_server_forgets(tmp_path: Path, mode: Mode) -> None:
    """No setup can find them: the commit stops, and a rollback names each file that it leaves."""
    for table, named in in_namespace(_forget, str(tmp_path), mode.value):
        assert OLD.items() <= table.items()
        assert table.keys() - OLD.keys() <= set(named)


async def _examine(root: str) -> list[list[str | bool | None]]:
    fuse(root, "rename")
    found = check_place(Address("file", "", f"{root}/table"), {}, write=True)
    return [[check.found, check.ok, check.remedy] async for check in found]


@pytest.mark.full
def test_the_doctor_says_it_first(tmp_path: Path) -> None:
    """``doctor --write`` renames a file as the setup of a job does, and names the remedy."""
    remedy = f"no job can be committed there: {ELSEWHERE}"
    assert ["changes the etag", False, remedy] in in_namespace(_examine, str(tmp_path))


# --- no links ------------------------------------------------------------------------------------


async def _refuse_without_links(root: str, links: str) -> list[str]:
    fuse(root, links=links, flags=False)
    dest = Path(root, "table")
    write(dest, OLD)
    said = [await refused_job(dest, mode, validate=None) for mode in MODES]
    assert not left(dest)
    return said


@pytest.mark.full
@pytest.mark.parametrize(
    "links, why",
    [
        ("EIO", "Input/output error from a hard link"),
        ("EPERM", "has neither hard links nor a rename that never replaces"),
        ("EOPNOTSUPP", "has neither hard links nor a rename that never replaces"),
    ],
)
def test_a_mount_without_links_is_refused_by_name(tmp_path: Path, links: str, why: str) -> None:
    """Where no rename refuses to replace either, the message says what is missing, and a remedy."""
    for said in in_namespace(_refuse_without_links, str(tmp_path), links):
        assert why in said
        assert "write to the URL of the store behind the mount" in said


# --- mounts that work ----------------------------------------------------------------------------


async def _commit_all(root: str, flags: str) -> None:
    fuse(root, flags=bool(flags))
    for mode in MODES:
        for end in ("commit", "resume", "rollback"):
            dest = Path(root, f"{mode.value}-{end}")
            write(dest, OLD)
            faults = [] if end == "commit" else [Faults(Fault("rename", DeniedError, "day=2"))]
            job = committer(dest, *faults)
            await job.setup_job(mode=mode)
            await run_task(job, 0, NEW)
            if end == "commit":
                await job.commit_job(mode=mode)
            else:
                with pytest.raises(CommitError):
                    await job.commit_job(mode=mode)
                again = committer(dest)
                await (again.resume_job if end == "resume" else again.rollback_job)(force=True)
            assert visible(dest) == (OLD if end == "rollback" else AFTER[mode])
            assert not left(dest)


@pytest.mark.full
@pytest.mark.parametrize("flags", ["flags", ""])
def test_a_mount_with_stable_numbers_is_as_a_disk(tmp_path: Path, flags: str) -> None:
    """Commit, resume and rollback work in each mode, with links in place of the kernel's flag."""
    in_namespace(_commit_all, str(tmp_path), flags)


# --- real mounts ---------------------------------------------------------------------------------


@contextmanager
def rclone(behind: Path, place: Path) -> Iterator[None]:
    """Mount a directory with rclone."""
    place.mkdir()
    command = ["rclone", "--config", "", "--cache-dir", f"{behind}-cache", "mount"]
    command += ["--vfs-cache-mode", "full", f":local:{behind}", str(place)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            while not os.path.ismount(place):
                if server.poll() is not None:
                    raise ForbiddenError("rclone cannot mount here")
                time.sleep(0.05)
            yield
        finally:
            server.terminate()


async def _refuse_rclone(root: str) -> list[str]:
    place, behind = Path(root, "mount"), Path(root, "behind")
    write(behind / "table", OLD)
    with rclone(behind, place):
        return [await refused_job(place / "table", mode, validate=False) for mode in MODES]


@pytest.mark.skipif(shutil.which("rclone") is None, reason="rclone is not installed")
@pytest.mark.full
def test_a_mount_of_rclone_is_refused(tmp_path: Path) -> None:
    """So it is with rclone itself, whichever of the two it lacks."""
    for said in in_namespace(_refuse_rclone, str(tmp_path)):
        assert "write to the URL of the store behind the mount" in said

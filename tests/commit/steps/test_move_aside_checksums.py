"""Checksums of Hadoop's beside files of the table: a job deletes none that is not its to delete."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from asynccommit.errors import CommitError, DeniedError, PreflightError
from asynccommit.options.job import Mode
from asynccommit.stores.policies.funnel import Call, Op
from tests.support.faults import Fault, Faults
from tests.support.jobs import committer, run_task

STALE = b"crc\0\0\0\2\0 of the gone one"
OLD = b"crc\0\0\0\2\0 of the old file"
FAILING = Fault("rename", DeniedError, "tasks/")


def everything(root: Path) -> dict[str, bytes]:
    """Return every file below a table, the job's own apart, whether or not listings show it."""
    files = [path for path in root.rglob("*") if path.is_file() and "_temporary" not in path.parts]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


async def test_a_foreign_file_named_as_a_checksum_stays(tmp_path: Path) -> None:
    """What only has the name of a checksum is no reason to refuse a file, and nobody deletes it."""
    (tmp_path / ".n.csv.crc").write_bytes(b"notes")
    job = committer(tmp_path)
    await job.setup_job()
    await run_task(job, 0, {"n.csv": "new"})
    await job.commit_job()

    assert (tmp_path / ".n.csv.crc").read_bytes() == b"notes"
    assert (tmp_path / "n.csv").read_bytes() == b"new"


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_TABLE])
async def test_a_foreign_file_stays_beside_a_replaced_one(tmp_path: Path, mode: Mode) -> None:
    """A file that only has the name of its checksum is neither moved aside nor deleted."""
    for notes in (b"notes", b"crc\0 and notes", b"crc\0\0\0\2\0 notes!!!!"):
        (tmp_path / "n.csv").write_bytes(b"old")
        (tmp_path / ".n.csv.crc").write_bytes(notes)
        job = committer(tmp_path, job_id=f"job-{len(notes)}", delete_target_files=True)
        await job.setup_job()
        await run_task(job, 0, {"n.csv": "new"})
        await job.commit_job(mode=mode)

        assert (tmp_path / ".n.csv.crc").read_bytes() == notes
        assert (tmp_path / "n.csv").read_bytes() == b"new"


@pytest.mark.parametrize("directory", ["", "day=1"])
async def test_a_stale_checksum_is_refused_before_anything_changes(
    tmp_path: Path, directory: str
) -> None:
    """Beside it Hadoop could not read the new file; the error names it, and what to do."""
    place = tmp_path / directory
    place.mkdir(exist_ok=True)
    (place / ".n.csv.crc").write_bytes(STALE)
    (place / ".other.csv.crc").write_bytes(STALE)
    job = committer(tmp_path)
    await job.setup_job()
    await run_task(job, 0, {f"{directory}/n.csv".lstrip("/"): "new"})
    before = everything(tmp_path)

    with pytest.raises(PreflightError, match=rf"{place}/\.n\.csv\.crc.*delete\.target\.files"):
        await job.commit_job()
    assert everything(tmp_path) == before

    (place / ".n.csv.crc").unlink()
    assert (await job.commit_job()).files == 1
    assert (place / ".other.csv.crc").read_bytes() == STALE


async def test_a_stale_checksum_goes_aside_where_that_is_allowed(tmp_path: Path) -> None:
    """It is deleted with what else was in the way, once the job is committed."""
    (tmp_path / ".n.csv.crc").write_bytes(STALE)
    job = committer(tmp_path, delete_target_files=True)
    await job.setup_job()
    await run_task(job, 0, {"n.csv": "new"})
    report = await job.commit_job()

    assert report.replaced == 1
    assert everything(tmp_path).keys() == {"n.csv", "_SUCCESS"}


@pytest.mark.parametrize("old", [{".n.csv.crc": STALE}, {"n.csv": b"old", ".n.csv.crc": OLD}])
async def test_a_rollback_brings_a_checksum_back(tmp_path: Path, old: dict[str, bytes]) -> None:
    """Stale or beside its file, it is there again, byte for byte."""
    for name, data in old.items():
        (tmp_path / name).write_bytes(data)
    job = committer(tmp_path, Faults(FAILING), delete_target_files=True)
    await job.setup_job()
    await run_task(job, 0, {"n.csv": "new", "m.csv": "new"})
    with pytest.raises(CommitError):
        await job.commit_job()
    assert everything(tmp_path) == {}

    await committer(tmp_path).rollback_job()
    assert everything(tmp_path) == old


async def test_a_checksum_goes_with_the_file_that_is_replaced(tmp_path: Path) -> None:
    """The new file is not left beside the checksum of the old one."""
    (tmp_path / "n.csv").write_bytes(b"old")
    (tmp_path / ".n.csv.crc").write_bytes(OLD)
    job = committer(tmp_path, Faults(FAILING), delete_target_files=True)
    await job.setup_job()
    await run_task(job, 0, {"n.csv": "new"})
    with pytest.raises(CommitError):
        await job.commit_job()
    report = await committer(tmp_path).resume_job()

    assert report.resumed
    assert everything(tmp_path).keys() == {"n.csv", "_SUCCESS"}


async def test_a_checksum_comes_back_if_its_file_was_changed_meanwhile(tmp_path: Path) -> None:
    """A file that is not the one of the plan stays where it is, with what is beside it."""
    (tmp_path / "n.csv").write_bytes(b"old")
    (tmp_path / ".n.csv.crc").write_bytes(OLD)

    class Changing:
        """Changes the file just before it is moved aside."""

        def around(self, call: Call) -> Call:
            async def seen(op: Op) -> Any:
                if op.name == "rename" and op.path == f"{tmp_path}/n.csv":
                    await asyncio.to_thread((tmp_path / "n.csv").write_bytes, b"changed")
                return await call(op)

            return seen

    job = committer(tmp_path, Changing(), delete_target_files=True)
    await job.setup_job()
    await run_task(job, 0, {"n.csv": "new"})
    with pytest.raises(CommitError, match="has changed or was replaced"):
        await job.commit_job()

    assert everything(tmp_path) == {"n.csv": b"changed", ".n.csv.crc": OLD}


async def test_a_mode_that_replaces_directories_takes_checksums_along(tmp_path: Path) -> None:
    """Old files go with their checksums, and come back with them."""
    (tmp_path / "day=1").mkdir()
    for name, data in {"n.csv": b"old", ".n.csv.crc": OLD, ".gone.crc": STALE}.items():
        (tmp_path / "day=1" / name).write_bytes(data)
    before = everything(tmp_path)
    job = committer(tmp_path, Faults(Fault("rename", DeniedError, "/new/in/")))
    await job.setup_job()
    await run_task(job, 0, {"day=1/n.csv": "new", "day=1/gone": "new"})
    with pytest.raises(CommitError):
        await job.commit_job(mode=Mode.REPLACE_PARTITIONS)
    await committer(tmp_path).rollback_job()

    assert everything(tmp_path) == before

"""Renaming: section 6.6 of the reference's catalogue, with a hundred files."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.meter import Progress
from asynccommit.commit.steps.rename_files import token_of
from asynccommit.errors import (
    CommitError,
    CommitUnknownError,
    DeniedError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreflightError,
)
from asynccommit.options.job import Mode
from tests.support.commits import At, Dies, Site, open_site
from tests.support.faults import Fault, Faults
from tests.support.jobs import JOB, committer, ids, left, run_task, visible, write

pytestmark = pytest.mark.usefixtures("files_alone")

FILES = {f"d{i % 10}/f{i:02}": str(i) for i in range(100)}


async def hundred(dest: Path, *policies: Faults, **options: Any) -> ManifestCommitter:
    """Return a job whose only task committed a hundred files."""
    job = committer(dest, *policies, **options)
    await job.setup_job()
    await run_task(job, 0, FILES)
    return job


async def test_one_rename_fails(tmp_path: Path) -> None:
    """The commit stops, says how far it came, keeps the rest, and writes no marker."""
    dest = tmp_path / "out"
    faults = Faults(Fault("rename", DeniedError, "/d3/f33", times=1))
    job = await hundred(dest, faults, report_directory=str(tmp_path / "reports"), workers=4)
    told: list[Progress] = []
    with pytest.raises(CommitError, match="files are at their destinations") as failed:
        await job.commit_job(on_progress=told.append)

    moved = visible(dest)
    assert failed.value.stage == "job_stage_rename_files"
    assert 0 < len(moved) < 100
    assert f"{len(moved)} files are at" in str(failed.value)
    assert moved.items() <= FILES.items()
    kept = [path for path in left(dest) if Path(dest, path).is_file() and "/f" in path]
    assert len(moved) + len(kept) == 100
    assert not (dest / "_SUCCESS").exists()
    assert {progress.stage for progress in told} >= {"job_stage_rename_files"}
    summary = json.loads((tmp_path / f"reports/summary-{JOB}.json").read_bytes())
    assert summary["success"] is False
    assert summary["iostatistics"]["counters"]["job_stage_rename_files.failures"] == 1
    assert summary["iostatistics"]["counters"]["commit_file_rename.failures"] == 1


async def test_abort_after_a_failed_commit_keeps_everything(tmp_path: Path) -> None:
    """Once a commit has begun an abort deletes nothing, so that it can be finished."""
    dest = tmp_path / "out"
    job = await hundred(dest, Faults(Fault("rename", DeniedError, "/d3/f33")))
    with pytest.raises(CommitError):
        await job.commit_job()
    before = left(dest)
    report = await job.abort_job("Spark says so")

    assert "is kept" in report.kept
    assert left(dest) == before


async def test_a_second_commit_finishes_the_first(tmp_path: Path) -> None:
    """A commit that failed half-way is finished by the next, and the first report stays."""
    dest = tmp_path / "out"
    reports = tmp_path / "reports"
    faults = Faults(Fault("rename", DeniedError, "/d3/f33", times=1))
    job = await hundred(dest, faults, report_directory=str(reports))
    with pytest.raises(CommitError, match="asynccommit resume"):
        await job.commit_job()
    first = (reports / f"summary-{JOB}.json").read_bytes()
    report = await job.commit_job()

    assert report.resumed
    assert report.files == len(visible(dest)) == 100
    assert (reports / f"summary-{JOB}.json").read_bytes() == first
    assert (reports / f"summary-{JOB}-2.json").exists()


async def test_a_lost_answer_is_not_guessed(tmp_path: Path) -> None:
    """A rename without an answer ends the job as unknown; nothing is cleaned."""
    dest = tmp_path / "out"
    job = await hundred(dest, Faults(Fault("rename", OutcomeUnknownError, "/d3/f33", after=True)))
    with pytest.raises(CommitUnknownError, match="unknown"):
        await job.commit_job()

    assert Path(job.layout.record).exists()


async def test_a_missing_source(tmp_path: Path) -> None:
    """A file that is gone since its task committed fails the job."""
    job = await hundred(tmp_path / "out")
    (Path(job.layout.task_attempt_dir(ids(0)[1])) / "d3/f33").unlink()
    with pytest.raises(CommitError) as failed:
        await job.commit_job()

    assert isinstance(failed.value.failures[0], NotFoundError)


async def test_a_missing_source_can_be_found_before(tmp_path: Path) -> None:
    """With ``asynccommit.check.sources`` the same is refused before anything changes."""
    job = await hundred(tmp_path / "out", check_sources=True)
    (Path(job.layout.task_attempt_dir(ids(0)[1])) / "d3/f33").unlink()
    with pytest.raises(PreflightError, match="d3/f33: missing, or not what its task committed"):
        await job.commit_job()

    assert visible(tmp_path / "out") == {}


@pytest.mark.parametrize("delete", [False, True])
async def test_existing_destinations(tmp_path: Path, delete: bool) -> None:
    """Existing files are refused before any rename, or replaced if the option says so."""
    dest = tmp_path / "out"
    write(dest, {"d3/f33": "old", "d4/other": "stays"})
    job = await hundred(dest, delete_target_files=delete)
    if delete:
        report = await job.commit_job()
        assert visible(dest) == {**FILES, "d4/other": "stays"}
        assert report.replaced == 1
    else:
        with pytest.raises(PreflightError, match="d3/f33: it exists already") as failed:
            await job.commit_job()
        assert isinstance(failed.value.failures[0], ExistsError)
        assert visible(dest) == {"d3/f33": "old", "d4/other": "stays"}


async def test_a_destination_that_is_a_directory(tmp_path: Path) -> None:
    """A directory where a file is to go is as much in the way as a file."""
    dest = tmp_path / "out"
    (dest / "d3/f33").mkdir(parents=True)
    job = await hundred(dest)
    with pytest.raises(PreflightError, match="d3/f33: it exists already"):
        await job.commit_job()


async def test_a_file_that_came_after_preflight_is_not_replaced(tmp_path: Path) -> None:
    """A stranger's file that appears during the commit stops it, and is left alone."""
    dest = tmp_path / "out"
    job = await hundred(dest)
    real = job.store.mkdir

    async def intrude(path: str, **options: bool) -> None:
        await real(path, **options)
        if path.endswith("/d3"):
            await asyncio.to_thread(write, dest, {"d3/f33": "stranger"})

    job.store.mkdir = intrude  # type: ignore[method-assign]
    with pytest.raises(CommitError) as failed:
        await job.commit_job()

    assert isinstance(failed.value.failures[0], ExistsError)
    assert visible(dest)["d3/f33"] == "stranger"


async def test_files_moved_aside_survive_a_failure(tmp_path: Path) -> None:
    """What was to be replaced is kept when the commit fails: nothing is lost."""
    dest = tmp_path / "out"
    write(dest, {"d3/f33": "old"})
    job = await hundred(
        dest, Faults(Fault("rename", DeniedError, "tasks/", skip=5)), delete_target_files=True
    )
    with pytest.raises(CommitError):
        await job.commit_job()

    assert (Path(job.layout.epoch_dir(1)) / "aside/in/d3/f33").read_text() == "old"


def test_the_token_of_a_rename_is_its_own() -> None:
    """Whoever resumes a commit computes the same UUID; another commit, or pair, has another."""
    token = token_of(b"epoch", "/t/a", "/b")

    assert str(UUID(token)) == token == token_of(b"epoch", "/t/a", "/b")
    others = [(b"later", "/t/a", "/b"), (b"epoch", "/t/a/", "b"), (b"epoch", "/t/b", "/a")]
    assert len({token, *(token_of(*other) for other in others)}) == 4


# --- after a crash ----------------------------------------------------------------------------


async def test_the_tokens_are_the_same_for_every_owner(tmp_path: Path) -> None:
    """Whoever resumes marks a rename as the first owner did, so that a late one is known."""
    site = await open_site("sim", tmp_path)
    faults = Faults()
    await site.ready({"a": "1", "b": "2"})
    await site.cut_commit(Dies("rename", "/tasks/", skip=1), faults)
    await site.job(faults).resume_job()
    said = json.loads(site.tree()["/table/_SUCCESS"] or "")["diagnostics"]
    sent = [op for op in faults.seen if op.name == "rename" and "/tasks/" in op.path]

    assert (said["asynccommit.epoch"], len(sent)) == ("2", 2)
    for op in sent:
        commit = said["asynccommit.commit"].encode()
        assert op.options["token"] == token_of(commit, op.args[0], op.args[1])


async def test_a_directory_that_another_job_removes(site: Site) -> None:
    """A directory that was empty and is gone when its first file comes is made again."""
    site.place({"/table/day=1/": ""})
    job = site.job()

    async def remove() -> None:
        await job.store.delete(site.path("/table/day=1"))

    await (await site.ready({"day=1/a": "1"}, At("rename", "/tasks/", remove))).commit_job()

    assert site.files() == {"day=1/a": "1"}


async def test_files_that_wait_are_not_counted(site: Site) -> None:
    """An error after the swap counts what is in its place, and nothing else."""
    site.place({"/table/day=1/old": "o", "/table/day=2/old": "o"})
    files = {"day=1/a": "1", "day=2/b": "2", "top": "3"}
    job = await site.ready(files, Faults(Fault("rename", DeniedError, "/table/top")), workers=1)
    with pytest.raises(CommitError, match="; 2 files are at"):
        await job.commit_job(mode=Mode.REPLACE_TABLE)

    assert site.files() == {"day=1/a": "1", "day=2/b": "2"}


async def test_a_source_that_is_gone_and_its_place_empty(site: Site) -> None:
    """A file that is neither here nor there fails every try, and is named."""
    await site.cut({"a": "1", "b": "2"}, Dies("rename", "/tasks/"), workers=1)
    source = next(path for path in site.left() if "/tasks/" in path and path.endswith("/b"))
    await site.job().store.delete(site.path(source))
    for _ in range(2):
        with pytest.raises(CommitError, match="/b") as failed:
            await site.job().resume_job()
        assert isinstance(failed.value.failures[0], NotFoundError)
    await site.job().rollback_job()

    assert site.files() == {}

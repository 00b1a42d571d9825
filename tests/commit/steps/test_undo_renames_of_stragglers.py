"""A rollback ends as it should, whatever stragglers write through open directories."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.errors import CommitError, DeniedError
from asynccommit.options.job import Mode
from tests.crash.open_directories import Handle
from tests.support.faults import Before, Fault, Faults
from tests.support.jobs import committer, ids, left, run_task, visible, write

OLD = {"day=1/a": "old", "day=4/z": "old"}
NEW = {"day=1/b": "1", "day=2/c": "2"}


async def cut_short(dest: Path, mode: Mode) -> ManifestCommitter:
    """Return the job of a commit that failed when most of it was done."""
    write(dest, OLD)
    job = committer(dest)
    await job.setup_job()
    await run_task(job, 0, NEW)
    fault = Faults(Fault("rename", DeniedError, f"{dest}/day=2/c"))
    if mode is not Mode.APPEND:
        fault = Faults(Fault("put", DeniedError, "/commit-outcome.json"))
    with pytest.raises(CommitError):
        await committer(dest, fault, on_failure="keep").commit_job(mode=mode)
    return job


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Handle]:
    """Return a directory of the table, which a straggler has open."""
    write(tmp_path, OLD)
    with closing(Handle(tmp_path / "day=1", "")) as handle:
        yield handle


async def test_a_name_that_a_straggler_takes_again_keeps_no_file_in_the_table(
    tmp_path: Path,
) -> None:
    """A file at the source of one that was moved is not the job's if it is another."""
    job = await cut_short(tmp_path, Mode.APPEND)
    write(Path(job.layout.tasks_dir, ids(0)[1]), {"day=1/b": "stray"})
    report = await job.rollback_job()

    assert (visible(tmp_path), report.not_restored, left(tmp_path)) == (OLD, (), [])


async def test_a_file_of_a_directory_that_comes_back_by_its_files_comes_back_late(
    tmp_path: Path, old: Handle
) -> None:
    """A file written to the directory while its files are restored is restored too."""
    await cut_short(tmp_path, Mode.REPLACE_TABLE)
    write(tmp_path, {"day=1/other": "other"})

    async def late() -> None:
        await asyncio.to_thread(old.create, "late", "late")

    await committer(tmp_path, Before("rename", "/aside/in/day=1/a", late)).rollback_job()

    assert visible(tmp_path) == OLD | {"day=1/other": "other", "day=1/late": "late"}
    assert left(tmp_path) == []


async def test_a_file_that_a_straggler_writes_twice_is_displaced_twice(
    tmp_path: Path, old: Handle
) -> None:
    """A rollback that is repeated keeps both, and ends."""
    await cut_short(tmp_path, Mode.REPLACE_TABLE)
    write(tmp_path, {"day=1/other": "other"})
    old.create("other", "first")
    fault = Faults(Fault("rename", DeniedError, "/aside/in/day=4"))
    with pytest.raises(CommitError):
        await committer(tmp_path, fault).rollback_job()
    old.create("other", "second")
    await committer(tmp_path).rollback_job()

    assert visible(tmp_path) == OLD | {"day=1/other": "other"}
    kept = list(tmp_path.glob("_displaced/**/other*"))
    assert sorted(path.read_text() for path in kept) == ["first", "second"]
    assert left(tmp_path) == []


async def test_a_straggler_does_not_keep_a_rollback_from_being_repeated(tmp_path: Path) -> None:
    """Its file in the emptied directory of a task stays there, and is deleted with it."""
    job = await cut_short(tmp_path, Mode.APPEND)
    task = Path(job.layout.tasks_dir, ids(0)[1], "day=2")
    with closing(Handle(task, "")) as handle:
        again = partial(committer, tmp_path, on_failure="keep")
        with pytest.raises(CommitError):
            await again(Faults(Fault("mkdir", DeniedError, "/undone"))).rollback_job()
        assert handle.create("c", "stray")
        await again().rollback_job()

    assert (visible(tmp_path), left(tmp_path)) == (OLD, [])

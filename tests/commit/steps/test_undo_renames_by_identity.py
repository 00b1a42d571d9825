"""What a rollback takes back on a local disk: the job's very files, and what stays is named."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from asynccommit.errors import CommitError
from asynccommit.options.job import OnFailure
from asynccommit.stores.local import moves
from asynccommit.testing.models.invariants import restored
from tests.support.commits import DEST, JOB, At, Dies, Site, open_site

FILES = {"a": "one", "day=1/b": "two"}
_TRIES, _FILES = 10, 300


@pytest.fixture
async def disk(tmp_path: Path) -> AsyncIterator[Site]:
    """An empty local directory."""
    made = await open_site("local", tmp_path / "root")
    yield made
    await made.close()


async def cut(site: Site, job_id: str = JOB) -> None:
    """Leave a commit behind that died with all its files in place."""
    await site.ready(FILES, job_id=job_id)
    with suppress(BaseException):
        await site.job(Dies("put", "00/commit-outcome"), job_id=job_id).commit_job()


def make_numbered(path: Path, directory: Path, text: str, number: int) -> bool:
    """Make files in a directory until one has an inode number, and move that to ``path``."""
    made = [directory / f"try{index}" for index in range(_FILES)]
    for other in made:
        other.write_text(text)
        if other.stat().st_ino == number:
            other.rename(path)
            break
    for other in made:
        other.unlink(missing_ok=True)
    return path.exists()


async def cut_and_replace(site: Site, text: str) -> str:
    """Leave a commit behind one of whose files is a stranger's now, with the same inode number.

    Returns the job's id. Skips where the filesystem does not use a number again at once.
    """
    path = Path(site.path("/table/a"))
    for index in range(_TRIES):
        await cut(site, f"job{index}")
        number = path.stat().st_ino
        path.unlink()
        job = site.job(job_id=f"job{index}")
        directory = Path(job.layout.task_attempt_dir(job.layout.ids(0)[1]))  # whose inodes it has
        if make_numbered(path, directory, text, number):
            return f"job{index}"
        await job.rollback_job()
    pytest.skip("this filesystem does not use the number of a deleted file again at once")


def append(path: Path, text: str) -> None:
    """Write more to a file, in place."""
    with path.open("a") as file:
        file.write(text)


def replace(path: Path, text: str) -> None:
    """Put another file in the place of one, as careful writers do."""
    path.with_name("new").write_text(text)
    path.with_name("new").rename(path)


@pytest.mark.parametrize("text", ["one", "of another size"])
async def test_a_file_that_got_the_number_of_the_jobs_stays(disk: Site, text: str) -> None:
    """A stranger's file in the place and with the inode number of the job's is not deleted."""
    job_id = await cut_and_replace(disk, text)
    path = Path(disk.path("/table/a"))
    report = await disk.job(job_id=job_id).rollback_job()

    assert disk.files() == {"a": text}
    assert list(report.not_restored) == [str(path)]
    assert [warning for warning in report.warnings if str(path) in warning]
    assert report.files == 1


async def test_a_file_that_was_changed_in_place_is_taken_back(disk: Site) -> None:
    """A file of the job that a straggler writes on is the job's still, as old as it is."""
    await cut(disk)
    append(Path(disk.path("/table/a")), "more")
    report = await disk.job().rollback_job()

    assert disk.files() == {}
    assert (report.files, report.not_restored) == (2, ())
    assert "did not match its manifest" in report.warnings[0]


async def test_a_file_of_unknown_age_that_was_changed_stays(
    disk: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the disk does not say how old a file is, a changed one stays and is named."""
    await cut(disk)
    append(Path(disk.path("/table/a")), "more")
    monkeypatch.setattr("asynccommit.stores.local.files.made_at", lambda path: 0)
    report = await disk.job().rollback_job()

    assert disk.files() == {"a": "onemore"}
    assert list(report.not_restored) == [disk.path("/table/a")]


async def test_a_file_that_replaces_the_jobs_in_the_last_moment_stays(disk: Site) -> None:
    """What takes the place of the job's file between the look and the move is put back."""
    await cut(disk)
    path = Path(disk.path("/table/a"))

    async def late() -> None:
        await asyncio.to_thread(replace, path, "theirs")

    at = At("rename", f"{disk.path('/table/a')} ", late)
    report = await disk.job(at, workers=1).rollback_job()

    assert at.act is None
    assert disk.files() == {"a": "theirs"}
    assert report.files == 1


async def test_a_link_to_a_source_stays(disk: Site) -> None:
    """A file that another has put in the place of one that was never moved is not the job's."""
    disk.place({"/table/theirs": "t"})
    job = disk.job()
    await job.setup_job()
    task_id, attempt_id = job.layout.ids(0)
    base = Path(await job.setup_task(attempt_id))
    os.link(disk.path("/table/theirs"), base / "a")
    await job.commit_task(task_id, attempt_id)
    with suppress(BaseException):
        await disk.job(Dies("rename", "/tasks/")).commit_job()
    Path(disk.path("/table/theirs")).rename(disk.path("/table/a"))
    report = await disk.job().rollback_job()

    assert disk.files() == {"a": "t"}
    assert list(report.not_restored) == [disk.path("/table/a")]


@pytest.mark.parametrize("damage", ["replaced", "a directory", "gone"])
async def test_what_stays_is_not_said_to_be_as_before(disk: Site, damage: str) -> None:
    """The error of a commit that was rolled back claims what is so, and names what is not."""
    await disk.ready(FILES)
    before = disk.world.tree()
    path = Path(disk.path("/table/a"))

    def harm() -> None:
        if damage == "replaced":
            replace(path, "theirs")
            return
        path.unlink()
        if damage == "a directory":
            path.mkdir()

    at = At("rename", f" {path}", lambda: asyncio.to_thread(harm), after=True)
    job = disk.job(at, on_failure=OnFailure.ROLLBACK)
    with pytest.raises(CommitError) as caught:
        await job.commit_job()
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    changed = restored(before, disk.world.tree(), [f"{DEST}/_temporary"]) != []

    assert at.act is None
    assert changed is (damage != "gone")
    assert ("is in its former state" in text and "differ from" not in text) is not changed
    assert not changed or f"{path} " in text


@pytest.mark.parametrize("place", ["table/loop", "attempt/loop"])
async def test_a_link_that_leads_to_itself_ends_no_rollback(disk: Site, place: str) -> None:
    """A loop is a foreign name: everything else is taken back, and one in the table stays."""
    disk.place({"/table/old": "o"})
    await cut(disk)
    (attempt,) = Path(disk.job().layout.tasks_dir).iterdir()
    name = place.removeprefix("attempt").lstrip("/")
    loop = attempt / name if place.startswith("attempt") else Path(disk.path(f"/{place}"))
    if loop.is_dir():
        shutil.rmtree(loop)
    loop.symlink_to(loop.name)
    assert (await disk.job().rollback_job()).rolled_back

    there = {str(path.relative_to(disk.path(DEST))) for path in Path(disk.path(DEST)).rglob("*")}
    assert there == {"old", *([place.removeprefix("table/")] if "table" in place else [])}


async def test_a_link_that_leads_to_itself_ends_no_abort(disk: Site) -> None:
    """The abort of a job deletes a loop with the task attempt that it is in."""
    job = await disk.ready(FILES)
    (attempt,) = Path(job.layout.tasks_dir).iterdir()
    (attempt / "loop").symlink_to("loop")
    await job.abort_job()

    assert not Path(job.layout.job_dir).exists()


@pytest.mark.parametrize("ending", ["resume", "rollback"])
@pytest.mark.parametrize("links", [False, True], ids=["renameat2", "links"])
async def test_a_move_by_link_that_died_between_its_calls_ends_with_one_name(
    disk: Site, ending: str, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that a crash left under both names keeps one, which a rollback names in its report."""
    if links:
        monkeypatch.setattr(moves, "move_new", moves.move_by_link)
    await cut_between_link_and_unlink(disk)
    job, name = disk.job(), disk.path("/table/day=1/b")
    if ending == "resume":
        await job.resume_job()
        assert disk.files() == FILES
    else:
        assert (await job.rollback_job()).not_restored == (name,)
        assert disk.files() == {"day=1/b": "two"}

    assert os.stat(name).st_nlink == 1
    assert not Path(job.layout.job_dir).exists()


async def cut_between_link_and_unlink(site: Site) -> None:
    """Leave a commit behind that died as the last of its files had both its names."""
    await site.ready(FILES)
    with suppress(BaseException):
        await site.job(Dies("put", "00/commit-outcome")).commit_job()
    (attempt,) = Path(site.job().layout.tasks_dir).iterdir()
    (attempt / "day=1").mkdir(exist_ok=True)
    os.link(site.path("/table/day=1/b"), attempt / "day=1/b")

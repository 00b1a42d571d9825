"""Links where a job has its directories: none is deleted, and nothing behind one is."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.by_rename.file_output_v1 import FileV1Committer
from asynccommit.commit.layouts.file_output import FileLayout
from asynccommit.engine import BulkError, move_tree, resume, rollback
from asynccommit.errors import (
    CommitError,
    CommittedError,
    DeniedError,
    PreconditionError,
    PreflightError,
)
from asynccommit.options.job import Mode, Options
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Policy, Wrapped
from asynccommit.stores.urls import Address
from tests.support.faults import Before, Fault, Faults, apart
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


def tree(root: Path) -> dict[str, str]:
    """Return every file below, with its content."""
    return {str(p.relative_to(root)): p.read_text() for p in root.rglob("*") if p.is_file()}


async def prepared(tmp_path: Path, *, etags: bool) -> ManifestCommitter:
    """Return a job with a committed task, next to a directory of another user's files.

    Without ``etags`` its manifest is as Hadoop writes it.
    """
    dest = tmp_path / "table"
    write(dest, {"day=1/a": "old"})
    (tmp_path / "private").mkdir()
    write(tmp_path / "private", PRIVATE)
    job = committer(dest)
    await job.setup_job()
    await run_task(job, 0, NEW)
    (path,) = Path(job.layout.manifests_dir).iterdir()
    manifest = json.loads(path.read_bytes())
    for entry in manifest["files"] if not etags else ():
        del entry["e"]
    path.write_text(json.dumps(manifest))
    return job


NEW = {"day=1/a": "1", "day=2/b": "2", "day=3/c": "3", "day=3/d": "4"}
PRIVATE = {f"{top}{name}": "s" for top in ("", "in/", "table/") for name in ("a", "b", "c", *NEW)}
"""Names that a job finds behind any link to them, of files as long as its own."""
EPOCH, TASK = "{attempt}/commit-epoch-000001", "{attempt}/tasks/{task}"


class Exchange:
    """A policy that puts a link in the place of a directory before a request.

    Args:
        path: the directory; it need not exist.
        target: what the link leads to.
        before: the name of the request, and a part of its paths.
    """

    def __init__(self, path: Path, target: Path, before: tuple[str, str]) -> None:
        self.path, self.kept = path, target.with_name("kept")
        self._target = target
        self.policy = Before(*before, self._strike)
        self.strikes = 0

    async def _strike(self) -> None:
        self.strikes += 1
        await asyncio.to_thread(self.put)

    def put(self) -> None:
        """Put the link there, and the directory aside."""
        if self.path.exists():
            self.path.rename(self.kept)
        self.path.symlink_to(self._target)

    def back(self, top: Path) -> None:
        """Undo it as a person does who has read the error: the link may have been moved."""
        for link in [path for path in top.rglob("*") if path.is_symlink()]:
            link.unlink()
            if self.kept.exists():
                self.kept.rename(link)


def filled(place: str, job: ManifestCommitter) -> Path:
    """Return the path of a place of a job."""
    attempt, dest = job.layout.attempt_dir, job.layout.dest.path
    return Path(dest, place.format(attempt=attempt, task=ids(0)[1]))


@pytest.mark.sample(8)
@pytest.mark.parametrize("etags", [True, False])
@pytest.mark.parametrize("on_failure", ["keep", "rollback"])
@pytest.mark.parametrize(
    "place, before",
    [
        (TASK, ("rename", "/tasks/")),
        (f"{TASK}/day=2", ("rename", "/tasks/")),
        (f"{TASK}/day=3", ("rename", "/day=3/d")),
        ("day=1", ("rename", "/tasks/")),
        ("day=2", ("mkdir", "/day=2")),
        ("day=3", ("rename", "/day=3/d")),
        (f"{EPOCH}/aside", ("rename", "/aside/")),
        (f"{EPOCH}/aside", ("rename", "/tasks/")),
        (f"{EPOCH}/aside/in", ("rename", "/tasks/")),
        ("{attempt}/manifests", ("mkdir", "/day=2")),
    ],
)
async def test_a_link_that_comes_in_the_middle_of_a_commit(
    tmp_path: Path, place: str, before: tuple[str, str], on_failure: str, etags: bool
) -> None:
    """It is not followed, and the job ends once the link that the error names is gone."""
    job = await prepared(tmp_path, etags=etags)
    dest, private = tmp_path / "table", tmp_path / "private"
    link = Exchange(filled(place, job), private, before)
    run = partial(committer, dest, delete_target_files=True, on_failure=on_failure)
    (answer,) = await asyncio.gather(run(link.policy).commit_job(), return_exceptions=True)

    assert link.strikes == 1
    assert tree(private) == PRIVATE
    assert "s" not in visible(dest).values()
    if isinstance(answer, BaseException):
        assert isinstance(answer, CommitError)
        assert str(link.path) in str(answer)
        link.back(dest)
        if list(dest.glob("_temporary/*/*/commit-epoch-*")):
            await run().resume_job()
    assert visible(dest) in (NEW, {"day=1/a": "old"})
    assert tree(private) == PRIVATE


async def interrupted(tmp_path: Path, *, etags: bool) -> ManifestCommitter:
    """Return a job whose commit has moved an old file aside and then failed."""
    await prepared(tmp_path, etags=etags)
    dest = tmp_path / "table"
    faults = Faults(Fault("rename", DeniedError, f" {dest}/day=2/b"))
    with pytest.raises(CommitError):
        await committer(dest, faults, delete_target_files=True).commit_job()
    return committer(dest, delete_target_files=True)


@pytest.mark.sample(8)
@pytest.mark.parametrize("etags", [True, False])
@pytest.mark.parametrize("end", ["resume", "rollback"])
@pytest.mark.parametrize(
    "place",
    [
        EPOCH,
        f"{EPOCH}/aside",
        f"{EPOCH}/aside/in",
        f"{EPOCH}/aside/in/day=1",
        TASK,
        f"{TASK}/day=2",
        "day=1",
        "day=2",
    ],
)
async def test_a_link_that_comes_between_crash_and_recovery(
    tmp_path: Path, place: str, end: str, etags: bool
) -> None:
    """It is not followed; the error names it, and once it is gone the recovery ends."""
    job = await interrupted(tmp_path, etags=etags)
    dest, private = tmp_path / "table", tmp_path / "private"
    link = Exchange(filled(place, job), private, ("", ""))
    link.put()
    recover = job.resume_job if end == "resume" else job.rollback_job
    (answer,) = await asyncio.gather(recover(), return_exceptions=True)

    assert tree(private) == PRIVATE
    assert "s" not in visible(dest).values()
    if isinstance(answer, BaseException):
        assert isinstance(answer, CommitError)
        assert "is a link" in str(answer)
        link.back(dest)
        await getattr(committer(dest, delete_target_files=True), f"{end}_job")()
        assert left(dest) == []
    assert visible(dest) == (NEW if end == "resume" else {"day=1/a": "old"})
    assert tree(private) == PRIVATE


@pytest.mark.parametrize("place", ["aside/in/day=1", "new/in/day=1", "new/in"])
async def test_a_link_in_the_place_of_a_partition_that_is_moved(tmp_path: Path, place: str) -> None:
    """It becomes no partition, not by a commit and not by its rollback."""
    job = await prepared(tmp_path, etags=True)
    dest, private = tmp_path / "table", tmp_path / "private"
    link = Exchange(filled(f"{EPOCH}/{place}", job), private, ("rename", f" {dest}/day=1"))
    commit = committer(dest, link.policy, on_failure="rollback").commit_job
    (answer,) = await asyncio.gather(commit(mode=Mode.REPLACE_PARTITIONS), return_exceptions=True)

    assert link.strikes == 1
    assert not [path for path in dest.iterdir() if path.is_symlink()]
    if isinstance(answer, BaseException):
        link.back(dest)
        if list(dest.glob("_temporary/*/*/commit-epoch-*")):
            await committer(dest).resume_job()
    assert visible(dest) in (NEW, {"day=1/a": "old"})
    assert tree(private) == PRIVATE


@pytest.mark.parametrize("end", ["resume", "rollback"])
async def test_the_next_job_follows_no_link_of_an_interrupted_one(tmp_path: Path, end: str) -> None:
    """Its set-up ends in an error that names the link, if it is to settle what it finds."""
    job = await interrupted(tmp_path, etags=False)
    dest, private = tmp_path / "table", tmp_path / "private"
    link = Exchange(filled(f"{EPOCH}/aside/in", job), private, ("", ""))
    link.put()
    with pytest.raises(CommitError, match="/aside/in is a link"):
        await committer(dest, job_id=OTHER, on_unfinished=end).setup_job()
    assert tree(private) == PRIVATE
    assert "s" not in visible(dest).values()
    link.back(dest)
    with suppress(CommittedError):  # this job may be the same one, run again
        await committer(dest, job_id=OTHER, on_unfinished=end).setup_job()
    assert visible(dest) == (NEW if end == "resume" else {"day=1/a": "old"})


def opened(*policies: Policy) -> Wrapped:
    """Return a local store that knows its URL."""
    store = Wrapped(LocalStore(), *apart(policies))
    store.address = Address("file", "", "/")
    return store


@pytest.mark.parametrize("place", ["in", "in/d", "out", "out/d"])
async def test_a_move_with_a_journal_follows_no_link_when_it_goes_on_or_back(
    tmp_path: Path, place: str
) -> None:
    """Nothing of what is behind the link is moved, and nothing is moved there."""
    private, path = tmp_path / "private", tmp_path / place
    private.mkdir()
    write(private, PRIVATE)
    write(tmp_path, {f"in/{name}": f"in/{name}" for name in ("a", "b", "d/a", "d/b")})
    faults = Faults(Fault("rename", DeniedError, f" {tmp_path}/out/d/b"))
    with pytest.raises(BulkError):
        await move_tree(opened(faults), f"{tmp_path}/in", f"{tmp_path}/out", journal=tmp_path / "j")
    link = Exchange(path, private, ("", ""))
    link.put()
    for settle in (resume, rollback):
        with pytest.raises((BulkError, PreflightError), match=f"{path} is a link"):
            await settle(opened(), tmp_path / "j")
        assert tree(private) == PRIVATE
    link.back(tmp_path)
    await rollback(opened(), tmp_path / "j")
    assert tree(tmp_path / "in") == {name: f"in/{name}" for name in ("a", "b", "d/a", "d/b")}

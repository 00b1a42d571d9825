"""Taking a commit back: exactly, wherever it was cut short, and nothing that is another's."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from asynccommit.errors import CommitError, CommittedError, DeniedError, OwnedError
from asynccommit.options.job import Mode
from asynccommit.results import JobState
from tests.support.commits import DEST, OTHER, At, Dies, Site, open_site, paths_of, request_of
from tests.support.crashes import LocalWorld
from tests.support.faults import Fault, Faults

FILES = {
    "day=1/a": "1",
    "day=1/hour=1/b": "2",
    "new/deep/c": "3",
    "top": "4",
    "empty/deeper/": "",
}
OLD = {
    "/table/day=1/old": "o",
    "/table/day=1/.kept": "k",
    "/table/day=1/bare/": "",
    "/table/day=2/old": "p",
    "/table/loose": "l",
    "/table/_SUCCESS": "",
    "/table/_notes/n": "n",
    "/beside/file": "b",
}
IN_THE_WAY = {"/table/top": "in the way", "/table/new": "a file", "/table/day=1/a": "old"}


async def dying(act: Awaitable[object]) -> None:
    """Await what a process does that dies on the way."""
    with suppress(BaseException):
        await act


def written(site: Site) -> dict[str, str | None]:
    """Return everything but the work of jobs."""
    return site.tree(f"{DEST}/_temporary")


@pytest.mark.sample(9)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("name, match", [("rename", "/table/"), ("mkdir", "/table/"), ("put", "")])
@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS])
async def test_everything_is_as_it_was(
    site: Site, mode: Mode, name: str, match: str, after: bool
) -> None:
    """The tree after a rollback is the tree before the job, wherever the commit was cut short."""
    site.place(OLD)
    before = site.tree()
    partitions = mode is Mode.REPLACE_PARTITIONS
    files = {name: FILES[name] for name in FILES if "=" in name or not partitions}
    for skip in range(50):
        at = Dies(name, match, skip=skip, after=after)
        await site.ready(files, job_id=f"job{skip}")
        await dying(site.job(at, workers=2, job_id=f"job{skip}").commit_job(mode=mode))
        try:
            await site.job(job_id=f"job{skip}").rollback_job()
        except CommittedError:
            break
        assert site.tree() == before, skip

    assert skip > 0


@pytest.mark.parametrize("skip", range(8))
async def test_what_was_in_the_way_comes_back(site: Site, skip: int) -> None:
    """Files that were moved aside for files or directories of the job are there again."""
    site.place(IN_THE_WAY)
    before = site.tree()
    at = Dies("rename", "", skip=skip)
    await site.ready(FILES)
    await dying(site.job(at, workers=1, delete_target_files=True).commit_job())
    if "/table/_SUCCESS" not in site.tree():
        await site.job().rollback_job()
        assert site.tree() == before


async def test_a_directory_with_a_long_name_gives_way_to_a_file(site: Site) -> None:
    """Where it is moved its name is no longer: a file system takes 255 bytes."""
    name = "n" * 250
    site.place({f"{DEST}/{name}": "in the way"})
    before = site.tree()
    faults = Faults(Fault("put", DeniedError, "00/commit-outcome", times=1))
    job = await site.ready({f"{name}/c": "3"}, faults, delete_target_files=True)
    with pytest.raises(CommitError):
        await job.commit_job()
    await site.job().rollback_job()

    assert site.tree() == before


async def test_what_was_written_to_while_it_was_aside_comes_back(tmp_path: Path) -> None:
    """Somebody who has the old file open goes on writing: the rollback puts it back as it is."""
    site = await open_site("local", tmp_path / "root")
    site.place({"/table/top": "old"})
    file = os.open(site.path("/table/top"), os.O_WRONLY | os.O_APPEND)
    await site.ready(FILES)
    dies = Dies("put", "commit-outcome")
    await dying(site.job(dies, delete_target_files=True).commit_job())
    assert site.files()["top"] == "4"
    os.write(file, b" and more")
    os.close(file)
    await site.job().rollback_job()

    assert site.files() == {"top": "old and more"}
    await site.close()


async def test_the_destination_goes_if_the_job_made_it(site: Site) -> None:
    """Nothing is left of a table that the job made."""
    before = site.tree()
    job = await site.ready(FILES, Faults(Fault("put", DeniedError, "00/commit-outcome", times=1)))
    with pytest.raises(CommitError):
        await job.commit_job()
    assert site.files() != {}
    report = await site.job().rollback_job()

    assert (report.rolled_back, report.files) == (True, 4)
    assert site.tree() == before


async def test_the_destination_stays_if_it_was_there(site: Site) -> None:
    """An empty table is not the job's to remove."""
    site.place({"/table/": ""})
    job = await site.ready(FILES, Faults(Fault("put", DeniedError, "00/commit-outcome", times=1)))
    with pytest.raises(CommitError):
        await job.commit_job()
    await site.job().rollback_job()

    assert site.tree() == {DEST: None}


async def test_the_report(site: Site) -> None:
    """It says how many files were taken back, and how many things were put back."""
    site.place(OLD)
    fault = Fault("put", DeniedError, "00/commit-outcome", times=1)
    job = await site.ready(FILES, Faults(fault))
    with pytest.raises(CommitError):
        await job.commit_job(mode=Mode.REPLACE_TABLE)
    report = await site.job().rollback_job()

    assert (report.outcome, report.files, report.restored) == ("rolled back", 4, 4)


async def test_files_at_the_tables_own_level(site: Site) -> None:
    """A job all of whose files are in the table itself is taken back like any other."""
    site.place({"/table/old": "o"})
    before = site.tree()
    await cut(site, {"a": "1", "b": "2"})
    report = await site.job().rollback_job()

    assert report.files == 2
    assert site.tree() == before


async def test_files_outside_alone(site: Site) -> None:
    """So is one whose files are all elsewhere."""
    site.place({"/elsewhere/old": "o"})
    job = site.job(Faults(Fault("put", DeniedError, "00/commit-outcome", times=1)))
    await job.setup_job()
    task = await site.task(job, 0, {}, {"/elsewhere/a": "1", "/elsewhere/q/b": "2"})
    with pytest.raises(CommitError):
        await job.commit_job([task])
    report = await site.job(allow_outside_destination=True).rollback_job()

    assert report.files == 2
    assert site.tree() == {"/elsewhere": None, "/elsewhere/old": "o"}


# --- strangers --------------------------------------------------------------------------------


async def cut(site: Site, files: Mapping[str, str], mode: Mode = Mode.APPEND) -> None:
    """Leave a commit behind that failed when all files were in their places."""
    job = await site.ready(files, Faults(Fault("put", DeniedError, "00/commit-outcome", times=1)))
    with pytest.raises(CommitError):
        await job.commit_job(mode=mode)


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_TABLE])
async def test_files_of_others_stay(site: Site, mode: Mode) -> None:
    """What others have written into the job's directories stays, and so do these."""
    site.place(OLD)
    before = written(site)
    await cut(site, FILES, mode)
    theirs = {"/table/day=1/theirs": "s", "/table/new/deep/theirs": "t", "/table/theirs": "u"}
    site.place(theirs)
    await site.job().rollback_job()

    assert written(site) == before | theirs | {"/table/new": None, "/table/new/deep": None}


async def test_a_directory_without_files_in_what_is_restored_into_others(site: Site) -> None:
    """Also what is put back into a directory that others have filled is whole."""
    site.place({"/table/day=1/bare/": "", "/table/day=1/old": "o"})
    await cut(site, {"day=1/a": "1"}, Mode.REPLACE_TABLE)
    site.place({"/table/day=1/theirs": "s"})
    await site.job().rollback_job()

    assert site.tree()["/table/day=1/old"] == "o"
    assert "/table/day=1/bare" in site.tree()


async def test_a_file_of_another_in_the_place_of_an_old_one(site: Site) -> None:
    """Where others have taken the place of what is to come back, both are kept."""
    site.place(OLD)
    await cut(site, {"day=1/a": "1"}, Mode.REPLACE_TABLE)
    site.place({"/table/loose": "theirs"})
    report = await site.job().rollback_job()
    (kept,) = [path for path in site.tree() if path.endswith("in/loose")]

    assert site.tree()[kept] == "l"
    assert site.files()["loose"] == "theirs"
    assert [site.path(kept) in warning for warning in report.warnings] == [True]
    assert site.left() == []


async def test_a_file_that_was_written_anew(site: Site) -> None:
    """A file of the job that another has replaced is not the job's to take back."""
    await cut(site, FILES)
    await site.job().store.delete(site.path("/table/top"))
    site.place({"/table/top": "theirs"})
    report = await site.job().rollback_job()

    assert site.files() == ({"top": "theirs"} if report.files == 3 else {})


async def test_a_file_that_is_gone(site: Site) -> None:
    """A file that another has deleted is no reason to stop."""
    site.place(OLD)
    before = written(site)
    await cut(site, FILES)
    await site.job().store.delete(site.path("/table/top"))
    report = await site.job().rollback_job()

    assert report.files == 3
    assert written(site) == before


async def test_another_jobs_work_stays(site: Site) -> None:
    """A job that is at work in the same table goes on."""
    other = await site.ready({"theirs": "t"}, job_id=OTHER)
    await cut(site, FILES)
    await site.job().rollback_job()
    await other.commit_job()

    assert site.files() == {"theirs": "t"}


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_PARTITIONS])
async def test_a_file_in_the_place_of_a_directory_above(site: Site, mode: Mode) -> None:
    """A rollback also ends if what it is to put back has no directory to go to."""
    site.place({"/table/p/day=1/n.csv": "old"})
    at = Dies("put", "outcome")
    await site.cut({"p/day=1/n.csv": "theirs"}, at, mode=mode, delete_target_files=True)
    gone = [f"/table/p{name}" for name in ("/day=1/n.csv", "/day=1", "")]
    await site.intrude({"/table/p": "a stranger's"}, *gone)
    report = await site.job().rollback_job()
    (kept,) = [path for path in site.tree() if path.endswith("/n.csv")]
    (warning,) = report.warnings

    assert site.tree()[kept] == "old"
    assert site.path(kept).startswith(warning.rpartition(" is at ")[2])
    assert site.files()["p"] == "a stranger's"
    assert site.left() == []


@pytest.mark.parametrize("link", [False, True])
async def test_something_has_the_name_of_what_is_displaced(site: Site, link: bool) -> None:
    """Where a file or a link is called like the directory for such files, another is made."""
    site.place({"/table/n.csv": "old", "/beside/": ""})
    await site.cut({"n.csv": "theirs"}, Dies("put", "outcome"), delete_target_files=True)
    await site.intrude({"/table/n.csv": "a stranger's"}, "/table/n.csv")
    if not link:
        site.place({"/table/_displaced": "a file"})
    elif isinstance(site.world, LocalWorld):
        os.symlink(site.path("/beside"), site.path("/table/_displaced"))
    report = await site.job().rollback_job()
    (kept,) = [path for path in site.tree() if path.endswith("/in/n.csv")]

    assert report.rolled_back
    assert site.path(kept) in report.warnings[0]
    assert site.tree()[kept] == "old"
    assert kept.startswith("/table/_displaced")
    assert site.left() == []


# --- again, and late --------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_TABLE])
async def test_a_rollback_that_is_cut_short(site: Site, mode: Mode, after: bool) -> None:
    """Wherever it stops, another one ends as it would have, and so does a resume."""
    site.place(OLD)
    before = site.tree()
    for skip in range(50):
        await cut(site, FILES, mode)
        at = Dies("rename", "", skip=skip, after=after)
        await dying(site.job(at, workers=1).rollback_job())
        status = await site.job().job_status()
        if skip % 2 and status is not None and status.state is JobState.ROLLING_BACK:
            assert (await site.job().resume_job()).rolled_back
        else:
            await site.job().rollback_job()
        assert site.tree() == before, skip
        if not at.dead:
            break

    assert 8 < skip < 49


async def test_twice(site: Site) -> None:
    """What is rolled back stays so; the second time there is nothing to do."""
    site.place(OLD)
    before = site.tree()
    await cut(site, FILES)
    await site.job().rollback_job()
    report = await site.job().rollback_job()

    assert not report.rolled_back
    assert site.tree() == before
    with pytest.raises(CommitError):
        await site.job().resume_job()
    assert site.tree() == before


async def test_a_rename_that_comes_late_finds_no_source(site: Site) -> None:
    """What a dead owner still sends cannot publish a file that was taken back."""
    await site.cut(FILES, Dies("rename", "/tasks/", skip=1), workers=1)
    job = site.job()
    base = job.layout.task_attempt_dir(job.layout.ids(0)[1])
    missed: list[str] = []

    async def late() -> None:
        for name in ("day=1/a", "day=1/hour=1/b", "top"):
            try:
                await job.store.rename(f"{base}/{name}", site.path(f"/table/{name}"))
            except Exception:  # whatever the store says of it
                missed.append(name)

    await site.job(At("list", "/table/day=1", late)).rollback_job()

    assert len(missed) == 3
    assert site.files() == {}


async def test_the_sources_go_before_the_look(site: Site) -> None:
    """The tasks' directories are moved away before it is looked what is to be taken back."""
    await cut(site, FILES)
    faults = Faults()
    job = site.job(faults)
    await job.rollback_job()
    sent = [" ".join(request_of(op)) for op in faults.seen]
    fenced = sent.index(next(s for s in sent if s.startswith(f"rename {job.layout.tasks_dir} ")))
    looked = sent.index(f"list {site.path('/table/day=1')}")
    decided = sent.index(f"put {job.layout.outcome}")

    assert decided < fenced < looked


async def test_nothing_goes_back_to_where_it_came_from(site: Site) -> None:
    """No file is moved to its source, where a late rename would find it again."""
    await cut(site, FILES)
    faults = Faults()
    await site.job(faults).rollback_job()
    moved = [paths_of(op).split(" ")[1] for op in faults.seen if op.name == "rename"]

    assert not [path for path in moved if "/00/tasks/" in path]


async def test_a_late_delete_of_a_directory(site: Site) -> None:
    """No delete is sent for a place at which a file comes back: a late one would take it."""
    site.place(IN_THE_WAY)
    job = await site.ready(
        FILES,
        Faults(Fault("put", DeniedError, "00/commit-outcome", times=1)),
        delete_target_files=True,
    )
    with pytest.raises(CommitError):
        await job.commit_job()
    faults = Faults()
    await site.job(faults).rollback_job()

    assert site.files() == {path.removeprefix("/table/"): text for path, text in IN_THE_WAY.items()}
    assert site.path("/table/new") not in [op.path for op in faults.seen if op.name == "delete"]


# --- refused ----------------------------------------------------------------------------------


async def test_a_living_owner_is_not_rolled_back(site: Site) -> None:
    """Nobody undoes what another is doing, unless by force."""
    await site.cut(FILES, Dies("rename", "/tasks/", skip=2))
    site.alive["1.one"] = True
    with pytest.raises(OwnedError):
        await site.job(process="2.two").rollback_job()
    await site.job(process="2.two").rollback_job(force=True)

    assert site.files() == {}


async def test_a_committed_job_is_not_rolled_back(site: Site) -> None:
    """What is committed stays, also when all is cleaned up."""
    job = await site.ready(FILES)
    await job.commit_job()
    before = site.tree()
    with pytest.raises(CommittedError):
        await site.job().rollback_job()

    assert site.tree() == before


async def test_before_the_commit_has_begun(site: Site) -> None:
    """A job that has not begun to commit is simply aborted."""
    site.place(OLD)
    before = site.tree()
    await site.ready(FILES)
    report = await site.job().rollback_job()

    assert not report.rolled_back
    assert site.tree() == before


async def test_a_rollback_that_fails_keeps_everything(site: Site) -> None:
    """What could not be taken back is told, and the next try ends it."""
    site.place(OLD)
    before = site.tree()
    await cut(site, FILES, Mode.REPLACE_TABLE)
    faults = Faults(Fault("rename", DeniedError, "aside/in/day=2"))
    with pytest.raises(CommitError):
        await site.job(faults).rollback_job()
    assert [path for path in site.left() if path.endswith("aside/in/day=2/old")]
    await site.job().rollback_job()

    assert site.tree() == before


async def test_an_abort_after_the_commit_has_begun_keeps_all(site: Site) -> None:
    """Spark's abort undoes nothing and deletes nothing."""
    site.place(OLD)
    await cut(site, FILES)
    before = site.tree()
    report = await site.job().abort_job("Spark says so")

    assert report.kept
    assert site.tree() == before

"""A commit does not displace what an unfinished commit of another job has put in place."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.job.places import related
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.planning.conflicts import one_a_directory
from asynccommit.commit.planning.plan import Aside
from asynccommit.errors import CommitError, DeniedError, NotFoundError, PreflightError
from asynccommit.options.job import Mode
from asynccommit.results import AbortReport
from asynccommit.stores.base import Kind
from asynccommit.stores.policies.funnel import Call, Op
from asynccommit.stores.urls import Address
from tests.support.commits import OTHER, At, Dies, Site, paths_of
from tests.support.faults import Fault, Faults

NEW = {"n.csv": "mine"}
THEIRS = {"n.csv": "theirs"}


LIVES, DIED = "2.two", "1.one"


async def cut(site: Site, files: Mapping[str, str], **options: Any) -> None:
    """Leave a commit whose process dies when all of its files are in place."""
    await site.cut(files, Dies("put", "commit-outcome"), job_id=OTHER, process=DIED, **options)
    site.alive[DIED] = False


async def ready(site: Site, files: Mapping[str, str], *policies: Any, **options: Any) -> Any:
    """Return a job of another process that is ready to commit."""
    return await site.ready(files, *policies, process=LIVES, **options)


def elsewhere(site: Site, dest: str, *policies: Any, **options: Any) -> ManifestCommitter:
    """Return the committer of a job with another destination."""
    job = site.job(*policies, **({"process": LIVES} | options))
    job.layout = Layout(site.world.address(dest), job.layout.job_id)
    return job


class Denies:
    """A policy that denies the listing of one directory."""

    def __init__(self, path: str) -> None:
        self.path = path

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def denying(op: Op) -> Any:
            if op.name == "list" and op.path == self.path:
                raise DeniedError("list", op.path, "no permission")
            return await call(op)

        return denying


async def cut_elsewhere(site: Site, dest: str, files: Mapping[str, str]) -> None:
    """Leave a commit to ``dest`` as a process leaves it that dies before it is decided."""
    at = Dies("put", "commit-outcome")
    job = elsewhere(site, dest, at, job_id=OTHER, process=DIED)
    await job.setup_job()
    await site.task(job, 0, files)
    with suppress(BaseException):
        await job.commit_job()
    assert at.dead
    site.alive[DIED] = False


async def undo_other(site: Site, dest: str = "/table") -> AbortReport:
    """Roll back the job that was cut short."""
    return await elsewhere(site, dest, job_id=OTHER, process=LIVES).rollback_job()


# --- a file that is in the way ----------------------------------------------------------------


async def test_a_file_of_an_unfinished_commit_is_not_moved_aside(site: Site) -> None:
    """A job that overwrites a file of a dead job is refused and changes nothing."""
    site.place({"/table/n.csv": "old"})
    mine = await ready(site, NEW, delete_target_files=True)
    await cut(site, THEIRS, delete_target_files=True)
    before = site.tree()
    with pytest.raises(PreflightError, match=f"{OTHER} writes there.*asynccommit resume"):
        await mine.commit_job()

    assert site.tree() == before


@pytest.mark.parametrize("act, left", [("resume_job", "theirs"), ("rollback_job", "old")])
async def test_the_commands_of_the_refusal_work(site: Site, act: str, left: str) -> None:
    """The dead job can be finished and undone after the refusal, and then the other commits."""
    site.place({"/table/n.csv": "old"})
    mine = await ready(site, NEW, delete_target_files=True)
    await cut(site, THEIRS, delete_target_files=True)
    with pytest.raises(PreflightError):
        await mine.commit_job()
    await getattr(site.job(job_id=OTHER, process=LIVES), act)()
    assert site.files() == {"n.csv": left}
    await mine.commit_job()

    assert site.files() == {"n.csv": "mine"}


async def test_of_two_that_overwrite_one_file_not_both_go_on(site: Site) -> None:
    """A commit that began while this one planned is seen once this one's record is there."""
    site.place({"/table/n.csv": "old"})
    await site.ready(THEIRS, job_id=OTHER)
    other = site.job(Dies("put", "commit-outcome"), job_id=OTHER, delete_target_files=True)

    async def meanwhile() -> None:
        with suppress(BaseException):
            await other.commit_job()

    mine = await ready(site, NEW, At(*site.saves_plan, meanwhile), delete_target_files=True)
    with pytest.raises(CommitError):
        await mine.commit_job()
    site.alive[DIED] = False
    await undo_other(site)

    assert site.files() == {"n.csv": "old"}


# --- other destinations -----------------------------------------------------------------------


async def test_a_job_of_the_table_above(site: Site) -> None:
    """A partition is not replaced while a job of the whole table is unfinished in it."""
    site.place({"/table/day=1/old": "o"})
    await cut(site, {"day=1/n": "theirs"})
    mine = elsewhere(site, "/table/day=1")
    await mine.setup_job()
    await site.task(mine, 0, NEW)
    before = site.tree()
    with pytest.raises(PreflightError, match=f"{OTHER} writes there"):
        await mine.commit_job(mode=Mode.REPLACE_TABLE)

    assert site.tree() == before


async def test_a_job_of_another_partition_above(site: Site) -> None:
    """A job of the table above that writes to other partitions is in nobody's way."""
    site.place({"/table/day=1/old": "o"})
    await cut(site, {"day=2/n": "theirs"})
    mine = elsewhere(site, "/table/day=1")
    await mine.setup_job()
    await site.task(mine, 0, NEW)
    await mine.commit_job(mode=Mode.REPLACE_TABLE)

    files = site.files()
    del files["day=1/_SUCCESS"]

    assert files == {"day=1/n.csv": "mine", "day=2/n": "theirs"}


async def test_a_job_of_a_partition_below(site: Site) -> None:
    """A file in a partition is not overwritten while a job of that partition is unfinished."""
    await cut_elsewhere(site, "/table/day=1", {"n.csv": "theirs"})
    mine = await ready(site, {"day=1/n.csv": "mine"}, delete_target_files=True)
    with pytest.raises(PreflightError, match=f"{OTHER} writes there"):
        await mine.commit_job()
    await undo_other(site, "/table/day=1")
    await mine.commit_job()

    assert site.files() == {"day=1/n.csv": "mine"}


async def test_a_directory_above_that_may_not_be_listed(site: Site) -> None:
    """A job is not refused because it may not look into the directories above its table."""
    site.place({"/table/n.csv": "old"})
    mine = await ready(site, NEW, Denies(site.path("/_temporary")), delete_target_files=True)
    await mine.commit_job()

    assert site.files() == {"n.csv": "mine"}


async def test_a_job_of_the_root(site: Site) -> None:
    """A table is not replaced while a job of the whole filesystem or container is unfinished in it.

    Nothing is between such a table and the root on the model.
    """
    site.place({"/table/day=1/old": "o"})
    await cut_elsewhere(site, "/", {"table/day=1/n": "theirs"})
    mine = await ready(site, NEW)
    with pytest.raises(PreflightError, match=f"{OTHER} writes there"):
        await mine.commit_job(mode=Mode.REPLACE_TABLE)
    await elsewhere(site, "/", job_id=OTHER, process=LIVES).resume_job()

    assert site.files() == {"day=1/n": "theirs", "day=1/old": "o"}


@pytest.mark.parametrize("denied", ["", "/j", "/j/00"])
async def test_a_job_above_that_may_not_be_read(site: Site, denied: str) -> None:
    """Nor because it may not look into a job that is there."""
    site.place({"/table/n.csv": "old", "/_temporary/j/00/commit-record.json": "{}"})
    denies = Denies(site.path(f"/_temporary{denied}"))
    mine = await ready(site, NEW, denies, delete_target_files=True)
    await mine.commit_job()

    assert site.files() == {"n.csv": "mine"}


async def test_a_job_above_that_may_not_be_written_to(site: Site) -> None:
    """Nor because it may not ask the store for the time beside a commit whose owner is silent."""
    site.place({"/table/n.csv": "old"})
    await cut_elsewhere(site, "/", {"beside/n": "theirs"})
    del site.alive[DIED]
    site.skew = 1e9
    denies = Faults(Fault("put", DeniedError, "commit-clock"))
    mine = await ready(site, NEW, denies, delete_target_files=True)
    await mine.commit_job()

    assert [op for op in denies.seen if "commit-clock" in op.path]
    assert site.files() == {"n.csv": "mine"}


@pytest.mark.parametrize("above", ["/_temporary", "/table/day=1/_temporary"])
async def test_a_file_of_the_name_of_the_jobs_directory(site: Site, above: str) -> None:
    """Nor because a file or a link is where jobs with another destination would be."""
    site.place({"/table/day=1/n.csv": "old", above: "no directory"})
    mine = await ready(site, {"day=1/n.csv": "mine"}, delete_target_files=True)
    await mine.commit_job()

    assert site.files()["day=1/n.csv"] == "mine"


async def test_appending_looks_nowhere_else(site: Site) -> None:
    """A job that displaces nothing asks for no other job's commit."""
    seen = Faults()
    job = await ready(site, NEW, seen)
    seen.seen.clear()
    await job.commit_job()
    listed = [paths_of(op) for op in seen.seen if op.name == "list"]

    assert site.path("/_temporary") not in listed
    assert site.path("/table/_temporary") not in listed


def test_where_jobs_with_another_destination_are() -> None:
    """All directories above count, and those between the destination and what is displaced."""
    layout = Layout(Address("file", "", "/a/t"), "job")
    assert related(layout, ["/a/t/day=1/f"]) == ["/", "/a", "/a/t/day=1"]
    assert related(layout, ["/a/t"]) == ["/", "/a"]
    assert related(Layout(Address("abfs", "c@a", "/t"), "job"), ["/t"]) == ["/"]
    assert related(layout, []) == []


def test_one_file_of_a_directory_is_enough() -> None:
    """Of many files in one directory one is asked for, and every directory."""
    asides = [Aside(f"/t/d={n}/f{m}", Kind.FILE, None) for n in (1, 2) for m in (1, 2)]
    asides.append(Aside("/t/x", Kind.DIRECTORY, None))

    assert one_a_directory(asides) == ["/t/d=1/f1", "/t/d=2/f1", "/t/x"]


# --- what cannot be put back ------------------------------------------------------------------


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_TABLE])
async def test_a_rollback_ends_though_a_place_is_taken(site: Site, mode: Mode) -> None:
    """What others wrote stays, what was there before is kept beside it, and later jobs run."""
    site.place({"/table/n.csv": "old"})
    files = {"n.csv": "theirs"} if mode is Mode.APPEND else {"other": "x"}
    await cut(site, files, mode=mode, delete_target_files=True)
    with suppress(NotFoundError):
        await site.job().store.delete(site.path("/table/n.csv"))
    site.place({"/table/n.csv": "a stranger's"})
    report = await undo_other(site)
    kept = [path for path in site.tree() if "/_displaced/" in path and path.endswith("/n.csv")]

    assert report.rolled_back
    assert [site.tree()[path] for path in kept] == ["old"]
    assert [site.path(kept[0]) in warning for warning in report.warnings] == [True]
    assert site.tree()["/table/n.csv"] == "a stranger's"
    assert site.left() == []
    await (await ready(site, {"next": "1"})).commit_job()


async def test_a_directory_whose_files_are_partly_there_again(site: Site) -> None:
    """Of a replaced directory every file comes back whose place is free; the others are kept."""
    site.place({"/table/d/a": "1", "/table/d/b": "2", "/table/d/s/c": "3", "/table/d/s/e": "4"})
    await cut(site, {"x": "x"}, mode=Mode.REPLACE_TABLE)
    site.place({"/table/d/a": "new", "/table/d/s": "a file"})
    await undo_other(site)
    found = {path.rpartition("/in/")[2]: text for path, text in site.tree("/table/d").items()}

    assert {name: found.get(name) for name in ("d/a", "d/s/c", "d/s/e")} == {
        "d/a": "1",
        "d/s/c": "3",
        "d/s/e": "4",
    }
    assert {path: text for path, text in site.files().items() if path.startswith("d/")} == {
        "d/a": "new",
        "d/b": "2",
        "d/s": "a file",
    }


@pytest.mark.parametrize("skip", range(2))
async def test_a_file_in_the_place_of_a_replaced_directory(site: Site, skip: int) -> None:
    """What a directory held whose place a stranger's file has taken is kept, and the job ends."""
    site.place({"/table/d/h/a": "1", "/table/d/h/s/b": "2"})
    at = Dies("rename", "/table/d/h", skip=skip)
    mode = Mode.REPLACE_PARTITIONS
    await site.cut({"d/h/new": "n"}, at, job_id=OTHER, process=DIED, mode=mode)
    site.alive[DIED] = False
    if free := "/table/d/h" not in site.tree():
        site.place({"/table/d/h": "a stranger's"})
    report = await undo_other(site)
    kept = {path.rpartition("/in/")[2]: text for path, text in site.tree("/table/d").items()}

    assert report.rolled_back
    assert site.left() == []
    if free:
        assert site.files()["d/h"] == "a stranger's"
        assert (kept["d/h/a"], kept["d/h/s/b"]) == ("1", "2")
    else:
        assert site.files() == {"d/h/a": "1", "d/h/s/b": "2"}


# --- an owner that died before its first change -----------------------------------------------


async def overtaken(site: Site) -> None:
    """Leave a commit that has only its record, and let another job commit to the same place."""
    site.place({"/table/day=1/old": "o"})
    await site.ready({"day=1/mine": "m"}, process=DIED)
    other = await ready(site, {"day=1/theirs": "t"}, job_id=OTHER)
    with suppress(BaseException):
        at = Dies("put", "commit-record.json", after=True)
        await site.job(at, process=DIED).commit_job(mode=Mode.REPLACE_PARTITIONS)
    site.alive[DIED] = False
    await other.commit_job()


async def test_a_plan_that_is_older_than_a_commit_is_not_followed(site: Site) -> None:
    """A commit that has only its record is not resumed over what another job committed since."""
    await overtaken(site)
    with pytest.raises(CommitError, match=r"another job committed while.*or roll it back"):
        await site.job(process=LIVES).resume_job()
    report = await site.job(process=LIVES).rollback_job()

    assert report.rolled_back
    assert site.files() == {"day=1/old": "o", "day=1/theirs": "t"}


async def test_a_commit_that_has_changed_something_is_resumed(site: Site) -> None:
    """What another job appends after the first change stays beside what the resumed job wrote."""
    site.place({"/table/day=1/old": "o"})
    other = await ready(site, {"day=1/theirs": "t"}, job_id=OTHER)
    await site.cut(
        {"day=1/mine": "m"},
        Dies("put", "commit-outcome"),
        process=DIED,
        mode=Mode.REPLACE_PARTITIONS,
    )
    site.alive[DIED] = False
    await other.commit_job()
    await site.job(process=LIVES).resume_job()

    assert site.files() == {"day=1/mine": "m", "day=1/theirs": "t"}


# --- what no command can end ------------------------------------------------------------------


async def test_a_damaged_record_is_ended_by_hand(site: Site) -> None:
    """Errors name no command that cannot work, and what they name instead ends the job."""
    site.place({"/table/day=1/old": "o"})
    mine = await ready(site, {"day=1/n": "mine"})
    await cut(site, {"day=1/t": "theirs"}, mode=Mode.REPLACE_PARTITIONS)
    other = site.job(job_id=OTHER, process=LIVES)
    record = site.bare(other.layout.record)
    await site.intrude({record: "damaged"}, record)
    with pytest.raises(
        PreflightError, match=r"cannot finish it: .*put back any files in"
    ) as refused:
        await mine.commit_job(mode=Mode.REPLACE_PARTITIONS)
    with pytest.raises(CommitError, match="To end it, restore that file") as failed:
        await other.resume_job()
    assert "asynccommit" not in f"{refused.value} {failed.value}".replace("asynccommit.Commit", "")
    aside = next(path for path in site.tree() if path.endswith("/aside/in/day=1/old"))
    assert site.tree()[aside] == "o"
    await other.store.delete_tree(other.layout.attempt_dir)
    await mine.commit_job(mode=Mode.REPLACE_PARTITIONS)

    assert site.files() == {"day=1/n": "mine"}

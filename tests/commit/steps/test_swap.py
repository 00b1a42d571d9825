"""Replacing directories: two renames each, whenever it is cut short and whoever is there."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.context import CommitContext
from asynccommit.commit.planning.load_manifests import LoadedManifests
from asynccommit.commit.planning.plan import Aside, Plan
from asynccommit.commit.spill import Entry
from asynccommit.commit.steps.swap import swap_in
from asynccommit.commit.trees import merge
from asynccommit.errors import CommitError, DeniedError, ExistsError, LeaseLostError, NotFoundError
from asynccommit.options.job import Mode
from asynccommit.stores.base import Kind
from tests.support.commits import At, Dies, Lost, Site, open_site, own, paths_of
from tests.support.faults import Fault, Faults

OLD = {"/table/day=1/old": "1", "/table/day=1/.kept": "k", "/table/day=2/old": "2"}
NEW = {"day=1/new": "n", "day=3/new": "m"}


def renames(faults: Faults, *match: str) -> list[str]:
    """Return the paths of the renames that name all of ``match``."""
    found = [paths_of(op) for op in faults.seen if op.name == "rename"]
    return [paths for paths in found if all(text in paths for text in match)]


async def test_two_renames_a_partition(site: Site) -> None:
    """The old directory goes and the new one comes, with one rename each."""
    site.place({f"/table/day=1/old{n}": "o" for n in range(20)})
    faults = Faults()
    job = await site.ready({f"day=1/new{n}": "n" for n in range(20)}, faults)
    faults.seen.clear()
    await job.commit_job(mode=Mode.REPLACE_PARTITIONS)
    there = site.path("/table/day=1")
    moved = [p for p in renames(faults) if p.startswith(f"{there} ") or p.endswith(f" {there}")]

    assert len(moved) == 2
    assert moved[0].startswith(f"{there} ")
    assert moved[1].endswith(f" {there}")
    assert len(renames(faults, "/tasks/", "/new/in/day=1/new")) == 20


async def test_all_new_files_are_at_hand_before_an_old_one_goes(site: Site) -> None:
    """Nothing is moved aside before the last file of the new content waits."""
    site.place(OLD)
    faults = Faults()
    job = await site.ready(NEW, faults, workers=1)
    faults.seen.clear()
    await job.commit_job(mode=Mode.REPLACE_TABLE)
    moved = renames(faults)
    staged = max(i for i, paths in enumerate(moved) if "/tasks/" in paths)
    aside = min(i for i, p in enumerate(moved) if p.startswith(site.path("/table/day=")))

    assert staged < aside


async def test_a_failure_before_the_swap_changes_nothing_to_see(site: Site) -> None:
    """Readers still see the old table when the new content could not be put together."""
    site.place(OLD)
    job = await site.ready(NEW, Faults(Fault("rename", DeniedError, "day=3/new")))
    with pytest.raises(CommitError):
        await job.commit_job(mode=Mode.REPLACE_TABLE)

    assert {f"/table/{name}": text for name, text in site.files().items()} == OLD


@pytest.mark.sample(5)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("skip", range(5))
async def test_a_swap_that_is_cut_short(site: Site, skip: int, after: bool) -> None:
    """Wherever it stops, a resume ends with the new table, and a stranger's file in it."""
    site.place(OLD)
    at = Dies("rename", "/table/day=", skip=skip, after=after)
    await site.cut(NEW, at, mode=Mode.REPLACE_TABLE, workers=1)
    site.place({"/table/day=2/theirs": "s"})
    await site.job().resume_job()

    assert site.files() == NEW | {"day=1/.kept": "k", "day=2/theirs": "s"}
    assert site.left() == []


async def test_putting_back_is_cut_short(site: Site) -> None:
    """A stranger that was moved aside with an old directory is put back by the next owner."""
    site.place(OLD)

    async def stranger() -> None:
        await site.intrude({"/table/day=1/theirs": "s", "/table/day=1/x/theirs": "t"})

    at = Dies("rename", "aside/in/day=1/theirs")
    job = await site.ready(NEW, At("rename", "/tasks/", stranger), at)
    with pytest.raises(BaseException):  # noqa: B017, PT011  # it died
        await job.commit_job(mode=Mode.REPLACE_TABLE)
    assert at.dead
    await site.job().resume_job()

    assert site.files() == NEW | {
        "day=1/.kept": "k",
        "day=1/theirs": "s",
        "day=1/x/theirs": "t",
    }


async def test_an_empty_directory_of_the_job_in_a_merge(site: Site) -> None:
    """A directory that a task left empty is there also where the unit was merged."""
    site.place(OLD)

    async def stranger() -> None:
        await site.intrude({"/table/day=1/theirs": "s"})

    act = At("rename", "aside/in/day=1", stranger, after=True)
    job = await site.ready(NEW | {"day=1/empty/": ""}, act)
    await job.commit_job(mode=Mode.REPLACE_PARTITIONS)

    assert site.tree()["/table/day=1/theirs"] == "s"
    assert "/table/day=1/empty" in site.tree()


async def test_what_was_to_be_replaced_is_gone(site: Site) -> None:
    """A partition that another job has removed since the plan is a warning, no failure."""
    site.place(OLD)

    async def stranger() -> None:
        await site.job().store.delete_tree(site.path("/table/day=2"))

    job = await site.ready(NEW, At("rename", "/tasks/", stranger))
    report = await job.commit_job(mode=Mode.REPLACE_TABLE)

    assert "day=2 should be replaced, but is gone" in report.warnings[0]
    assert site.files() == NEW | {"day=1/.kept": "k"}


@pytest.mark.parametrize(
    "when", [("put", "commit-plan"), ("put", "commit-record"), ("rename", "/tasks/")]
)
async def test_two_jobs_replace_the_same_partition(site: Site, when: tuple[str, str]) -> None:
    """Whoever is second is refused, or no file that the other has committed is lost."""
    site.place(OLD)

    ends: list[BaseException | None] = []

    async def other() -> None:
        try:
            await second.commit_job(mode=Mode.REPLACE_PARTITIONS)
        except CommitError as error:
            ends.append(error)
        else:
            ends.append(None)

    second = await site.ready({"day=1/theirs": "s"}, job_id="second")
    first = await site.ready(NEW, At(*when, other))
    try:
        await first.commit_job(mode=Mode.REPLACE_PARTITIONS)
    except CommitError:
        await site.job().rollback_job()

    if ends == [None]:
        assert site.files()["day=1/theirs"] == "s"
    assert site.files()["day=1/.kept"] == "k"


async def test_an_owner_that_was_taken_over_while_it_puts_together(site: Site) -> None:
    """A living owner that is taken over by force steals nothing: the new one ends the commit."""
    site.place(OLD)

    async def take_over() -> None:
        with pytest.raises(CommitError):
            await site.job(
                Faults(Fault("rename", DeniedError, "day=3/new")), process="2.two", machine="b"
            ).resume_job(force=True)

    job = await site.ready(NEW, At("rename", "/tasks/", take_over), workers=1)
    with pytest.raises((LeaseLostError, CommitError)):
        await job.commit_job(mode=Mode.REPLACE_TABLE)
    await site.job(process="3.three").resume_job()

    assert site.files() == NEW | {"day=1/.kept": "k"}
    assert site.left() == []


@pytest.mark.parametrize("skip", range(3))
async def test_an_owner_that_was_taken_over_while_it_swaps(site: Site, skip: int) -> None:
    """Nor does one lose what was moved aside, when the new owner rolls the commit back."""
    site.place(OLD)
    before = site.tree()

    async def roll_back() -> None:
        await site.job(process="2.two", machine="b").rollback_job(force=True)

    act = At("rename", "/table/day=", roll_back, skip=2 + skip)
    job = await site.ready(NEW, act, workers=1)
    with pytest.raises(CommitError):
        await job.commit_job(mode=Mode.REPLACE_TABLE)

    assert site.tree("/table/_temporary") == {
        path: text for path, text in before.items() if not path.startswith("/table/_temporary")
    }


# --- the parts --------------------------------------------------------------------------------


async def working(site: Site, *policies: Any) -> tuple[CommitContext, Plan]:
    """Return the run of the second owner of a commit without files, and an empty plan."""
    await site.cut({}, Dies("put", "commit-outcome"))
    run = await own(site.job(*policies))
    await run.store.mkdir(f"{run.epoch_dir}/aside/in")
    return run, Plan(LoadedManifests(run.options, run.store.traits))


async def test_merging(site: Site) -> None:
    """Every file moves to its place below the other directory; what is there stays."""
    run, _ = await working(site)
    site.place({"/table/a/x": "x", "/table/a/d/y": "y", "/table/b/z": "z"})

    assert await merge(run, site.path("/table/a"), site.path("/table/b")) == 2
    assert site.files() == {"b/x": "x", "b/d/y": "y", "b/z": "z"}
    assert await merge(run, site.path("/table/a"), site.path("/table/b")) == 0
    assert await merge(run, site.path("/table/none"), site.path("/table/b")) == 0


async def test_merging_what_is_written_to(tmp_path: Path) -> None:
    """A file that changes between the listing and its rename moves as it is then."""
    site = await open_site("local", tmp_path / "root")
    file = Path(site.path("/table/a/x"))
    run, _ = await working(
        site, At("rename", "/a/x", lambda: asyncio.to_thread(file.write_text, "changed"))
    )
    site.place({"/table/a/x": "x", "/table/b/": ""})

    assert await merge(run, site.path("/table/a"), site.path("/table/b")) == 1
    assert site.files() == {"b/x": "changed"}
    await site.close()


async def test_merging_over_something(site: Site) -> None:
    """Nothing is replaced by a merge."""
    run, _ = await working(site)
    site.place({"/table/a/x": "x", "/table/b/x": "old"})
    with pytest.raises(ExistsError):
        await merge(run, site.path("/table/a"), site.path("/table/b"))

    assert site.files() == {"a/x": "x", "b/x": "old"}


async def test_old_files_that_wait_in_a_file(site: Site) -> None:
    """What was there may be more than memory should hold."""
    run, plan = await working(site)
    site.place({f"/table/day=1/old{n}": "o" for n in range(10)})
    path = site.path("/table/day=1")
    plan.replaced = [Aside(path, Kind.DIRECTORY, (await run.store.head(path)).etag)]
    plan.old._limit = 3
    for n in range(9):
        info = await run.store.head(f"{path}/old{n}")
        await plan.old.append([Entry("", info.path, info.size, info.etag)])
    with plan.old:
        await swap_in(run, plan)

    assert site.files() == {"day=1/old9": "o"}


async def test_a_unit_that_waits_and_has_no_place(site: Site) -> None:
    """A new unit is moved in also where the directory above it has gone meanwhile."""
    run, plan = await working(site)
    unit = site.path("/table/a/b")
    plan.units = {unit}
    site.place({f"{site.bare(run.epoch_dir)}/new/in/a/b/f": "x"})
    await swap_in(run, plan)
    await swap_in(run, plan)

    assert site.files() == {"a/b/f": "x"}


async def test_a_swap_without_the_right(site: Site) -> None:
    """Nothing is moved when the commit is no more this owner's."""
    faults = Faults()
    run, plan = await working(site, faults)
    site.place(OLD)
    plan.replaced = [Aside(site.path("/table/day=1"), Kind.DIRECTORY, None)]
    run = replace(run, lease=Lost())
    faults.seen.clear()
    with pytest.raises(LeaseLostError):
        await swap_in(run, plan)

    assert faults.count("rename") == 0


async def test_a_stranger_that_cannot_be_put_back(site: Site) -> None:
    """What is in the way of a stranger's file stops the commit; both files are kept."""
    site.place(OLD)

    async def stranger() -> None:
        await site.intrude({"/table/day=1/new": "theirs"})

    job = await site.ready(NEW, At("rename", "/tasks/", stranger))
    with pytest.raises(CommitError) as failed:
        await job.commit_job(mode=Mode.REPLACE_TABLE)
    assert isinstance(failed.value.failures[0], ExistsError | NotFoundError)
    await site.job().rollback_job()

    assert site.files() == {
        "day=1/old": "1",
        "day=1/.kept": "k",
        "day=1/new": "theirs",
        "day=2/old": "2",
    }


async def test_a_failure_half_way_counts_what_readers_see(site: Site) -> None:
    """Files that came with their directory are counted, though another partition stays old."""
    site.place(OLD)
    new = {"day=1/new0": "n", "day=1/new1": "n", "day=2/new": "m"}
    job = await site.ready(new, Faults(Fault("rename", DeniedError, "/new/in/day=2 ")), workers=1)
    with pytest.raises(CommitError, match=r"; 2 files are at their destinations"):
        await job.commit_job(mode=Mode.REPLACE_PARTITIONS)
    assert [name for name in site.files() if name.startswith("day=1/n")] == [
        "day=1/new0",
        "day=1/new1",
    ]

    again = site.job(Faults(Fault("rename", DeniedError, "/new/in/day=2 ")), workers=1)
    with pytest.raises(CommitError, match=r"; at least 2 files are at their destinations"):
        await again.resume_job()


async def test_a_task_writes_into_a_hidden_directory_that_is_there(site: Site) -> None:
    """Its file takes the place of the one there, as beside the data, and the rest stays."""
    site.place({"/table/day=1/_h/n": "theirs", "/table/day=1/_h/kept": "k"})
    job = await site.ready({"day=1/new": "n", "day=1/_h/n": "mine"})
    report = await job.commit_job(mode=Mode.REPLACE_PARTITIONS)

    assert site.files() == {"day=1/new": "n", "day=1/_h/n": "mine", "day=1/_h/kept": "k"}
    assert [site.path("/table/day=1/_h/n") in text for text in report.warnings] == [True]


async def test_a_job_begins_deep_in_what_is_replaced(site: Site) -> None:
    """Its directories come back as they were, empty ones too."""
    site.place({"/table/a/b/old": "o"})
    theirs = ["/table/a/b/_temporary/job/00/manifests", "/table/a/b/_temporary/job/00/tasks"]

    async def begin() -> None:
        await site.intrude({f"{path}/": "" for path in theirs})

    job = await site.ready({"a/new": "n"}, At("rename", "aside/in/a", begin))
    await job.commit_job(mode=Mode.REPLACE_TABLE)

    assert [path for path in theirs if path not in site.tree()] == []
    assert site.files() == {"a/new": "n"}


class Inside:
    """A foreign process that works in a directory, whatever becomes of its path."""

    def __init__(self, directory: str) -> None:
        self.fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)

    async def write(self, *names: str) -> None:
        """Write files there."""
        for name in names:
            await asyncio.to_thread(self._write, name)

    def _write(self, name: str) -> None:
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=self.fd)
        os.write(file, b"theirs")
        os.close(file)


@pytest.mark.parametrize("mode", [Mode.REPLACE_PARTITIONS, Mode.REPLACE_TABLE])
async def test_a_writer_that_stays_in_a_replaced_directory(tmp_path: Path, mode: Mode) -> None:
    """Its file comes to where it wrote it, or is kept if a new one is there; the report says so."""
    site = await open_site("local", tmp_path / "root")
    site.place(OLD)
    inside = Inside(site.path("/table/day=1"))

    act = partial(inside.write, "late", ".late", "new")
    job = await site.ready(NEW, At("rename", "_SUCCESS", act, after=True))
    report = await job.commit_job(mode=mode)

    files = site.files()
    kept = [name for name in files if name.startswith("_displaced/") and name.endswith("day=1/new")]
    assert [files.pop(name) for name in kept] == ["theirs"]
    late = {"day=1/late": "theirs", "day=1/.late": "theirs", "day=1/.kept": "k"}
    assert {name: files[name] for name in NEW | late} == NEW | late
    assert sorted(text.partition(" was written")[0] for text in report.warnings) == [
        site.path(f"/table/day=1/{name}") for name in (".late", "late", "new")
    ]
    assert any(kept[0] in text for text in report.warnings)
    assert site.left() == []
    await site.close()


async def test_a_late_file_that_cannot_be_put_back(tmp_path: Path) -> None:
    """Nothing is deleted before it is in its place; a resume goes on."""
    site = await open_site("local", tmp_path / "root")
    site.place(OLD)
    inside = Inside(site.path("/table/day=1"))
    at = At("rename", "_SUCCESS", partial(inside.write, "late"), after=True)
    job = await site.ready(NEW, at, Faults(Fault("rename", DeniedError, "day=1/late")))
    with pytest.raises(CommitError):
        await job.commit_job(mode=Mode.REPLACE_PARTITIONS)
    report = await site.job().resume_job()

    assert site.files()["day=1/late"] == "theirs"
    assert "was put back" in report.warnings[0]
    assert site.left() == []
    await site.close()

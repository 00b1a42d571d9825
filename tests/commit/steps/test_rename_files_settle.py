"""Which files an earlier owner has moved: told by what is there, and never by guessing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.planning.load_manifests import LoadedManifests
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.spill import Entry
from asynccommit.commit.steps.identity import Settled, identity_of
from asynccommit.errors import CommitError, DeniedError, ExistsError, NotFoundError, PreflightError
from asynccommit.options.job import Mode
from tests.support.commits import At, Dies, Site, paths_of, run_of
from tests.support.faults import Fault, Faults

FILES = {"day=1/a": "1", "day=2/b": "2", "day=3/c": "3"}


async def strip(job: ManifestCommitter) -> None:
    """Take the etags out of a task's manifest, as Hadoop writes it on a disk."""
    path = job.layout.manifest(job.layout.ids(0)[0])
    manifest = json.loads(await job.store.get(path, 1 << 20))
    for entry in manifest["files"]:
        entry.pop("e", None)
    await job.store.put(path, json.dumps(manifest).encode())


async def cut(
    site: Site, at: Dies, *, etags: bool = True, files: Mapping[str, str] = FILES, **options: Any
) -> None:
    """Leave a commit behind whose process died at a request."""
    job = await site.ready(files, at, workers=1)
    if not etags:
        await strip(job)
    with suppress(BaseException):
        await job.commit_job(**options)
    assert at.dead


def moves(faults: Faults) -> list[str]:
    """Return the names of the tasks' files that were moved."""
    return [
        paths_of(op).rpartition("/")[2]
        for op in faults.seen
        if op.name == "rename" and "/tasks/" in op.path
    ]


@pytest.mark.parametrize("etags", [True, False])
@pytest.mark.parametrize("skip", range(4))
async def test_only_what_was_not_moved_is_moved(site: Site, skip: int, etags: bool) -> None:
    """A resume sends no rename for what is where it belongs, and one for everything else."""
    at = Dies("rename", "/tasks/", skip=skip) if skip < 3 else Dies("put", "commit-outcome")
    await cut(site, at, etags=etags)
    faults = Faults()
    report = await site.job(faults, workers=1).resume_job()

    assert moves(faults) == ["a", "b", "c"][skip:]
    assert report.files == 3
    assert site.files() == FILES


@pytest.mark.parametrize("etags", [True, False])
async def test_a_rename_that_was_done_and_not_heard_of(site: Site, etags: bool) -> None:
    """What took effect as its process died counts as moved."""
    await cut(site, Dies("rename", "/tasks/", skip=1, after=True), etags=etags)
    faults = Faults()
    await site.job(faults, workers=1).resume_job()

    assert moves(faults) == ["c"]
    assert site.files() == FILES


async def test_a_rename_that_comes_late(site: Site) -> None:
    """One that takes effect after the look is found when the source is gone."""
    await cut(site, Dies("rename", "/tasks/", skip=1))
    source = next(path for path in site.left() if path.endswith("day=2/b"))

    async def late() -> None:
        await site.job().store.rename(site.path(source), site.path("/table/day=2/b"))

    await site.job(At("rename", "day=2/b", late), workers=1).resume_job()

    assert site.files() == FILES


async def test_the_state_says_how_many_are_moved(site: Site) -> None:
    """Files at their destinations are counted."""
    await cut(site, Dies("rename", "/tasks/", skip=2))
    status = await site.job().job_status()

    assert status is not None
    assert (status.done, status.files) == (2, 3)


# --- strangers --------------------------------------------------------------------------------


@pytest.mark.parametrize("etags", [True, False])
@pytest.mark.parametrize("text", ["2", "another size"])
async def test_a_stranger_of_the_same_name(site: Site, text: str, etags: bool) -> None:
    """A file that another job put there after the crash is not taken for ours, and not lost."""
    await cut(site, Dies("rename", "/tasks/", skip=1), etags=etags)
    site.place({"/table/day=2/b": text})
    before = site.tree()["/table/day=2/b"]
    with pytest.raises(CommitError) as failed:
        await site.job().resume_job()

    assert isinstance(failed.value.failures[0], ExistsError)
    assert site.files()["day=2/b"] == before
    await site.job().rollback_job()
    assert site.files() == {"day=2/b": before}


@pytest.mark.parametrize("etags", [True, False])
async def test_an_old_file_of_the_same_size(site: Site, etags: bool) -> None:
    """A file that is replaced is not taken for the one that replaces it, of whatever size."""
    site.place({"/table/day=1/a": "x", "/table/day=2/b": "y"})
    await cut(site, Dies("rename", "/tasks/", skip=1), etags=etags, mode=Mode.REPLACE_TABLE)
    assert site.files() == {"day=1/a": "x", "day=2/b": "y"}
    await site.job().resume_job()

    assert site.files() == FILES


@pytest.mark.parametrize("etags", [True, False])
@pytest.mark.parametrize("skip", range(4))
async def test_old_files_of_the_same_size_are_restored(site: Site, skip: int, etags: bool) -> None:
    """Nor is one taken for the other by a rollback, wherever the swap was cut short."""
    site.place({"/table/day=1/a": "x", "/table/day=2/b": "y", "/table/day=3/c": "z"})
    before = site.tree()
    at = Dies("rename", "/table/day=", skip=skip)
    await cut(site, at, etags=etags, mode=Mode.REPLACE_TABLE)
    await site.job().rollback_job()

    assert site.tree() == before


# --- units ------------------------------------------------------------------------------------


@pytest.mark.parametrize("etags", [True, False])
@pytest.mark.parametrize("skip", range(6))
async def test_units_that_are_half_swapped(site: Site, skip: int, etags: bool) -> None:
    """Whether its files wait, or are in place, or the old ones are still there: all come once."""
    site.place({f"/table/{name}": "old" for name in ("day=1/a", "day=2/x", "day=9/y")})
    await cut(site, Dies("rename", "table/day=", skip=skip), etags=etags, mode=Mode.REPLACE_TABLE)
    faults = Faults()
    await site.job(faults).resume_job()

    assert site.files() == FILES
    assert site.left() == []


async def test_staged_files_are_not_at_their_destinations(site: Site) -> None:
    """What waits in a unit is not said to be visible."""
    site.place({"/table/day=1/a": "old"})
    job = await site.ready(FILES, Faults(Fault("rename", DeniedError, "day=3/c")), workers=1)
    with pytest.raises(CommitError, match="0 files are at their destinations"):
        await job.commit_job(mode=Mode.REPLACE_TABLE)


# --- adopting ---------------------------------------------------------------------------------


async def by_hand(site: Site, job: ManifestCommitter, *names: str) -> None:
    """Move some of a task's files, as Hadoop's committer has done before it died."""
    base = job.layout.task_attempt_dir(job.layout.ids(0)[1])
    for name in names:
        dest = site.path(f"/table/{name}")
        await job.store.mkdir(dest.rpartition("/")[0])
        await job.store.rename(f"{base}/{name}", dest)


@pytest.mark.parametrize("etags", [True, False])
@pytest.mark.parametrize("moved", [(), ("day=1/a",), ("day=1/a", "day=3/c"), tuple(FILES)])
async def test_a_half_done_commit_of_hadoops(
    site: Site, moved: tuple[str, ...], etags: bool
) -> None:
    """A commit without a record is finished: what is at its place counts, the rest is moved."""
    site.place({"/table/day=1/other": "o"})
    job = await site.ready(FILES)
    if not etags:
        await strip(job)
    await by_hand(site, job, *moved)
    faults = Faults()
    report = await site.job(faults).resume_job(adopt=True)

    assert len(moves(faults)) == 3 - len(moved)
    assert site.files() == FILES | {"day=1/other": "o"}
    assert report.files == 3
    assert site.left() == []
    assert "/table/_SUCCESS" in site.tree()


async def test_nothing_is_adopted_unless_it_is_said(site: Site) -> None:
    """Without the word a job without a record is nobody's to finish."""
    job = await site.ready(FILES)
    await by_hand(site, job, "day=1/a")
    before = site.tree()
    with pytest.raises(PreflightError, match="no commit of this job has begun") as failed:
        await site.job().resume_job()

    assert isinstance(failed.value.failures[0], NotFoundError)
    assert site.tree() == before


@pytest.mark.parametrize("etags", [True, False])
async def test_what_is_adopted_must_be_ours(site: Site, etags: bool) -> None:
    """A file at the place of one whose source is still there is in the way."""
    job = await site.ready(FILES)
    if not etags:
        await strip(job)
    site.place({"/table/day=1/a": "x"})
    with pytest.raises(PreflightError, match="it exists already"):
        await site.job().resume_job(adopt=True)

    assert site.files() == {"day=1/a": "x"}


async def test_what_is_adopted_must_have_its_etag(site: Site) -> None:
    """So is another file than the one that was moved."""
    job = await site.ready(FILES)
    await by_hand(site, job, "day=1/a")
    await job.store.delete(site.path("/table/day=1/a"))
    site.place({"/table/day=1/a": "x"})
    with pytest.raises(PreflightError, match="it exists already"):
        await site.job().resume_job(adopt=True)


async def test_what_is_nowhere_cannot_be_adopted(site: Site) -> None:
    """A file that is neither here nor there fails the commit, and no marker is written."""
    job = await site.ready(FILES)
    await by_hand(site, job, "day=1/a")
    await job.store.delete(site.path("/table/day=1/a"))
    with pytest.raises(CommitError):
        await site.job().resume_job(adopt=True)

    assert "/table/_SUCCESS" not in site.tree()


async def test_adopting_with_a_look_at_the_sources(site: Site) -> None:
    """What has left its source is not missing."""
    job = await site.ready(FILES)
    await by_hand(site, job, "day=1/a")
    await site.job(check_sources=True).resume_job(adopt=True)

    assert site.files() == FILES


async def test_an_adopted_commit_is_undone_whole(site: Site) -> None:
    """Once adopted, what others had moved for the job is taken back with the rest."""
    job = await site.ready(FILES)
    await by_hand(site, job, "day=1/a")
    await job.store.mkdir(site.path("/table/day=1"))
    adopting = site.job(Faults(Fault("rename", DeniedError, "day=3/c")), workers=1)
    with pytest.raises(CommitError):
        await adopting.resume_job(adopt=True)
    await site.job().rollback_job()

    assert site.files() == {}


async def test_adopting_what_has_a_record(site: Site) -> None:
    """A commit of ours that is to be adopted is simply resumed."""
    await cut(site, Dies("rename", "/tasks/", skip=1))
    report = await site.job().resume_job(adopt=True)

    assert report.resumed
    assert site.files() == FILES


# --- one file ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "epoch, etag, found",
    [(1, "its own", True), (1, "other", False), (1, None, False), (2, None, True)],
)
async def test_is_it_there(site: Site, epoch: int, etag: str | None, found: bool) -> None:
    """By its etag; by its size only if an earlier owner can have moved it."""
    site.place({"/table/f": "x"})
    run = run_of(site.job()).numbered(epoch)
    path = site.path("/table/f")
    own = (await run.store.head(path)).etag
    entry = Entry("/s", path, 1, own if etag == "its own" else etag)
    identity = identity_of(run)

    assert not Settled(run, Plan(LoadedManifests(run.options, run.store.traits)))
    assert await identity.is_at(entry, path) is found
    assert not await identity.is_at(entry, site.path("/table/none"))
    assert not await identity.is_at(entry, site.path("/table"))
    assert not await identity.is_at(entry._replace(size=2, etag=None), path)

"""Forged commits: nobody's files are moved by a job that has not asked for them."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from asynccommit.api import open_kept_job
from asynccommit.commit.ownership.outcome import decide
from asynccommit.errors import (
    CommitError,
    DeniedError,
    ForeignCommitError,
    ManifestError,
    UnfinishedError,
)
from asynccommit.formats.commit_owner import Decision, Outcome, encode_decision
from asynccommit.options.job import Mode, OnUnfinished
from asynccommit.results import JobState
from tests.commit.planning.test_plan_file import Chunk, forge, plan_in_files
from tests.support.commits import JOB, OTHER, At, Dies, Site, open_site, own
from tests.support.faults import Fault, Faults
from tests.support.permissions import GIVES_AWAY, MALLORY, give_away

pytestmark = GIVES_AWAY

__all__ = ["plan_in_files"]

THEIRS = {"day=1/theirs": "t", "day=2/theirs": "u"}
PRECIOUS = {"/table/precious.csv": "p", "/table/day=1/old": "o"}
UNASKED = [OnUnfinished.RESUME, OnUnfinished.ROLLBACK]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """An empty place on the local disk."""
    made = await open_site("local", tmp_path / "root")
    yield made
    await made.close()


def directory(site: Site, job_id: str = OTHER) -> Path:
    """Return the directory of a job attempt."""
    return Path(site.job(job_id=job_id).layout.attempt_dir)


async def forged(site: Site, job_id: str = OTHER, **options: Any) -> Path:
    """Leave a commit of another user behind, as if its process had died; return its directory."""
    site.place(PRECIOUS)
    await site.cut(THEIRS, Dies("rename", "tasks/"), job_id=job_id, **options)
    place = directory(site, job_id)
    give_away(place.parent)
    return place


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_TABLE])
@pytest.mark.parametrize("how", UNASKED)
async def test_a_nightly_job_does_nothing_for_another_user(
    site: Site, how: OnUnfinished, mode: Mode
) -> None:
    """Neither is a file of the forger's published, nor one of the table's moved aside."""
    place = await forged(site, mode=mode)
    before = site.tree()
    with pytest.raises(ForeignCommitError) as refused:
        await site.job(on_unfinished=how).setup_job()
    text = str(refused.value)

    assert site.tree() == before
    assert (refused.value.job_id, refused.value.owner) == (OTHER, "uid 1234")
    assert f"{place.parent} belongs to uid 1234, and this driver writes as root, uid 0" in text
    assert f"Look at {place}" in text
    assert "asynccommit resume" not in text


async def test_a_refusal_names_no_command_for_another_users_commit(site: Site) -> None:
    """It says whose the record is, and what to look at first; there is no option to set either."""
    place = await forged(site)
    with pytest.raises(UnfinishedError) as refused:
        await site.job().setup_job()
    text = str(refused.value)

    assert f"its record belongs to uid 1234: look at {place} before anybody acts on it" in text
    assert "asynccommit resume" not in text
    assert "asynccommit abort" not in text
    assert "on.unfinished" not in text


async def test_a_refusal_names_no_command_for_a_plan_that_is_refused(site: Site) -> None:
    """A plan against its record is told in the place of commands that would fail."""
    site.place(PRECIOUS)
    await site.cut(THEIRS, Dies("rename", "tasks/"), job_id=OTHER)
    await forge(site.job(job_id=OTHER), takes_precious)
    before = site.tree()
    with pytest.raises(UnfinishedError) as refused:
        await site.job().setup_job()
    text = str(refused.value)

    assert "moves aside" in text
    assert "precious.csv" in text
    assert "asynccommit resume" not in text
    assert site.tree() == before


def takes_precious(chunk: Chunk) -> None:
    """Have a plan move a file of the table aside that is in nobody's way."""
    chunk["aside"] = [["precious.csv", "file", None]]


@pytest.mark.parametrize("how", OnUnfinished)
async def test_a_forged_plan_takes_no_file(site: Site, how: OnUnfinished) -> None:
    """Not by a nightly job, whatever its option, and not by a person who asks for it."""
    site.place(PRECIOUS)
    await site.cut(THEIRS, Dies("rename", "tasks/"), job_id=OTHER)
    await forge(site.job(job_id=OTHER), takes_precious)
    give_away(directory(site).parent)
    before = site.files()
    with pytest.raises(CommitError):
        await site.job(on_unfinished=how).setup_job()
    assert site.files() == before

    with pytest.raises(CommitError) as refused:
        await site.job(job_id=OTHER).resume_job()
    assert isinstance(refused.value.failures[0], ManifestError)
    assert site.files() == before


def the_job(place: Path) -> list[Path]:
    """Return the directory of a job, without what is in it."""
    return [place.parent]


def the_attempt(place: Path) -> list[Path]:
    """Return the directory of its attempt."""
    return [place]


def named(pattern: str) -> Callable[[Path], list[Path]]:
    """Return what finds the files of a commit that match a pattern."""

    def find(place: Path) -> list[Path]:
        return list(place.glob(pattern))

    return find


@pytest.mark.parametrize(
    "part",
    [
        the_job,
        the_attempt,
        named("commit-record.json"),
        named("commit-plan-*"),
        named("commit-epoch-*"),
        named("commit-stopped-*"),
    ],
)
@pytest.mark.usefixtures("plan_in_files")
async def test_each_part_of_a_commit_must_be_the_drivers(
    site: Site, part: Callable[[Path], list[Path]]
) -> None:
    """One directory or file of another user is enough to leave all of it alone."""
    await site.cut(THEIRS, Dies("rename", "tasks/"), job_id=OTHER)
    place = directory(site)
    (place / "commit-stopped-000001.json").touch()
    found = part(place)
    for path in found:
        os.chown(path, MALLORY, -1)
    with pytest.raises(ForeignCommitError):
        await site.job(on_unfinished=OnUnfinished.RESUME).setup_job()

    assert found
    assert site.files() == {}


@pytest.mark.parametrize("how", UNASKED)
async def test_tasks_may_be_of_other_users(site: Site, how: OnUnfinished) -> None:
    """The table and the output of tasks may belong to any user."""
    site.place(PRECIOUS)
    await site.cut(THEIRS, Dies("rename", "tasks/"), job_id=OTHER, job_key="theirs")
    for path in (directory(site) / "tasks", Path(site.path("/table")), directory(site).parents[1]):
        os.chown(path, MALLORY, -1)
    give_away(directory(site) / "tasks")
    job = await site.ready({"day=3/ours": "n"}, on_unfinished=how, job_key="ours")
    await job.commit_job()
    old = {"precious.csv": "p", "day=1/old": "o", "day=3/ours": "n"}

    assert site.files() == old | (THEIRS if how is OnUnfinished.RESUME else {})
    assert site.left() == []


@pytest.mark.parametrize("act", ["resume", "rollback"])
async def test_who_asks_for_it_is_told_whose_it_is(site: Site, act: str) -> None:
    """A person with the rights may act on any commit."""
    await forged(site)
    job = site.job(job_id=OTHER)
    report = await (job.resume_job() if act == "resume" else job.rollback_job())

    assert "the record of its commit belongs to uid 1234" in report.warnings
    old = {"precious.csv": "p", "day=1/old": "o"}
    assert site.files() == old | (THEIRS if act == "resume" else {})
    assert site.left() == []


@pytest.mark.parametrize("act", ["resume", "rollback"])
async def test_a_directory_that_only_its_owner_enters_is_not_taken_over(
    site: Site, act: str
) -> None:
    """Who asks for it without the rights is refused before a claim is written."""
    await forged(site)
    before = site.tree()
    job = site.job(Faults(Fault("list", DeniedError, "commit-epoch-")), job_id=OTHER)
    with pytest.raises(CommitError, match="belongs to uid 1234, and only that user may enter it"):
        await (job.resume_job() if act == "resume" else job.rollback_job())

    assert site.tree() == before


async def test_a_status_of_what_is_not_readable(site: Site) -> None:
    """All but the number of moved files is told, and why that is not."""
    place = await forged(site)
    denied = DeniedError("head", f"{place}/commit-epoch-000001/aside/in/f")
    look = Faults(Fault("list", lambda op, path: denied, "day=1"))
    found = await site.job(look, job_id=OTHER).job_status()

    assert found is not None
    assert (found.state, found.done, found.files) == (JobState.STOPPED, None, 2)
    assert found.why == "its directory is not readable here, it belongs to uid 1234"


async def test_a_rerun_of_the_job_leaves_anothers_commit_alone(site: Site) -> None:
    """A job of this id did not begin that commit, so a commit does not finish it."""
    await forged(site, JOB)
    before = site.tree()
    with pytest.raises(ForeignCommitError):
        await site.job().commit_job()

    assert site.tree() == before


async def test_a_kept_job_leaves_anothers_commit_alone(site: Site) -> None:
    """An engine runs a job again without knowing what is in its directory."""
    await forged(site, JOB)
    before = site.tree()
    with pytest.raises(ForeignCommitError):
        async with open_kept_job(site.path("/table"), JOB):
            pass

    assert site.tree() == before


async def test_a_committed_job_of_another_user_is_cleaned_up(site: Site) -> None:
    """Its clean-up is in nobody's way, and moves no file of the table."""
    await site.cut(THEIRS, Dies("rename", "00.committed"), job_id=OTHER, job_key="theirs")
    give_away(directory(site).parent)
    await (await site.ready({"ours": "n"}, job_key="ours")).commit_job()

    assert site.files() == THEIRS | {"ours": "n"}
    assert site.left() == []


async def test_an_outcome_of_another_user_is_not_believed(site: Site) -> None:
    """A clean-up would delete what a commit that is none has moved aside."""
    site.place(PRECIOUS)
    dies = Dies("rename", "tasks/")
    await site.cut(THEIRS, dies, job_id=OTHER, mode=Mode.REPLACE_TABLE, mark_success=False)
    place = directory(site)
    record = hashlib.sha256((place / "commit-record.json").read_bytes()).hexdigest()
    outcome = place / "commit-outcome.json"
    outcome.write_bytes(encode_decision(Decision(Outcome.COMMITTED, 1, "id", 0, record)))
    os.chown(outcome, MALLORY, -1)
    before = site.tree()
    await site.job(mark_success=False, process="2.two").check_job()

    assert site.tree() == before


async def test_an_outcome_that_goes_finishes_no_commit(site: Site) -> None:
    """A commit that counted as committed when it was looked at is not carried out without one."""
    await site.cut(THEIRS, Dies("rename", "tasks/"), job_id=OTHER)
    site.alive |= {"1.one": False, "2.two": False}
    run = await own(site.job(job_id=OTHER, process="2.two"))
    await decide(run, Outcome.COMMITTED)
    place = directory(site)
    give_away(place.parent)

    async def vanish() -> None:
        await asyncio.to_thread((place / "commit-outcome.json").unlink)

    job = site.job(At("put", "commit-owner", vanish), process="3.three", mark_success=False)
    await job.setup_job()

    assert site.files() == {}
    assert list(place.glob("tasks/*/day=1/theirs"))

"""Jobs under a table: which are at work, which were cut short, and what is rubbish."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.ownership.outcome import decide
from asynccommit.commit.ownership.status import read_state
from asynccommit.commit.ownership.takeover import take_over
from asynccommit.commit.planning.jobs import find_ended, find_jobs, find_others, find_statuses
from asynccommit.errors import CommitError, DeniedError
from asynccommit.formats.commit_owner import Outcome
from asynccommit.options.job import Mode
from asynccommit.results import JobState, JobStatus
from asynccommit.testing.models.crashes import Process
from tests.support.commits import DEST, JOB, OTHER, At, Dies, Site, in_virtual_time, run_of
from tests.support.faults import Fault, Faults
from tests.support.jobs import committer, run_task, write

FILES = {"day=1/a": "1", "day=2/b": "2"}


async def status(site: Site, job_id: str = OTHER, **options: Any) -> JobStatus:
    """Return what is known of one job."""
    found = await site.job(job_id="asking", **options).job_statuses()
    return next(status for status in found if status.job_id == job_id)


async def dead(site: Site, **options: Any) -> None:
    """Leave a commit of another job behind whose process died."""
    await site.cut(FILES, Dies("rename", "/tasks/"), job_id=OTHER, **options)


async def test_a_table_that_is_not_there(site: Site) -> None:
    """Where there is nothing there are no jobs."""
    run = run_of(site.job())

    assert await find_jobs(run) == []
    assert await find_ended(run) == []
    assert await find_statuses(run) == []
    assert await find_others(run) == []


async def test_names_that_are_no_jobs(site: Site) -> None:
    """Files, and directories whose names are no attempts', count for nothing."""
    site.place(
        {
            f"{DEST}/_temporary/file": "x",
            f"{DEST}/_temporary/0/_temporary/attempt_1/part": "x",
            f"{DEST}/_temporary/job/1/": "",
            f"{DEST}/_temporary/job/00": "x",
            f"{DEST}/_temporary/job/x1/": "",
            f"{DEST}/_temporary/job/00.committed/": "",
            f"{DEST}/_temporary/job/01.aborted/": "",
            f"{DEST}/_temporary/job/02.rolledback/": "",
            f"{DEST}/_temporary/job/03.other/": "",
            f"{DEST}/_temporary/job/07/": "",
        }
    )
    run = run_of(site.job())

    assert [(job.job_id, job.attempt) for job in await find_jobs(run)] == [("job", 7)]
    assert [path.rpartition("/")[2] for path in await find_ended(run)] == [
        "00.committed",
        "01.aborted",
        "02.rolledback",
    ]


@pytest.mark.parametrize("name", ["a\nb", "job/123456", "\x1b[31m"])
async def test_hostile_names(tmp_path: Path, name: str) -> None:
    """Directories with names that no job of ours has keep no other job from its work."""
    write(tmp_path / "out", {f"_temporary/{name}/00/": ""})
    job = committer(tmp_path / "out")
    await job.setup_job()
    await run_task(job, 0, {"f": "x"})
    await job.commit_job()

    assert (tmp_path / "out/f").read_text() == "x"


async def test_jobs_of_older_hadoop(site: Site) -> None:
    """A job in the layout of Hadoop before 3.4.1 is found by its id."""
    job = await site.ready(FILES, job_id=OTHER)
    store = site.world.store(Process("old"))
    await store.rename(job.layout.job_dir, job.layout.older().job_dir)
    found = await find_jobs(run_of(site.job()))

    assert [(job.job_id, job.prefix) for job in found] == [(OTHER, "manifest_")]


async def test_a_directory_that_does_not_say_whose_it_is(site: Site) -> None:
    """As long as nothing is in it, a directory is of the job that it is called after."""
    site.place({f"{DEST}/_temporary/manifest_n7/00/manifests/": ""})
    found = await find_jobs(run_of(site.job()))

    assert [(job.job_id, job.prefix) for job in found] == [("manifest_n7", "")]


async def test_a_job_whose_tasks_are_at_work(site: Site) -> None:
    """Before its commit it is told how many tasks have committed, and whose the job is."""
    job = await site.ready(FILES, job_id=OTHER)
    await site.task(job, 1, {"c": "3"})
    found = await status(site)

    # It was set up by the very process that asks now, which sends no heartbeats for it.
    assert (found.state, found.tasks, found.started_ms) == (JobState.UNKNOWN, 2, 0)
    assert found.owner.startswith("alice@driver-0")
    assert not found.unfinished


async def test_a_commit_whose_owner_may_live(site: Site) -> None:
    """Nothing else is known of an owner elsewhere than that its lease is not over."""
    site.place({"/table/x": "y"})
    await dead(site, job_key="nightly", lease=77.0)
    found = await status(site, process="2.two", machine="b")

    assert (found.state, found.alive, found.unfinished) == (JobState.COMMITTING, None, False)
    assert (found.files, found.bytes, found.tasks, found.epoch) == (2, 2, 1, 1)
    assert (found.key, found.lease, found.done) == ("nightly", 77.0, None)
    assert found.owner == "alice@driver-0, process 1"
    assert found.seen_ms > 0
    assert found.started_ms > 1_700_000_000_000


@pytest.mark.parametrize(
    "alive, state",
    [(True, JobState.COMMITTING), (False, JobState.STOPPED), (None, JobState.COMMITTING)],
)
async def test_a_commit_of_this_machine(site: Site, alive: bool | None, state: JobState) -> None:
    """On the owner's machine it is known whether its process runs."""
    await dead(site)
    if alive is not None:
        site.alive["1.one"] = alive
    found = await status(site, process="2.two")

    assert (found.state, found.alive) == (state, alive)
    assert found.unfinished is (state is JobState.STOPPED)


async def test_a_commit_that_failed(site: Site) -> None:
    """Why it stopped is told."""
    job = await site.ready(FILES, Faults(Fault("rename", DeniedError, "day=2")), job_id=OTHER)
    with pytest.raises(CommitError):
        await job.commit_job()
    found = await status(site, process="2.two", machine="b")

    assert (found.state, found.alive, found.unfinished) == (JobState.STOPPED, False, True)
    assert "day=2" in found.error


@in_virtual_time
async def test_a_commit_whose_lease_is_over(site: Site) -> None:
    """Whoever is silent for longer than its lease has expired."""
    await dead(site, lease=50.0)
    await asyncio.sleep(51)
    assert (await status(site, process="2.two", machine="b")).state is JobState.COMMITTING
    await asyncio.sleep(2)
    found = await status(site, process="2.two", machine="b")

    assert (found.state, found.alive, found.unfinished) == (JobState.EXPIRED, False, True)


@pytest.mark.parametrize(
    "outcome, state",
    [(Outcome.COMMITTED, JobState.COMMITTED), (Outcome.ROLLBACK, JobState.ROLLING_BACK)],
)
async def test_a_commit_that_is_decided(site: Site, outcome: Outcome, state: JobState) -> None:
    """What was decided is its state; somebody has to finish it only if its owner is dead."""
    await dead(site)
    job = site.job(job_id=OTHER, process="2.two")
    standing = await read_state(job.store, job.layout)
    assert standing is not None
    async with await take_over(run_of(job), standing, force=True) as lease:
        await decide(lease.run, outcome)
        found = await status(site, process="2.two")
        assert (found.state, found.unfinished, found.epoch) == (state, False, 2)
    site.alive["2.two"] = False
    found = await status(site, process="3.three")

    assert (found.state, found.unfinished) == (state, True)


async def test_a_commit_that_was_kept(site: Site) -> None:
    """A committed job whose directory is kept has ended."""
    job = await site.ready(FILES, job_id=OTHER, cleanup_skipped=True)
    await job.commit_job()
    found = await status(site, process="2.two")

    assert (found.state, found.unfinished) == (JobState.ENDED, False)


async def test_its_own_commit_is_not_anothers(site: Site) -> None:
    """A job asks of others; its own attempts are not among them."""
    await site.cut(FILES, Dies("rename", "/tasks/"))
    run = run_of(site.job())

    assert await find_others(run) == []
    assert [found.job_id for found in await find_statuses(run)] == [JOB]


async def test_where_others_write(site: Site) -> None:
    """With each commit it is told which directories it touches, also what it replaces."""
    site.place({"/table/day=9/old": "o", "/table/loose": "l"})
    await site.cut(FILES, Dies("rename", "/tasks/"), job_id=OTHER, mode=Mode.REPLACE_TABLE)
    others = await find_others(run_of(site.job()))

    assert [other.status.job_id for other in others] == [OTHER]
    names = ("day=1", "day=2", "day=9", "loose")
    assert others[0].places == [site.path(f"/table/{name}") for name in names]


async def test_many_places_are_the_table(site: Site) -> None:
    """A commit to very many directories touches the table."""
    files = {f"p={n}/f": "x" for n in range(1_001)}
    await site.cut(files, Dies("rename", "/tasks/"), job_id=OTHER)
    others = await find_others(run_of(site.job()))

    assert others[0].places == [site.path("/table")]


@pytest.mark.parametrize("data", [b"not JSON", b"{}", b'{"type": "asynccommit.CommitRecord/1"}'])
async def test_a_record_that_cannot_be_read(site: Site, data: bytes) -> None:
    """It is somebody's to look at, and keeps nobody from seeing the others."""
    await dead(site)
    job = site.job(job_id=OTHER)
    await job.store.put(job.layout.record, data)
    third = site.job(job_id="third")
    await third.store.mkdir(third.layout.manifests_dir)
    await site.task(third, 0, FILES)
    await site.cut_commit(Dies("rename", "/tasks/"), job_id="third")
    found = {status.job_id: status for status in await find_statuses(run_of(site.job()))}

    assert found["third"].files == 2
    assert found[OTHER].unfinished
    assert "commit-record.json" in found[OTHER].error


async def test_in_order(site: Site) -> None:
    """Statuses come in the order in which the commits began, those that have not before."""
    for number in (3, 1, 2):
        job = site.job(job_id=f"job{number}")
        await job.store.mkdir(job.layout.manifests_dir)
        await site.task(job, 0, {f"f{number}": "x"})
    await site.cut_commit(Dies("rename", "/tasks/"), job_id="job2")
    found = await find_statuses(run_of(site.job()))

    assert [status.job_id for status in found] == ["job1", "job3", "job2"]


async def test_a_job_that_goes_while_it_is_looked_at(site: Site) -> None:
    """A job that ends between two requests is not listed, or as it was."""
    other = await site.ready(FILES, job_id=OTHER)

    async def end() -> None:
        await other.commit_job()

    job = site.job(At("list", f"{OTHER}/00", end), job_id="asking")
    await job.job_statuses()

    assert site.files() == FILES


async def test_files_at_their_destinations(site: Site) -> None:
    """A job's own status counts what is where it belongs, and changes nothing."""
    await site.cut(FILES, Dies("rename", "/tasks/", skip=1), workers=1)
    before = site.tree()
    found = await site.job().job_status()

    assert found is not None
    assert (found.done, found.files) == (1, 2)
    assert site.tree() == before


async def test_no_status(site: Site) -> None:
    """A job whose commit has not begun has none."""
    assert await (await site.ready(FILES)).job_status() is None
    assert await site.job(job_id=OTHER).job_status() is None

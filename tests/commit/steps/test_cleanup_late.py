"""A clean-up or an abort that comes late: the next run of the job's id loses nothing by it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.errors import CommitError, LeaseLostError
from asynccommit.options.job import Mode
from asynccommit.results import AbortReport
from tests.support.commits import JOB, At, Dies, Site, in_virtual_time

FILES = {"day=1/a": "1", "day=2/b": "2"}
NEXT = {"day=1/a": "of the next run"}


def elsewhere(act: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], Awaitable[None]]:
    """Return what another process does: nothing of the one that waits for it is its own."""
    return lambda: asyncio.get_running_loop().create_task(act(), context=Context())


async def next_run(site: Site, process: str = "2.two") -> ManifestCommitter:
    """Set up the next run of the same id; one task has committed, the job has not."""
    job = site.job(process=process)
    await job.setup_job()
    task_id, attempt_id = job.layout.ids(0)
    base = await job.setup_task(attempt_id)
    for name, text in NEXT.items():
        await job.store.mkdir(f"{base}/{name}".rpartition("/")[0])
        await job.store.put(f"{base}/{name}", text.encode())
    await job.commit_task(task_id, attempt_id)
    return job


async def test_the_next_run_is_set_up_while_the_last_one_is_deleted(site: Site) -> None:
    """Only its own directory is the clean-up's to delete, and the next run commits."""
    following: list[ManifestCommitter] = []

    async def begin() -> None:
        following.append(await next_run(site))

    job = await site.ready(FILES, At("delete_tree", "00.committed", elsewhere(begin)))
    await job.commit_job()
    await following[0].commit_job(mode=Mode.REPLACE_TABLE)
    assert site.files() == NEXT


@in_virtual_time
async def test_an_abort_that_stood_still(site: Site) -> None:
    """Its request waits until another has aborted the job and the next run is at work."""

    async def meanwhile() -> None:
        await asyncio.sleep(1000)
        assert isinstance(await site.job(process="3.three").abort_job(), AbortReport)
        await next_run(site)

    job = await site.ready(FILES, At("rename", "00.aborted", elsewhere(meanwhile)))
    with pytest.raises(CommitError, match="was suspended"):
        await job.abort_job()
    assert any(path.endswith("-manifest.json") for path in site.left())


@in_virtual_time
async def test_a_clean_up_that_stood_still(site: Site) -> None:
    """It leaves the job's directory to whoever has taken it over, and the next run its own."""

    async def meanwhile() -> None:
        await asyncio.sleep(1000)
        await site.job(process="3.three").resume_job(force=True)
        await next_run(site)

    job = await site.ready(FILES, At("rename", "00.committed", elsewhere(meanwhile)))
    report = await job.commit_job()
    assert "left to the process" in str(report.warnings)
    assert [p for p in site.left() if p.endswith("-manifest.json")], (site.left(), report)


async def test_a_setup_that_is_executed_after_the_end(site: Site) -> None:
    """It brings directories of the job back, and the job is committed all the same."""
    dies = Dies("delete_tree", "00.committed")
    job = site.job(dies)
    await job.setup_job()
    message = await site.task(job, 0, FILES)
    with suppress(BaseException):
        await job.commit_job([message])
    assert dies.dead
    site.alive["1.one"] = False
    other = site.job(process="3.three")
    for path in other.layout.setup_dirs:
        await other.store.mkdir(path)

    assert (await other.commit_job([message])).already_committed
    assert (site.files(), site.left()) == (FILES, [])


@in_virtual_time
async def test_no_commit_begins_where_its_own_request_made_a_directory(site: Site) -> None:
    """The commit looks for the job once it has made its directories, which an abort may precede."""
    aborting = site.job(Dies("delete", f"_temporary/{JOB}"))

    async def abort() -> None:
        with suppress(BaseException):
            await aborting.abort_job()

    job = await site.ready(FILES, At("mkdir", "commit-epoch", abort), Dies("rename", "/manifests"))
    with suppress(BaseException):
        await job.commit_job()
    assert not any("commit-record" in path for path in await site.left_now())
    await site.job(process="3.three").rollback_job(force=True)

    assert site.files() == {}
    assert site.left() == []


@in_virtual_time
async def test_a_rollback_that_claims_the_job_as_it_ends(site: Site) -> None:
    """A claim that went with the directory of a committed job undoes nothing, and says so."""
    decides, decided, ends, ended = [asyncio.Event() for _ in range(4)]

    async def stop(here: asyncio.Event, until: asyncio.Event) -> None:
        here.set()
        await until.wait()

    job = await site.ready(
        FILES,
        At("put", "commit-outcome", elsewhere(lambda: stop(decides, decided))),
        At("rename", "00.committed", elsewhere(lambda: stop(ends, ended))),
    )
    commit = asyncio.create_task(job.commit_job())
    await decides.wait()

    async def decide() -> None:
        decided.set()
        await ends.wait()

    async def end() -> None:
        ended.set()
        await asyncio.wait([commit])

    late = site.job(
        At("put", "commit-owner", elsewhere(decide)),
        At("put", "commit-owner", elsewhere(end), after=True),
        process="2.two",
    )
    with pytest.raises(LeaseLostError, match="ended it a moment ago"):
        await late.rollback_job(force=True)

    assert (await commit).files == len(FILES)
    assert site.files() == FILES
    assert site.left() == []

"""Drafts of the owner's files are put in place whole, or not at all."""

from __future__ import annotations

import pytest

from asynccommit.commit.driver.drafts import draft, put_drafted
from asynccommit.errors import ExistsError, NotFoundError
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.round_trips import MeasuredJob


async def left(job: MeasuredJob) -> list[str]:
    """Return the names in the job's directory, with those that listings hide."""
    listed = job.account.list("data", "", recursive=True)
    return [name for name, _ in listed.entries if "_temporary" in name]


def test_a_draft_takes_the_place_of_its_file() -> None:
    """It holds what was written, and nothing is left beside it."""

    async def main() -> tuple[bytes, list[str]]:
        measured = MeasuredJob()
        await measured.job.setup_job()
        run = measured.job._run()
        ahead = await draft(run.store, run.layout, b"data")
        await put_drafted(run.store, run.layout, run.layout.record, b"data", ahead)
        return await measured.store.get(run.layout.record, 10), await left(measured)

    data, names = run_virtual(main())
    assert data == b"data"
    assert not [name for name in names if ".asynccommit" in name]


async def refused(measured: MeasuredJob, kind: type[Exception]) -> list[str]:
    """Return what is left by a draft that cannot be put in place."""
    run = measured.job._run()
    ahead = await draft(run.store, run.layout, b"mine")
    with pytest.raises(kind):
        await put_drafted(run.store, run.layout, run.layout.record, b"mine", ahead)
    return await left(measured)


def test_a_draft_does_not_replace() -> None:
    """Where another owner's file is, the draft is deleted."""

    async def main() -> tuple[bytes, list[str]]:
        measured = MeasuredJob()
        await measured.job.setup_job()
        await measured.store.put(measured.job.layout.record, b"theirs")
        names = await refused(measured, ExistsError)
        return await measured.store.get(measured.job.layout.record, 10), names

    data, names = run_virtual(main())
    assert data == b"theirs"
    assert not [name for name in names if ".asynccommit" in name]


def test_a_draft_of_a_job_that_has_ended_leaves_nothing() -> None:
    """The directories that the store made for it are deleted again."""

    async def main() -> list[str]:
        measured = MeasuredJob()
        await measured.job.setup_job()
        await measured.job.abort_job()
        return await refused(measured, NotFoundError)

    assert run_virtual(main()) == []

"""The snapshot of a job is used only for a job as its tasks have left it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.job.publisher import Inputs
from asynccommit.commit.planning.snapshot import look_ahead
from asynccommit.errors import CommitError
from asynccommit.options.job import Mode, Options
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.tree import list_all
from asynccommit.testing.models.adls.account import AdlsAccount
from asynccommit.testing.models.adls.store import SimStore
from asynccommit.testing.models.fault_rules import FaultDecision
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.round_trips import ADLS, MeasuredJob, SteadyWeather

FILE = "/table/day=0/f0-0"

Disturb = Callable[[MeasuredJob], Awaitable[object]]


async def ready(*, files: int = 1) -> MeasuredJob:
    """Return a job whose only task is committed."""
    measured = MeasuredJob()
    await measured.job.setup_job()
    await measured.run_task(0, files, 1)
    return measured


async def begun(job: MeasuredJob) -> None:
    """Leave the record of a commit."""
    await job.store.put(job.job.layout.record, b"{}")


async def aborting(job: MeasuredJob) -> None:
    """Leave what an abort moves away."""
    await job.store.mkdir(job.job.layout.ended("aborted"))


async def ending(job: MeasuredJob) -> None:
    """Leave what a clean-up moves away."""
    await job.store.mkdir(job.job.layout.ended("committed"))


async def again(job: MeasuredJob) -> None:
    """Leave another attempt of the job."""
    await job.store.mkdir(f"{job.job.layout.job_dir}/01/manifests")


async def unknown(job: MeasuredJob) -> None:
    """Leave a file that no job writes."""
    await job.store.put(f"{job.job.layout.attempt_dir}/notes", b"x")


async def not_set_up(job: MeasuredJob) -> None:
    """Take the manifests away."""
    await job.store.delete_tree(job.job.layout.manifests_dir)


@pytest.mark.parametrize("disturb", [begun, aborting, ending, again, unknown, not_set_up])
def test_any_other_job_is_asked_step_by_step(disturb: Disturb) -> None:
    """A job with anything but what tasks leave has no snapshot."""

    async def look() -> tuple[bool, bool]:
        measured = await ready()
        inputs = Inputs(measured.messages, Mode.APPEND, ())
        before = await look_ahead(measured.job._run(), inputs)
        await disturb(measured)
        return before is not None, await look_ahead(measured.job._run(), inputs) is not None

    assert run_virtual(look()) == (True, False)


@pytest.mark.parametrize(
    "mode, overwrite, known",
    [(Mode.APPEND, (), True), (Mode.REPLACE_TABLE, (), False), (Mode.APPEND, ("/table",), False)],
)
def test_a_destination_to_replace_is_left_out(
    mode: Mode, overwrite: tuple[str, ...], known: bool
) -> None:
    """Other jobs must be looked for before what is replaced is listed."""

    async def requests() -> int:
        measured = await ready()
        store = await look_ahead(measured.job._run(), Inputs(measured.messages, mode, overwrite))
        assert store is not None
        before = len(measured.weather.seen)
        await store.list("/table")
        return len(measured.weather.seen) - before

    assert run_virtual(requests()) == (0 if known else 1)


class Meddling(SteadyWeather):
    """The weather of an account where a foreign file appears as the plan is written."""

    def __init__(self, account: AdlsAccount) -> None:
        super().__init__()
        self._account = account

    def decide(self, op: str, path: str) -> FaultDecision:
        """See ``SteadyWeather.decide``."""
        if op == "create" and "commit-epoch" in path:
            self._account.create("data", FILE[1:])
        return super().decide(op, path)


def test_a_file_that_comes_after_the_snapshot_is_kept() -> None:
    """A foreign file at a destination that the snapshot calls free stops the commit."""

    async def commit() -> tuple[bool, int]:
        measured = await ready()
        options = {"account": measured.account, "weather": Meddling(measured.account)}
        store = wrap(SimStore(ADLS, options), StoreSettings(random.Random(0)))
        job = ManifestCommitter(store, measured.job.layout, Options(), measured.host)
        with pytest.raises(CommitError, match="already exists"):
            await job.commit_job(measured.messages)
        await job.rollback_job()
        return (await store.head(FILE)).size == 0, len(await list_all(store, "/table"))

    assert run_virtual(commit()) == (True, 1)

"""Publish by completing uploads: the steps of ``JobCommitter``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace

from asynccommit.commit.by_upload.cleanup import clean_up, clean_up_aborted
from asynccommit.commit.by_upload.context import UploadContext, at_work
from asynccommit.commit.by_upload.jobs import find_attempts
from asynccommit.commit.by_upload.load_sets import load_sets
from asynccommit.commit.by_upload.plan import UploadPlan
from asynccommit.commit.by_upload.preflight import preflight
from asynccommit.commit.by_upload.record import begin, refuse_leftovers, refuse_other_attempts
from asynccommit.commit.by_upload.snapshot import look_ahead, look_at_destination
from asynccommit.commit.by_upload.status import (
    UploadCommitState,
    acting_for,
    attempts_of,
    begun_attempts,
    is_committed,
    read_state,
)
from asynccommit.commit.by_upload.steps import (
    carry_out,
    check_destination,
    check_messages,
    clean,
    is_over,
    job_report,
    resume,
    roll_back,
    see,
    status,
)
from asynccommit.commit.job.cleanup import CleanupResult
from asynccommit.commit.job.publisher import AbortResult, Inputs, Publisher
from asynccommit.commit.job.reporting import reporting
from asynccommit.commit.job.setup import Unfinished
from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.options.job import Mode
from asynccommit.results import AbortReport, JobReport, JobStatus
from asynccommit.stores.base import Store


class UploadPublisher(Publisher[UploadContext, UploadCommitState, UploadPlan]):
    """Publishes files by completing their uploads.

    There is no owner: an upload ends once, so two processes may finish one commit safely.
    """

    @asynccontextmanager
    async def working(
        self, run: UploadContext, *, save: bool = True, inputs: Inputs | None = None
    ) -> AsyncIterator[UploadContext]:
        """See ``Publisher.working``."""
        with at_work(run):
            async with reporting(run, stopped=self.stopped, save=save):
                yield run if inputs is None else await look_ahead(run, inputs)

    async def look_at_destination(self, run: UploadContext) -> Store | None:
        """See ``Publisher.look_at_destination``."""
        return await look_at_destination(run)

    async def unfinished(self, run: UploadContext) -> list[Unfinished]:
        """See ``Publisher.unfinished``.

        Only jobs on this machine and on the given stores are found.
        """
        others = await find_attempts(run, own=False)
        return [Unfinished(o.layout, o.status) for o in others if o.status.unfinished]

    async def check_setup(self, run: UploadContext, mode: Mode, overwrite: Sequence[str]) -> None:
        """See ``Publisher.check_setup``."""
        await check_destination(run, mode, overwrite)

    async def set_up(self, run: UploadContext) -> None:
        """See ``Publisher.set_up``."""
        await run.pending.put(run.layout.living, b"")
        if not run.store.traits.conditions_proven:
            own = run.pending is run.store
            await run.store.learn(run.layout.attempt_dir if own else run.layout.scratch)

    async def attempts(self, run: UploadContext) -> Sequence[Layout]:
        """See ``Publisher.attempts``: an abort deletes all of them."""
        return await attempts_of(run)

    async def state(self, run: UploadContext) -> tuple[UploadContext, UploadCommitState | None]:
        """See ``Publisher.state``."""
        return await see(run)

    async def is_over(self, run: UploadContext, state: UploadCommitState) -> bool:
        """See ``Publisher.is_over``."""
        return await is_over(run, state)

    async def is_committed(
        self,
        run: UploadContext,
        tasks: Sequence[TaskCommit] | None = None,
        *,
        trusting: bool = False,
    ) -> UploadContext | None:
        """See ``Publisher.is_committed``."""
        return await is_committed(run, tasks)

    async def refuse_other_attempts(self, run: UploadContext) -> None:
        """See ``Publisher.refuse_other_attempts``."""
        refuse_other_attempts(run, await begun_attempts(run))

    def new_plan(self, run: UploadContext, mode: Mode) -> AbstractContextManager[UploadPlan]:
        """See ``Publisher.new_plan``."""
        return UploadPlan.new(run.options, mode)

    async def load(
        self,
        run: UploadContext,
        plan: UploadPlan,
        tasks: Sequence[TaskCommit] | None,
        *,
        strict: bool = False,
    ) -> None:
        """See ``Publisher.load``."""
        await load_sets(run, plan.loaded, tasks, strict=strict)

    async def refuse_leftovers(self, run: UploadContext, plan: UploadPlan, *, known: bool) -> None:
        """See ``Publisher.refuse_leftovers``."""
        await refuse_leftovers(run, plan, known=known)

    async def preflight(
        self,
        run: UploadContext,
        plan: UploadPlan,
        overwrite: Sequence[str],
        *,
        adopt: bool = False,
        dry: bool = False,
    ) -> None:
        """See ``Publisher.preflight``."""
        await preflight(run, plan, overwrite, adopt=adopt)
        if dry:
            await plan.take_sample()

    async def commit(
        self,
        run: UploadContext,
        plan: UploadPlan,
        *,
        made_destination: bool,
        began: Callable[[], Awaitable[None]],
        adopt: bool = False,
    ) -> UploadContext:
        """See ``Publisher.commit``."""
        run = replace(run, snapshot=None)
        run, record = await begin(run, plan, made_destination=made_destination)
        await began()
        await carry_out(run, plan, record)
        return run

    def report(self, run: UploadContext, plan: UploadPlan | None = None) -> JobReport:
        """See ``Publisher.report``."""
        return job_report(run, plan)

    def check_messages(
        self,
        run: UploadContext,
        state: UploadCommitState,
        tasks: Sequence[TaskCommit],
    ) -> None:
        """See ``Publisher.check_messages``."""
        check_messages(run, state.record, tasks)

    async def resume(
        self, run: UploadContext, state: UploadCommitState, *, force: bool = False
    ) -> JobReport:
        """See ``Publisher.resume``. ``force`` has no effect."""
        return await resume(run, state)

    async def roll_back(
        self, run: UploadContext, state: UploadCommitState, *, force: bool = False
    ) -> AbortReport:
        """See ``Publisher.roll_back``. ``force`` has no effect."""
        with at_work(run):
            return await roll_back(run, state)

    async def finish(self, run: UploadContext, state: UploadCommitState | None) -> UploadContext:
        """See ``Publisher.finish``."""
        await clean(run)
        return run

    async def abort(self, run: UploadContext) -> AbortResult:
        """See ``Publisher.abort``."""
        outcome, swept = await clean_up_aborted(run)
        return AbortResult(outcome, swept.uploads)

    async def clean_up(self, run: UploadContext) -> CleanupResult:
        """See ``Publisher.clean_up``."""
        state = await read_state(run)
        if state is None:
            return (await clean_up_aborted(run))[0]
        return (await clean_up(acting_for(run, state).acts()))[0]

    async def status(self, run: UploadContext, state: UploadCommitState) -> JobStatus:
        """See ``Publisher.status``. Open uploads are listed once."""
        return await status(run, state)

    async def statuses(self, run: UploadContext) -> list[JobStatus]:
        """See ``Publisher.statuses``."""
        return [found.status for found in await find_attempts(run, lives=True)]

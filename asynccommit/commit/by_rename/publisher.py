"""Publish by renames: the steps that ``JobCommitter`` calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import replace
from typing import ClassVar, Protocol, cast

from asynccommit.commit.by_rename.interrupted import find_given_back, finish_given_back
from asynccommit.commit.by_rename.record import begin, refuse_other_attempts
from asynccommit.commit.by_rename.recovery import (
    are_named,
    check_messages,
    resume,
    roll_back_job,
    status,
)
from asynccommit.commit.by_rename.steps import STEPS, clean, conclude, job_report
from asynccommit.commit.context import CommitContext, Phase
from asynccommit.commit.errors import finish
from asynccommit.commit.job.cleanup import CleanupResult
from asynccommit.commit.job.publisher import AbortResult, Inputs, Publisher
from asynccommit.commit.job.reporting import reporting
from asynccommit.commit.job.setup import Unfinished, check_setup
from asynccommit.commit.layouts.file_output import recorded
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.ownership.attempt_files import delete_remains
from asynccommit.commit.ownership.directory_of import directory_of
from asynccommit.commit.ownership.directory_owner import refuse_taken
from asynccommit.commit.ownership.job_state import has_work, is_committed
from asynccommit.commit.ownership.lease import say_stopped
from asynccommit.commit.ownership.pinned import pinned
from asynccommit.commit.ownership.status import CommitState, is_over, read_state
from asynccommit.commit.planning.concurrent_jobs import look_after_record, look_before_record
from asynccommit.commit.planning.jobs import checked, find_others, find_statuses
from asynccommit.commit.planning.load_manifests import LoadedManifests
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.planning.preflight import preflight
from asynccommit.commit.planning.snapshot import look_ahead, look_at_destination
from asynccommit.commit.slices.hand_out import with_workers
from asynccommit.commit.steps.cleanup import begun_attempts, clean_up, clean_up_aborted
from asynccommit.commit.steps.identity import Settled
from asynccommit.commit.steps.rename_files import reconcile
from asynccommit.commit.steps.runner import forward
from asynccommit.errors import (
    CommitError,
    LeaseLostError,
    ManifestError,
    PreconditionError,
    StoreError,
)
from asynccommit.options.job import Mode, OnUnfinished
from asynccommit.results import AbortReport, JobReport, JobStatus
from asynccommit.runtime.concurrency import both
from asynccommit.stores.base import LearningStore, Store


class Load(Protocol):
    """Reads the output of committed tasks: manifests or directories."""

    def __call__(
        self,
        run: CommitContext,
        loaded: LoadedManifests,
        tasks: Sequence[TaskCommit] | None,
        *,
        strict: bool = False,
    ) -> Awaitable[None]:
        """Read into ``loaded`` the files of ``tasks``. Raises ``ManifestError``."""
        ...


class RenamePublisher(Publisher[CommitContext, CommitState, Plan]):
    """Publishes files by renaming them to their destinations, under a lease.

    Args:
        load: reads what the committed tasks have left.
        overwrites: whether files of the job replace existing files.
    """

    moves: ClassVar[bool] = False

    def __init__(self, load: Load, *, overwrites: bool = False) -> None:
        self._load = load
        self._overwrites = overwrites

    @asynccontextmanager
    async def working(
        self, run: CommitContext, *, save: bool = True, inputs: Inputs | None = None
    ) -> AsyncIterator[CommitContext]:
        """See ``Publisher.working``."""
        # The pins outlive the block: what is written about a failure follows no link either.
        async with AsyncExitStack() as pins, reporting(run, stopped=say_stopped, save=save):
            if inputs is not None:
                run = replace(run, snapshot=await look_ahead(run, inputs))
            yield await pins.enter_async_context(pinned(run))

    def looking(self, run: CommitContext) -> AbstractAsyncContextManager[CommitContext]:
        """See ``Publisher.looking``."""
        return pinned(run)

    async def look_at_destination(self, run: CommitContext) -> Store | None:
        """See ``Publisher.look_at_destination``."""
        return await look_at_destination(run)

    async def unfinished(self, run: CommitContext) -> list[Unfinished]:
        """See ``Publisher.unfinished``.

        Where the option refuses them, no command is named that their plans would make fail.
        """
        others = [other for other in await find_others(run) if other.status.unfinished]
        if run.options.on_unfinished is not OnUnfinished.REFUSE:
            return [Unfinished(other.layout, other.status) for other in others]
        return [Unfinished(other.layout, await checked(run, other)) for other in others]

    async def set_up(self, run: CommitContext) -> None:
        """See ``Publisher.set_up``; a store that can finds out what its service does."""
        if run.store.traits.learns and not run.store.traits.conditions_proven:
            await cast(LearningStore, run.store).learn(run.layout.attempt_dir)

    async def check_setup(self, run: CommitContext, mode: Mode, overwrite: Sequence[str]) -> None:
        """See ``Publisher.check_setup``."""
        await check_setup(run, mode, overwrite)

    async def refuse_taken(self, run: CommitContext) -> None:
        """See ``Publisher.refuse_taken``."""
        await refuse_taken(run)

    async def state(self, run: CommitContext) -> tuple[CommitContext, CommitState | None]:
        """See ``Publisher.state``."""
        try:
            directory = directory_of(run)
            state, renamed = await both(
                lambda: read_state(run.store, run.layout), lambda: directory.is_renamed(run)
            )
            if state is None:
                if renamed:
                    await directory.restore_begun(run)
                state = await read_state(run.store, run.layout)
        except ManifestError:
            run.reach(Phase.BEGUN)
            raise
        if state is not None:
            run.reach(Phase.BEGUN)
            layout = recorded(run.layout, state.record.options)
            return replace(run, layout=layout).acts(), state
        return run, None

    async def is_over(self, run: CommitContext, state: CommitState) -> bool:
        """See ``Publisher.is_over``."""
        return is_over(state)

    async def is_committed(
        self,
        run: CommitContext,
        tasks: Sequence[TaskCommit] | None = None,
        *,
        trusting: bool = False,
    ) -> CommitContext | None:
        """See ``Publisher.is_committed``."""
        return run if await is_committed(run, tasks, trusting=trusting) else None

    async def refuse_other_attempts(self, run: CommitContext) -> None:
        """See ``Publisher.refuse_other_attempts``."""
        refuse_other_attempts(run, await begun_attempts(run, others=True))

    @contextmanager
    def new_plan(self, run: CommitContext, mode: Mode) -> Iterator[Plan]:
        """See ``Publisher.new_plan``."""
        with LoadedManifests(run.options, run.store.traits) as loaded:
            yield Plan(loaded, mode)

    async def load(
        self,
        run: CommitContext,
        plan: Plan,
        tasks: Sequence[TaskCommit] | None,
        *,
        strict: bool = False,
    ) -> None:
        """See ``Publisher.load``."""
        await self._load(run, plan.loaded, tasks, strict=strict)

    async def preflight(
        self,
        run: CommitContext,
        plan: Plan,
        overwrite: Sequence[str],
        *,
        adopt: bool = False,
        dry: bool = False,
    ) -> None:
        """See ``Publisher.preflight``."""
        await preflight(run, plan, overwrite, adopt=adopt, over=self._overwrites, looking=dry)
        await look_before_record(run, plan, looking=dry)
        if dry:
            await plan.take_sample()

    async def commit(
        self,
        run: CommitContext,
        plan: Plan,
        *,
        made_destination: bool,
        began: Callable[[], Awaitable[None]],
        adopt: bool = False,
    ) -> CommitContext:
        """See ``Publisher.commit``.

        Raises ``PreconditionError`` to give way to a newer job that touches directories to be
        replaced.
        """
        async with with_workers(replace(run, snapshot=None), plan) as helped:
            await self._commit(helped, plan, made_destination, began, adopt=adopt)
        return run.now

    async def _commit(
        self,
        run: CommitContext,
        plan: Plan,
        made_destination: bool,
        began: Callable[[], Awaitable[None]],
        *,
        adopt: bool,
    ) -> None:
        lease = await begin(run, plan, made_destination=made_destination)
        run = lease.run
        try:
            async with lease:
                await began()
                await _withdraw_if_others(run, plan)
                settled = await reconcile(run, plan, adopt=True) if adopt else Settled(run, plan)
                marker = await forward(run, plan, STEPS, settled)
                await conclude(run, plan, marker)
        except (LeaseLostError, StoreError) as error:
            state = await find_given_back(run, lease, error)
            if state is None:
                raise
            await finish_given_back(run, state)

    def report(self, run: CommitContext, plan: Plan | None = None) -> JobReport:
        """See ``Publisher.report``."""
        return job_report(run, plan)

    def check_messages(
        self,
        run: CommitContext,
        state: CommitState,
        tasks: Sequence[TaskCommit],
    ) -> None:
        """See ``Publisher.check_messages``."""
        check_messages(run, state.record, tasks)

    def are_named(
        self, state: CommitState, tasks: Sequence[TaskCommit], overwrite: Sequence[str]
    ) -> bool:
        """See ``Publisher.are_named``."""
        return are_named(state.record, tasks, overwrite)

    async def resume(
        self, run: CommitContext, state: CommitState, *, force: bool = False
    ) -> JobReport:
        """See ``Publisher.resume``."""
        self._refuse_other_kind(run)
        return await resume(run, state, force=force)

    async def roll_back(
        self, run: CommitContext, state: CommitState, *, force: bool = False
    ) -> AbortReport:
        """See ``Publisher.roll_back``."""
        self._refuse_other_kind(run)
        return await roll_back_job(run, state, force=force)

    def _refuse_other_kind(self, run: CommitContext) -> None:
        """Refuse a move where a job is meant: its journal says what it may change."""
        if run.layout.outside and not self.moves:
            text = f"it is not a job but a move of files. {finish(run)}"
            raise CommitError(run.layout.job_id, run.meter.stage, (), text)

    async def stopped(self, run: CommitContext, error: BaseException) -> None:
        """See ``Publisher.stopped``."""
        await say_stopped(run, error)

    async def finish(self, run: CommitContext, state: CommitState | None) -> CommitContext:
        """See ``Publisher.finish``.

        Beside a record nothing is kept: a clean-up deletes what tasks write meanwhile as well.
        Without one, tasks may have made the directory since.
        """
        if state is not None:
            run = run.for_commit(state.commit_id).acts()
        if state is None and await has_work(run):
            run.warn(f"{run.layout.attempt_dir} was kept: tasks have written there since")
            await delete_remains(run)
        else:
            await clean(run)
        return run

    async def abort(self, run: CommitContext) -> AbortResult:
        """See ``Publisher.abort``."""
        return AbortResult(await clean_up_aborted(run))

    async def clean_up(self, run: CommitContext) -> CleanupResult:
        """See ``Publisher.clean_up``."""
        return await clean_up(run)

    async def status(self, run: CommitContext, state: CommitState) -> JobStatus:
        """See ``Publisher.status``."""
        return await status(run, state)

    async def statuses(self, run: CommitContext) -> list[JobStatus]:
        """See ``Publisher.statuses``."""
        return await find_statuses(run)


async def _withdraw_if_others(run: CommitContext, plan: Plan) -> None:
    """Give way to a newer job that touches directories to be replaced."""
    try:
        await look_after_record(run, plan)
    except PreconditionError:
        run.withdraw()
        raise

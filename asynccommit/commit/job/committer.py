"""The job side of every committer: one order of steps."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Generic, Self

from asynccommit.commit.context import CommitContext, Environment, OnVisible, Phase
from asynccommit.commit.driver.claims import look_first
from asynccommit.commit.driver.driver_liveness import DriverLiveness
from asynccommit.commit.errors import commit_failures, finish, note_interrupt, say_undone
from asynccommit.commit.hints import job_command
from asynccommit.commit.job.cleanup import CleanupResult, remove_if_empty
from asynccommit.commit.job.modes import is_replaced
from asynccommit.commit.job.observing import observed_job
from asynccommit.commit.job.publisher import Inputs, PlanT, Publisher, RunT, StateT
from asynccommit.commit.job.reporting import report_ended, rolled_back_first, undo_half_way
from asynccommit.commit.job.reports import has_report, report_on
from asynccommit.commit.job.setup import Other, refuse_repeating, to_settle
from asynccommit.commit.job_context import JobContext
from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.commit.meter import OnProgress
from asynccommit.commit.orders import Runner
from asynccommit.errors import (
    CommitError,
    CommittedError,
    ForeignCommitError,
    NotFoundError,
)
from asynccommit.options.job import Mode, OnFailure, Options
from asynccommit.redact import Redacted
from asynccommit.results import AbortReport, JobReport, JobStatus
from asynccommit.runtime.concurrency import together
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.policies.stats import Count
from asynccommit.stores.policies.traffic import Traffic
from asynccommit.stores.urls import Address

log = logging.getLogger(__name__)


class JobCommitter(DriverLiveness, Generic[RunT, StateT, PlanT]):
    """A committer of one job attempt under one destination.

    Args:
        store: the destination's store.
        layout: destination and job.
        options: options of the commit.
        host: clock, ids and names.
        counted: the store's request counters, for statistics.
        traffic: outcomes of the store's requests, for statistics.
        open_store: opens the store of a report directory that is elsewhere.
        pending: the store of the job's own directories, if it is another one.

    Attributes:
        driver_lives: whether the driver is alive, if it is another process; without it no commit
            begins.
        on_settling: takes the progress of commits of other jobs that are settled before this one.
        asked: whether ``resume_job`` and ``rollback_job`` are called for somebody who has named the
            job. Otherwise they leave the commit of another user alone, as ``commit_job`` does.
    """

    def __init__(
        self,
        store: Store,
        layout: Layout,
        options: Options,
        host: Host,
        *,
        counted: Mapping[str, Count] | None = None,
        traffic: Callable[[], Traffic] = Traffic,
        open_store: Callable[[Address], Store] | None = None,
        pending: Store | None = None,
        runner: Runner | None = None,
        storage: Mapping[str, object] | None = None,
    ) -> None:
        self.store = store
        self.pending = store if pending is None else pending
        self.layout = layout
        self.options = options
        self.host = host
        self.driver_lives: Callable[[], bool] | None = None
        self.on_settling: OnProgress | None = None
        self.asked = True
        self._counted = {} if counted is None else counted
        self._traffic = traffic
        self._open_store = open_store
        self._runner = runner
        self._storage = storage or {}
        self._made_destination = False
        self._refuse_unfit()

    @classmethod
    def _made(cls, opening: JobContext, layout: Layout, *, pending: Store | None = None) -> Self:
        """Return the committer of a job attempt that is being opened."""
        return cls(
            opening.store,
            layout,
            opening.options,
            opening.host,
            counted=opening.counted,
            traffic=opening.traffic,
            open_store=opening.open_store,
            pending=pending,
            runner=opening.runner,
            storage=opening.storage,
        )

    def _refuse_unfit(self) -> None:
        """Raise ``UnsupportedError`` if the store lacks what the committer needs."""

    @property
    def _environment(self) -> Environment:
        return Environment(
            self.store,
            self.host,
            self.pending,
            self._open_store,
            self._counted,
            self._traffic,
            self.driver_lives,
            self._runner,
            self._storage,
        )

    @property
    @abstractmethod
    def publisher(self) -> Publisher[RunT, StateT, PlanT]:
        """Return what makes the files of the job visible."""

    @abstractmethod
    def _run(self, on_progress: OnProgress | None = None) -> RunT:
        """Return the context of a commit, abort or look."""

    def _of(self, run: RunT, layout: Layout) -> JobCommitter[RunT, StateT, PlanT]:
        """Return the committer of another job at the same destination."""
        other = self._kind_of_others(
            self.store,
            layout,
            self.options,
            self.host,
            counted=self._counted,
            traffic=self._traffic,
            open_store=self._open_store,
            pending=self._pending_of(run, layout),
        )
        other.asked = False
        return other

    @property
    @abstractmethod
    def _kind_of_others(self) -> type[JobCommitter[RunT, StateT, PlanT]]:
        """Return the class for the jobs of other committers of this kind."""

    def _pending_of(self, run: RunT, layout: Layout) -> Store:
        """Return the store of the own directories of another job."""
        return self.pending

    # --- before the tasks

    async def take_job(self) -> None:
        """See ``Committer.take_job``.

        Raises ``ExistsError`` if the job belongs to another driver.
        """
        await self._take(self._run(), self.pending)

    async def check_job(
        self,
        *,
        mode: Mode = Mode.APPEND,
        overwrite: Sequence[str] = (),
        looking: bool = False,
    ) -> None:
        """Refuse now a job that could not be committed later; create nothing.

        Interrupted commits of other jobs, as far as they can be seen from here, are refused,
        finished or undone according to ``options.on_unfinished``. Of a committed job the clean-up
        is finished in any case. With ``looking`` none is touched. Raises ``UnfinishedError``,
        ``CommittedError`` for a job key that is done, and ``CommitError``.
        """
        await self._check_destination(self._run(), mode, overwrite, looking=looking)

    async def _check_destination(
        self, run: RunT, mode: Mode, overwrite: Sequence[str], *, looking: bool = False
    ) -> RunT:
        """See ``check_job``; return the context with what was seen."""
        async with commit_failures(run):
            run = replace(run, snapshot=await self.publisher.look_at_destination(run))
            others = await to_settle(run, await self.publisher.unfinished(run))
            for other in () if looking else others:
                run = replace(run, snapshot=None)
                if other.told:
                    await self._clean_up_other(run, other)
                    continue
                await self._settle_other(run, other)
                if other.finishes and not is_replaced(run, mode, overwrite):
                    refuse_repeating(run, other)
            await self.publisher.check_setup(run, mode, overwrite)
        return run

    async def setup_job(self, *, mode: Mode = Mode.APPEND) -> None:
        """Create the directories of this job attempt.

        ``set_up`` is true from when they may be there and are this committer's to abort. Raises
        ``CommitError`` if the destination is a file or the job attempt exists already, and the
        errors of ``check_job``.
        """
        run = await self._check_destination(self._run(), mode, ())
        async with commit_failures(run):
            with run.meter.timed("job_stage_setup"):
                await self.publisher.refuse_taken(run)
                self._made_destination = await look_first(run, self.pending)
                await self._claim(run, self.pending)
                await self.publisher.set_up(run)
        layout = self.layout
        log.info("job %s: set up under %s", layout.job_id, layout.dest, extra=layout.log_fields)

    async def rejoin_job(self, *, mode: Mode = Mode.APPEND) -> bool:
        """Take over a job, with its tasks, whose driver died before its commit.

        Returns false if there is no such job. Raises ``OwnedError`` if its driver may be alive, and
        the errors of ``check_job``.
        """
        run = await self._check_destination(self._run(), mode, ())
        async with commit_failures(run):
            return await self._rejoin(run, self.pending)

    # --- commit

    async def commit_job(
        self,
        tasks: Sequence[TaskCommit] | None = None,
        *,
        mode: Mode = Mode.APPEND,
        overwrite: Sequence[str] = (),
        strict: bool = False,
        made_destination: bool | None = None,
        on_progress: OnProgress | None = None,
        on_visible: OnVisible | None = None,
    ) -> JobReport:
        """Make the files of the committed tasks visible, and nothing else.

        An interrupted commit of this job is finished with its original inputs.

        Args:
            tasks: the commit messages of the tasks; without them all that tasks have committed is
                trusted.
            mode: treatment of existing data at the destination.
            overwrite: decoded paths of further directories whose content is replaced.
            strict: refuse a job with committed tasks that ``tasks`` does not name.
            made_destination: whether the job made the destination, so that a rollback removes it;
                ``None`` for the finding of ``setup_job``.
            on_progress: called a few times a second, in a thread.
            on_visible: called once with the report so far, on the event loop, when readers see the
                whole job and only the clean-up is left. It is not called if the caller has to wait
                for that, see ``Options.cleanup``, or if the job was committed before.

        Raises:
            PreflightError: refused; nothing under the destination changed.
            OwnedError: another process is committing this job; nothing was done.
            ValidationError: the destination is not as committed; there is no ``_SUCCESS``.
            CommitUnknownError: an answer was lost; nothing was cleaned.
            LeaseLostError: another process may have taken the commit over, or rolled it back.
            ForeignCommitError: another user has begun this commit; nothing was done.
            CommitError: it failed after changes; it can be resumed or rolled back.
        """
        run = replace(self._run(on_progress), asked=False, on_visible=on_visible)
        if made_destination is not None:
            self._made_destination = made_destination
        try:
            with observed_job(run, "commit") as ended:
                inputs = Inputs(tasks, mode, overwrite)
                async with self.publisher.working(run, inputs=inputs) as at:
                    report = await self._commit_or_resume(at, tasks, mode, overwrite, strict=strict)
                    ended.report = report
        except BaseException as error:
            if run.promise.told:
                log.warning("%s", Redacted(error), extra=run.layout.log_fields)
            await self._undo_if_wanted(run, error)
            raise
        return report if report.already_committed else await report_ended(run, report)

    async def _commit_or_resume(
        self,
        run: RunT,
        tasks: Sequence[TaskCommit] | None,
        mode: Mode,
        overwrite: Sequence[str],
        *,
        strict: bool,
    ) -> JobReport:
        run, state = await self.publisher.state(run)
        if state is None:
            done = await self.publisher.is_committed(run, tasks, trusting=tasks is None)
            if done is not None:
                return await self._already(done, state)
            return await self._commit(run, tasks, mode, overwrite, strict=strict)
        if await self.publisher.is_over(run, state):
            return await self._already(run, state)
        if tasks is not None:
            self.publisher.check_messages(run, state, tasks)
            if self.publisher.are_named(state, tasks, overwrite):
                run = replace(run, options=replace(run.options, allow_outside_destination=True))
        report = await self.publisher.resume(run, state)
        if report.rolled_back:
            text = rolled_back_first(report)
            raise CommitError(run.layout.job_id, "job_stage_abort", (), text)
        return report

    async def _commit(
        self,
        run: RunT,
        tasks: Sequence[TaskCommit] | None,
        mode: Mode,
        overwrite: Sequence[str],
        *,
        strict: bool = False,
        adopt: bool = False,
    ) -> JobReport:
        publisher = self.publisher
        with publisher.new_plan(run, mode) as plan:
            await together(
                lambda: publisher.refuse_other_attempts(run),
                lambda: publisher.load(run, plan, tasks, strict=strict),
            )
            if tasks is None:
                await publisher.refuse_leftovers(run, plan, known=self.set_up or adopt)
            await publisher.preflight(run, plan, overwrite, adopt=adopt)
            made = self._made_destination
            run = await publisher.commit(
                run, plan, made_destination=made, began=self._began, adopt=adopt
            )
            return publisher.report(run, plan)

    async def _already(self, run: RunT, state: StateT | None) -> JobReport:
        """Clean up a committed job; write its report if there is none yet."""
        run.reach(Phase.COMMITTED)
        run = await self.publisher.finish(run, state)
        log.info("job %s: committed before", run.layout.job_id, extra=run.layout.log_fields)
        if not await has_report(run):
            await report_on(run, "committer_commit_job")
        return replace(self.publisher.report(run), already_committed=True)

    async def _undo_if_wanted(self, run: RunT, error: BaseException) -> None:
        """Roll back a failed commit if the options or the commit ask for it."""
        if self.options.on_failure is not OnFailure.ROLLBACK and not run.promise.withdrawn:
            note_interrupt(run, error)
            return
        # Who asked for the commit has named the places outside.
        options = replace(self.options, allow_outside_destination=True)
        trusted = run.now.identity.commit_id
        undo = replace(self._run(), options=options, asked=False, trusted=trusted)
        undo = replace(undo, promise=replace(undo.promise, withdrawn=run.promise.withdrawn))
        say = partial(say_undone, run, error)
        await undo_half_way(run, error, lambda: self._roll_back(undo), say)

    async def plan_job(
        self,
        tasks: Sequence[TaskCommit] | None = None,
        *,
        mode: Mode = Mode.APPEND,
        overwrite: Sequence[str] = (),
    ) -> JobReport:
        """Return the result of a dry run of ``commit_job``, or raise its errors."""
        run, publisher = self._run(), self.publisher
        with observed_job(run, "dry run") as ended:
            async with publisher.working(run, save=False) as run:
                with publisher.new_plan(run, mode) as plan:
                    await publisher.load(run, plan, tasks)
                    await publisher.preflight(run, plan, overwrite, dry=True)
                    ended.report = report = replace(publisher.report(run, plan), dry_run=True)
                    return report

    # --- a commit that has begun

    async def resume_job(
        self,
        *,
        force: bool = False,
        adopt: bool = False,
        on_progress: OnProgress | None = None,
    ) -> JobReport:
        """Finish an interrupted commit, or a rollback if that was decided.

        Args:
            force: take it over from an owner that seems to be alive. It has no effect on a commit
                of uploads, which has no owner: two processes may finish it safely.
            adopt: finish a partial commit of Hadoop's committer, which has no record: a file at its
                destination with the expected etag, or without etags the expected size, counts as
                published.
            on_progress: called a few times a second, in a thread.

        Raises ``OwnedError`` if its owner is alive, ``NotFoundError`` if no commit has begun, and
        the errors of ``commit_job``.
        """
        run = replace(self._run(on_progress), asked=self.asked)
        with observed_job(run, "commit") as ended:
            async with self.publisher.working(run) as at:
                ended.report = report = await self._resume(at, force=force, adopt=adopt)
        return report if report.already_committed else await report_ended(run, report)

    async def _resume(self, run: RunT, *, force: bool, adopt: bool) -> JobReport:
        run, state = await self.publisher.state(run)
        if state is not None and not await self.publisher.is_over(run, state):
            return await self.publisher.resume(run, state, force=force)
        done = run if state is not None else await self.publisher.is_committed(run)
        if done is not None:
            return await self._already(done, state)
        if adopt:
            return await self._commit(run, None, Mode.APPEND, (), adopt=True)
        raise NotFoundError("get", self.layout.record, "no commit of this job has begun")

    async def rollback_job(
        self, *, force: bool = False, on_progress: OnProgress | None = None
    ) -> AbortReport:
        """Undo a begun commit: remove its files, restore replaced ones.

        A job whose commit has not begun is aborted; one that was rolled back stays so.

        Raises ``OwnedError`` if its owner is alive and ``force`` is false, ``CommittedError`` if
        it is committed, ``CommitError``.
        """
        run = replace(self._run(on_progress), asked=self.asked)
        with observed_job(run, "rollback") as ended:
            ended.report = report = await self._roll_back(run, force=force)
            await run.meter.end()
            return report

    async def _roll_back(self, run: RunT, *, force: bool = False) -> AbortReport:
        async with AsyncExitStack() as looking:
            try:
                async with commit_failures(run):
                    run = await looking.enter_async_context(self.publisher.looking(run))
                    run, state = await self.publisher.state(run)
                    if state is not None:
                        with run.meter.timed("job_stage_abort"):
                            return await self.publisher.roll_back(run, state, force=force)
                    if await self.publisher.is_committed(run, trusting=True) is not None:
                        text = "it is committed and cannot be rolled back"
                        raise CommittedError(self.layout.job_id, "job_stage_abort", (), text)
            except BaseException as error:
                await self.publisher.stopped(run.now, error)
                raise
        return await self._abort(run, "rolled back", careful=not force)

    # --- the end, and looks at it

    async def abort_job(self, reason: str = "", *, careful: bool = False) -> AbortReport:
        """Delete this job's files and abort its uploads.

        If a commit has begun, everything is kept. A missing job is not an error: aborting twice, or
        after a success, changes nothing.

        Args:
            reason: for the report.
            careful: it is not the job's driver that asks.

        Raises ``OwnedError`` if the job may be alive then; ``CommitError`` if that fails.
        """
        run = self._run()
        with observed_job(run, "abort") as ended:
            ended.report = report = await self._abort(run, reason, careful=careful)
            return report

    async def _abort(self, run: RunT, reason: str, *, careful: bool) -> AbortReport:
        async with commit_failures(run), self.publisher.looking(run) as run:
            with run.meter.timed("job_stage_abort"):
                others = await self.publisher.attempts(run) if careful else ()
                await self._before_abort(run, self.pending, others, careful=careful)
                outcome, uploads = await self.publisher.abort(run)
                if outcome is CleanupResult.KEPT:
                    kept = f"a commit has begun, so {run.layout.job_dir} is kept. {finish(run)}"
                    return AbortReport(self.layout.job_id, outcome.value, kept)
                if self._made_destination and outcome is not CleanupResult.DISABLED:
                    await remove_if_empty(run, run.layout.dest.path)
            await self._ended()
            report = await _report_abort(run, reason)
        why = Redacted(reason or "no reason given")
        told = self.layout.job_id, outcome.value, why
        log.info("job %s: aborted, %s: %s", *told, extra=self.layout.log_fields)
        return AbortReport(
            self.layout.job_id,
            outcome.value,
            report=report,
            uploads=uploads,
            warnings=tuple(run.warnings),
        )

    async def cleanup(self) -> str:
        """Delete this job's files whatever its state; return the action taken.

        Raises ``CommitError`` if that fails; also where directories keep nothing out, if a commit
        has begun.
        """
        run = self._run()
        async with commit_failures(run), self.publisher.looking(run) as run:
            return (await self.publisher.clean_up(run)).value

    async def job_status(self) -> JobStatus | None:
        """Return the status of this job attempt; ``None`` without a commit.

        Its files at their destinations are counted, one listing of each directory.
        """
        run = self._run()
        async with commit_failures(run), self.publisher.looking(run) as run:
            run, state = await self.publisher.state(run)
            return None if state is None else await self.publisher.status(run, state)

    async def job_statuses(self) -> list[JobStatus]:
        """Return the status of every job visible from here, without counting."""
        run = self._run()
        async with commit_failures(run):
            return await self.publisher.statuses(run)

    async def _clean_up_other(self, run: RunT, other: Other) -> None:
        """Finish the clean-up of a committed job, which is in nobody's way."""
        name = f"job {other.layout.job_id} is committed"
        try:
            await self._of(run, other.layout).resume_job(on_progress=self.on_settling)
        except ForeignCommitError as error:
            run.warn(f"{name}, and its clean-up was left to its user: {error}")
        except CommitError as error:
            again = job_command("resume", other.layout)
            run.warn(f"{name}, and its clean-up failed: {error}. To finish it: {again}")
        else:
            run.warn(f"{name}; its clean-up, which had been interrupted, was finished first")

    async def _settle_other(self, run: RunT, other: Other) -> None:
        """Finish or undo the commit of another job at the same destination."""
        committer = self._of(run, other.layout)
        settle = committer.resume_job if other.resumes else committer.rollback_job
        await settle(on_progress=self.on_settling)
        run.warn(f"job {other.layout.job_id} had been interrupted and was settled first")


async def _report_abort(run: CommitContext, reason: str) -> str | None:
    """Save the report of an aborted job, unless an attempt of it has left one."""
    if await has_report(run):
        return None
    error = CommitError(run.layout.job_id, "job_stage_abort", (), reason or "aborted")
    return await report_on(run, "job_stage_abort", (), error)

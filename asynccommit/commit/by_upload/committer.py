"""The committers for stores with multipart uploads: tasks upload, the job completes the uploads.

This is the job side, the same for all of them; ``magic.py`` and ``staging.py`` add the task side.
It is compatible on the store with Hadoop's S3A committers. Differences and their reasons are in
docs/protocol.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from asynccommit.commit.by_rename.claims import look_first
from asynccommit.commit.by_rename.driver_liveness import DriverLiveness
from asynccommit.commit.by_rename.job_reports import has_report, report_on
from asynccommit.commit.by_rename.job_setup import Other, refuse_repeating, to_settle
from asynccommit.commit.by_rename.steps import (
    report_ended,
    reporting,
    rolled_back_first,
    undo_half_way,
)
from asynccommit.commit.by_rename.write_modes import is_replaced
from asynccommit.commit.by_upload.cleanup import clean_up, clean_up_aborted
from asynccommit.commit.by_upload.context import UploadContext, at_work
from asynccommit.commit.by_upload.jobs import find_attempts, sought, store_of
from asynccommit.commit.by_upload.load_sets import load_sets
from asynccommit.commit.by_upload.plan import UploadPlan
from asynccommit.commit.by_upload.preflight import preflight
from asynccommit.commit.by_upload.record import begin
from asynccommit.commit.by_upload.start import refuse_leftovers, refuse_other_attempts
from asynccommit.commit.by_upload.status import (
    attempts_of,
    begun_attempts,
    is_committed,
    read_state,
)
from asynccommit.commit.by_upload.steps import (
    abort,
    carry_out,
    check_destination,
    check_messages,
    clean,
    is_over,
    job_report,
    refuse_unfit,
    resume,
    roll_back,
    see,
    status,
)
from asynccommit.commit.context import OnProgress, Phase
from asynccommit.commit.errors import commit_failures, say_undone
from asynccommit.commit.layout import TaskCommit
from asynccommit.commit.layout_uploads import UploadLayout
from asynccommit.errors import CommitError, CommittedError, NotFoundError
from asynccommit.options.job import Mode, OnFailure, Options
from asynccommit.results import AbortReport, JobReport, JobStatus
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.multipart import MultipartStore
from asynccommit.stores.policies.stats import Count
from asynccommit.stores.policies.traffic import Traffic
from asynccommit.stores.urls import Address


class UploadCommitter(DriverLiveness):
    """The job side of an upload committer, for one job attempt under one destination.

    Args:
        store: the destination's store; must support uploads.
        layout: destination and job.
        options: options of the commit.
        host: clock, ids and names.
        counted: the store's request counters, for statistics.
        traffic: outcomes of the store's requests, for statistics.
        open_store: opens the store of a report directory on another store.
        pending: the store of the pending sets, if it is another one.

    Attributes:
        driver_lives: see ``TaskSide``.

    Raises:
        UnsupportedError: a store lacks multipart uploads, or writes that never replace.
    """

    layout: UploadLayout

    def __init__(
        self,
        store: MultipartStore,
        layout: UploadLayout,
        options: Options,
        host: Host,
        counted: Mapping[str, Count] | None = None,
        traffic: Callable[[], Traffic] = Traffic,
        open_store: Callable[[Address], Store] | None = None,
        *,
        pending: Store | None = None,
    ) -> None:
        self.store = store
        self.pending: Store = store if pending is None else pending
        self.layout = layout
        self.options = options
        self.host = host
        self._counted = {} if counted is None else counted
        self._traffic = traffic
        self._open_store = open_store
        self.driver_lives: Callable[[], bool] | None = None
        self._made_destination = False
        refuse_unfit(store, self.pending)

    async def see_setup(self) -> None:
        """Check another process's setup, and write the living file.

        Raises ``NotFoundError``.

        Raises ``NotFoundError``.
        """
        await self.pending.head(self.layout.job_dir)
        await self.pending.put(self.layout.living, b"")

    async def take_job(self) -> None:
        """See ``Committer.take_job``. Raises ``ExistsError`` if it is another driver's."""
        await self._take(self._run(), self.pending)

    async def check_job(self, *, mode: Mode = Mode.APPEND, overwrite: Sequence[str] = ()) -> None:
        """Refuse now a job that could not be committed later; create nothing.

        Interrupted commits of other jobs, as far as this machine and the stores at hand show them,
        are refused, finished or undone according to ``options.on_unfinished``. Raises
        ``UnfinishedError``, ``CommittedError`` for a job key that is done, and ``CommitError``.
        """
        run = self._run()
        async with commit_failures(run):
            others = await find_attempts(run, own=False)
            unfinished = [(o.layout, o.status) for o in others if o.status.unfinished]
            for other in to_settle(run, unfinished):
                await self._settle_other(run, other)
                if other.finishes and not is_replaced(run, mode, overwrite):
                    refuse_repeating(run, other)
            await check_destination(run, mode, overwrite)

    async def setup_job(self, *, mode: Mode = Mode.APPEND) -> None:
        """Make the directory of this job attempt.

        Raises ``CommitError`` if the destination is a file, or the job attempt is there already,
        and what ``check_job`` raises.
        """
        await self.check_job(mode=mode)
        run = self._run()
        async with commit_failures(run):
            with run.timed("job_stage_setup"):
                self._made_destination = await look_first(run, self.pending)
                await self._claim(run, self.pending)
                await self.pending.put(self.layout.living, b"")

    async def commit_job(
        self,
        tasks: Sequence[TaskCommit] | None = None,
        *,
        mode: Mode = Mode.APPEND,
        overwrite: Sequence[str] = (),
        strict: bool = False,
        made_destination: bool | None = None,
        on_progress: OnProgress | None = None,
    ) -> JobReport:
        """Make the files of the committed tasks visible, and nothing else.

        An interrupted commit of this job, or one in progress, is finished with its original inputs.

        Args:
            tasks: the commit messages of the tasks; without them every pending set is trusted.
            mode: treatment of existing data at the destination.
            overwrite: decoded paths of further directories whose content is replaced.
            strict: refuse a job with committed tasks that ``tasks`` does not name.
            made_destination: whether the job made the destination, so that a rollback removes it;
                ``None`` for the finding of ``setup_job``.
            on_progress: called a few times a second, on the event loop.

        Raises:
            PreflightError: refused; nothing under the destination changed.
            OwnedError: another process began to commit this job a moment ago; nothing was done.
            ValidationError: the destination is not as committed; there is no ``_SUCCESS``.
            CommitUnknownError: an answer was lost; nothing was cleaned.
            LeaseLostError: another process has rolled the commit back meanwhile.
            CommitError: it failed half-way; it can be resumed or rolled back.
        """
        run = self._run(on_progress)
        if made_destination is not None:
            self._made_destination = made_destination
        try:
            with at_work(run):
                async with reporting(run, owned=False):
                    report = await self._commit_or_go_on(run, tasks, mode, overwrite, strict=strict)
        except BaseException as error:
            await self._undo_if_wanted(run, error)
            raise
        if report.already:
            return report
        return await report_ended(run, report)

    async def _commit_or_go_on(
        self,
        run: UploadContext,
        tasks: Sequence[TaskCommit] | None,
        mode: Mode,
        overwrite: Sequence[str],
        *,
        strict: bool,
    ) -> JobReport:
        standing = await see(run)
        if standing is None:
            if await is_committed(run, tasks):
                return await self._already(run)
            return await self._commit(run, tasks, mode, overwrite, strict=strict)
        if tasks is not None:
            check_messages(run, standing.record, tasks)
        if await is_over(run, standing):
            return await self._already(run)
        report = await resume(run, standing)
        if report.rolled_back:
            text = rolled_back_first(report)
            raise CommitError(run.layout.job_id, "job_stage_abort", (), text)
        return report

    async def _commit(
        self,
        run: UploadContext,
        tasks: Sequence[TaskCommit] | None,
        mode: Mode,
        overwrite: Sequence[str],
        *,
        strict: bool = False,
        adopt: bool = False,
    ) -> JobReport:
        refuse_other_attempts(run, await begun_attempts(run))
        with UploadPlan.new(self.options, mode) as plan:
            await load_sets(run, plan.loaded, tasks, strict=strict)
            if tasks is None:
                await refuse_leftovers(run, plan, known=self.set_up or adopt)
            await preflight(run, plan, overwrite, adopt=adopt)
            record = await begin(run, plan, made_destination=self._made_destination)
            await self._ended()
            await carry_out(run, plan, record)
            return job_report(run, plan)

    async def _already(self, run: UploadContext) -> JobReport:
        """Clean up a committed job; write its report if there is none yet."""
        run.phase = Phase.COMMITTED
        await clean(run)
        if not await has_report(run):
            await report_on(run, "committer_commit_job")
        return replace(job_report(run), already=True)

    async def _undo_if_wanted(self, run: UploadContext, error: BaseException) -> None:
        """Roll back a commit that failed half-way, if the options say so."""
        if self.options.on_failure is OnFailure.ROLLBACK:
            undo, say = self._run(), partial(say_undone, run, error)
            await undo_half_way(run, error, lambda: self._roll_back(undo), say)

    async def resume_job(
        self,
        *,
        force: bool = False,
        adopt: bool = False,
        on_progress: OnProgress | None = None,
    ) -> JobReport:
        """Finish an interrupted commit, or a rollback if that was decided.

        Args:
            force: ignored: an upload commit has no owner, and two processes may finish it safely.
            adopt: finish a partial commit of Hadoop's committer, which has no record: a file made
                by completing an upload counts as completed.
            on_progress: called a few times a second, on the event loop.

        Raises what ``commit_job`` raises.
        """
        run = self._run(on_progress)
        with at_work(run):
            async with reporting(run, owned=False):
                report = await self._resume(run, adopt=adopt)
        return report if report.already else await report_ended(run, report)

    async def _resume(self, run: UploadContext, *, adopt: bool) -> JobReport:
        standing = await see(run)
        if standing is not None and not await is_over(run, standing):
            return await resume(run, standing)
        if standing is not None or await is_committed(run):
            return await self._already(run)
        if adopt:
            return await self._commit(run, None, Mode.APPEND, (), adopt=True)
        raise NotFoundError("get", self.layout.record, "no commit of this job has begun")

    async def rollback_job(
        self, *, force: bool = False, on_progress: OnProgress | None = None
    ) -> AbortReport:
        """Undo a commit that has begun: its files, and what they overwrote.

        A job whose commit has not begun is aborted; a job that was rolled back stays so. ``force``
        applies to the former only: it aborts the job although it may be alive.

        Raises ``OwnedError``, ``CommittedError`` if it is committed, ``CommitError``.
        """
        return await self._roll_back(self._run(on_progress), force=force)

    async def _roll_back(self, run: UploadContext, *, force: bool = False) -> AbortReport:
        async with commit_failures(run):
            standing = await read_state(run)
            if standing is not None:
                with at_work(run), run.timed("job_stage_abort"):
                    return await roll_back(run, standing)
            if await is_committed(run):
                text = "it is committed, and cannot be rolled back"
                raise CommittedError(self.layout.job_id, "job_stage_abort", (), text)
        return await self.abort_job("rolled back", careful=not force)

    async def seek(self) -> None:
        """Find this job's layout, whichever committer and user it belongs to.

        Raises ``CommitError``.
        """
        run = self._run()
        async with commit_failures(run):
            self.layout = await sought(run)
            self.pending = store_of(run, self.layout)

    async def job_status(self) -> JobStatus | None:
        """Return the status of this job attempt; ``None`` without a commit.

        Its files at their destinations are counted with one listing of each directory.
        """
        run = self._run()
        async with commit_failures(run):
            standing = await read_state(run)
            return None if standing is None else await status(run, standing)

    async def job_statuses(self) -> list[JobStatus]:
        """Return the status of every job visible from here, without counting."""
        run = self._run()
        async with commit_failures(run):
            return [found.status for found in await find_attempts(run, lives=True)]

    async def plan_job(
        self,
        tasks: Sequence[TaskCommit] | None = None,
        *,
        mode: Mode = Mode.APPEND,
        overwrite: Sequence[str] = (),
    ) -> JobReport:
        """Return the result of a dry run of ``commit_job``, or raise its errors."""
        run = self._run()
        async with reporting(run, save=False, owned=False):
            with UploadPlan.new(self.options, mode) as plan:
                await load_sets(run, plan.loaded, tasks)
                await preflight(run, plan, overwrite)
                await plan.take_sample()
                return job_report(run, plan)

    async def abort_job(self, reason: str = "", *, careful: bool = False) -> AbortReport:
        """Abort this job's uploads and delete its files, unless a commit has begun.

        If a commit has begun, all files stay. A missing job is no error: aborting twice, or after a
        success, changes nothing.

        See ``ManifestCommitter.abort_job``; if ``careful``, an attempt of the job that may be alive
        is an error.
        """
        run = self._run()
        async with commit_failures(run):
            others = await attempts_of(run) if careful else []  # all of them are deleted
            await self._before_abort(run, self.pending, others, careful=careful)
            report = await abort(run, reason, made_destination=self._made_destination)
            await self._ended()
            return report

    async def cleanup(self) -> str:
        """Abort this job's uploads and delete its files, whatever its state.

        See ``abort_job``.
        """
        run = self._run()
        async with commit_failures(run):
            if await read_state(run) is None:
                return (await clean_up_aborted(run))[0].value
            return (await clean_up(run))[0].value

    async def _settle_other(self, run: UploadContext, other: Other) -> None:
        """Finish or undo the commit of another job at the same destination."""
        assert isinstance(other.layout, UploadLayout)
        layout = replace(other.layout, commit="")
        with_it = self.options, self.host, self._counted, self._traffic, self._open_store
        pending = store_of(run, layout)
        committer = UploadCommitter(self.store, layout, *with_it, pending=pending)
        await (committer.resume_job() if other.resumes else committer.rollback_job())
        run.warn(f"job {layout.job_id}, which had been cut short, was settled first")

    def _run(self, on_progress: OnProgress | None = None) -> UploadContext:
        return UploadContext(
            store=self.store,
            layout=self.layout,
            options=self.options,
            host=self.host,
            on_progress=on_progress,
            open_store=self._open_store,
            driver_lives=self.driver_lives,
            counted=self._counted,
            traffic=self._traffic,
            pending=self.pending,
        )

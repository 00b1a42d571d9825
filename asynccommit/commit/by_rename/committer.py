"""The manifest committer: tasks write manifests, the job renames the files that they list.

Compatible on the store with Hadoop's committer of this name (3.4.1 and later; the manifests of
earlier ones load too). Differences and their reasons are in docs/protocol.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from asynccommit.commit.by_rename.claims import look_first
from asynccommit.commit.by_rename.cleanup import (
    CleanupResult,
    begun_attempts,
    clean_up,
    clean_up_aborted,
    delete_ended,
    remove_if_empty,
    restore_begun,
)
from asynccommit.commit.by_rename.concurrent_jobs import look_after_record, look_before_record
from asynccommit.commit.by_rename.directory_owner import find_layout, refuse_taken
from asynccommit.commit.by_rename.job_reports import has_report, report_on
from asynccommit.commit.by_rename.job_setup import (
    Other,
    check_setup,
    others_to_settle,
    refuse_repeating,
)
from asynccommit.commit.by_rename.job_state import has_work, is_committed
from asynccommit.commit.by_rename.jobs import find_statuses
from asynccommit.commit.by_rename.lease import say_stopped
from asynccommit.commit.by_rename.load_manifests import LoadedManifests, load_manifests
from asynccommit.commit.by_rename.pinned import pinned
from asynccommit.commit.by_rename.plan import Plan
from asynccommit.commit.by_rename.preflight import preflight
from asynccommit.commit.by_rename.reconcile import Settled, reconcile
from asynccommit.commit.by_rename.record import begin, refuse_other_attempts
from asynccommit.commit.by_rename.recovery import check_messages, resume, roll_back_job, status
from asynccommit.commit.by_rename.status import CommitState, is_over, read_state
from asynccommit.commit.by_rename.steps import (
    change,
    clean,
    conclude,
    job_report,
    report_ended,
    reporting,
    rolled_back_first,
    undo_half_way,
)
from asynccommit.commit.by_rename.task_side import TaskSide
from asynccommit.commit.by_rename.write_modes import is_replaced
from asynccommit.commit.context import CommitContext, OnProgress, Phase
from asynccommit.commit.errors import commit_failures, finish, say_undone
from asynccommit.commit.layout import TaskCommit
from asynccommit.commit.layout_file_output import recorded
from asynccommit.errors import (
    CommitError,
    CommittedError,
    ManifestError,
    NotFoundError,
    PreconditionError,
)
from asynccommit.options.job import Mode, OnFailure
from asynccommit.results import AbortReport, JobReport, JobStatus


class ManifestCommitter(TaskSide):
    """A committer of one job attempt under one destination; created like ``TaskSide``.

    ``overwrites`` says whether a file of the job takes the place of one that is there.
    """

    overwrites: ClassVar[bool] = False

    async def check_job(self, *, mode: Mode = Mode.APPEND, overwrite: Sequence[str] = ()) -> None:
        """Refuse now a job that could not be committed later; create nothing.

        Interrupted commits of other jobs are refused, finished or undone according to
        ``options.on_unfinished``. Raises ``UnfinishedError``, ``CommittedError`` for a job key that
        is done, and ``CommitError``.
        """
        run = self._run()
        async with commit_failures(run):
            for other in await others_to_settle(run):
                await self._settle_other(run, other)
                if other.finishes and not is_replaced(run, mode, overwrite):
                    refuse_repeating(run, other)
            await check_setup(run, mode, overwrite)

    async def setup_job(self, *, mode: Mode = Mode.APPEND) -> None:
        """Create the directories of this job attempt.

        ``set_up`` is true from when they may be there and are this committer's to abort. Raises
        ``CommitError`` if the destination is a file, or the job attempt is there already, and
        what ``check_job`` raises.
        """
        await self.check_job(mode=mode)
        run = self._run()
        async with commit_failures(run):
            with run.timed("job_stage_setup"):
                await refuse_taken(run)
                self._made_destination = await look_first(run, self.store)
                await self._claim(run, self.store)

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

        An interrupted commit of this job is finished with its original inputs.

        Args:
            tasks: the commit messages of the tasks; without them every manifest is trusted.
            mode: treatment of existing data at the destination.
            overwrite: decoded paths of further directories whose content is replaced.
            strict: refuse a job with committed tasks that ``tasks`` does not name.
            made_destination: whether the job made the destination, so that a rollback removes it;
                ``None`` for the finding of ``setup_job``.
            on_progress: called a few times a second, on the event loop.

        Raises:
            PreflightError: refused; nothing under the destination changed.
            OwnedError: another process is committing this job; nothing was done.
            ValidationError: the destination is not as committed; there is no ``_SUCCESS``.
            CommitUnknownError: an answer was lost; nothing was cleaned.
            LeaseLostError: another process may have taken the commit over.
            CommitError: it failed half-way; it can be resumed or rolled back.
        """
        run = self._run(on_progress)
        try:
            async with reporting(run), pinned(run):
                standing = await self._standing(run)
                if standing is not None and not is_over(standing):
                    report = await self._resume(run, standing, tasks, overwrite)
                    if report.rolled_back:
                        text = rolled_back_first(report)
                        raise CommitError(run.layout.job_id, "job_stage_abort", (), text)
                elif standing or await is_committed(run, tasks, trusting=tasks is None):
                    return await self._already(run, standing)
                else:
                    if made_destination is not None:
                        self._made_destination = made_destination
                    report = await self._commit(run, tasks, mode, overwrite, strict=strict)
        except BaseException as error:
            await self._undo_if_wanted(run, error)
            raise
        return await report_ended(run, report)

    async def _commit(
        self,
        run: CommitContext,
        tasks: Sequence[TaskCommit] | None,
        mode: Mode,
        overwrite: Sequence[str],
        *,
        strict: bool = False,
        adopt: bool = False,
    ) -> JobReport:
        refuse_other_attempts(run, await begun_attempts(run))
        with LoadedManifests(self.options, self.store.traits) as loaded:
            await self._load(run, loaded, tasks, strict=strict)
            plan = await preflight(run, loaded, overwrite, mode, adopt=adopt, over=self.overwrites)
            await look_before_record(run, plan)
            made = self._made_destination
            async with await begin(run, plan, mode, made_destination=made):
                await self._ended()
                await self._withdraw_if_others(run, plan, mode)
                settled = await reconcile(run, plan, adopt=True) if adopt else Settled(run, plan)
                await change(run, plan, settled)
                await conclude(run, plan)
            return job_report(run, plan)

    async def _load(
        self,
        run: CommitContext,
        loaded: LoadedManifests,
        tasks: Sequence[TaskCommit] | None,
        *,
        strict: bool = False,
    ) -> None:
        """Load the output of the committed tasks. See ``load_manifests``."""
        await load_manifests(run, loaded, tasks, strict=strict)

    async def _withdraw_if_others(self, run: CommitContext, plan: Plan, mode: Mode) -> None:
        """Give way to a newer job that touches directories to be replaced."""
        try:
            await look_after_record(run, plan, mode)
        except PreconditionError:
            run.withdrawn = True
            raise

    async def _resume(
        self,
        run: CommitContext,
        standing: CommitState,
        tasks: Sequence[TaskCommit] | None = None,
        overwrite: Sequence[str] = (),
        *,
        force: bool = False,
    ) -> JobReport:
        if tasks is not None:
            check_messages(run, standing.record, tasks, overwrite)
        return await resume(run, standing, force=force)

    async def _already(self, run: CommitContext, standing: CommitState | None) -> JobReport:
        """Clean up a committed job; write its report if there is none yet."""
        run.phase = Phase.COMMITTED
        if standing is not None and not run.store.traits.fences:
            run.act_for(standing.commit_id)
        if await has_work(run):
            run.warn(f"{run.layout.attempt_dir} is left alone: tasks have written there since")
            await delete_ended(run)
        else:
            await clean(run)
        if not await has_report(run):
            await report_on(run, "committer_commit_job")
        return replace(job_report(run), already=True)

    async def _undo_if_wanted(self, run: CommitContext, error: BaseException) -> None:
        """Roll back a commit that failed half-way, if the options say so."""
        if self.options.on_failure is not OnFailure.ROLLBACK and not run.withdrawn:
            return
        undo = self._run()
        undo.options = replace(undo.options, outside=True)  # who asked for the commit named it
        undo.withdrawn = run.withdrawn
        await undo_half_way(
            run, error, lambda: self._roll_back(undo), partial(say_undone, run, error)
        )

    async def resume_job(
        self,
        *,
        force: bool = False,
        adopt: bool = False,
        on_progress: OnProgress | None = None,
    ) -> JobReport:
        """Finish an interrupted commit, or a rollback if that was decided.

        Args:
            force: take it over from an owner that seems to be alive.
            adopt: a commit that Hadoop's committer left half-done, which has no record: what is
                gone from its source and at its destination with its etag, or where there is none
                its size, counts as moved.
            on_progress: called a few times a second, on the event loop.

        Raises ``OwnedError`` if its owner is alive, and the errors of ``commit_job``.
        """
        run = self._run(on_progress)
        async with reporting(run), pinned(run):
            standing = await self._standing(run)
            if standing is not None and not is_over(standing):
                report = await self._resume(run, standing, force=force)
            elif standing or await is_committed(run):
                return await self._already(run, standing)
            elif adopt:
                report = await self._commit(run, None, Mode.APPEND, (), adopt=True)
            else:
                raise NotFoundError("get", self.layout.record, "no commit of this job has begun")
        return await report_ended(run, report)

    async def rollback_job(
        self, *, force: bool = False, on_progress: OnProgress | None = None
    ) -> AbortReport:
        """Undo a commit that has begun: its moves, and what it moved aside.

        A job whose commit has not begun is aborted; one that was rolled back stays so.

        Raises ``OwnedError`` if its owner lives and ``force`` is false, ``CommittedError`` if it is
        committed, ``CommitError``.
        """
        return await self._roll_back(self._run(on_progress), force=force)

    async def _roll_back(self, run: CommitContext, *, force: bool = False) -> AbortReport:
        try:
            async with commit_failures(run), pinned(run):
                standing = await self._standing(run)
                if standing is not None:
                    with run.timed("job_stage_abort"):
                        return await roll_back_job(run, standing, force=force)
                if await is_committed(run, trusting=True):
                    text = "it is committed, and cannot be rolled back"
                    raise CommittedError(self.layout.job_id, "job_stage_abort", (), text)
        except BaseException as error:
            await say_stopped(run, error)
            raise
        return await self.abort_job("rolled back", careful=not force)

    async def job_status(self) -> JobStatus | None:
        """Return the status of this job attempt; ``None`` without a commit.

        Its files at their destinations are counted, one listing of each directory.
        """
        run = self._run()
        async with commit_failures(run), pinned(run):
            standing = await self._standing(run)
            return None if standing is None else await status(run, standing)

    async def job_statuses(self) -> list[JobStatus]:
        """Return the status of every job under the destination, without counting."""
        run = self._run()
        async with commit_failures(run):
            return await find_statuses(run)

    async def plan_job(
        self,
        tasks: Sequence[TaskCommit] | None = None,
        *,
        mode: Mode = Mode.APPEND,
        overwrite: Sequence[str] = (),
    ) -> JobReport:
        """Return the result of a dry run of ``commit_job``, or raise its errors."""
        run = self._run()
        async with reporting(run, save=False):
            await find_layout(run)
            with LoadedManifests(self.options, self.store.traits) as loaded:
                await self._load(run, loaded, tasks)
                plan = await preflight(
                    run, loaded, overwrite, mode, over=self.overwrites, looking=True
                )
                await look_before_record(run, plan, looking=True)
                await plan.take_sample()
        return job_report(run, plan)

    async def abort_job(self, reason: str = "", *, careful: bool = False) -> AbortReport:
        """Delete this job's directory, unless a commit has begun.

        If a commit has begun, everything is kept. A missing job is no error: aborting twice, or
        after a success, changes nothing.

        Args:
            reason: for the report.
            careful: it is not the job's driver that asks.

        Raises ``OwnedError`` if the job may be alive then; ``CommitError`` if that fails.
        """
        run = self._run()
        async with commit_failures(run), pinned(run):
            with run.timed("job_stage_abort"):
                await self._before_abort(run, self.store, careful=careful)
                outcome = await clean_up_aborted(run)
                if outcome is CleanupResult.KEPT:
                    kept = f"a commit has begun: {run.layout.job_dir} is kept. {finish(run)}"
                    return AbortReport(self.layout.job_id, outcome.value, kept)
                if self._made_destination and outcome is not CleanupResult.DISABLED:
                    await remove_if_empty(run, self.layout.dest.path)
            await self._ended()
            report = None
            if not await has_report(run):
                error = CommitError(self.layout.job_id, "job_stage_abort", (), reason or "aborted")
                report = await report_on(run, "job_stage_abort", (), error)
        said = tuple(run.warnings)
        return AbortReport(self.layout.job_id, outcome.value, report=report, warnings=said)

    async def cleanup(self) -> str:
        """Delete this job's directory whatever its state; return the action taken.

        Raises ``CommitError`` if that fails; also where directories keep nothing out, if a commit
        has begun.
        """
        run = self._run()
        async with commit_failures(run), pinned(run):
            return (await clean_up(run)).value

    async def _standing(self, run: CommitContext) -> CommitState | None:
        try:
            standing = await read_state(run.store, run.layout)
            if standing is None:
                await restore_begun(run)
                standing = await read_state(run.store, run.layout)
        except ManifestError:
            run.phase = Phase.BEGUN
            raise
        if standing is not None:
            run.phase = Phase.BEGUN
            run.layout = recorded(run.layout, standing.record.options)
        return standing

    async def _settle_other(self, run: CommitContext, other: Other) -> None:
        """Finish or undo the commit of another job at the same destination."""
        committer = ManifestCommitter(
            self.store,
            other.layout,
            self.options,
            self.host,
            self._counted,
            self._traffic,
            self._open_store,
        )
        await (committer.resume_job() if other.resumes else committer.rollback_job())
        run.warn(f"job {other.layout.job_id}, which had been cut short, was settled first")

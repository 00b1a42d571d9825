"""Publish by completing uploads: commit, resume and roll back, in order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import replace

from asynccommit.commit.by_upload.backups import copy_aside, drop_copies, keep_copies
from asynccommit.commit.by_upload.cleanup import clean_up, clean_up_aborted, is_kept
from asynccommit.commit.by_upload.complete import complete_uploads
from asynccommit.commit.by_upload.context import UploadContext, at_work, save
from asynccommit.commit.by_upload.finish import finish_commit
from asynccommit.commit.by_upload.jobs import find_attempts
from asynccommit.commit.by_upload.load_sets import load_sets
from asynccommit.commit.by_upload.open_uploads import fingerprints_of_open
from asynccommit.commit.by_upload.outcome import decide, ended
from asynccommit.commit.by_upload.plan import UploadPlan
from asynccommit.commit.by_upload.plan_file import has_plan, load_plan
from asynccommit.commit.by_upload.preflight import preflight, refuse_file
from asynccommit.commit.by_upload.record import (
    begin,
    recorded_options,
    refuse_ended,
    refuse_leftovers,
    refuse_other_attempts,
    start,
)
from asynccommit.commit.by_upload.rollback import UploadRollbackResult, undo_uploads
from asynccommit.commit.by_upload.snapshot import look_ahead, look_at_destination
from asynccommit.commit.by_upload.status import (
    UploadCommitState,
    acting_for,
    attempts_of,
    begun_attempts,
    has_begun,
    is_committed,
    is_finished,
    read_state,
    rows_of,
    status_of,
)
from asynccommit.commit.by_upload.validate import gather, validate_uploads
from asynccommit.commit.context import Phase
from asynccommit.commit.driver.record_owner import require_own
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.job.cleanup import CleanupResult, remove_if_empty
from asynccommit.commit.job.publisher import AbortResult, Inputs, Publisher
from asynccommit.commit.job.reporting import bare_report, reporting
from asynccommit.commit.job.setup import Unfinished, check_setup
from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.commit.paths import SAMPLE
from asynccommit.errors import (
    CommitError,
    CommittedError,
    LeaseLostError,
    ManifestError,
    NotFoundError,
    PreconditionError,
    PreflightError,
    StoreError,
)
from asynccommit.formats.commit_owner import Outcome as CompletionFacts
from asynccommit.formats.upload_record import UploadRecord
from asynccommit.options.job import Mode, OnCleanupFailure
from asynccommit.results import AbortReport, JobReport, JobStatus
from asynccommit.stores.base import Store
from asynccommit.stores.tree import is_there


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
        """See ``Publisher.check_setup``.

        Tasks of the partitioned committer see for themselves whether the partitions that they write
        to are free.
        """
        try:
            await refuse_file(run)
        except PreconditionError as error:
            text = f"{error}. Nothing was written"
            raise PreflightError(run.layout.job_id, "job_stage_setup", (error,), text) from error
        partitioned = mode is Mode.FAIL and run.layout.committer == "partitioned"
        await check_setup(run, Mode.APPEND if partitioned else mode, overwrite)

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
        """See ``Publisher.is_over``: all is done, its files are kept by option."""
        return state.is_done or (state.is_committed and is_kept(run) and await is_finished(run))

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
        if rows_of(run.layout, tasks) != set(state.record.sets):
            text = (
                "its commit began with task attempts other than the ones committed now: finish "
                "that commit or roll it back, and run this job under another id"
            )
            raise CommitError(run.layout.job_id, run.meter.stage, (), text)

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
        """See ``Publisher.status``.

        One listing of each directory, and one of the open uploads.
        """
        known = await status_of(run.host, run.layout, state)
        if state.is_committed:
            return replace(known, done=known.files)
        done = 0
        with (
            UploadPlan.new(run.options) as plan,
            Fingerprints(run.options.spill_directory) as there,
        ):
            if not await has_plan(run, state.record):
                return replace(known, done=0)
            await load_plan(run, state.record, plan)
            for path in sorted(plan.loaded.parents):
                await gather(run, path, there, whole=False)
            still_open = await fingerprints_of_open(run)
            done = await _count(plan, there, still_open)
        return replace(known, done=done)

    async def statuses(self, run: UploadContext) -> list[JobStatus]:
        """See ``Publisher.statuses``."""
        return [found.status for found in await find_attempts(run, lives=True)]


# --- a commit, from its record on ------------------------------------------------------------


async def carry_out(run: UploadContext, plan: UploadPlan, record: UploadRecord) -> None:
    """Carry out a plan to the end of the commit.

    Another process may do the same safely. Raises ``LeaseLostError`` if one has rolled it back.
    """
    try:
        await copy_aside(run, plan)
        await complete_uploads(run, plan)
        await validate_uploads(run, plan)
        await decide(run, CompletionFacts.COMMITTED)
    except (StoreError, LeaseLostError) as error:
        if not await _was_ended(run):
            raise
        if not await is_finished(run):
            raise ended(run) from error
        run.reach(Phase.COMMITTED)
        run.note_success()
        return
    await conclude(run, plan, record, decided_now=True)


async def _was_ended(run: UploadContext) -> bool:
    """Return whether another process has ended this commit.

    If so, copies that were made aside since are deleted.

    Copies made since the end are deleted.
    """
    with suppress(StoreError, ManifestError):
        if not await has_begun(run):
            await drop_copies(run)
            return True
    return False


async def conclude(
    run: UploadContext, plan: UploadPlan, record: UploadRecord, *, decided_now: bool = False
) -> None:
    """Finish a commit after it is decided that it stands.

    ``decided_now`` says that this process has just decided it, and seen that the record exists.
    """
    run.reach(Phase.COMMITTED)
    if not await finish_commit(run, plan, record, decided_now=decided_now):
        return
    run.tell_visible(lambda: job_report(run, plan))
    if is_kept(run):
        await save(run, run.layout.done, b"{}", overwrite=True)
    await clean(run)


async def clean(run: UploadContext) -> None:
    """Clean up; an option decides whether a failure is an error."""
    action = run.options.on_cleanup_failure
    stage = run.meter.stage
    try:
        await clean_up(run)
    except StoreError as error:
        if action is OnCleanupFailure.FAIL:
            raise
        run.meter.stage = stage
        if action is OnCleanupFailure.WARN:
            run.warn(f"{run.layout.job_dir} could not be deleted; delete it by hand: {error}")


async def resume(run: UploadContext, standing: UploadCommitState) -> JobReport:
    """Finish a commit as decided; without a decision, commit it.

    Raises ``ForeignCommitError``.
    """
    record = standing.record
    if not standing.is_committed:
        await _require_own(run)
    run = replace(run.numbered(2), options=recorded_options(run, record)).acts()
    run.reach(Phase.COMMITTED if standing.is_committed else Phase.CHANGING)
    with UploadPlan.new(run.options) as plan:
        try:
            known = await _load(run, record, plan)
        except LeaseLostError:
            if not await is_finished(run):
                raise
            run.reach(Phase.COMMITTED)
            return replace(job_report(run), files=record.files, bytes=record.bytes)
        if standing.is_undone:
            undone, _ = await undo(run, record, plan)
            return replace(job_report(run), rolled_back=True, not_restored=undone.left)
        if not known:
            text = "it was aborted as its commit began: only a rollback can end it"
            raise CommitError(run.layout.job_id, run.meter.stage, (), text)
        if standing.is_committed:
            await plan.take_sample()
            await conclude(run, plan, record)
        else:
            await start(run, record, plan, refuse_ended)
            await carry_out(run, plan, record)
        return job_report(run, plan)


async def roll_back(run: UploadContext, standing: UploadCommitState) -> AbortReport:
    """Undo a commit that has begun.

    Raises ``CommittedError``, ``ForeignCommitError``.
    """
    if standing.is_committed:
        text = "it is committed and cannot be rolled back"
        raise CommittedError(run.layout.job_id, run.meter.stage, (), text)
    await _require_own(run)
    run.reach(Phase.CHANGING)
    with UploadPlan.new(run.options) as plan:
        await _load(run, standing.record, plan)
        await decide(run, CompletionFacts.ROLLBACK)
        undone, uploads = await undo(run, standing.record, plan)
    return AbortReport(
        run.layout.job_id,
        "rolled back",
        rolled_back=True,
        files=undone.files,
        restored=undone.restored,
        not_restored=undone.left,
        uploads=uploads,
        warnings=tuple(run.warnings),
    )


async def _require_own(run: UploadContext) -> None:
    """Refuse another user's commit that nobody has named."""
    if not run.asked and run.pending.traits.user is not None:
        await require_own(run, run.pending)


async def undo(
    run: UploadContext, record: UploadRecord, plan: UploadPlan
) -> tuple[UploadRollbackResult, int]:
    """Undo a commit and clean up; return the number of remaining uploads."""
    undone = await undo_uploads(run, record, plan)
    if plan.asides and (undone.left or await is_there(run.store, run.layout.kept)):
        run = await keep_copies(run)
        run.warn(f"copies of overwritten files remain in {run.layout.aside_dir}")
    _, swept = await clean_up(run)
    if record.made_destination:
        await remove_if_empty(run, run.layout.dest.path)
    return undone, swept.uploads


async def _load(run: UploadContext, record: UploadRecord, plan: UploadPlan) -> bool:
    """Read the plan of a commit; return whether there is one.

    Raises ``LeaseLostError`` if another has ended the commit and deleted it meanwhile.
    """
    try:
        if await has_plan(run, record):
            await load_plan(run, record, plan)
            return True
        await _refuse_lost_plan(run, record)
    except ManifestError as error:
        if await _was_ended(run):
            raise ended(run) from error
        raise
    return False


async def _refuse_lost_plan(run: UploadContext, record: UploadRecord) -> None:
    """Refuse to guess what a commit has done whose plan somebody has deleted.

    A late record, written after an abort, has neither plan nor sets: nothing was changed for it.
    """
    for row in record.sets:
        path = f"{run.layout.sets_dir}/{row.name}"
        with suppress(NotFoundError):
            await run.pending.head(path)
            url = run.layout.pending_url(run.layout.plan(record.plan_id, 0))
            raise ManifestError(url, "is missing, so the progress of the commit is unknown")


async def see(run: UploadContext) -> tuple[UploadContext, UploadCommitState | None]:
    """Return how far the commit of this job attempt is, and its context.

    Raises ``CommitError`` if that cannot be read: then the changes are unknown.
    """
    try:
        state = await read_state(run)
    except (StoreError, ManifestError) as error:
        text = (
            f"{error}. It is unknown whether a commit of this job has begun and what it has "
            f"changed under {run.layout.dest}; nothing was done now. Do not run the job again "
            "before that is known"
        )
        raise CommitError(run.layout.job_id, run.meter.stage, (error,), text) from error
    return (run, None) if state is None else (acting_for(run, state).acts(), state)


# --- what is said of one --------------------------------------------------------------------


async def _count(plan: UploadPlan, there: Fingerprints, still_open: Fingerprints | None) -> int:
    wanted, pending = Fingerprints(), Fingerprints()
    with wanted, pending:
        async for dest, upload_id, size, *_ in plan.loaded.spill.each():
            wanted.add([(dest, size)])
            pending.add([(dest, upload_id)])
        missing = wanted.missing(there)
        unfinished = pending.common(still_open) if still_open is not None else set()
        if still_open is not None:
            still_open.close()
    done = 0
    async for dest, upload_id, size, *_ in plan.loaded.spill.each():
        found = fingerprint((dest, size)) not in missing
        done += found and fingerprint((dest, upload_id)) not in unfinished
    return done


def job_report(run: UploadContext, plan: UploadPlan | None = None) -> JobReport:
    """Return what a job commit has done, or would do."""
    if plan is None:
        return bare_report(run)
    loaded = plan.loaded
    run.note_sizes(loaded.sizes)
    report = bare_report(run)
    marker = run.layout.success
    overwritten = len(plan.asides) - (marker in plan.asides)
    return replace(
        report,
        files=loaded.files,
        bytes=loaded.bytes,
        tasks=dict(loaded.tasks),
        replaced=plan.old.count + overwritten,
        replaced_files=plan.old.count + overwritten,
        replacing=tuple(path for path in plan.replacing[:SAMPLE] if path != marker),
        filenames=tuple(plan.sample),
        ignored=tuple(run.layout.pending_url(path) for path in loaded.ignored),
    )

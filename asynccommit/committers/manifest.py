"""The manifest committer: tasks write manifests, the job renames what they list.

Compatible on the store with Hadoop's committer of this name (3.4.1 and later; the manifests of
earlier ones load too). What differs, and why, is in docs/protocol.md.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import anyio

from asynccommit.errors import (
    CommitError,
    ExistsError,
    NotFoundError,
    PreconditionError,
    StoreError,
    UnsupportedError,
)
from asynccommit.host import Host
from asynccommit.job import Layout, TaskCommit
from asynccommit.options import Options
from asynccommit.results import AbortReport, JobReport
from asynccommit.stages.cleanup import Outcome, clean_up, clean_up_aborted
from asynccommit.stages.directories import make_directories, move_aside
from asynccommit.stages.failing import commit_failures, job_commit_error
from asynccommit.stages.load import Loaded, load_manifests
from asynccommit.stages.preflight import Plan, preflight
from asynccommit.stages.record import find_record, refuse_begun, write_record
from asynccommit.stages.rename import rename_files
from asynccommit.stages.reports import has_report, keep_manifests, report_on
from asynccommit.stages.run import OnProgress, Run
from asynccommit.stages.save import remove_own_manifest, save_manifest
from asynccommit.stages.scan import scan_task_attempt
from asynccommit.stages.state import find_layout, is_committed, is_there
from asynccommit.stages.summary import write_success
from asynccommit.stages.validate import validate_output
from asynccommit.store import Store
from asynccommit.urls import Address
from asynccommit.wrappers.stats import Count
from asynccommit.wrappers.traffic import Traffic

_LAST_WORDS = 30.0
"""Seconds that a cancelled commit may take to say how far it came."""


class ManifestCommitter:
    """Commits one job attempt under one destination.

    Args:
        store: where the destination is; must rename files atomically.
        layout: destination and job.
        options: how to commit.
        host: clock, ids and names.
        counted: the store's request counters, for statistics.
        traffic: what has become of the store's requests, for statistics.
        open_store: opens the store of a report directory that is elsewhere.

    Raises:
        UnsupportedError: the store has no atomic rename.
    """

    def __init__(
        self,
        store: Store,
        layout: Layout,
        options: Options,
        host: Host,
        counted: Mapping[str, Count] | None = None,
        traffic: Callable[[], Traffic] = Traffic,
        open_store: Callable[[Address], Store] | None = None,
    ) -> None:
        if not store.traits.atomic_rename:
            raise UnsupportedError(
                f"{store.traits.name} has no atomic rename, which the manifest committer needs; "
                "on S3 use a committer of multipart uploads, as Hadoop's magic committer"
            )
        self.store = store
        self.layout = layout
        self.options = options
        self.host = host
        self._counted = {} if counted is None else counted
        self._traffic = traffic
        self._open_store = open_store
        self.set_up = False
        self._made_destination = False

    async def setup_job(self) -> None:
        """Make the directories of this job attempt.

        ``set_up`` is true from when they may be there and are this committer's to abort. Raises
        ``CommitError`` if the destination is a file, or the job attempt is there already.
        """
        run = self._run()
        async with commit_failures(run):
            with run.timed("job_stage_setup"):
                await _refuse_existing(run, self.layout.attempt_dir, "job attempt")
                self.set_up = True
                self._made_destination = not await is_there(run, self.layout.dest.path)
                await self.store.mkdir(self.layout.manifests_dir)

    async def setup_task(self, attempt_id: str) -> str:
        """Make the directory of a task attempt and return its path.

        Raises ``CommitError`` if it is there already, or the job is not.
        """
        run = self._run()
        path = self.layout.task_attempt_dir(attempt_id)
        async with commit_failures(run):
            with run.timed("task_stage_setup"):
                await self.store.head(self.layout.manifests_dir)  # of a job that has not ended
                await _refuse_existing(run, path, "task attempt")
                await self.store.mkdir(path)
        return path

    async def commit_task(self, task_id: str, attempt_id: str) -> TaskCommit:
        """Write the manifest of what a task attempt left in its directory.

        The last attempt of a task that commits counts, as with Hadoop, unless the job commit is
        given the commit messages. Raises ``CommitError``.
        """
        run = self._run()
        async with commit_failures(run):
            with run.timed("task_stage_commit"):
                with run.timed("task_stage_scan_directory"):
                    base = self.layout.task_attempt_dir(attempt_id)
                    found = await scan_task_attempt(run, base)
                return await save_manifest(run, task_id, attempt_id, found)

    async def abort_task(self, task_id: str, attempt_id: str) -> None:
        """Delete the directory of a task attempt, and the manifest if it is this attempt's.

        Nothing there is fine; once the job's commit has begun nothing is deleted. Raises
        ``CommitError``.
        """
        run = self._run()
        async with commit_failures(run):
            with run.timed("task_stage_abort_task"):
                if await find_record(run) is not None:
                    return
                await remove_own_manifest(run, task_id, attempt_id)
                for parent in (self.layout.tasks_dir, self.layout.absolute_dir):
                    await _delete_if_there(run, f"{parent}/{attempt_id}")

    async def commit_job(
        self,
        tasks: Sequence[TaskCommit] | None = None,
        *,
        overwrite: Sequence[str] = (),
        strict: bool = False,
        on_progress: OnProgress | None = None,
    ) -> JobReport:
        """Make the files of the committed tasks visible, and nothing else.

        Args:
            tasks: the commit messages of the tasks; without them every manifest is trusted.
            overwrite: decoded paths of directories whose content is replaced.
            strict: refuse a job in which tasks have committed that ``tasks`` does not name.
            on_progress: called a few times a second, on the event loop.

        Raises:
            PreflightError: refused; nothing under the destination changed.
            ValidationError: the destination is not as committed; there is no ``_SUCCESS``.
            CommitUnknownError: an answer was lost; nothing was cleaned.
            CommitError: it failed half-way; the job's directory was left as it is.
        """
        run = self._run(on_progress)
        async with self._reporting(run):
            if await is_committed(run, trusting=tasks is None):
                await self._clean_up(run)
                return replace(_report(run), already=True)
            await refuse_begun(run)
            with Loaded(self.options) as loaded:
                await load_manifests(run, loaded, tasks, strict=strict)
                plan = await preflight(run, loaded, overwrite)
                await write_record(run, plan)
                await move_aside(run, plan)
                await make_directories(run, plan)
                await rename_files(run, plan)
                await validate_output(run, plan)
                await keep_manifests(run)
                await write_success(run, plan)
                await self._clean_up(run)
        report = await report_on(run, "committer_commit_job", plan.sample)
        return replace(_report(run, plan), report=report)

    async def plan_job(
        self, tasks: Sequence[TaskCommit] | None = None, *, overwrite: Sequence[str] = ()
    ) -> JobReport:
        """Return what ``commit_job`` would do, or raise what it would raise before it begins."""
        run = self._run()
        async with self._reporting(run, save=False):
            await find_layout(run)
            with Loaded(self.options) as loaded:
                await load_manifests(run, loaded, tasks)
                plan = await preflight(run, loaded, overwrite)
                await plan.take_sample()
        return _report(run, plan)

    async def abort_job(self, reason: str = "") -> AbortReport:
        """Delete this job's directory, unless a commit has begun: then everything is kept.

        Nothing there is fine: aborting twice, or after a success, changes nothing. Raises
        ``CommitError`` if the directory cannot be deleted.
        """
        run = self._run()
        async with commit_failures(run):
            with run.timed("job_stage_abort"):
                await find_layout(run)
                outcome = await clean_up_aborted(run)
                if outcome is Outcome.KEPT:
                    kept = f"a commit has begun: {run.layout.job_dir} is kept"
                    return AbortReport(self.layout.job_id, outcome.value, kept)
                if self._made_destination and outcome is not Outcome.DISABLED:
                    await _delete_if_empty(run, self.layout.dest.path)
            report = None
            if not await has_report(run):
                error = CommitError(self.layout.job_id, "job_stage_abort", (), reason or "aborted")
                report = await report_on(run, "job_stage_abort", (), error)
        return AbortReport(self.layout.job_id, outcome.value, report=report)

    async def cleanup(self) -> str:
        """Delete this job's directory whatever its state; return what was done.

        Raises ``CommitError`` if that fails.
        """
        run = self._run()
        async with commit_failures(run):
            await find_layout(run)
            return (await clean_up(run)).value

    def _run(self, on_progress: OnProgress | None = None) -> Run:
        return Run(
            store=self.store,
            layout=self.layout,
            options=self.options,
            host=self.host,
            on_progress=on_progress,
            open_store=self._open_store,
            counted=self._counted,
            traffic=self._traffic,
        )

    @asynccontextmanager
    async def _reporting(self, run: Run, *, save: bool = True) -> AsyncIterator[None]:
        """Turn every failure into one error and one report, a cancelled commit's too."""
        name = "committer_commit_job"
        try:
            with run.timed(name):
                yield
        except Exception as error:
            failure = job_commit_error(run, error)
            if save:
                await report_on(run, run.stage, (), failure)
            raise failure from failure.__cause__
        except BaseException as error:  # cancelled, or the process is told to end
            with anyio.move_on_after(_LAST_WORDS, shield=True):
                if save:
                    await report_on(run, run.stage, (), error)
            raise

    async def _clean_up(self, run: Run) -> None:
        ignored = self.options.cleanup_failures_ignored
        stage = run.stage
        try:
            await clean_up(run)
        except StoreError as error:
            if ignored is False:
                raise
            run.stage = stage
            if ignored is None:
                run.warn(f"{run.layout.job_dir} could not be deleted, delete it by hand: {error}")


def _report(run: Run, plan: Plan | None = None) -> JobReport:
    traffic = run.traffic()
    report = JobReport(
        job_id=run.layout.job_id,
        dest=str(run.layout.dest),
        seconds=run.seconds.get("committer_commit_job", 0.0),
        stages=dict(run.seconds),
        requests={name: counted.n for name, counted in run.counted.items() if counted.n},
        refused=traffic.refused,
        recovered=traffic.recovered,
        waited=traffic.waited,
        warnings=tuple(run.warnings),
        success=run.success,
    )
    if plan is None:
        return report
    loaded = plan.loaded
    return replace(
        report,
        files=loaded.files,
        bytes=loaded.bytes,
        tasks=loaded.tasks,
        directories=len(plan.make),
        replaced=len(plan.aside),
        filenames=tuple(plan.sample),
        ignored=tuple(run.layout.url(path) for path in loaded.ignored),
    )


async def _refuse_existing(run: Run, path: str, what: str) -> None:
    if await is_there(run, path):
        raise ExistsError("mkdir", path, f"this {what} is there already: give another id")


async def _delete_if_there(run: Run, path: str) -> None:
    with suppress(NotFoundError):
        await run.store.delete_tree(path)


async def _delete_if_empty(run: Run, path: str) -> None:
    with suppress(ExistsError, NotFoundError, PreconditionError):
        await run.store.delete(path)

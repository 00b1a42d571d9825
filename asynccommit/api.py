"""The asyncio interface to jobs and tasks.

    async with open_job("/data/flights") as job:
        async with job.task(0) as task:
            write_parquet(task.path("day=1/part-0.parquet"))

Leaving a block commits; an exception aborts. Tasks may run in other processes or on other machines:
they use ``job(url, job_id).task(0)``, and the ``commit`` of the task they get is handed to
``Job.accept``. The same handle commits, resumes, rolls back and aborts a job from anywhere.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, NoReturn

from asynccommit.commit.by_upload.committer import UploadCommitter
from asynccommit.commit.context import OnVisible
from asynccommit.commit.driver.record_owner import resume_hint
from asynccommit.commit.job.observing import observed_run
from asynccommit.commit.job_context import JobContext
from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.commit.meter import OnProgress
from asynccommit.commit.orders import Runner
from asynccommit.commit.registry import Committer, mode_of, open_named
from asynccommit.commit.task import RunningTasks, Task, abort_after, run_task
from asynccommit.errors import CommitError, NotFoundError, OptionError
from asynccommit.options.checked import HIDDEN, Url, checked, storage_of
from asynccommit.options.job import AnyMode, Mode, OnUnfinished, Options, rate_among
from asynccommit.options.uploads import S3A
from asynccommit.progress.cell import shown_in_cell
from asynccommit.redact import redact
from asynccommit.results import AbortReport, JobReport, JobStatus
from asynccommit.runners.named import runner_named
from asynccommit.runtime.background import ended
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.stats import Stats
from asynccommit.stores.policies.traffic import traffic_of
from asynccommit.stores.registry import StoreSettings, close_store, open_store
from asynccommit.stores.urls import Address, parse_url

OptionsLike = Annotated[Options | Mapping[str, str | float] | None, HIDDEN]
StorageOptions = Annotated[Mapping[str, Any] | None, HIDDEN]


@dataclass(frozen=True, slots=True)
class JobRef:
    """A job attempt as the caller of a function names it.

    See ``job`` for the attributes; ``host`` has clock, ids and names, the real ones by default.
    """

    url: Url
    job_id: str
    attempt: int = 0
    options: OptionsLike = field(default=None, repr=False)
    storage_options: StorageOptions = field(default=None, repr=False)
    committer: str | None = None
    pending: Url | None = None
    host: Host | None = None
    runner: Runner | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Committer]:
        """Open the committer of the job attempt; close its stores on leaving.

        The clean-up of earlier commits of this process at this destination is awaited first.

        Raises ``OptionError`` for an unknown committer, ``UnsupportedError`` for a store that
        cannot be used, and ``UrlError``.
        """
        options, host = _options(self.options), self.host or this_host()
        layout = Layout(parse_url(os.fspath(self.url)), self.job_id)
        settings = _settings(options, host, storage_of(self.url, self.storage_options))
        settings = replace(settings, log_fields=layout.log_fields)
        await ended(str(layout.dest))
        async with AsyncExitStack() as opened:

            def open_another(place: Address) -> Wrapped:
                store = open_store(place, settings)
                opened.push_async_callback(close_store, store)
                return store

            store = open_another(layout.dest)
            opening = JobContext(
                dest=layout.dest,
                job_id=self.job_id,
                attempt=self.attempt,
                store=store,
                options=options,
                host=host,
                open_store=open_another,
                pending=None if self.pending is None else parse_url(os.fspath(self.pending)),
                counted=next((it.counts for it in store.policies if isinstance(it, Stats)), {}),
                traffic=partial(traffic_of, store),
                runner=self.runner or runner_named(options.runner),
                storage=settings.options,
            )
            yield open_named(self.committer, opening)


class Job:
    """A running job. Made by ``open_job``.

    Attributes:
        on_visible: called once, on the event loop, when readers see the whole job and only its
            clean-up is left; set it before the block is left. It is not called with options that
            make the caller wait, see ``Options.cleanup``.
    """

    def __init__(self, committer: Committer) -> None:
        self.on_visible: Callable[[], object] | None = None
        self._report: JobReport | None = None
        self.committer = committer
        self._commits: dict[str, TaskCommit] = {}
        self._running = RunningTasks()

    def __repr__(self) -> str:
        return f"Job({self.job_id!r}, {self.dest!r})"

    @property
    def job_id(self) -> str:
        """The id to give to ``asynccommit.job`` in other processes."""
        return self.committer.layout.job_id

    @property
    def dest(self) -> str:
        """The destination, as a user writes it."""
        return str(self.committer.layout.dest)

    @property
    def report(self) -> JobReport:
        """The report of the commit, once the job's block is left.

        Raises ``OptionError`` before that, and if the commit failed.
        """
        if self._report is None:
            raise OptionError(f"job {self.job_id} is not committed: it has no report yet")
        return self._report

    def _visible(self, report: JobReport) -> None:
        self._report = report
        if self.on_visible is not None:
            self.on_visible()

    def end(self) -> None:
        """Accept no more tasks, and no more files from tasks that still run.

        Raises ``OptionError`` if a task still runs that has no committed attempt.
        """
        self._running.end(self.job_id)
        self._running.check_ended(self._commits)

    @property
    def commits(self) -> Sequence[TaskCommit]:
        """The commit messages of the tasks so far."""
        return tuple(self._commits.values())

    @checked
    def accept(self, commit: TaskCommit) -> None:
        """Accept the commit message of a task that ran elsewhere.

        The last message of a task counts. Raises ``OptionError`` if the job has ended.
        """
        self._running.check_job()
        self._commits[commit.task_id] = commit

    @checked
    @asynccontextmanager
    async def task(self, task: int, attempt: int | None = None) -> AsyncIterator[Task]:
        """Run a task attempt here: commit it on leaving, abort it on an exception.

        Args:
            task: the number of the task in the job.
            attempt: the number of the attempt; ``None`` for the lowest that is free, so that the
                same call runs a task again.

        Raises ``CommitError``, and ``OptionError`` if the job has ended.
        """
        self._running.check_job()
        with self._running.noted() as note:
            async with run_task(self.committer, task, attempt) as running:
                note(running)
                self._running.check_job()  # the job may have ended during the task's setup
                yield running
            self.accept(running.commit)


@checked
@asynccontextmanager
async def open_job(
    url: Url,
    *,
    job_id: str | None = None,
    attempt: int = 0,
    options: OptionsLike = None,
    storage_options: StorageOptions = None,
    mode: AnyMode | None = None,
    committer: str | None = None,
    pending: Url | None = None,
    on_progress: OnProgress | None = None,
    runner: Runner | None = None,
) -> AsyncIterator[Job]:
    """Set up a job; commit it on leaving, abort it on an exception.

    Args:
        url: the destination: a path, which may be relative, or a URL of a supported scheme.
        job_id: unique under the destination; defaults to the id in the options, or a fresh one.
        attempt: the job attempt number.
        options: ``Options``, or configuration keys under Hadoop's names.
        storage_options: credentials and other options of the store, under fsspec's names.
        mode: what becomes of existing data, see ``Mode``; defaults to the mode in the options of
            the staging committers, or ``append``.
        committer: ``manifest``, ``magic``, ``directory`` or ``partitioned``, ``file_v1`` or
            ``file_v2``; defaults to the committer in the options, or the one that suits the store.
        pending: where staging committers keep pending sets: ``fs.s3a.committer.staging.tmp.path``.
        on_progress: called a few times a second while the job is committed, and while commits of
            other jobs are settled before it; without it a notebook shows the progress in the cell.
        runner: other processes that rename files of a large commit, one of
            ``asynccommit.runners``; by default those that ``Options.runner`` names.

    Raises:
        CommitError: the job could not be set up, committed or aborted; see its subclasses.
        OptionError: an argument is invalid; nothing was done.
        UnfinishedError: commits of other jobs there were interrupted; nothing was done.
    """
    host, chosen = this_host(), _options(options)
    meant = mode_of(chosen, committer) if mode is None else Mode.of(mode)
    name, chosen = _job_id(job_id, chosen, host)
    ref = JobRef(url, name, attempt, chosen, storage_options, committer, pending, host, runner)
    async with ref.open() as made, AsyncExitStack() as living:
        living.enter_context(observed_run(made.layout))
        job = Job(made)
        try:
            await _set_up(made, meant, on_progress)
            await living.enter_async_context(made.living())
            yield job
            job.end()
        except BaseException as error:
            with suppress(OptionError):
                job.end()
            if made.set_up:
                await abort_after(error, made.abort_job(f"{type(error).__name__}: {error}"))
            raise
        with shown_in_cell(on_progress) as tell:
            job._report = await made.commit_job(
                job.commits,
                mode=meant,
                strict=True,
                on_progress=tell,
                on_visible=job._visible,
            )


async def _set_up(made: Committer, mode: Mode, on_progress: OnProgress | None) -> None:
    """Set up a job, with the progress of commits that are settled first."""
    if made.options.on_unfinished is OnUnfinished.REFUSE:
        await made.setup_job(mode=mode)
        return
    with shown_in_cell(on_progress) as made.on_settling:
        await made.setup_job(mode=mode)


@checked
@asynccontextmanager
async def open_kept_job(
    url: Url,
    job_id: str,
    *,
    options: OptionsLike = None,
    storage_options: StorageOptions = None,
    mode: AnyMode = Mode.APPEND,
    committer: str | None = None,
) -> AsyncIterator[Job]:
    """Set up or take over a job that an exception keeps; commit it on leaving.

    A job whose driver died is taken over with its committed tasks; those whose messages are
    accepted are committed. Takes what ``open_job`` does. Raises its errors, ``CommittedError``
    also after an interrupted commit was finished, ``OwnedError`` if another driver may run it.
    """
    chosen = Mode.of(mode)
    ref = JobRef(url, job_id, 0, options, storage_options, committer)
    async with ref.open() as made, AsyncExitStack() as living:
        living.enter_context(observed_run(made.layout))
        if await made.job_status() is not None:
            await _end_commit(made, chosen)
        if not await made.rejoin_job(mode=chosen):
            await made.setup_job(mode=chosen)
        await living.enter_async_context(made.living())
        job = Job(made)
        try:
            yield job
            job.end()
        except BaseException:
            with suppress(OptionError):
                job.end()
            raise
        job._report = await made.commit_job(job.commits, mode=chosen, on_visible=job._visible)


async def _end_commit(made: Committer, mode: Mode) -> NoReturn:
    """Finish an interrupted commit; raise ``CommittedError``, or the reason."""
    made.asked = False
    await made.resume_job()
    await made.check_job(mode=mode)
    text = "its interrupted commit was rolled back: run the job again"
    raise CommitError(made.layout.job_id, "job_stage_setup", (), text)


@dataclass(frozen=True, slots=True)
class JobHandle:
    """A job at a destination, for any process that knows its id.

    Made by ``job``. It opens nothing: each call opens the store and closes it. It can be pickled,
    with the options and the credentials that it was given.
    """

    _ref: JobRef
    _job_id: str | None
    _attempt: int | None

    def __repr__(self) -> str:
        return f"JobHandle({redact(os.fspath(self._ref.url))!r}, {self._job_id!r})"

    @checked
    @asynccontextmanager
    async def task(self, task: int, attempt: int | None = None) -> AsyncIterator[Task]:
        """Run a task of the job: commit it on leaving, abort it on an exception.

        The options and the committer must be those of the job. Hand the ``commit`` of the task to
        ``Job.accept``, as JSON if need be.

        Args:
            task: the number of the task in the job.
            attempt: the number of the task attempt; ``None`` for the lowest that is free, so that
                a scheduler may make the same call again.

        Raises ``CommitError``.
        """
        async with self._named().open() as made, run_task(made, task, attempt) as running:
            yield running

    @checked
    async def commit(
        self,
        tasks: Sequence[TaskCommit] | None = None,
        *,
        mode: AnyMode = Mode.APPEND,
        overwrite: Sequence[str] = (),
        on_progress: OnProgress | None = None,
        on_visible: OnVisible | None = None,
    ) -> JobReport:
        """Commit the job, which was set up elsewhere, or resume its commit.

        Args:
            tasks: the commit messages of its tasks; without them every manifest is trusted.
            mode: how to treat existing data of the destination, see ``Mode``.
            overwrite: decoded paths of directories whose content is also replaced.
            on_progress: called a few times a second, in a thread; without it a notebook shows
                the progress in the cell.
            on_visible: called once with the report so far, on the event loop, when readers see the
                whole job and only its clean-up is left. It is not called with options that make
                the caller wait, see ``Options.cleanup``, nor for a job that was committed before.

        Raises:
            CommitError: the commit failed; its subclasses describe the state.
        """
        chosen = Mode.of(mode)
        async with self._named().open() as made:
            with shown_in_cell(on_progress) as tell:
                return await made.commit_job(
                    tasks, mode=chosen, overwrite=overwrite, on_progress=tell, on_visible=on_visible
                )

    @checked
    async def plan(self, *, mode: AnyMode = Mode.APPEND) -> JobReport:
        """Return the report that ``commit`` would return.

        Raises what ``commit`` would raise before it changes anything.
        """
        chosen = Mode.of(mode)
        async with self._named().open() as made:
            return await made.plan_job(mode=chosen)

    @checked
    async def abort(self, reason: str = "", *, force: bool = False) -> AbortReport:
        """Delete the files of the job, unless its commit has begun.

        Args:
            reason: for the report.
            force: abort even a job that may be alive; its program fails at its next step at the
                latest.

        Raises:
            OwnedError: another process runs the job, or may run it; nothing was done.
            CommitError: the files cannot be deleted.
        """
        async with self._named().open() as made:
            return await made.abort_job(reason, careful=not force)

    @checked
    async def resume(
        self, *, force: bool = False, adopt: bool = False, on_progress: OnProgress | None = None
    ) -> JobReport:
        """Finish the interrupted commit, as it was decided when it began.

        Without an id it is the only unfinished commit there.

        Args:
            force: take the commit even from an owner that may be alive; that owner can change
                nothing from then on.
            adopt: also finish a commit of Hadoop's own committer, which has no record.
            on_progress: called a few times a second, in a thread; without it a notebook shows
                the progress in the cell.

        Raises:
            OwnedError: its owner may be alive; nothing was done.
            NotFoundError: there is no unfinished commit.
            OptionError: there are several unfinished commits, and none was named.
            CommitError: the commit failed; its subclasses describe the state.
        """
        async with (await self._chosen(adopt=adopt)).open() as made:
            await _seek(made)
            with shown_in_cell(on_progress) as tell:
                return await made.resume_job(force=force, adopt=adopt, on_progress=tell)

    @checked
    async def rollback(
        self, *, force: bool = False, on_progress: OnProgress | None = None
    ) -> AbortReport:
        """Undo the interrupted commit: remove its files and restore the rest.

        Takes and raises what ``resume`` does, and ``CommittedError`` for a job that is committed.
        """
        async with (await self._chosen()).open() as made:
            await _seek(made)
            with shown_in_cell(on_progress) as tell:
                return await made.rollback_job(force=force, on_progress=tell)

    async def status(self) -> JobStatus | None:
        """Return how far the job is; ``None`` if it has left nothing there.

        It is that of the last attempt if none was named. Raises ``CommitError``, ``StoreError``.
        """
        ref = self._named()
        found = [job for job in await _statuses(ref) if job.job_id == ref.job_id]
        if self._attempt is not None:
            found = [job for job in found if job.attempt == self._attempt]
        return max(found, key=lambda job: job.attempt, default=None)

    def _named(self) -> JobRef:
        """Return the job attempt. Raises ``OptionError`` if the job has no id."""
        if self._job_id is None:
            place = redact(os.fspath(self._ref.url))
            raise OptionError(
                f"expected the id of a job under {place}: job(url, job_id); job_statuses(url) "
                "lists the jobs there"
            )
        return self._ref

    async def _chosen(self, *, adopt: bool = False) -> JobRef:
        """Return the named attempt, or that of the unfinished commit."""
        wanted = self._job_id
        if wanted is not None and self._attempt is not None:
            return self._ref
        found = await _statuses(self._ref)
        begun = [job for job in found if (job.epoch or adopt) and wanted in (None, job.job_id)]
        jobs = [job for job in begun if job.unfinished] or begun
        if len(jobs) == 1:
            return replace(self._ref, job_id=jobs[0].job_id, attempt=jobs[0].attempt)
        if jobs:
            dest = parse_url(os.fspath(self._ref.url))
            typed = "; ".join(resume_hint(dest, job) for job in jobs[:20])
            raise OptionError(f"{len(jobs)} unfinished commits under {dest}; name one: {typed}")
        if wanted is not None:
            return self._ref
        text = "there is no unfinished commit"
        raise NotFoundError("resume", os.fspath(self._ref.url), text)


@checked
def job(
    url: Url,
    job_id: str | None = None,
    *,
    attempt: int | None = None,
    options: OptionsLike = None,
    storage_options: StorageOptions = None,
    committer: str | None = None,
    pending: Url | None = None,
    runner: Runner | None = None,
) -> JobHandle:
    """Return a handle of a job that another program has set up.

        report = await job("/data/flights", job_id).commit()

    Args:
        url: the destination.
        job_id: the job; ``resume`` and ``rollback`` take the only unfinished commit without it.
        attempt: the job attempt number; 0 by default, and for ``resume``, ``rollback`` and
            ``status`` the one that is there.
        options: ``Options``, or configuration keys under Hadoop's names.
        storage_options: credentials and other options of the store, under fsspec's names.
        committer: the name of the committer, see ``open_job``.
        pending: where staging committers keep pending sets, see ``open_job``.
        runner: other processes that rename files, see ``open_job``; a resume uses none.
    """
    name = "any" if job_id is None else job_id
    place = (url, name, attempt or 0)
    ref = JobRef(*place, options, storage_options, committer, pending, runner=runner)
    return JobHandle(ref, job_id, attempt)


@checked
async def job_statuses(url: Url, *, storage_options: StorageOptions = None) -> list[JobStatus]:
    """Return how far each job under a destination is.

    Raises ``CommitError``, ``StoreError``.
    """
    return await _statuses(JobRef(url, "any", storage_options=storage_options))


async def _statuses(ref: JobRef) -> list[JobStatus]:
    """Return the status of each job under the destination of a job."""
    other = JobRef(ref.url, "any", storage_options=ref.storage_options)
    async with other.open() as made:
        return await made.job_statuses()


async def _seek(committer: Committer) -> None:
    """Find a job of uploads whose committer is not the store's default."""
    if isinstance(committer, UploadCommitter):
        await committer.seek()


def _options(given: OptionsLike) -> Options:
    return given if isinstance(given, Options) else Options.from_conf(given or {})


def _job_id(given: str | None, options: Options, host: Host) -> tuple[str, Options]:
    """Return the id of a job, and options with the source of that id.

    Raises ``OptionError``.
    """
    uploads = options.uploads
    if given is not None:
        return given, options
    if uploads.job_id is not None:
        source = options.job_id_source
        if source == Options().job_id_source:
            source = uploads.job_id_source
        return uploads.job_id, replace(options, job_id_source=source)
    if uploads.require_id:
        raise OptionError(f"{S3A}require.uuid is true and the job has no id: set {S3A}uuid")
    return host.new_id(), options


def _settings(options: Options, host: Host, storage: StorageOptions) -> StoreSettings:
    rate = rate_among(storage or {}) if options.rate is None else options.rate
    return StoreSettings(
        rng=host.rng,
        rate=rate,
        attempts=options.attempts,
        retry_seconds=options.retry_seconds,
        options=storage or {},
    )

"""The blocking interface: every call returns once its work is done.

A commit returns when readers see the whole job; its clean-up goes on in the background, and the
next job at that destination and the end of the program wait for it. ``asynccommit.cleanup=wait``
makes the commit itself wait.

Works in a notebook, where a loop is running already: the work is done on the engine's thread. A
``BlockingJob`` belongs to the process that made it: it cannot be pickled, and after a fork it
refuses to work. Hand the job's id to other processes instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ContextDecorator,
    contextmanager,
    nullcontext,
)
from functools import partial, wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast

from asynccommit import api
from asynccommit.api import Job, JobHandle, OptionsLike, StorageOptions
from asynccommit.commit.blocking_file import BlockingFile
from asynccommit.commit.context import OnVisible
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.meter import OnProgress, Progress
from asynccommit.commit.orders import Runner
from asynccommit.commit.task import Task, to_arrow
from asynccommit.engine.blocking import BlockingStore
from asynccommit.errors import UnsupportedError
from asynccommit.former import (
    former_names,
    function_of_tasks,
    functions_of_jobs,
    warn_of_former,
)
from asynccommit.options.checked import Url
from asynccommit.options.job import AnyMode, Mode
from asynccommit.progress.cell import is_notebook, shown_in_cell
from asynccommit.results import AbortReport, JobReport, JobStatus
from asynccommit.runtime.at_exit import busy, entered, leaving
from asynccommit.runtime.background import wait_for_all
from asynccommit.runtime.loop_thread import Early, call, short, submit
from asynccommit.stores import opening

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

__all__ = [
    "BlockingFile",
    "BlockingJob",
    "BlockingJobHandle",
    "BlockingStore",
    "BlockingTask",
    "job",
    "job_statuses",
    "open_job",
    "open_store",
    "wait_for_cleanup",
]

P = ParamSpec("P")
T = TypeVar("T")
B = TypeVar("B")
EarlyOf = Callable[[T], Early[None]]


class BlockingTask:
    """A task attempt with blocking methods.

    See ``asynccommit.Task``.
    """

    def __init__(self, inner: Task) -> None:
        self._inner = inner

    def __repr__(self) -> str:
        return f"Blocking{self._inner!r}"

    @property
    def task_id(self) -> str:
        """The id of the task."""
        return self._inner.task_id

    @property
    def attempt_id(self) -> str:
        """The id of the task attempt."""
        return self._inner.attempt_id

    @property
    def directory(self) -> str:
        """The directory of the task attempt: a local path, or a URL. See ``Task``."""
        return self._inner.directory

    @property
    def commit(self) -> TaskCommit:
        """The commit message, available after the ``with`` block.

        Raises ``OptionError`` before that, and if the task was aborted.
        """
        return self._inner.commit

    @property
    def url(self) -> str:
        """The directory of the task attempt as a URL. See ``Task``."""
        return self._inner.url

    @property
    def staging_suffix(self) -> str:
        """A text that may end the name of a file. See ``Task.staging_suffix``."""
        return self._inner.staging_suffix

    @property
    def filesystem(self) -> AbstractFileSystem:
        """The task as a filesystem of fsspec. See ``Task.filesystem``."""
        return self._inner.filesystem_for(None)

    @property
    def arrow_filesystem(self) -> Any:
        """The same as a ``pyarrow.fs.FileSystem``."""
        return to_arrow(self.filesystem)

    def path(self, name: str) -> str:
        """Make the directory of ``name`` and return its local path.

        See ``Task.path``.
        """
        return self._inner.path(name)

    def put(self, name: str, data: bytes) -> None:
        """Write one file, on any store. See ``Task.put``."""
        call(self._inner.put(name, data))

    def remove(self, name: str) -> None:
        """Delete a file that this task attempt has written. See ``Task.remove``."""
        submit(self._inner.remove(name))

    def open(self, name: str) -> BlockingFile:
        """Open a file for incremental writing: ``with task.open(name) as file``.

        The file can be passed to functions that write to file objects, such as
        ``pyarrow.parquet.write_table``. See ``Task.open``.
        """
        return BlockingFile(call(self._inner.open(name)), name)


class BlockingJob:
    """A job with blocking methods. Made by ``open_job``."""

    def __init__(self, inner: Job) -> None:
        self._inner = inner
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return f"Blocking{self._inner!r}"

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(
            "a job cannot be pickled: pass its job_id to other processes, and use "
            "sync.job(url, job_id).task there"
        )

    @property
    def job_id(self) -> str:
        """The id to give to ``sync.job`` in other processes."""
        return self._inner.job_id

    @property
    def report(self) -> JobReport:
        """The report of the commit, available after the ``with`` block.

        Raises ``OptionError`` before that.
        """
        return self._inner.report

    def accept(self, commit: TaskCommit) -> None:
        """Accept the commit message of a task that ran elsewhere."""
        self._check()
        self._inner.accept(commit)

    def task(self, task: int, attempt: int | None = None) -> AbstractContextManager[BlockingTask]:
        """Run a task attempt here: commit it on leaving, abort it on an exception."""
        self._check()
        return _Block(_of_kind(_blocking(self._inner.task(task, attempt)), BlockingTask))

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise UnsupportedError(
                "this job was opened before a fork: use sync.job(url, job_id).task in the child"
            )


class _Block(ContextDecorator, AbstractContextManager[B]):
    """A context of a blocking caller; errors have the caller's frames only.

    Args:
        inner: the context.
        leaving: a context for leaving it without an error.
    """

    def __init__(
        self,
        inner: AbstractContextManager[B],
        leaving: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._inner = inner
        self._leaving = leaving

    def __enter__(self) -> B:
        try:
            return self._inner.__enter__()
        except Exception as error:
            raise short(error) from error.__cause__

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        try:
            with self._leaving() if error is None else nullcontext():
                return self._inner.__exit__(kind, error, traceback)
        except Exception as found:
            if found is error:
                raise
            raise short(found, keep=error) from found.__cause__


@contextmanager
def _of_kind(inner: AbstractContextManager[T], kind: Callable[[T], B]) -> Iterator[B]:
    with inner as value:
        yield kind(value)


@contextmanager
def _blocking(
    manager: AbstractAsyncContextManager[T], early_of: EarlyOf[T] | None = None
) -> Iterator[T]:
    """Enter and leave an asynchronous context on the engine's loop.

    ``early_of`` returns what tells that the caller may go on before the context is left.
    """
    with busy():
        value = submit(_enter(manager))
        owner, number = os.getpid(), entered(lambda: submit(_leave(manager, GeneratorExit())))
    try:
        yield value
    except BaseException as error:
        if os.getpid() == owner:  # not in a forked child
            with leaving(number) as is_open:
                if is_open:
                    submit(_leave(manager, error))
        raise
    if os.getpid() != owner:
        raise UnsupportedError("this block was entered before a fork: leave it only in the parent")
    with leaving(number) as is_open:
        if is_open:
            submit(_leave(manager, None), None if early_of is None else early_of(value))


async def _enter(manager: AbstractAsyncContextManager[T]) -> T:
    return await manager.__aenter__()


async def _leave(manager: AbstractAsyncContextManager[T], error: BaseException | None) -> None:
    if error is None:
        await manager.__aexit__(None, None, None)
    else:
        await manager.__aexit__(type(error), error, error.__traceback__)


class _CellProgress:
    """Progress in the cell that commits a job, not the one that opened it."""

    def __init__(self) -> None:
        self._bars: OnProgress | None = None

    def __call__(self, progress: Progress) -> None:
        """Show progress, if the job is being committed."""
        if self._bars is not None:
            self._bars(progress)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show progress while the block runs."""
        with shown_in_cell(None) as self._bars:
            yield


def _until_visible(job: Job) -> Early[None]:
    """Return what tells that readers see the whole job."""
    early: Early[None] = Early()
    job.on_visible = lambda: early.give(None, job.dest)
    return early


class BlockingJobHandle:
    """A job at a destination, for any process that knows its id.

    Made by ``job``. See ``asynccommit.JobHandle`` for the arguments of the methods and their
    errors. ``commit``, ``resume`` and ``rollback`` show their progress in the cell of a notebook.
    """

    def __init__(
        self, inner: JobHandle, block: Callable[[], AbstractContextManager[BlockingJob]]
    ) -> None:
        self._inner = inner
        self._block = block
        self._entered: AbstractContextManager[BlockingJob] | None = None

    def __repr__(self) -> str:
        return f"Blocking{self._inner!r}"

    def __enter__(self) -> BlockingJob:
        warn_of_former("asynccommit.sync.job as a block", "asynccommit.sync.open_job")
        self._entered = self._block()
        return self._entered.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        assert self._entered is not None
        return self._entered.__exit__(kind, error, traceback)

    def task(self, task: int, attempt: int | None = None) -> AbstractContextManager[BlockingTask]:
        """Run a task of the job: commit it on leaving, abort it on an exception."""
        return _Block(_of_kind(_blocking(self._inner.task(task, attempt)), BlockingTask))

    def commit(
        self,
        tasks: Sequence[TaskCommit] | None = None,
        *,
        mode: AnyMode = Mode.APPEND,
        overwrite: Sequence[str] = (),
        on_progress: OnProgress | None = None,
        on_visible: OnVisible | None = None,
    ) -> JobReport:
        """Commit the job, which was set up elsewhere, or resume its commit.

        Returns when readers see the whole job.
        """
        early: Early[JobReport] = Early()

        def tell(report: JobReport) -> None:
            early.give(report, report.dest)
            if on_visible is not None:
                on_visible(report)

        with shown_in_cell(on_progress) as shown:
            work = self._inner.commit(
                tasks, mode=mode, overwrite=overwrite, on_progress=shown, on_visible=tell
            )
            try:
                return submit(work, early)
            except Exception as error:
                raise short(error) from error.__cause__

    def plan(self, *, mode: AnyMode = Mode.APPEND) -> JobReport:
        """Return the report that ``commit`` would return."""
        try:
            return submit(self._inner.plan(mode=mode))
        except Exception as error:
            raise short(error) from error.__cause__

    def abort(self, reason: str = "", *, force: bool = False) -> AbortReport:
        """Delete the files of the job, unless its commit has begun."""
        try:
            return submit(self._inner.abort(reason, force=force))
        except Exception as error:
            raise short(error) from error.__cause__

    def resume(
        self, *, force: bool = False, adopt: bool = False, on_progress: OnProgress | None = None
    ) -> JobReport:
        """Finish the interrupted commit, as it was decided when it began."""
        with shown_in_cell(on_progress) as shown:
            try:
                return submit(self._inner.resume(force=force, adopt=adopt, on_progress=shown))
            except Exception as error:
                raise short(error) from error.__cause__

    def rollback(
        self, *, force: bool = False, on_progress: OnProgress | None = None
    ) -> AbortReport:
        """Undo the interrupted commit: remove its files and restore the rest."""
        with shown_in_cell(on_progress) as shown:
            try:
                return submit(self._inner.rollback(force=force, on_progress=shown))
            except Exception as error:
                raise short(error) from error.__cause__

    def status(self) -> JobStatus | None:
        """Return how far the job is; ``None`` if it has left nothing there."""
        try:
            return submit(self._inner.status())
        except Exception as error:
            raise short(error) from error.__cause__


def open_job(
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
) -> AbstractContextManager[BlockingJob]:
    """Set up a job; commit it on leaving, abort it on an exception.

    See ``asynccommit.open_job``. Leaving returns when readers see the whole job.
    """
    cell = _CellProgress() if on_progress is None and is_notebook() else None
    opening = api.open_job(
        url,
        job_id=job_id,
        attempt=attempt,
        options=options,
        storage_options=storage_options,
        mode=mode,
        committer=committer,
        pending=pending,
        on_progress=cell or on_progress,
        runner=runner,
    )
    return blocking_job(opening, nullcontext if cell is None else cell.shown)


def blocking_job(
    opening: AbstractAsyncContextManager[Job],
    leaving: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> AbstractContextManager[BlockingJob]:
    """Return the blocking form of a job's context.

    Args:
        opening: the context.
        leaving: a context for leaving it without an error.
    """
    return _Block(_of_kind(_blocking(opening, _until_visible), BlockingJob), leaving)


def _or_block(handle: Callable[P, BlockingJobHandle]) -> Callable[P, BlockingJobHandle]:
    """Return ``job``, which with keywords that it had is ``open_job``."""

    @wraps(handle)
    def run(*args: P.args, **kwargs: P.kwargs) -> BlockingJobHandle:
        if not {"mode", "on_progress"} & kwargs.keys():
            return handle(*args, **kwargs)
        warn_of_former("asynccommit.sync.job as a block", "asynccommit.sync.open_job")
        return cast(Callable[..., BlockingJobHandle], open_job)(*args, **kwargs)

    return run


@_or_block
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
) -> BlockingJobHandle:
    """Return a handle of a job. See ``asynccommit.job``."""
    place: Mapping[str, Any] = {
        "options": options,
        "storage_options": storage_options,
        "committer": committer,
        "pending": pending,
        "runner": runner,
    }
    return BlockingJobHandle(
        api.job(url, job_id, attempt=attempt, **place),
        partial(open_job, url, job_id=job_id, attempt=attempt or 0, **place),
    )


def job_statuses(url: Url, *, storage_options: StorageOptions = None) -> list[JobStatus]:
    """Return how far each job is. See ``asynccommit.job_statuses``."""
    try:
        return submit(api.job_statuses(url, storage_options=storage_options))
    except Exception as error:
        raise short(error) from error.__cause__


def open_store(
    url: Url,
    *,
    storage_options: StorageOptions = None,
    rate: float | None = None,
    attempts: int | None = None,
    max_concurrency: int | None = None,
    retry_seconds: float = 600.0,
) -> AbstractContextManager[BlockingStore]:
    """Open the store of a URL. See ``asynccommit.open_store``."""
    store = opening.open_store(
        url,
        storage_options=storage_options,
        rate=rate,
        attempts=attempts,
        max_concurrency=max_concurrency,
        retry_seconds=retry_seconds,
    )
    return _Block(_of_kind(_blocking(store), BlockingStore))


def wait_for_cleanup(timeout: float | None = None) -> None:
    """Wait until the clean-up of all commits of this process has ended.

    Args:
        timeout: seconds to wait; ``None`` for as long as it takes.

    Raises ``TimeoutError``.
    """
    wait_for_all(timeout)


if not TYPE_CHECKING:
    __getattr__ = former_names(
        __name__,
        {
            **functions_of_jobs(__name__, lambda: job),
            "task": function_of_tasks(__name__, "task", lambda: job),
        },
    )

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
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ContextDecorator,
    contextmanager,
    nullcontext,
)
from functools import wraps
from inspect import signature
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Self, TypeVar, cast

from asynccommit import api
from asynccommit.api import Job
from asynccommit.commit.blocking_file import BlockingFile
from asynccommit.commit.context import OnVisible
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.meter import OnProgress, Progress
from asynccommit.commit.task import Task, to_arrow
from asynccommit.engine.blocking import BlockingStore
from asynccommit.errors import UnsupportedError
from asynccommit.progress.cell import is_notebook, shown_in_cell
from asynccommit.results import JobReport
from asynccommit.runtime.at_exit import busy, entered, leaving
from asynccommit.runtime.background import wait_for_all
from asynccommit.runtime.loop_thread import Early, call, submit
from asynccommit.runtime.tracebacks import short
from asynccommit.stores import opening

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

__all__ = [
    "BlockingFile",
    "BlockingJob",
    "BlockingStore",
    "BlockingTask",
    "abort_job",
    "commit_job",
    "job",
    "job_statuses",
    "open_store",
    "plan_job",
    "resume_job",
    "rollback_job",
    "task",
    "wait_for_cleanup",
]

P = ParamSpec("P")
T = TypeVar("T")
B = TypeVar("B")
EarlyOf = Callable[[T], Early[None]]


class BlockingTask:
    """A task attempt with blocking methods.

    See ``api.Task``.
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
    """A job with blocking methods. Made by ``job``."""

    def __init__(self, inner: Job) -> None:
        self._inner = inner
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return f"Blocking{self._inner!r}"

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(
            "a job cannot be pickled: pass its job_id to other processes, and use sync.task there"
        )

    @property
    def job_id(self) -> str:
        """The id to give to ``task`` in other processes."""
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
                "this job was opened before a fork: use sync.task(url, job_id, ...) in the child"
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


def _opened(
    open_: Callable[P, AbstractAsyncContextManager[T]],
    kind: Callable[[T], B],
    early_of: EarlyOf[T] | None = None,
    name: str = "",
) -> Callable[P, AbstractContextManager[B]]:
    """Return the blocking form of a function that returns a context."""

    @wraps(open_)
    def run(*args: P.args, **kwargs: P.kwargs) -> AbstractContextManager[B]:
        cell = _CellProgress.of(open_, kwargs)
        leaving = nullcontext if cell is None else cell.shown
        given = kwargs if cell is None else {**kwargs, "on_progress": cell}
        opening = cast(Callable[..., AbstractAsyncContextManager[T]], open_)
        return _Block(_of_kind(_blocking(opening(*args, **given), early_of), kind), leaving)

    return _ours(run, name or open_.__name__.removeprefix("open_"))


def _blocks(ask: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Return the function that waits for the result of ``ask``."""

    asking = cast(Callable[..., Coroutine[Any, Any, T]], ask)

    @wraps(ask)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            with _shown_in_cell(ask, kwargs) as given:
                return submit(asking(*args, **given))
        except Exception as error:
            raise short(error) from error.__cause__

    return _ours(run, ask.__name__)


class _CellProgress:
    """Progress in the cell that commits a job, not the one that opened it."""

    def __init__(self) -> None:
        self._bars: OnProgress | None = None

    @classmethod
    def of(cls, function: Callable[..., object], given: Mapping[str, object]) -> Self | None:
        """Return a call's progress; ``None`` without need or notebook."""
        return cls() if _is_shown_in_cell(function, given) else None

    def __call__(self, progress: Progress) -> None:
        """Show progress, if the job is being committed."""
        if self._bars is not None:
            self._bars(progress)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show progress while the block runs."""
        with shown_in_cell(None) as self._bars:
            yield


@contextmanager
def _shown_in_cell(
    function: Callable[..., object], given: Mapping[str, object]
) -> Iterator[Mapping[str, object]]:
    """Yield the arguments of a call; in a notebook, with progress."""
    if not _is_shown_in_cell(function, given):
        yield given
        return
    with shown_in_cell(None) as bars:
        yield {**given, "on_progress": bars}


def _is_shown_in_cell(function: Callable[..., object], given: Mapping[str, object]) -> bool:
    if given.get("on_progress") is not None:
        return False
    return "on_progress" in signature(function).parameters and is_notebook()


def _until_visible(job: Job) -> Early[None]:
    """Return what tells that readers see the whole job."""
    early: Early[None] = Early()
    job.on_visible = lambda: early.give(None, str(job.committer.layout.dest))
    return early


def _commits(ask: Callable[P, Coroutine[Any, Any, JobReport]]) -> Callable[P, JobReport]:
    """Return the function that waits until readers see the whole job."""

    @wraps(ask)
    def run(*args: P.args, **kwargs: P.kwargs) -> JobReport:
        early: Early[JobReport] = Early()
        told = cast(OnVisible | None, kwargs.get("on_visible"))

        def tell(report: JobReport) -> None:
            early.give(report, report.dest)
            if told is not None:
                told(report)

        ask_and_tell = cast(Callable[..., Coroutine[Any, Any, JobReport]], ask)
        try:
            with _shown_in_cell(ask, kwargs) as given:
                return submit(ask_and_tell(*args, **{**given, "on_visible": tell}), early)
        except Exception as error:
            raise short(error) from error.__cause__

    return _ours(run, ask.__name__)


def wait_for_cleanup(timeout: float | None = None) -> None:
    """Wait until the clean-up of all commits of this process has ended.

    Args:
        timeout: seconds to wait; ``None`` for as long as it takes.

    Raises ``TimeoutError``.
    """
    wait_for_all(timeout)


def _ours(run: Callable[P, T], name: str) -> Callable[P, T]:
    """Name a function by its place in this module, for pickling."""
    run.__module__, run.__name__, run.__qualname__ = __name__, name, name
    code: Any = getattr(run, "__code__")  # noqa: B009
    run.__code__ = code.replace(co_name=name, co_qualname=name)
    return run


job = _opened(api.open_job, BlockingJob, _until_visible)
kept_job = _opened(api.open_kept_job, BlockingJob, _until_visible)
task = _opened(api.open_task, BlockingTask)
commit_job = _commits(api.commit_job)
plan_job = _blocks(api.plan_job)
abort_job = _blocks(api.abort_job)
resume_job = _blocks(api.resume_job)
rollback_job = _blocks(api.rollback_job)
job_statuses = _blocks(api.job_statuses)
open_store = _opened(opening.open_store, BlockingStore, name="open_store")

"""The interface of a task for asyncio programs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import anyio

from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.name_lengths import too_long
from asynccommit.commit.registry import Committer
from asynccommit.commit.tasks.output import Work
from asynccommit.commit.tasks.writers import Chunk, Writer
from asynccommit.errors import CommitError, ExistsError, OptionError, UnsupportedError
from asynccommit.options.checked import checked
from asynccommit.runtime.loop_thread import submit

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_CLEANUP_GRACE_SECONDS = 60.0
"""Seconds that the abort of a cancelled job or task may take."""
_COMMITTING = "is being committed"
_MOST_ATTEMPTS = 999


class Task:
    """One task attempt; its files are invisible until the job commits.

    ``directory`` is that place: a local path, or a URL with scheme and container if the task has no
    local files. ``url`` is it as a URL on every store. All files below it are committed, unless the
    committer uploads them itself.
    """

    def __init__(self, work: Work, task_id: str, attempt_id: str) -> None:
        self.task_id = task_id
        self.attempt_id = attempt_id
        self.directory = work.directory
        self._commit: TaskCommit | None = None
        self._work = work
        self._files: dict[str, Writer] = {}
        self._awaited: list[str] = []
        self._returned = anyio.Event()
        self._over = ""

    def __repr__(self) -> str:
        return f"Task({self.attempt_id!r})"

    @property
    def commit(self) -> TaskCommit:
        """The commit message, once the task's block is left.

        Raises ``OptionError`` before that, and if the task was aborted.
        """
        if self._commit is None:
            why = self._over or "is running"
            raise OptionError(f"task attempt {self.attempt_id} {why}: it has no commit message")
        return self._commit

    @property
    def url(self) -> str:
        """The directory of the task attempt as a URL, with scheme and container.

        It is not percent-encoded, as fsspec and Hadoop's ``Path`` expect.
        """
        return self.directory if "://" in self.directory else f"file://{self.directory}"

    @property
    def staging_suffix(self) -> str:
        """A text that may end the name of a file until the job commits.

        ``table/**/*.parquet`` matches no file of a running job whose name ends with it. The commit
        removes it. Empty for committers that keep the name.
        """
        return self._work.staged

    @property
    def filesystem(self) -> AbstractFileSystem:
        """The task as a filesystem of fsspec, for libraries that write files.

        Names are below the destination. The library has to run in a thread
        (``asyncio.to_thread``), as it waits for the event loop. Raises ``UnsupportedError`` if
        fsspec is not installed.
        """
        return self.filesystem_for(asyncio.get_running_loop())

    @property
    def arrow_filesystem(self) -> Any:
        """The same as a ``pyarrow.fs.FileSystem``."""
        return to_arrow(self.filesystem)

    def filesystem_for(self, loop: asyncio.AbstractEventLoop | None) -> Any:
        """Return a filesystem whose calls wait for ``loop``, or for the engine's."""
        made = _task_filesystem()
        return made.TaskFileSystem(self, submit if loop is None else made.run_on(loop))

    @checked
    def path(self, name: str) -> str:
        """Return the local path for ``name``, and create its directory.

        Args:
            name: relative path under the destination, such as ``day=1/part-0.parquet``.

        Raises:
            OptionError: ``name`` is absolute, leads out of the destination or would not be
                committed; or the task or its job has ended.
            NotFoundError: the job was ended by another process.
            UnsupportedError: tasks of this committer, or with this destination, have no local
                files; see ``open`` and ``put``.
        """
        self.check_running()
        return self._work.path(name)

    @checked
    async def put(self, name: str, data: Chunk) -> None:
        """Write one file. Raises the errors of ``path``, and ``StoreError``.

        A task commits only after this has returned.
        """
        with self._running(name):
            await self._work.put(name, data)

    @checked
    async def open(self, name: str) -> Writer:
        """Open a file for incremental writing.

        Use ``async with await task.open(name) as file``.

        ``await file.write(data)`` takes bytes; leaving the block closes the file, an exception
        aborts it. An open file is not committed. The magic committer sends the data in parts, to
        keep little of it in memory; see ``fs.s3a.multipart.size``. Raises what ``put`` does, and
        ``OptionError`` if the file is open already.
        """
        self._files = {each: file for each, file in self._files.items() if file.is_open}
        with self._running(name):
            if name in self._files:
                raise OptionError(f"{name!r} is already being written: close it first")
            file = self._files[name] = await self._work.open(name)
        return file

    @checked
    async def remove(self, name: str) -> None:
        """Delete a file that this task attempt has written.

        Raises the errors of ``put``, ``NotFoundError``, and ``UnsupportedError`` for committers
        whose tasks upload files.
        """
        with self._running(name):
            await self._work.remove(name)

    @contextmanager
    def _running(self, name: str) -> Iterator[None]:
        """Mark ``name`` as being written during the block."""
        self.check_running()
        self._awaited.append(name)
        try:
            yield
        finally:
            self._awaited.remove(name)
            if not self._awaited:
                self._returned.set()
                self._returned = anyio.Event()

    def check_running(self) -> None:
        """Raise ``OptionError`` if the task or its job has ended."""
        if self._over:
            raise OptionError(
                f"{self.attempt_id} {self._over} and accepts no more files: write them in the "
                "task's block, inside the job's"
            )

    def end(self, how: str) -> None:
        """Accept no more files; ``how`` is the reason, and the first one stays."""
        if self._over in ("", _COMMITTING):
            self._over = how

    def check_closed(self) -> None:
        """Raise ``OptionError`` if a file is open: it would be incomplete or lost."""
        unclosed = {name for name, file in self._files.items() if file.is_open}
        names = sorted(unclosed.union(self._awaited))
        if names:
            shown = ", ".join(names[:5])
            raise OptionError(
                "files are still open; close or abort them in the task's block, and await each "
                f"call there: {shown}"
            )

    async def abort_files(self) -> None:
        """Abort the open files, after pending calls.

        Raises ``StoreError``.

        A call that is still writing would put its file into a directory that is being deleted.
        """
        while self._awaited:
            await self._returned.wait()
        for file in self._files.values():
            await file.closed()
            await file.abort()


def to_arrow(filesystem: AbstractFileSystem) -> Any:
    """Return the filesystem of a task for pyarrow."""
    return _task_filesystem().arrow_filesystem(filesystem)


def _task_filesystem() -> ModuleType:
    """Import what needs fsspec. Raises ``UnsupportedError`` without it."""
    try:
        return import_module("asynccommit.commit.task_filesystem")
    except ModuleNotFoundError as error:
        if error.name != "fsspec":
            raise
        text = "fsspec is not installed: pip install 'asynccommit[fsspec]'"
        raise UnsupportedError(text) from None


class RunningTasks:
    """The tasks of a job that run in this process."""

    def __init__(self) -> None:
        self._tasks: set[Task] = set()
        self._over = ""

    @contextmanager
    def noted(self) -> Iterator[Callable[[Task], None]]:
        """Yield a function that registers a running task until the block is left."""
        mine: list[Task] = []

        def note(task: Task) -> None:
            mine.append(task)
            self._tasks.add(task)

        try:
            yield note
        finally:
            self._tasks.difference_update(mine)

    def check_job(self) -> None:
        """Raise ``OptionError`` if the job has ended and cannot have more tasks."""
        if self._over:
            raise OptionError(f"{self._over} and accepts no more tasks: open another job")

    def check_ended(self, committed: Collection[str]) -> None:
        """Raise ``OptionError`` if a task without a committed attempt still runs.

        ``committed`` names the committed tasks.
        """
        names = sorted(task.attempt_id for task in self._tasks if task.task_id not in committed)
        if names:
            shown = ", ".join(names[:5])
            raise OptionError(
                f"tasks are still running, and their files would not be committed: {shown}. Wait "
                "for them in the job's block"
            )

    def end(self, job_id: str) -> None:
        """Stop tasks from accepting files, because the job ends."""
        self._over = f"job {job_id} has ended"
        for task in self._tasks:
            task.end("cannot continue, because its job has ended")


@asynccontextmanager
async def run_task(
    committer: Committer, task: int, attempt: int | None = None
) -> AsyncIterator[Task]:
    """Run a task attempt: commit it on leaving, abort it on an exception.

    Args:
        committer: of the job.
        task: the number of the task.
        attempt: the number of the attempt; ``None`` for the lowest that is free.

    Raises ``CommitError``.
    """
    if task < 0 or (attempt is not None and attempt < 0):
        raise OptionError(f"task {task}, attempt {attempt}: neither may be negative")
    task_id, attempt_id = await _set_up(committer, task, attempt)
    running = Task(committer.work(attempt_id), task_id, attempt_id)
    try:
        yield running
        running.check_running()
        running.check_closed()
        running.end(_COMMITTING)
        running._commit = await committer.commit_task(task_id, attempt_id)
        running.end("is committed")
    except BaseException as error:
        running.end("was aborted")
        told = too_long(error, running.directory, running.staging_suffix)
        await abort_after(told or error, running.abort_files())
        await abort_after(told or error, committer.abort_task(task_id, attempt_id))
        if told is not None:
            raise told from error
        raise


async def _set_up(committer: Committer, task: int, attempt: int | None) -> tuple[str, str]:
    """Set up a task attempt; return task id and attempt id."""
    number = attempt or 0
    while True:
        task_id, attempt_id = committer.layout.ids(task, number)
        try:
            await committer.setup_task(attempt_id)
        except CommitError as error:
            taken = any(isinstance(cause, ExistsError) for cause in error.failures)
            if attempt is not None or not taken or number == _MOST_ATTEMPTS:
                raise
            number += 1
        else:
            return task_id, attempt_id


async def abort_after(cause: BaseException, abort: Coroutine[Any, Any, object]) -> None:
    """Await an abort, also when cancelled; its error is a note on ``cause``."""
    try:
        with anyio.move_on_after(_CLEANUP_GRACE_SECONDS, shield=True):
            await abort
    except Exception as error:
        cause.add_note(f"and the abort failed: {error}")

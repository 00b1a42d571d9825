"""A task as a filesystem of fsspec, for libraries that write files."""

from __future__ import annotations

import asyncio
import posixpath
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol, Self, TypeVar

from fsspec import AbstractFileSystem

from asynccommit.commit.blocking_file import GATHERED, BlockingFile
from asynccommit.commit.tasks.writers import Chunk, Writer
from asynccommit.errors import UnsupportedError

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, Any]], Any]
_CLOSES = 32
"""Files that are closed at once in the background. Each keeps what it has not sent in memory."""


class AttemptFiles(Protocol):
    """The files of a task attempt: see ``Task``."""

    @property
    def attempt_id(self) -> str:
        """The id of the task attempt."""
        ...

    async def put(self, name: str, data: Chunk) -> None:
        """Write one file."""
        ...

    async def remove(self, name: str) -> None:
        """Delete a file that the attempt has written."""
        ...

    async def open(self, name: str) -> Writer:
        """Open a file for incremental writing."""
        ...


class TaskFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """The place of a task attempt, with names below the destination.

    Files are written once, front to back, and become visible when the job commits. What was written
    through this object can be listed and deleted; nothing can be read back. Directories exist with
    their files.

    Args:
        task: the task attempt.
        run: waits for a coroutine of the task, in the calling thread.
    """

    protocol = "asynccommit"
    cachable = False
    root_marker = ""

    def __init__(self, task: AttemptFiles, run: Run) -> None:
        super().__init__(skip_instance_cache=True)
        self._task = task
        self._run = run
        self._finish = run
        self._files: dict[str, BlockingFile | int] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"TaskFileSystem({self._task.attempt_id!r})"

    def __reduce__(self) -> Any:
        raise UnsupportedError(
            "the filesystem of a task cannot be pickled: make it in the process that runs the task"
        )

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        """Return the name of a file below the destination."""
        name = str(path).removeprefix("asynccommit://").strip("/")
        return "" if name == "." else posixpath.normpath(name) if name else ""

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: object = None,
        **more: object,
    ) -> BlockingFile:
        """Open a file for writing.

        Raises ``UnsupportedError`` for any other mode, and the errors of ``Task.open``.
        """
        if mode not in ("wb", "xb"):
            raise UnsupportedError(
                f"cannot open {path} with mode {mode!r}: files of a task are only written, and are "
                "read from the destination once the job has committed"
            )
        if mode == "xb":
            self._refuse_existing(path)
        file = BlockingFile(self._run(self._task.open(path)), path, self._run, self._finish)
        with self._lock:
            self._files[path] = file
        return file

    @contextmanager
    def closing_in_background(self) -> Iterator[Self]:
        """Close files in threads, while the library goes on; wait for all of them.

        Raises the first error of a close, here or at the next close.
        """
        closes = _Closes(self._run)
        self._finish = closes.start
        try:
            yield self
        finally:
            self._finish = self._run
            closes.wait()
        closes.check()

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **more: object) -> None:
        """Write a whole file.

        Raises the errors of ``Task.put``, and ``FileExistsError`` in mode ``create``.
        """
        name = self._strip_protocol(path)
        if mode == "create":
            self._refuse_existing(name)
        self._run(self._task.put(name, value))
        with self._lock:
            self._files[name] = len(value)

    def rm_file(self, path: str) -> None:
        """Delete a file that was written here; a directory is gone with its files.

        Raises ``FileNotFoundError``, and the errors of ``Task.remove``.
        """
        name = self._strip_protocol(path)
        with self._lock:
            known = name in self._files
        if not known:
            self.info(name)  # of a directory, or an error
            return
        self._run(self._task.remove(name))
        with self._lock:
            self._files.pop(name, None)

    def rm(
        self, path: str | list[str], recursive: bool = False, maxdepth: int | None = None
    ) -> None:
        """Delete files that were written here.

        With ``recursive`` also directories, which are gone with their last file.
        """
        for name in reversed(self.expand_path(path, recursive=recursive, maxdepth=maxdepth)):
            if not recursive or self.exists(name):  # a directory goes with its last file
                self.rm_file(name)

    def mkdir(self, path: str, create_parents: bool = True, **more: object) -> None:
        """Do nothing: directories exist with their files."""

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Do nothing: directories exist with their files."""

    def info(self, path: str, **more: object) -> dict[str, Any]:
        """Return name, size and type of what was written here.

        Raises ``FileNotFoundError``.
        """
        name = self._strip_protocol(path)
        known = self._sizes()
        if name in known:
            return {"name": name, "size": known[name], "type": "file"}
        if not name or any(each.startswith(f"{name}/") for each in known):
            return {"name": name, "size": 0, "type": "directory"}
        raise FileNotFoundError(f"{name}: not written by this task")

    def ls(self, path: str, detail: bool = True, **more: object) -> list[Any]:
        """List what was written here, one level deep."""
        self.info(path)
        top = self._strip_protocol(path)
        skip = len(top) + 1 if top else 0
        names = {
            each[:skip] + each[skip:].partition("/")[0]
            for each in self._sizes()
            if each == top or not top or each.startswith(f"{top}/")
        }
        return [self.info(name) if detail else name for name in sorted(names)]

    def created(self, path: str) -> None:
        """Refuse: files have no times before the job commits."""
        raise UnsupportedError(f"{path}: the files of a task have no times before the job commits")

    modified = created

    def _refuse_existing(self, name: str) -> None:
        """Raise ``FileExistsError`` for a file that was written here."""
        with self._lock:
            if name in self._files:
                raise FileExistsError(f"{name}: this task has written it already")

    def _sizes(self) -> dict[str, int]:
        with self._lock:
            return {
                name: file if isinstance(file, int) else file.tell()
                for name, file in self._files.items()
            }


class _Closes:
    """Closes of files that go on in threads.

    Args:
        run: waits for a coroutine of the task, in the calling thread.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._threads = ThreadPoolExecutor(_CLOSES, thread_name_prefix="asynccommit-close")
        self._free = threading.Semaphore(_CLOSES)
        self._failed: Future[Any] | None = None

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start the close of a file, once fewer than the most are under way.

        Raises the error of an earlier one.
        """
        self._free.acquire()
        closing = self._threads.submit(self._run, work)
        closing.add_done_callback(self._ended)
        self.check()

    def wait(self) -> None:
        """Wait for all closes."""
        self._threads.shutdown()

    def check(self) -> None:
        """Raise the error of the first close that failed."""
        if self._failed is not None:
            self._failed.result()

    def _ended(self, closing: Future[Any]) -> None:
        self._free.release()
        if closing.exception() is not None and self._failed is None:
            self._failed = closing


def run_on(loop: asyncio.AbstractEventLoop) -> Run:
    """Return what waits in a thread for a coroutine on ``loop``."""

    def run(work: Coroutine[Any, Any, T]) -> T:
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run_coroutine_threadsafe(work, loop).result()
        work.close()
        where = "this loop" if here is loop else "another loop"
        raise UnsupportedError(
            f"the filesystem of a task was called on {where}, which would block it: call the "
            "library in a thread, with asyncio.to_thread"
        )

    return run


def arrow_filesystem(filesystem: TaskFileSystem) -> Any:
    """Return the same filesystem for pyarrow."""
    import pyarrow as pa
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    class _Handler(FSSpecHandler):  # type: ignore[misc]
        """Hands what pyarrow writes to Python in large pieces."""

        def open_output_stream(self, path: str, metadata: object) -> Any:
            """Open a file. Raises the errors of the filesystem."""
            return pa.BufferedOutputStream(super().open_output_stream(path, metadata), GATHERED)

    return PyFileSystem(_Handler(filesystem))

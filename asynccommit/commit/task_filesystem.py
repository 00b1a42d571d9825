"""A task as a filesystem of fsspec, for libraries that write files."""

from __future__ import annotations

import asyncio
import posixpath
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from fsspec import AbstractFileSystem

from asynccommit.commit.blocking_file import BlockingFile
from asynccommit.errors import UnsupportedError

if TYPE_CHECKING:
    from asynccommit.commit.task import Task

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, Any]], Any]


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

    def __init__(self, task: Task, run: Run) -> None:
        super().__init__(skip_instance_cache=True)
        self._task = task
        self._run = run
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
        file = BlockingFile(self._run(self._task.open(path)), path, run=self._run)
        with self._lock:
            self._files[path] = file
        return file

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
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    return PyFileSystem(FSSpecHandler(filesystem))

"""A task as an asyncio program sees it."""

from __future__ import annotations

from asynccommit.committers.work import Work
from asynccommit.errors import OptionError
from asynccommit.job import TaskCommit
from asynccommit.writers import Chunk, Writer


class Task:
    """One task attempt: a place to write to, nothing of which is visible before the job commits."""

    def __init__(self, work: Work, task_id: str, attempt_id: str) -> None:
        self.task_id = task_id
        self.attempt_id = attempt_id
        self.directory = work.directory
        self.commit: TaskCommit | None = None
        self._work = work
        self._files: dict[str, Writer] = {}

    def __repr__(self) -> str:
        return f"Task({self.attempt_id!r})"

    def path(self, name: str) -> str:
        """Return the local path to write ``name`` to, its directory made.

        Args:
            name: relative path under the destination, as ``day=1/part-0.parquet``.

        Raises:
            OptionError: ``name`` is absolute, or leads out of the destination.
            UnsupportedError: tasks of this committer, or with this destination, have no local
                files; see ``open`` and ``put``.
        """
        return self._work.path(name)

    async def put(self, name: str, data: Chunk) -> None:
        """Write one file. Raises ``OptionError`` as ``path`` does, and ``StoreError``."""
        await self._work.put(name, data)

    async def open(self, name: str) -> Writer:
        """Begin to write a file by and by: ``async with await task.open(name) as file``.

        ``await file.write(data)`` takes bytes; leaving the block closes the file, an exception
        aborts it. A task commits no file that is open. The magic committer sends what is written
        in parts, so that little of it is in memory; see ``fs.s3a.multipart.size``. Raises what
        ``put`` does, and ``OptionError`` if the file is open already.
        """
        self._files = {each: file for each, file in self._files.items() if file.is_open}
        if name in self._files:
            raise OptionError(f"{name!r} is being written already: close it first")
        file = self._files[name] = await self._work.open(name)
        return file

    def check_closed(self) -> None:
        """Raise ``OptionError`` if a file is open: half of it would be committed."""
        names = sorted(name for name, file in self._files.items() if file.is_open)
        if names:
            shown = ", ".join(names[:5])
            raise OptionError(f"files are still open, close or abort them in the task: {shown}")

    async def abort_files(self) -> None:
        """Abort the files that are open. Raises ``StoreError``."""
        for file in self._files.values():
            await file.abort()

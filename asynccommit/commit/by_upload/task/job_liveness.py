"""Check in a task that its job has not ended."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.task.intents import intent_files
from asynccommit.commit.by_upload.task.undo import abort_after
from asynccommit.errors import NotFoundError, StoreError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.tree import is_there, remove_file


class JobLiveness:
    """The sign of a living job, as one task attempt looks for it.

    The end of a job deletes the sign, and then lists what tasks have written down. A task records
    its uploads and then checks this file, so either the task or the end of the job notices the
    other. Jobs of Hadoop's drivers have no such file, so nothing is known of them.

    Args:
        run: the task's.
        attempt_id: the attempt.
    """

    def __init__(self, run: UploadContext, attempt_id: str) -> None:
        self._run = run
        self._attempt_id = attempt_id
        self._signed: bool | None = None
        self._ended = self._required = False

    async def look(self) -> bool:
        """Return whether the job has a living file, as first seen.

        Raises ``NotFoundError`` for a job whose end has begun.
        """
        run = self._run
        if self._signed is None:
            signed = await is_there(run.pending, run.layout.living)
            if not signed and await is_there(run.pending, run.layout.record):
                raise self._over()
            self._signed = signed
        return self._signed

    async def require(self) -> None:
        """Raise ``NotFoundError`` if the job has ended since ``look``.

        Once the file was found after something was recorded, it is not checked again: the end of a
        job deletes the record, which the task's commit then misses.
        """
        run = self._run
        if not self._signed or self._required:
            return
        if not await is_there(run.pending, run.layout.living):
            self._ended = True
            raise self._over()
        self._required = True

    def _over(self) -> NotFoundError:
        text = "the job has ended: the output of the task is discarded"
        return NotFoundError("create_upload", self._run.layout.attempt_dir, text)

    async def give_up(self, error: BaseException, uploads: Iterable[tuple[str, str]]) -> None:
        """Abort the begun uploads because of ``error``, even when cancelled.

        If the job has ended, the attempt's intents are deleted too.
        """
        run = self._run
        if not await abort_after(run, error, uploads) or not self._ended:
            return
        with suppress(StoreError):
            paths = await intent_files(run, self._attempt_id)
            await for_each(paths, lambda path: remove_file(run.pending, path), workers=run.workers)

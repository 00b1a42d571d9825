"""Record the uploads of a task attempt before their first part.

The job's clean-up finds the uploads of a killed task by its intents.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.errors import ExistsError, ManifestError, NotFoundError, StoreError
from asynccommit.formats.upload_record import (
    MAX_INTENT_BYTES,
    IntendedUpload,
    UploadIntent,
    decode_upload_intent,
    encode_upload_intent,
)
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.tree import list_if_there

Failure = tuple[str, Exception]

_MOST = 100_000
"""Maximum number of intents of one attempt, far above that of uploads."""


@dataclass(slots=True)
class _Batch:
    uploads: list[IntendedUpload] = field(default_factory=list)
    written: bool = False
    error: Exception | None = None


class Intents:
    """The intents of one task attempt, written in batches.

    Uploads begun while one batch is written go into the next.

    Args:
        run: the task's.
        attempt_id: the attempt, the only writer of its intents.
    """

    def __init__(self, run: UploadContext, attempt_id: str) -> None:
        self._run = run
        self._attempt_id = attempt_id
        self._written = 0
        self._next = _Batch()
        self._writing = asyncio.Lock()

    async def record(self, *uploads: tuple[str, str]) -> None:
        """Return once paths and upload ids are stored.

        Raises ``StoreError``.
        """
        batch = self._next
        batch.uploads += [IntendedUpload(path[1:], upload_id) for path, upload_id in uploads]
        async with self._writing:
            if not batch.written:
                await self._write(batch)
        if batch.error is not None:
            raise batch.error

    async def _write(self, batch: _Batch) -> None:
        """Write a batch; if cancelled, the next waiting task writes it."""
        if batch is self._next:
            self._next = _Batch()
        run = self._run
        intent = UploadIntent(
            job_id=run.layout.uuid,
            task_attempt=self._attempt_id,
            uploads=tuple(batch.uploads),
            created_ms=int(run.host.now() * 1000),
        )
        try:
            await self._put(encode_upload_intent(intent))
        except Exception as error:
            batch.error = error
        batch.written = True

    async def _put(self, data: bytes) -> None:
        """Write an intent under a new name.

        A task may write from several processes.
        """
        run = self._run
        while True:
            path = run.layout.intent(self._attempt_id, self._written)
            self._written += 1
            if run.pending.traits.directories:
                await run.pending.mkdir(path.rpartition("/")[0])
            try:
                await run.pending.put(path, data, overwrite=False)
                return
            except ExistsError:
                if self._written >= _MOST:
                    raise


async def intended(
    run: UploadContext, attempt_id: str
) -> tuple[list[tuple[str, str]], list[Failure]]:
    """Return the uploads of an attempt, and the unreadable intents.

    Uploads outside the destination count as unreadable.
    """
    found: list[tuple[str, str]] = []
    failures: list[Failure] = []

    async def read(path: str) -> None:
        try:
            data = await run.pending.get(path, MAX_INTENT_BYTES)
            uploads = decode_upload_intent(data, path).uploads
            found.extend((_inside(run, path, each.key), each.upload_id) for each in uploads)
        except NotFoundError:
            return
        except (StoreError, ManifestError) as error:
            failures.append((path, error))

    await for_each(await intent_files(run, attempt_id), read, workers=run.workers)
    return found, failures


async def intent_files(run: UploadContext, attempt_id: str) -> list[str]:
    """Return the paths of the intents of one attempt."""
    folder, _, first = run.layout.intent(attempt_id, 0).rpartition("/")
    name = re.compile(re.escape(first.removesuffix("0.json")) + r"[0-9]{1,18}\.json")
    found = [info.path for info in await list_if_there(run.pending, folder) if not info.is_dir]
    return [path for path in found if name.fullmatch(path.rpartition("/")[2])]


def _inside(run: UploadContext, file: str, key: str) -> str:
    path = f"/{key}"
    if not path.startswith(f"{run.layout.root}/") or run.layout.reserves(path):
        raise ManifestError(file, f"{key[:200]!r} is outside the destination of the job")
    return path

"""Task commit of staging committers: upload local files.

Uploads are begun, written down as intended, and then all their parts are sent, so many at a time:
that, and not the size or number of files, bounds the memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.task.intents import Intents
from asynccommit.commit.by_upload.task.job_liveness import JobLiveness
from asynccommit.commit.by_upload.task.local import LocalFile, read_part
from asynccommit.commit.by_upload.task.pending import owner_name, pending_commit
from asynccommit.commit.by_upload.writer import part_size_for, ranges
from asynccommit.errors import ExistsError
from asynccommit.formats.pending import PendingCommit
from asynccommit.formats.unique_names import add_uuid
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.parts import Part


@dataclass(slots=True)
class Sending:
    """A local file that is being uploaded.

    Attributes:
        file: the file to send.
        path: where it will appear.
        size: bytes of a part.
        upload_id: the upload, once it is begun.
        token: the token that its file will have.
        parts: by number, those that were sent.
    """

    file: LocalFile
    path: str
    size: int
    upload_id: str = ""
    token: str = ""
    parts: dict[int, Part] = field(default_factory=dict)

    @property
    def partition(self) -> str:
        """The directory of the file below the destination; "" for the root."""
        return self.file.name.rpartition("/")[0]


def to_send(run: UploadContext, files: Sequence[LocalFile]) -> list[Sending]:
    """Return where each file goes, and in what parts.

    Raises ``ExistsError`` for two files with one place, ``RejectedError`` for a file that is too
    large.
    """
    options, chosen = run.options.uploads, dict[str, Sending]()
    for file in files:
        if options.skip_empty and not file.size:
            continue
        name = add_uuid(file.name, run.layout.uuid) if options.unique_names else file.name
        path = f"{run.layout.root}/{name}"
        if path in chosen:
            text = f"{chosen[path].file.name} and {file.name} have the same name there"
            raise ExistsError("put", path, text)
        if run.layout.reserves(path):
            raise ExistsError("put", path, "the name is reserved for the commit protocol")
        size = part_size_for(run.store, file.size, options.part_size)
        chosen[path] = Sending(file, path, size)
    return list(chosen.values())


async def send(
    run: UploadContext, attempt_id: str, files: Sequence[Sending], living: JobLiveness | None = None
) -> list[PendingCommit]:
    """Upload files; of those that were begun none is left if one fails.

    Args:
        run: the task's.
        attempt_id: the attempt.
        files: what to upload.
        living: the earlier check of the job's liveness, if any.

    Raises ``StoreError``, ``NotFoundError`` if the job has ended.
    """
    living = living or JobLiveness(run, attempt_id)
    try:
        await living.look()
        await for_each(files, partial(_begin, run, attempt_id), workers=run.workers)
        begun = [(each.path, each.upload_id) for each in files]
        if begun:
            await Intents(run, attempt_id).record(*begun)
            await living.require()
        await for_each(
            _parts(files), partial(_send_part, run), workers=run.options.uploads.in_flight
        )
    except BaseException as error:
        uploads = [(each.path, each.upload_id) for each in files if each.upload_id]
        await living.give_up(error, uploads)
        raise
    return [_commit(run, attempt_id, each) for each in files]


async def _begin(run: UploadContext, attempt_id: str, sending: Sending) -> None:
    sending.token = run.host.new_id()
    owner = owner_name(run, attempt_id)
    sending.upload_id = await run.store.create_upload(
        sending.path, token=sending.token, owner=owner
    )


_Piece = tuple[Sending, int, int, int]


def _parts(files: Sequence[Sending]) -> Iterator[_Piece]:
    for sending in files:
        for number, offset, length in ranges(sending.file.size, sending.size):
            yield sending, number, offset, length


async def _send_part(run: UploadContext, piece: _Piece) -> None:
    sending, number, offset, length = piece
    data = await asyncio.to_thread(read_part, sending.file, offset, length)
    sent = await run.store.put_part(sending.path, sending.upload_id, number, data)
    sending.parts[number] = sent
    run.meter.step()


def _commit(run: UploadContext, attempt_id: str, sending: Sending) -> PendingCommit:
    parts = [sending.parts[number] for number in sorted(sending.parts)]
    return pending_commit(
        run,
        attempt_id,
        sending.path,
        sending.upload_id,
        parts,
        sending.file.size,
        sending.token,
        f"partition: {sending.partition}",
    )

"""The uploads that a job leaves behind: those that its own files name, and no other's.

Pending sets, single pending uploads (of Hadoop's magic tasks that were killed) and intents (of
ours) say which they are. Nothing that lies there is trusted: an upload that is not of a file of
the destination is left alone, and said.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field

from asynccommit.errors import (
    DeniedError,
    ManifestError,
    NotFoundError,
    PreconditionError,
    RejectedError,
)
from asynccommit.formats.pending import MAX_PENDING_BYTES, PendingCommit, decode_pending
from asynccommit.formats.pending_set import MAX_PENDING_SET_BYTES, decode_pending_set
from asynccommit.formats.upload_record import (
    MAX_INTENT_BYTES,
    UploadIntent,
    decode_upload_intent,
)
from asynccommit.parallel import for_each, tree_pages, walk
from asynccommit.stages.uploads.load import Room, checked_place, place_of
from asynccommit.stages.uploads.open import open_uploads
from asynccommit.stages.uploads.outcome import is_held
from asynccommit.stages.uploads.run import UploadRun
from asynccommit.store import Info
from asynccommit.upload_job import Left

_ROOM = 8 << 20
"""Bytes of such files held at once; a larger one is read alone."""
_MANY = 100_000
"""Open uploads that are remembered; where there are more, all that files name are tried."""
_LIMITS = {
    Left.SET: MAX_PENDING_SET_BYTES,
    Left.PENDING: MAX_PENDING_BYTES,
    Left.INTENT: MAX_INTENT_BYTES,
}

Name = tuple[str, str]
"""Path and id of an upload."""


@dataclass(slots=True)
class Swept:
    """What a sweep did.

    Attributes:
        uploads: how many uploads it aborted.
        unreadable: files that tell nothing of the uploads that they should name.
    """

    uploads: int = 0
    unreadable: list[ManifestError] = field(default_factory=list)


async def sweep(run: UploadRun, *, among_open: bool) -> Swept:
    """Abort the uploads that files of this job name, all its attempts.

    Args:
        run: the commit or abort under way.
        among_open: list the open uploads first, and read nothing if there are none.
    """
    swept = Swept()
    if not run.options.uploads.abort_pending:
        return swept
    still_open = await _open(run) if among_open else None
    if still_open is not None and not still_open:
        return swept
    room = Room(_ROOM)
    with run.timed("op_abort_uploads"):

        async def read(info: Info) -> None:
            async with room.of(info.size):
                names = await _names_in(run, info, swept)
            chosen = [name for name in names if still_open is None or name in still_open]
            if chosen and await is_held(run):  # else the files are another's, who took its id
                aborted = [await _abort(run, name) for name in chosen]
                swept.uploads += sum(aborted)
            run.step()

        window = min(run.workers, run.options.window)
        await for_each(_left(run), read, workers=window)
    for problem in swept.unreadable:
        run.warn(f"uploads may be left that it names: {problem}")
    return swept


async def _open(run: UploadRun) -> set[Name] | None:
    """Return the open uploads below the destination; ``None`` if unknown, or too many."""
    found: set[Name] = set()
    try:
        async for uploads in open_uploads(run):
            found.update([(upload.path, upload.upload_id) for upload in uploads])
            if len(found) > _MANY:
                return None
    except DeniedError:
        return None
    return found


async def _left(run: UploadRun) -> AsyncIterator[Info]:
    """Yield the files of the job that name uploads."""
    try:
        async for page in _tree(run):
            for info in page:
                if not info.is_dir and run.layout.left_at(info.path):
                    yield info
    except NotFoundError:
        return


async def _tree(run: UploadRun) -> AsyncIterator[Iterable[Info]]:
    path = run.layout.job_dir
    if run.pending.traits.bulk_delete:
        async for page in tree_pages(run.pending, path):
            yield page
        return
    async for info in walk(run.pending, path):
        yield [info]


async def _names_in(run: UploadRun, info: Info, swept: Swept) -> list[Name]:
    """Return the uploads that a file names, as far as they are this job's."""
    url = run.layout.pending_url(info.path)
    kind = run.layout.left_at(info.path)
    if kind is None or not info.size:
        return []
    try:
        data = await run.pending.get(info.path, _LIMITS[kind])
        return list(_named(run, kind, data, url))
    except NotFoundError:
        return []
    except (ManifestError, RejectedError) as error:
        problem = error if isinstance(error, ManifestError) else ManifestError(url, str(error))
        swept.unreadable.append(problem)
        return []


def _named(run: UploadRun, kind: Left, data: bytes, url: str) -> Iterator[Name]:
    if kind is Left.INTENT:
        intent = decode_upload_intent(data, url)
        yield from _intended(run, intent, url)
        return
    found: Iterable[PendingCommit]
    found = (
        decode_pending_set(data, url).commits if kind is Left.SET else [decode_pending(data, url)]
    )
    for commit in found:
        if commit.job_id not in ("", run.layout.uuid):
            raise ManifestError(url, f"is of another job, {commit.job_id[:200]!r}")
        yield place_of(run.layout, commit, url), commit.upload_id


def _intended(run: UploadRun, intent: UploadIntent, url: str) -> Iterator[Name]:
    if intent.job_id != run.layout.uuid:
        raise ManifestError(url, f"is of another job, {intent.job_id[:200]!r}")
    for key, upload_id in intent.uploads:
        try:
            yield checked_place(run.layout, f"/{key}"), upload_id
        except PreconditionError as error:
            raise ManifestError(url, f"{error.path} {error.detail}") from None


async def _abort(run: UploadRun, name: Name) -> int:
    try:
        await run.store.abort_upload(*name)
    except NotFoundError:
        return 0
    return 1

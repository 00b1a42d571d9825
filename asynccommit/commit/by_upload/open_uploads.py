"""Uploads: those that are open, and what became of the others."""

from __future__ import annotations

from collections.abc import AsyncIterator

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.loaded import LoadedSets, Pending
from asynccommit.commit.errors import named
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.errors import DeniedError, NotFoundError, RejectedError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info
from asynccommit.stores.multipart import Upload

_BATCH = 4_096


async def open_uploads(run: UploadContext) -> AsyncIterator[tuple[Upload, ...]]:
    """Yield the open uploads of files below the destination, page by page."""
    path, token = run.layout.dest.path, None
    while True:
        page = await run.store.list_uploads(path, token)
        yield page.entries
        if page.token is None:
            return
        if page.token == token:
            raise RejectedError("list_uploads", path, "the store returns the same page repeatedly")
        token = page.token


async def fingerprints_of_open(run: UploadContext) -> Fingerprints | None:
    """Return fingerprints of (path, upload id) of all open uploads.

    Return ``None`` if listing them is denied.
    """
    found = Fingerprints(run.options.spill_directory)
    try:
        async for uploads in open_uploads(run):
            found.add([(upload.path, upload.upload_id) for upload in uploads])
    except DeniedError:
        found.close()
        return None
    return found


async def fingerprints_of_pending(run: UploadContext, loaded: LoadedSets) -> Fingerprints:
    """Return fingerprints of (path, upload id) of all uploads of the job."""
    found, batch = Fingerprints(run.options.spill_directory), list[tuple[str, str]]()
    async for pending in loaded.spill.each():
        batch.append((pending.dest, pending.upload_id))
        if len(batch) == _BATCH:
            found.add(batch)
            batch = []
    found.add(batch)
    return found


async def missing_uploads(run: UploadContext, loaded: LoadedSets) -> list[str] | None:
    """Return the destinations of uploads that have ended.

    Return ``None`` if uploads may not be listed. Uploads that are not listed are checked
    individually: some servers list no uploads below a directory.
    """
    wanted = await fingerprints_of_pending(run, loaded)
    with wanted:
        if run.store.traits.aborts:
            there = await fingerprints_of_open(run)
            if there is None:
                return None
            with there:
                lost = wanted.missing(there)
        else:  # a listing shows too little, and asks for each as well
            lost = wanted.missing(Fingerprints(run.options.spill_directory))
    if not lost:
        return []
    ended: list[str] = []

    async def ask(pending: Pending) -> None:
        if not await is_open(run, pending):
            ended.append(pending.dest)

    await for_each(_of(loaded, lost), ask, workers=run.workers)
    return sorted(ended)


async def _of(loaded: LoadedSets, prints: set[int]) -> AsyncIterator[Pending]:
    async for pending in loaded.spill.each():
        if fingerprint((pending.dest, pending.upload_id)) in prints:
            yield pending


async def refuse_missing(run: UploadContext, loaded: LoadedSets) -> None:
    """Raise ``NotFoundError`` unless every upload is still open."""
    missing = await missing_uploads(run, loaded)
    if missing is None:
        run.warn("the uploads were not checked before the commit began: no permission to list")
    elif missing:
        text = (
            "its upload was aborted or has expired, another writer has taken its name, or it was "
            f"completed by another process: {named(missing)}. Unless the job is committed, the "
            "tasks that wrote them must run again"
        )
        raise NotFoundError("complete_upload", missing[0], text)


async def is_open(run: UploadContext, pending: Pending) -> bool:
    """Return whether an upload can still be completed or aborted."""
    try:
        await run.store.list_parts(pending.dest, pending.upload_id)
    except NotFoundError:
        return False
    return True


async def is_completed(run: UploadContext, pending: Pending) -> Info | None:
    """Return the file that the completion of this upload made, or ``None``.

    The result is ``None`` for an upload that is still open, whatever another file looks like.
    Raises ``OutcomeUnknownError`` if the service cannot tell.
    """
    info = await ended_as(run, pending)
    return None if info is None or await is_open(run, pending) else info


async def ended_as(run: UploadContext, pending: Pending) -> Info | None:
    """Return the file of an ended upload; ``None`` if aborted or replaced.

    Its length is not compared: a pending set with a wrong length must not hide the file. Without a
    token, another upload's file with the same bytes looks the same.
    """
    return await run.store.completed(pending.dest, pending.parts, pending.token or None)

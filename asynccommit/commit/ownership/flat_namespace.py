"""Jobs on stores where a write recreates a renamed directory.

No directory can be fenced there. Late requests are still harmless, because every move and every
delete names a version, and writes that begin or decide something replace nothing.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from typing import NamedTuple

from asynccommit.commit.context import CommitContext
from asynccommit.commit.ownership.status import is_control, is_end, read_end, read_state
from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StoreError,
)
from asynccommit.formats.commit_owner import Decision
from asynccommit.formats.commit_record import ABORTED, MAX_RECORD_BYTES, is_blank
from asynccommit.runtime.concurrency import batches, for_each
from asynccommit.stores.base import Info
from asynccommit.stores.tree import (
    is_there,
    list_if_there,
    remove_directories,
    remove_directory,
    remove_file,
    remove_files,
    tree_pages,
)


async def close_record(run: CommitContext) -> Info | None:
    """Occupy the record's name, so that no commit begins during an abort.

    Returns the present version, so that only this version is deleted; ``None`` if a commit has
    begun. A record that counts for nothing is deleted: it would make way for a commit.
    """
    with suppress(ExistsError, OutcomeUnknownError):
        return await run.store.put(run.layout.record, ABORTED, overwrite=False)
    found = await find_record(run)
    if found is None or found.stands:
        return None
    if found.blank:
        return found.info
    await remove_files(run.store, [found.info])
    with suppress(ExistsError, OutcomeUnknownError):
        return await run.store.put(run.layout.record, ABORTED, overwrite=False)
    return None


class RecordVersion(NamedTuple):
    """The object in the record's place, identified by its version.

    Attributes:
        info: the checked version, so that only this version is deleted.
        blank: it has no content: an abort has taken the place.
        stands: it is the record of a commit that has begun; else it came late.
    """

    info: Info
    blank: bool
    stands: bool


async def find_record(run: CommitContext) -> RecordVersion | None:
    """Return the file in the record's place, or ``None``.

    The version is read first. If the file is replaced before its content is read, the new content
    may be judged, but a deletion of the first version then has no effect.
    """
    try:
        info = await run.store.head(run.layout.record)
        if is_blank(await run.store.get(run.layout.record, MAX_RECORD_BYTES)):
            return RecordVersion(info, blank=True, stands=False)
    except NotFoundError:
        return None
    stands = await read_state(run.store, run.layout) is not None
    return RecordVersion(info, blank=False, stands=stands)


async def delete_attempt(run: CommitContext, record: Info | None = None) -> bool:
    """Delete the job attempt's directory; whether something was there.

    The data first; then the record, without which the rest means nothing to anybody but what says
    how it ended, which goes last. Whatever is listed while the record stands is its commit's, so it
    is looked at between a listing and its deletes; nothing is listed afterwards.

    Args:
        run: whose job attempt.
        record: what ``close_record`` has found; ``None`` for the record of the commit of ``run``.

    Raises ``PreconditionError`` if the record is another commit's.
    """
    record = record or await _own_record(run)
    words: list[Info] = []
    folders: list[Info] = []
    found = 0
    async for page in tree_pages(run.store, run.layout.attempt_dir):
        found += len(page)
        folders += [info for info in page if info.is_dir and info.etag is None]
        files = [info for info in page if not info.is_dir or info.etag is not None]
        words += [info for info in files if is_control(run.layout, info.path)]
        data = [info for info in files if not is_control(run.layout, info.path)]
        if data:
            await _require_record(run, record)
            await _delete_files(run, data)
    # Empty folders of tasks or manifests would look like those of a job that may be running.
    inner = [info for info in folders if info.path != run.layout.attempt_dir]
    await remove_directories(run.store, inner)
    await _delete_words(run, record, words)
    with suppress(NotFoundError, ExistsError):
        await remove_directory(run.store, run.layout.attempt_dir)
    return record is not None or found > 0


async def remove_bare(run: CommitContext) -> None:
    """Remove the empty directories of a job, the innermost first."""
    layout = run.layout
    for path in (layout.attempt_dir, layout.job_dir, layout.temporary):
        with suppress(StoreError):
            await remove_directory(run.store, path)


async def _delete_words(run: CommitContext, record: Info | None, words: list[Info]) -> None:
    layout = run.layout
    if record is not None:
        await remove_files(run.store, [record])
    ends = [info for info in words if is_end(layout, info.path)]
    others = [info for info in words if info not in ends and info.path != layout.record]
    await _delete_files(run, others)
    await _delete_files(run, ends)


async def _delete_files(run: CommitContext, files: list[Info]) -> None:
    some = batches(files, run.store.traits.bulk_delete)
    await for_each(some, lambda batch: remove_files(run.store, batch), workers=run.workers)


async def _require_record(run: CommitContext, record: Info | None) -> None:
    """Raise ``PreconditionError`` if the record has changed."""
    try:
        there = (await run.store.head(run.layout.record)).etag
    except NotFoundError:
        there = None
    if not run.store.traits.same(there, record.etag if record is not None else None):
        text = "another process is committing this job attempt, or has ended it"
        raise PreconditionError("delete", run.layout.record, text)


async def _own_record(run: CommitContext) -> Info | None:
    """Return the present record, so that only this version is deleted."""
    if not run.identity.commit_id:
        found = await find_record(run)
        if found is not None and found.stands:
            raise PreconditionError(
                "delete", run.layout.record, "belongs to a commit that has begun"
            )
        return found and found.info
    try:
        info = await run.store.head(run.layout.record)
        record = await run.store.get(run.layout.record, MAX_RECORD_BYTES)
    except NotFoundError:
        return None
    if sha256(record).hexdigest() != run.identity.commit_id:
        raise PreconditionError("delete", run.layout.record, "now belongs to another commit")
    return info


async def is_closed(run: CommitContext) -> bool | None:
    """Return whether all of the commit is done except the cleanup.

    Return ``None`` if the commit is gone altogether.
    """
    listing = {info.path for info in await list_if_there(run.store, run.layout.attempt_dir)}
    if run.layout.record not in listing:
        return None
    return await read_end(run.store, run.layout, listing, run.identity.commit_id) is not None


async def find_end(run: CommitContext) -> Decision | None:
    """Return how the commit has ended, ``None`` if it has not."""
    listing = {info.path for info in await list_if_there(run.store, run.layout.attempt_dir)}
    return await read_end(run.store, run.layout, listing, run.identity.commit_id)


async def take_back_word(run: CommitContext, path: str) -> None:
    """Delete this owner's files if nothing is left of the commit."""
    with suppress(StoreError):
        if not await is_there(run.store, run.layout.record):
            await remove_file(run.store, path)

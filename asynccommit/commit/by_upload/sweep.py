"""Abort the open uploads that the job's own files name.

Pending sets, single pending uploads (of Hadoop's magic tasks that were killed) and intents (of our
tasks) name them. Their content is checked: an upload for a file outside of the destination is left
alone, with a warning.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.load_sets import Room, checked_place, place_of
from asynccommit.commit.by_upload.open_uploads import open_uploads
from asynccommit.commit.by_upload.status import is_held
from asynccommit.commit.layouts.uploads import Left
from asynccommit.errors import (
    DeniedError,
    ManifestError,
    NotFoundError,
    PreconditionError,
    RejectedError,
)
from asynccommit.formats.pending import MAX_PENDING_BYTES, PendingCommit, decode_pending
from asynccommit.formats.pending_set import MAX_PENDING_SET_BYTES, decode_pending_set
from asynccommit.formats.upload_record import MAX_INTENT_BYTES, UploadIntent, decode_upload_intent
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info
from asynccommit.stores.tree import tree_pages, walk

_ROOM = 8 << 20
"""Bytes of such files held at once; a larger one is read alone."""
_MANY = 100_000
"""Maximum number of recorded open uploads; above it, all uploads named in files are tried."""
_LIMITS = {
    Left.SET: MAX_PENDING_SET_BYTES,
    Left.PENDING: MAX_PENDING_BYTES,
    Left.INTENT: MAX_INTENT_BYTES,
}

Name = tuple[str, str]
"""Path and id of an upload."""


@dataclass(slots=True)
class Swept:
    """The result of a sweep.

    Attributes:
        uploads: number of uploads that it aborted.
        staying: number of uploads that cannot be aborted, and stay until they expire.
        names: the aborted uploads, up to a limit.
        unreadable: files that tell nothing of the uploads that they should name.
    """

    uploads: int = 0
    staying: int = 0
    names: set[Name] = field(default_factory=set)
    unreadable: list[ManifestError] = field(default_factory=list)


class Sweeper:
    """Aborts the uploads named by files of this job.

    This must happen before the files are deleted.

    Args:
        run: the commit or abort under way.
        among_open: list the open uploads before, and read nothing if there are none.
        swept: receives the results.

    Attributes:
        since: when the job was set up, by the clock that dates its uploads; 0.0 if unknown.
    """

    def __init__(self, run: UploadContext, *, among_open: bool, swept: Swept) -> None:
        self.swept = swept
        self.since = 0.0
        self._run = run
        self._among_open = among_open
        self._room = Room(_ROOM)

    def of(self, run: UploadContext) -> Sweeper:
        """Return one for another attempt of the job, which adds to the same."""
        return Sweeper(run, among_open=self._among_open, swept=self.swept)

    async def take(self, infos: Iterable[Info]) -> bool:
        """Abort what files name, as they were listed; return whether any was read.

        A file is written after the uploads that it names were begun. So if none is open after the
        listing, nothing that is listed names one that is.
        """
        run, naming = self._run, list[Info]()
        for info in infos:
            if info.path == run.layout.living and run.pending is run.store:
                self.since = info.modified
            if not info.is_dir and run.layout.left_at(info.path) is not None:
                naming.append(info)
        if not naming or not run.options.uploads.abort_pending:
            return False
        still_open = await _open(run) if self._among_open else None
        if still_open is not None and not still_open:
            return False
        with run.meter.timed("op_abort_uploads"):
            window = min(run.workers, run.options.window)
            await for_each(naming, lambda info: self._read(info, still_open), workers=window)
        return True

    async def _read(self, info: Info, still_open: set[Name] | None) -> None:
        run, swept = self._run, self.swept
        async with self._room.of(info.size):
            names = await _names_in(run, info, swept)
        chosen = [name for name in names if still_open is None or name in still_open]
        if chosen and await is_held(run):  # else the files are another's, who took its id
            aborted = [name for name in chosen if await abort_one(run, name)]
            if run.store.traits.aborts:
                swept.uploads += len(aborted)
            else:
                swept.staying += len({*aborted} - swept.names)  # sets and intents name them
            if len(swept.names) < _MANY:
                swept.names.update(aborted)
        run.meter.step()

    def warn(self) -> None:
        """Warn of the files that could not be read, and of uploads that stay."""
        if self.swept.staying:
            days = round(expiry_of(self._run) / 86_400)
            self._run.warn(
                f"{self.swept.staying} uploads cannot be aborted on this store: their blocks stay "
                f"invisible, and are paid for, until {days} days after the last of them"
            )
            self.swept.staying = 0
        for problem in self.swept.unreadable:
            self._run.warn(f"uploads that it names may remain: {problem}")


async def sweep(run: UploadContext, *, among_open: bool) -> Swept:
    """Abort the uploads named by files of this job; delete nothing.

    Args:
        run: the commit or abort under way.
        among_open: list the open uploads before, and read nothing if there are none.
    """
    sweeper = Sweeper(run, among_open=among_open, swept=Swept())
    if not run.options.uploads.abort_pending or (among_open and await _open(run) == set()):
        return sweeper.swept
    try:
        async for page in _tree(run):
            await sweeper.take(page)
    except NotFoundError:
        pass
    sweeper.warn()
    return sweeper.swept


async def _open(run: UploadContext) -> set[Name] | None:
    """Return open uploads; ``None`` if unknown or too many."""
    found: set[Name] = set()
    try:
        async for uploads in open_uploads(run):
            found.update([(upload.path, upload.upload_id) for upload in uploads])
            if len(found) > _MANY:
                return None
    except DeniedError:
        return None
    return found


async def _tree(run: UploadContext) -> AsyncIterator[Iterable[Info]]:
    path = run.layout.job_dir
    if run.pending.traits.bulk_delete:
        async for page in tree_pages(run.pending, path):
            yield page
        return
    found = [info async for info in walk(run.pending, path)]
    if found:
        yield found


async def _names_in(run: UploadContext, info: Info, swept: Swept) -> list[Name]:
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


def _named(run: UploadContext, kind: Left, data: bytes, url: str) -> Iterator[Name]:
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
            raise ManifestError(url, f"belongs to another job, {commit.job_id[:200]!r}")
        yield place_of(run.layout, commit, url), commit.upload_id


def _intended(run: UploadContext, intent: UploadIntent, url: str) -> Iterator[Name]:
    if intent.job_id != run.layout.uuid:
        raise ManifestError(url, f"belongs to another job, {intent.job_id[:200]!r}")
    for key, upload_id in intent.uploads:
        try:
            yield checked_place(run.layout, f"/{key}"), upload_id
        except PreconditionError as error:
            raise ManifestError(url, f"{error.path} {error.detail}") from None


def expiry_of(run: UploadContext) -> float:
    """Return the seconds after which uploads end of themselves; 0.0 for never."""
    rules = run.store.traits.multipart
    return rules.expires if rules is not None else 0.0


async def abort_one(run: UploadContext, name: Name) -> bool:
    """Abort an upload; return whether it was open."""
    try:
        await run.store.abort_upload(*name)
    except NotFoundError:
        return False
    return True

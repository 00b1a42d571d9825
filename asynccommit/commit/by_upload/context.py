"""The context of an upload commit: reads and writes the job's own files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Self, cast

from asynccommit.commit.context import CommitContext
from asynccommit.commit.layouts.uploads import UploadLayout
from asynccommit.errors import NotFoundError
from asynccommit.formats.magic_paths import ANY_MAGIC
from asynccommit.stores.base import Info, Store
from asynccommit.stores.multipart import MultipartStore


@dataclass(slots=True)
class KnownRecord:
    """The etag of a commit's record, once it was read."""

    etag: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class UploadContext(CommitContext):
    """A ``CommitContext`` on a store with uploads.

    The id of the commit is that of its plan.

    Attributes:
        keeps_copies: a rollback could not put back all copies, and they are not deleted.
        known: what was seen of this commit's record, so that it is read once.
        uses_temporary: whether the job may have something in ``_temporary`` at the destination.
    """

    layout: UploadLayout
    keeps_copies: bool = False
    known: KnownRecord = field(default_factory=KnownRecord)
    uses_temporary: bool = True

    @property
    def store(self) -> MultipartStore:
        """Return the destination's store."""
        return cast(MultipartStore, self.snapshot or self.environment.store)

    @property
    def pending(self) -> Store:
        """Return the store of the job's own files.

        These are pending sets, record, plan and outcome.
        """
        if self.environment.pending is self.environment.store:
            return self.store  # one snapshot, which the first write ends
        return self.environment.pending

    def for_commit(self, commit_id: str) -> Self:
        """Return a context that reads and writes only files of this commit."""
        identity = replace(self.identity, commit_id=commit_id)
        layout = replace(self.layout, commit=commit_id)
        return replace(self, identity=identity, layout=layout, known=KnownRecord())

    def shown(self, path: str) -> str:
        """Return a path as reports name a file: as a key with a leading slash."""
        return path

    @property
    def committer(self) -> str:
        """Return the name of the committer in reports."""
        return self.layout.committer


_at_work: dict[int, UploadContext] = {}


@contextmanager
def at_work(run: UploadContext) -> Iterator[None]:
    """Register that this process commits, resumes or rolls back with ``run``."""
    _at_work[id(run)] = run
    try:
        yield
    finally:
        del _at_work[id(run)]


def is_at_work(commit_id: str) -> bool:
    """Return whether this process is working on a commit."""
    return any(run.now.identity.commit_id == commit_id for run in _at_work.values())


async def save(run: UploadContext, path: str, data: bytes, *, overwrite: bool = False) -> Info:
    """Write one of the job's own files durably.

    It outlives a power cut. Raises ``ExistsError``.
    """
    info = await run.pending.put(path, data, overwrite=overwrite)
    if not run.pending.traits.durable:
        await run.pending.sync(path)
        await run.pending.sync(path.rpartition("/")[0])
    return info


async def read_if_there(run: UploadContext, path: str, limit: int) -> bytes | None:
    """Return the content of one of the job's own files, or ``None``."""
    try:
        return await run.pending.get(path, limit)
    except NotFoundError:
        return None


async def write_over(run: UploadContext, info: Info, data: bytes) -> None:
    """Replace exactly this version of a small file of the destination.

    Only a copy can have this condition; the source of the copy is deleted with the job's files.
    Raises ``PreconditionError``, ``NotFoundError``.
    """
    place = f"{run.layout.aside_dir}/{ANY_MAGIC}-new"
    made = await run.store.put(place, data)
    await run.store.copy_if(place, info.path, made.etag or "", replaces=info.etag or "")

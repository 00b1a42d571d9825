"""One job commit of uploads under way, and how it reads and writes the job's own files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from asynccommit.commit.context import CommitContext
from asynccommit.commit.layout_uploads import UploadLayout
from asynccommit.errors import NotFoundError
from asynccommit.formats.magic_paths import ANY_MAGIC
from asynccommit.stores.base import Info, Store
from asynccommit.stores.multipart import MultipartStore


@dataclass(slots=True, kw_only=True)
class UploadContext(CommitContext):
    """A ``CommitContext`` on a store with uploads.

    ``pending`` is the store of the job's own files: pending sets, record, plan and outcome. The id
    of the commit is that of its plan. ``keeps_copies`` is for a rollback that could not put all of
    them back: they are not deleted. ``record_etag`` is that of this commit's record, once known.
    """

    store: MultipartStore
    layout: UploadLayout
    pending: Store
    keeps_copies: bool = False
    record_etag: str | None = None

    def act_for(self, commit_id: str) -> None:
        """Let what this run reads and says be of the commit of this id, and of no other."""
        self.commit_id, self.record_etag = commit_id, None
        self.layout = replace(self.layout, commit=commit_id)

    def shown(self, path: str) -> str:
        """Return a path as reports name a file: as a key, with a slash before it."""
        return path

    @property
    def committer(self) -> str:
        """The name of the committer in reports."""
        return self.layout.committer


_at_work: dict[int, UploadContext] = {}


@contextmanager
def at_work(run: UploadContext) -> Iterator[None]:
    """Let this process know that it commits, resumes or undoes with ``run``."""
    _at_work[id(run)] = run
    try:
        yield
    finally:
        del _at_work[id(run)]


def is_at_work(commit_id: str) -> bool:
    """Whether this process is at work on a commit."""
    return any(run.commit_id == commit_id for run in _at_work.values())


async def save(run: UploadContext, path: str, data: bytes, *, overwrite: bool = False) -> Info:
    """Write one of the job's own files, so that it outlives a power cut. Raises ``ExistsError``."""
    info = await run.pending.put(path, data, overwrite=overwrite)
    if not run.pending.traits.durable:
        await run.pending.sync(path)
        await run.pending.sync(path.rpartition("/")[0])
    return info


async def read_if_there(run: UploadContext, path: str, limit: int) -> bytes | None:
    """Return one of the job's own files, ``None`` if it is missing."""
    try:
        return await run.pending.get(path, limit)
    except NotFoundError:
        return None


async def write_over(run: UploadContext, info: Info, data: bytes) -> None:
    """Write a small file of the destination over just this one: only a copy can be told so.

    What it is a copy of goes with the job's files. Raises ``PreconditionError``, ``NotFoundError``.
    """
    place = f"{run.layout.aside_dir}/{ANY_MAGIC}-new"
    made = await run.store.put(place, data)
    await run.store.copy_if(place, info.path, made.etag or "", replaces=info.etag or "")

"""Find the owners of open uploads, by the magic directories of jobs.

A job of Hadoop's magic committer, or of this package's, has a directory in its destination, as
``__magic_job-<uuid>``; before Hadoop 3.4 all jobs shared ``__magic``. Pending sets, pending files
of single uploads and intents in this directory name uploads. Staging jobs leave nothing in the
destination.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from asynccommit.commit.layouts.layout import RECORD
from asynccommit.commit.layouts.uploads import INTENTS
from asynccommit.errors import (
    DeniedError,
    ManifestError,
    NotFoundError,
    PreconditionError,
    RejectedError,
)
from asynccommit.formats import pending, pending_set
from asynccommit.formats.magic_paths import ANY_MAGIC, MAGIC
from asynccommit.formats.pending import MAX_PENDING_BYTES, PendingCommit, decode_pending
from asynccommit.formats.pending_set import MAX_PENDING_SET_BYTES, decode_pending_set
from asynccommit.formats.upload_record import MAX_INTENT_BYTES, decode_upload_intent
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info
from asynccommit.stores.multipart import MultipartStore
from asynccommit.stores.tree import pages, tree_pages
from asynccommit.stores.urls import Address

Named = tuple[str, str]
"""Path and upload id."""

_SETS_AT_ONCE = 4  # each may have many megabytes


@dataclass(slots=True)
class UploadJob:
    """One job whose directory exists.

    Attributes:
        job_id: its UUID.
        dest: the path of its destination.
        sets: number of its tasks that have committed.
        begun: whether its commit has begun.
        since: when the first of its files was written, in seconds since the epoch; 0.0 if unknown.
        uploads: the open uploads that its files name.
        unread: its files that cannot be read, and why.
    """

    job_id: str
    dest: str
    sets: int = 0
    begun: bool = False
    since: float = 0.0
    uploads: set[Named] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)

    def holds(self, path: str) -> bool:
        """Return whether a path is in its destination."""
        return path.startswith(f"{self.dest.rstrip('/')}/")


async def find_upload_jobs(
    store: MultipartStore, place: Address, opened: Collection[Named]
) -> tuple[list[UploadJob], list[str]]:
    """Return jobs with open uploads in their destinations, and denied places.

    Args:
        store: the store to list.
        place: the store's address.
        opened: the open uploads.

    Raises:
        StoreError: a request failed, unless a place may not be listed.
    """
    folders: list[str] = []
    denied: list[str] = []

    async def look(directory: str) -> None:
        try:
            async for entries in pages(store, directory):
                folders.extend(info.path for info in entries if _is_magic(info))
        except (NotFoundError, PreconditionError):
            return
        except DeniedError as error:
            denied.append(str(error))

    await for_each(_ancestors(opened), look, workers=store.traits.workers)
    jobs: list[UploadJob] = []
    for folder in sorted(folders):
        jobs += await _jobs_in(store, place, folder, opened)
    return jobs, sorted(denied)


def _ancestors(opened: Iterable[Named]) -> list[str]:
    """Return all directories that may be the destination of a job's uploads."""
    found: set[str] = set()
    for path, _ in opened:
        parent = path.rpartition("/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition("/")[0]
    return ["/", *sorted(found)] if opened else []


def _is_magic(info: Info) -> bool:
    return info.is_dir and info.path.rpartition("/")[2].startswith(ANY_MAGIC)


async def _jobs_in(
    store: MultipartStore, place: Address, folder: str, opened: Collection[Named]
) -> list[UploadJob]:
    """Return the jobs of one magic directory."""
    jobs: dict[str, UploadJob] = {}
    sets: list[tuple[UploadJob, str]] = []
    others: list[tuple[UploadJob, str]] = []
    async for entries in tree_pages(store, folder):
        for info in entries:
            names = info.path[len(folder) + 1 :].split("/")
            job_id = _job_id(folder, names)
            dest = folder.rpartition("/")[0] or "/"
            job = jobs.setdefault(job_id, UploadJob(job_id, dest))
            if info.modified:
                job.since = min(job.since or info.modified, info.modified)
            job.begun = job.begun or names[-1] == RECORD
            is_set = names[-1].endswith(pending_set.SUFFIX)
            job.sets += is_set
            (sets if is_set else others).append((job, info.path))

    async def read(found: tuple[UploadJob, str]) -> None:
        await _read(store, place, *found, opened)

    await for_each(sets, read, workers=_SETS_AT_ONCE)
    await for_each(others, read, workers=store.traits.workers)
    return list(jobs.values())


def _job_id(folder: str, names: Sequence[str]) -> str:
    name = folder.rpartition("/")[2]
    if name.startswith(MAGIC):
        return name.removeprefix(MAGIC)
    return names[0].removeprefix("job-")


async def _read(
    store: MultipartStore, place: Address, job: UploadJob, path: str, opened: Collection[Named]
) -> None:
    """Read one file of a job and record it; record what cannot be read."""
    try:
        found = await _named_by(store, place, path)
    except NotFoundError:
        return  # the job is running, or has ended
    except (ManifestError, RejectedError) as error:
        job.unread.append(str(error))
        return
    # A file that names uploads elsewhere is not trusted.
    job.uploads |= {named for named in found if named in opened and job.holds(named[0])}


async def _named_by(store: MultipartStore, place: Address, path: str) -> set[Named]:
    """Return the uploads that a file names; empty for other kinds of files."""
    url = place.at(path).encode()
    if path.endswith(pending_set.SUFFIX):
        data = await store.get(path, MAX_PENDING_SET_BYTES)
        return _of_commits(decode_pending_set(data, url).commits, place)
    if path.endswith(pending.SUFFIX):
        data = await store.get(path, MAX_PENDING_BYTES)
        return _of_commits([decode_pending(data, url)], place)
    if path.endswith(".json") and path.split("/")[-2] == INTENTS:
        intent = decode_upload_intent(await store.get(path, MAX_INTENT_BYTES), url)
        return {(f"/{key}", upload_id) for key, upload_id in intent.uploads}
    return set()


def _of_commits(commits: Iterable[PendingCommit], place: Address) -> set[Named]:
    return {(f"/{one.key}", one.upload_id) for one in commits if one.bucket == place.authority}

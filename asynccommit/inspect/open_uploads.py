"""Find open uploads: their jobs, their sizes and their costs.

An open upload is neither completed nor aborted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from asynccommit.commit.hints import quoted
from asynccommit.errors import NotFoundError, RejectedError, UnsupportedError
from asynccommit.inspect.upload_owners import UploadJob, find_upload_jobs
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.multipart import MultipartStore, Upload
from asynccommit.stores.urls import Address

DAY = 86_400.0
GIBIBYTE = 1 << 30

STANDARD_PRICE = 0.023
"""Dollars per GB (2^30 bytes) and month: S3 Standard, us-east-1, the first 50 TB.

Source: https://aws.amazon.com/s3/pricing/
"""


class OpenUpload(NamedTuple):
    """One open upload.

    Attributes:
        upload: its id, and the path where its file will appear.
        jobs: ids of the jobs that name it.
        maybe: ids of jobs that may own it: in their destination, and begun after them.
        parts: number of parts that were sent.
        size: bytes of those parts.
    """

    upload: Upload
    jobs: tuple[str, ...] = ()
    maybe: tuple[str, ...] = ()
    parts: int = 0
    size: int = 0

    @property
    def job(self) -> str:
        """The job as it is shown, with a question mark if the job is uncertain."""
        return ", ".join(self.jobs) or ", ".join(f"{job}?" for job in self.maybe) or "-"


@dataclass(frozen=True, slots=True)
class OpenUploads:
    """The uploads below a place, the oldest first.

    Attributes:
        dest: the place.
        now: when the store was listed, in seconds since the epoch.
        uploads: all open uploads.
        jobs: the jobs whose directories exist.
        warnings: places that could not be read.
    """

    dest: Address
    now: float
    uploads: Sequence[OpenUpload] = ()
    jobs: Sequence[UploadJob] = ()
    warnings: Sequence[str] = field(default_factory=tuple)

    def age(self, found: OpenUpload) -> float | None:
        """Return how old an upload is, in seconds; ``None`` if that is unknown."""
        began = found.upload.initiated
        return max(0.0, self.now - began) if began else None

    def to_json(self, price: float = STANDARD_PRICE) -> dict[str, Any]:
        """Return plain JSON values; ``price`` is in dollars per GB and month."""
        size = sum(found.size for found in self.uploads)
        return {
            "destination": str(self.dest),
            "uploads": [self._to_json(found, price) for found in self.uploads],
            "parts": sum(found.parts for found in self.uploads),
            "bytes": size,
            "price": price,
            "month": month(size, price),
            "jobs": [_job_to_json(job) for job in self.jobs],
            "warnings": list(self.warnings),
        }

    def _to_json(self, found: OpenUpload, price: float) -> dict[str, Any]:
        return {
            "key": found.upload.path.removeprefix("/"),
            "upload_id": found.upload.upload_id,
            "age": self.age(found),
            "jobs": list(found.jobs),
            "maybe": list(found.maybe),
            "parts": found.parts,
            "bytes": found.size,
            "month": month(found.size, price),
        }


class Kept(NamedTuple):
    """An upload that is old enough to abort but is kept, with the reason."""

    found: OpenUpload
    reason: str


class Choice(NamedTuple):
    """The uploads to abort, and the candidates that are kept."""

    uploads: Sequence[OpenUpload]
    kept: Sequence[Kept]


def month(size: int, price: float) -> float:
    """Return the monthly price of this many bytes, in dollars."""
    return size / GIBIBYTE * price


async def find_uploads(store: MultipartStore, dest: Address, now: float) -> OpenUploads:
    """Return the open uploads of files below a place; change nothing.

    Args:
        store: the store to list.
        dest: the place; the root is the whole bucket.
        now: seconds since the epoch.

    Raises:
        UnsupportedError: the store has no uploads.
        StoreError: a request failed.
    """
    if store.traits.multipart is None:
        raise UnsupportedError(f"{dest} is on {store.traits.name}, which has no multipart uploads")
    opened = await list_open(store, dest.path)
    named = {(upload.path, upload.upload_id) for upload in opened}
    jobs, denied = await find_upload_jobs(store, dest, named)
    found: list[OpenUpload] = []

    async def look(upload: Upload) -> None:
        try:
            parts, size = await _parts(store, upload)
        except NotFoundError:
            return  # the upload has ended
        found.append(_with_jobs(upload, jobs)._replace(parts=parts, size=size))

    await for_each(opened, look, workers=store.traits.workers)
    found.sort(key=lambda one: (one.upload.initiated, one.upload.path, one.upload.upload_id))
    warnings = [f"the jobs of some uploads may be unknown: {text}" for text in denied]
    warnings += [
        f"job {job.job_id}: its uploads may be unknown: {why}" for job in jobs for why in job.unread
    ]
    return OpenUploads(dest, now, found, jobs, warnings)


async def list_open(store: MultipartStore, path: str) -> list[Upload]:
    """Return all uploads of files below a path. Raises ``StoreError``."""
    found: list[Upload] = []
    token = None
    while True:
        page = await store.list_uploads(path, token)
        found += page.entries
        if page.token is None:
            return found
        if page.token == token:
            raise RejectedError("list_uploads", path, "the store returns the same page repeatedly")
        token = page.token


async def _parts(store: MultipartStore, upload: Upload) -> tuple[int, int]:
    parts = size = 0
    token = None
    while True:
        page = await store.list_parts(upload.path, upload.upload_id, token)
        parts += len(page.entries)
        size += sum(length for _, _, length in page.entries)
        if page.token is None or page.token == token:
            return parts, size
        token = page.token


def _with_jobs(upload: Upload, jobs: Sequence[UploadJob]) -> OpenUpload:
    named = (upload.path, upload.upload_id)
    ours = tuple(job.job_id for job in jobs if named in job.uploads)
    maybe = tuple(job.job_id for job in jobs if job.holds(upload.path) and _since(job, upload))
    return OpenUpload(upload, ours, () if ours else maybe)


def _since(job: UploadJob, upload: Upload) -> bool:
    """Return whether, by the times, a task of the job may own the upload."""
    return not job.since or not upload.initiated or upload.initiated >= job.since - 1.0


def choose(found: OpenUploads, older_than: float | None, job_id: str | None) -> Choice:
    """Return the uploads that an abort applies to.

    Without ``job_id``, an upload is kept if an existing job's directory names it or may own it.
    With ``job_id``, only uploads that this job alone names are aborted.

    Args:
        found: the open uploads.
        older_than: seconds; ``None`` means a day, or any age if a job is given.
        job_id: the job.
    """
    if older_than is None:
        older_than = DAY if job_id is None else 0.0
    chosen: list[OpenUpload] = []
    kept: list[Kept] = []
    for one in found.uploads:
        age = found.age(one)
        if (job_id is not None and job_id not in one.jobs) or (
            older_than and (age or 0.0) < older_than
        ):
            continue
        reason = _reason(found, one, job_id)
        if reason:
            kept.append(Kept(one, reason))
        else:
            chosen.append(one)
    return Choice(chosen, kept)


def _reason(found: OpenUploads, one: OpenUpload, job_id: str | None) -> str:
    """Return why an upload is kept, or nothing if it is not."""
    others = [job for job in (one.jobs or one.maybe) if job != job_id]
    if not others:
        return ""
    shown = " and ".join(f"job {job}" for job in others)
    if not one.jobs:
        return (
            f"it may belong to {shown}, which has a directory there: commit or abort that job first"
        )
    if job_id is not None:
        return f"{shown} names it too"
    typed = f"asynccommit uploads abort {quoted(str(found.dest))} --job-id {quoted(others[0])}"
    return f"it belongs to {shown}, which has a directory there: {typed}"


def _job_to_json(job: UploadJob) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "destination": job.dest,
        "sets": job.sets,
        "begun": job.begun,
        "uploads": len(job.uploads),
    }

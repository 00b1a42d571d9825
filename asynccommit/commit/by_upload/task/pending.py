"""Convert a task's upload to a commit entry, and check entries."""

from __future__ import annotations

from collections.abc import Sequence

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.errors import ManifestError
from asynccommit.formats.pending import TOKEN, PendingCommit
from asynccommit.stores.parts import Part


def owner_name(run: UploadContext, attempt_id: str) -> str:
    """Return what names job and attempt in the ids of parts."""
    return f"{run.layout.uuid[-8:]}-{attempt_id[-15:]}"


def pending_commit(
    run: UploadContext,
    attempt_id: str,
    path: str,
    upload_id: str,
    parts: Sequence[Part],
    length: int,
    token: str,
    text: str = "",
) -> PendingCommit:
    """Return what completing an upload takes.

    Args:
        run: the task's.
        attempt_id: the task attempt, which the entry names.
        path: where the file appears.
        upload_id: the upload.
        parts: all of them, in order.
        length: bytes of the file.
        token: what the upload was begun with, which its file bears.
        text: for people.
    """
    return PendingCommit(
        bucket=run.layout.dest.authority,
        key=path[1:],
        upload_id=upload_id,
        parts=tuple(parts),
        length=length,
        uri=run.layout.url(path),
        job_id=run.layout.uuid,
        task_id=attempt_id,
        text=text,
        created=int(run.host.now() * 1000),
        extra={TOKEN: token},
    )


def check_place(run: UploadContext, commit: PendingCommit, file: str) -> None:
    """Raise ``ManifestError`` if ``file`` is for a foreign place."""
    layout, path = run.layout, f"/{commit.key}"
    if commit.bucket != layout.dest.authority:
        text = f"is for the bucket {commit.bucket[:200]!r}, not {layout.dest.authority!r}"
        raise ManifestError(file, text)
    if not path.startswith(f"{layout.root}/") or layout.reserves(path):
        raise ManifestError(
            file, f"is for {commit.key[:200]!r}, which is outside the destination of the job"
        )
    if commit.job_id not in ("", layout.uuid):
        raise ManifestError(file, f"belongs to job {commit.job_id[:200]!r}, not {layout.uuid!r}")

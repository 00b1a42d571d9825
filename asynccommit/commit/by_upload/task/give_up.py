"""Task abort: abort all uploads and delete the pending set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.task.intents import Failure, intended
from asynccommit.commit.by_upload.task.sets import own_set, remove_set
from asynccommit.commit.by_upload.task.undo import abort_all
from asynccommit.formats.pending import PendingCommit


async def give_up(
    run: UploadContext,
    task_id: str,
    attempt_id: str,
    commits: Iterable[PendingCommit] = (),
    unreadable: Sequence[Failure] = (),
) -> None:
    """Abort what an attempt has begun, whatever fails on the way.

    Args:
        run: the task's.
        task_id: the task, whose pending set is deleted if it is this attempt's.
        attempt_id: the attempt.
        commits: known uploads besides those in the intents.
        unreadable: files that could not be read, and why.

    Raises the first error, the others as notes on it, when all is aborted that could be.
    """
    begun, failures = await intended(run, attempt_id)
    own = await own_set(run, task_id, attempt_id)
    known = [*commits, *(own.commits if own else ())]
    failed = await abort_all(run, [*uploads_of(known), *begun])
    if own is not None and not failed:
        await remove_set(run, own, attempt_id)
    errors = [*failed, *(error for _, error in (*unreadable, *failures))]
    if errors:
        for error in errors[1:6]:
            errors[0].add_note(f"also: {type(error).__name__}: {error}")
        raise errors[0]


def uploads_of(commits: Iterable[PendingCommit]) -> list[tuple[str, str]]:
    """Return the path and the upload id of each pending commit."""
    return [(f"/{commit.key}", commit.upload_id) for commit in commits]

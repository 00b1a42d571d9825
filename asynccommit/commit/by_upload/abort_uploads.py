"""Abort given uploads, and check that they are gone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from asynccommit.errors import NotFoundError, RejectedError, StoreError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.multipart import MultipartStore, Upload

_ROUNDS = 3
_STAYS = (
    "the store cannot delete the parts of an upload: they go of themselves, or with the next file "
    "that is written to their name"
)
_LEFT = "it still exists: a part arrived meanwhile; abort it again"


@dataclass(slots=True)
class Aborted:
    """The result of aborting uploads.

    Attributes:
        aborted: the uploads that are gone.
        ended: the uploads that had already ended, completed or aborted by another process.
        failures: the uploads that may still be open, each with the reason.
    """

    aborted: list[Upload] = field(default_factory=list)
    ended: list[Upload] = field(default_factory=list)
    failures: list[tuple[Upload, StoreError]] = field(default_factory=list)


async def abort_uploads(
    store: MultipartStore,
    uploads: Sequence[Upload],
    open_now: Callable[[], Awaitable[Sequence[Upload]]],
) -> Aborted:
    """Abort uploads; a failure does not prevent the others.

    A part that is in transit when its upload is aborted may be kept, and be charged for: uploads
    that are open afterwards are aborted again.

    Args:
        store: the store of the uploads.
        uploads: the uploads to abort.
        open_now: lists the uploads that are open.

    Raises:
        StoreError: the remaining uploads cannot be listed.
    """
    found = Aborted()
    left = list(uploads)
    rules = store.traits.multipart
    if rules is not None and not rules.aborts:
        found.failures = [(one, RejectedError("abort_upload", one.path, _STAYS)) for one in left]
        return found
    for number in range(_ROUNDS):
        ended, failures = await _abort_each(store, left)
        found.failures += failures
        found.ended += ended if number == 0 else []
        failed = {upload[:2] for upload, _ in found.failures}
        there = {upload[:2] for upload in await open_now()}
        left = [one for one in left if one[:2] in there and one[:2] not in failed]
        if not left:
            break
    found.failures += [(one, RejectedError("abort_upload", one.path, _LEFT)) for one in left]
    others = {one[:2] for one in (*found.ended, *(one for one, _ in found.failures))}
    found.aborted = [one for one in uploads if one[:2] not in others]
    return found


async def _abort_each(
    store: MultipartStore, uploads: Sequence[Upload]
) -> tuple[list[Upload], list[tuple[Upload, StoreError]]]:
    """Return the uploads that had ended, and those that failed to abort."""
    ended: list[Upload] = []
    failures: list[tuple[Upload, StoreError]] = []

    async def abort(upload: Upload) -> None:
        try:
            await store.abort_upload(upload.path, upload.upload_id)
        except NotFoundError:
            ended.append(upload)
        except StoreError as error:
            failures.append((upload, error))

    await for_each(uploads, abort, workers=store.traits.workers)
    return ended, failures

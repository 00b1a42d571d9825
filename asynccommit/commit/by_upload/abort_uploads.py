"""Aborting uploads that are given one by one, and seeing that they are gone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from asynccommit.errors import NotFoundError, RejectedError, StoreError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.multipart import MultipartStore, Upload

_ROUNDS = 3
_LEFT = "it is still there: a part came meanwhile; abort it again"


@dataclass(slots=True)
class Aborted:
    """What became of uploads.

    Attributes:
        aborted: those that are gone.
        ended: those that had ended when it was their turn, completed or aborted by another.
        failures: those that may still be there, each with the reason.
    """

    aborted: list[Upload] = field(default_factory=list)
    ended: list[Upload] = field(default_factory=list)
    failures: list[tuple[Upload, StoreError]] = field(default_factory=list)


async def abort_uploads(
    store: MultipartStore,
    uploads: Sequence[Upload],
    open_now: Callable[[], Awaitable[Sequence[Upload]]],
) -> Aborted:
    """Abort uploads; one that fails keeps no other from being aborted.

    A part that is on its way when its upload is aborted may be kept, and be paid for: what is
    there afterwards is aborted again.

    Args:
        store: where they are.
        uploads: what to abort.
        open_now: lists the uploads that are open.

    Raises:
        StoreError: it cannot be listed what is left.
    """
    found = Aborted()
    left = list(uploads)
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
    """Return the uploads that had ended, and those that could not be aborted."""
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

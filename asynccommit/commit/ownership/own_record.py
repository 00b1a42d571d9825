"""The owner of a commit record, asked before a recovery."""

from __future__ import annotations

from hashlib import sha256
from typing import cast

from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.record_owner import require_own
from asynccommit.commit.ownership.status import CommitState
from asynccommit.errors import CommitError, DeniedError, NotFoundError
from asynccommit.formats.commit_record import MAX_RECORD_BYTES
from asynccommit.stores.base import Info, TaggedStore
from asynccommit.stores.tree import list_if_there


async def require_own_record(run: CommitContext, standing: CommitState) -> None:
    """Refuse a commit of another user, unless somebody has asked for it.

    A warning names its user then. What this process has written needs no owner.

    Raises ``ForeignCommitError``; ``CommitError`` if only its owner can continue it.
    """
    if run.store.traits.user is None or standing.commit_id in (run.trusted, run.identity.commit_id):
        return
    if standing.is_committed and not standing.mixed:
        return  # only the clean-up is left, unless another user has said that it is committed
    if run.asked:
        if standing.foreign:
            run.warn(f"the record of its commit belongs to {standing.foreign}")
        await _require_entry(run, standing)
        return
    files = await require_own(run, run.store)
    await _require_same(run, standing, files)


async def _require_same(run: CommitContext, standing: CommitState, files: list[Info]) -> None:
    """Require that the record is the one read before, in the same file.

    Others may be allowed to write in the directory.
    """
    store, path = run.store, run.layout.record
    etag = next((info.etag for info in files if info.path == path), None)
    try:
        if store.traits.tagged_get:
            data, read = await cast(TaggedStore, store).get_tagged(path, MAX_RECORD_BYTES)
        else:
            data = await store.get(path, MAX_RECORD_BYTES)
            read = (await store.head(path)).etag
    except NotFoundError:
        data, read = b"", None
    if sha256(data).hexdigest() != standing.commit_id or not store.traits.same(etag, read):
        text = "the record of its commit changes while it is looked at. Nothing was done: try again"
        raise CommitError(run.layout.job_id, run.meter.stage, (), text)


async def _require_entry(run: CommitContext, standing: CommitState) -> None:
    """Refuse a takeover of a directory that only its owner may enter."""
    if not (standing.foreign and standing.epochs):
        return
    place = run.layout.epoch_dir(max(standing.epochs))
    try:
        await list_if_there(run.store, place)
    except DeniedError as error:
        text = (
            f"{place} belongs to {standing.foreign}, and only that user may enter it. Nothing was "
            "done. Finish or undo the commit as that user, or as the superuser"
        )
        raise CommitError(run.layout.job_id, run.meter.stage, (error,), text) from error

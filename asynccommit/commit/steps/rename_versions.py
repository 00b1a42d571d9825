"""Move a task's file whose upload took effect twice.

Where every write makes a version of its own, an upload that was sent again can come once more after
its task has committed. Size and checksum are those of the manifest, and only the number of the
version is another. What differs in either is never moved.
"""

from __future__ import annotations

from asynccommit.commit.context import CommitContext
from asynccommit.commit.ownership.lease import require_place
from asynccommit.commit.spill import Entry
from asynccommit.errors import NotFoundError, OutcomeUnknownError, PreconditionError
from asynccommit.stores.base import Info, Kind


async def move_source(
    run: CommitContext, entry: Entry, dest: str, *, replace: bool = False, token: str | None = None
) -> None:
    """Rename a task's file in its version, or one with the same content.

    Another version is moved only after its owner has seen that it still is one, and by the number
    of that version: so a takeover that has looked at the sources since keeps it from being moved.

    A lost response is harmless then: the version that the request named is gone.

    Raises what ``Store.rename`` raises, ``PreconditionError`` for other content, and
    ``LeaseLostError``.
    """
    etag = run.store.traits.guarded(entry.etag)
    while True:
        try:
            await run.store.rename(entry.source, dest, replace=replace, etag=etag, token=token)
            return
        except (PreconditionError, OutcomeUnknownError):
            found = await find_twin(run, entry)
            if found is None or run.store.traits.same(found.etag, etag):
                raise
        etag = found.etag
        if run.lease is not None:
            await require_place(run)
            run.check_lease()


async def find_twin(run: CommitContext, entry: Entry) -> Info | None:
    """Return the source of ``entry`` if it has its size and content."""
    traits = run.store.traits
    content = traits.lasting(entry.etag)
    if not traits.content_etags or content is None:
        return None
    try:
        info = await run.store.head(entry.source)
    except NotFoundError:
        return None
    same = info.kind is Kind.FILE and info.size == entry.size
    return info if same and traits.lasting(info.etag) == content else None

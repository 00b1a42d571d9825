"""Job commit, first step: etags for entries whose manifest has none.

Hadoop's manifests have etags only where its filesystem reports them. A rename without an etag moves
whatever is at its source, however late it is executed, so the present etags are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.full_etags import with_etags
from asynccommit.commit.object_holds import refuse_held
from asynccommit.commit.spill import Entry
from asynccommit.errors import ManifestError, NotFoundError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import pages, tree_pages


async def with_listed_etags(
    run: CommitContext, entries: Sequence[Entry], base: str, url: str
) -> Sequence[Entry]:
    """Add listed etags to entries without one, if renames need them.

    Args:
        run: the commit under way.
        entries: files of one task.
        base: the directory of the task attempt, listed at once where the store lists whole trees;
            elsewhere each directory that such a file is in.
        url: of the manifest, for errors.

    The entry of a missing file stays unchanged: its rename reports the problem. Raises
    ``ManifestError`` for a file of another size, ``RejectedError`` for a held one.
    """
    traits = run.store.traits
    if not traits.conditional_rename:
        return entries
    bare = {entry.source for entry in entries if not traits.lasting(entry.etag)}
    if not bare:
        return entries
    tree = traits.bulk_delete > 0
    places = [base] if tree else sorted({path.rpartition("/")[0] for path in bare})
    there: dict[str, Info] = {}

    async def look(place: str) -> None:
        with suppress(NotFoundError, PreconditionError):
            async for page in (tree_pages if tree else pages)(run.store, place):
                refuse_held(run, page)
                files = [info for info in page if info.path in bare and info.kind is Kind.FILE]
                there.update({info.path: info for info in await with_etags(run, files)})

    await for_each(places, look, workers=run.workers)
    return [_with_etag(entry, there.get(entry.source), url) for entry in entries]


def _with_etag(entry: Entry, found: Info | None, url: str) -> Entry:
    if found is None:
        return entry
    if found.size != entry.size:
        text = f"has {found.size} bytes, but its manifest has {entry.size}: run its task again"
        raise ManifestError(url, f"{entry.source} {text}")
    return entry._replace(etag=found.etag or entry.etag)

"""The snapshot of a destination for the setup of a job of uploads."""

from __future__ import annotations

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.job.snapshot import take_snapshot, view
from asynccommit.stores.base import Store


async def look_at_destination(run: UploadContext) -> Store | None:
    """Return the store with a snapshot of the destination.

    A setup asks for it before it creates something. Return ``None`` where each question must be
    asked by itself: if the job's files are in another store, or a listing does not tell enough.
    """
    traits, same = run.store.traits, run.environment.pending is run.environment.store
    if not (same and traits.consistent_listing and traits.whole_listings) or traits.links:
        return None
    dest = run.layout.dest.path
    return view(run.store, await take_snapshot(run.store, infos=[dest], listings=[dest], files=[]))

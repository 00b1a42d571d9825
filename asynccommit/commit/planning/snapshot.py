"""The snapshot of a job that is about to be committed by renames.

It is used for a job as its tasks have left it. Of any other, such as one whose commit has begun or
that is being aborted, each question is asked by itself, in the order that recovery needs.
"""

from __future__ import annotations

from asynccommit.commit.context import CommitContext
from asynccommit.commit.job.publisher import Inputs
from asynccommit.commit.job.snapshot import Snapshot, take_snapshot, view
from asynccommit.commit.layouts.layout import JOB_OWNER, Layout
from asynccommit.options.job import Mode
from asynccommit.stores.base import Store

_ORDINARY = {"manifests", "tasks", "absolute", "claims", "alive", JOB_OWNER}
"""The names in the directory of a job attempt whose commit has not begun."""


async def look_ahead(run: CommitContext, inputs: Inputs) -> Store | None:
    """Return the store with a snapshot of what the commit asks first.

    Return ``None`` where each question must be asked by itself: if paths may be links, if jobs
    share a directory, or unless the job is as its tasks have left it. A destination whose content
    is replaced is left out, as other jobs are looked for before it is listed.
    """
    layout = run.layout
    if layout.shared or not _is_listing_enough(run):
        return None
    appends = inputs.mode is Mode.APPEND and not inputs.overwrite
    dest = [layout.dest.path] if appends else []
    tasks = inputs.tasks or ()
    found = await take_snapshot(
        run.store,
        listings=[layout.job_dir, layout.attempt_dir, layout.manifests_dir, *dest],
        files=[layout.job_owner, *(layout.manifest(task.task_id) for task in tasks)],
    )
    return view(run.store, found) if _is_ordinary(found, layout) else None


async def look_at_destination(run: CommitContext) -> Store | None:
    """Return the store with a snapshot of the destination and the jobs in it.

    A setup asks for both before it creates something. Return ``None`` where each question must be
    asked by itself.
    """
    if not _is_listing_enough(run):
        return None
    dest = run.layout.dest.path
    listings = [dest, run.layout.temporary]
    return view(run.store, await take_snapshot(run.store, listings=listings, files=[]))


def _is_listing_enough(run: CommitContext) -> bool:
    """Return whether a listing tells what each entry of it would."""
    traits = run.store.traits
    return traits.consistent_listing and traits.whole_listings and not traits.links


def _is_ordinary(found: Snapshot, layout: Layout) -> bool:
    """Return whether nobody has begun to commit or to abort the job."""
    attempts = found.listings.get(layout.job_dir) or {}
    names = {path.rpartition("/")[2] for path in found.listings.get(layout.attempt_dir) or {}}
    alone = [*attempts] == [layout.attempt_dir]
    # Nothing could show later that an empty listing and the owner file are of the same setup.
    has_manifests = "manifests" in names and bool(found.listings.get(layout.manifests_dir))
    return alone and has_manifests and names <= _ORDINARY

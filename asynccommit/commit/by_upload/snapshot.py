"""The snapshot of a job that is about to be committed by uploads.

It is used for a job as its tasks have left it. Of any other, such as one whose commit has begun or
that is being aborted, each question is asked by itself, in the order that recovery needs.
"""

from __future__ import annotations

from dataclasses import replace

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.job.publisher import Inputs
from asynccommit.commit.job.snapshot import Snapshot, take_snapshot, view
from asynccommit.commit.layouts.layout import JOB_OWNER
from asynccommit.commit.layouts.uploads import UploadLayout
from asynccommit.commit.paths import within
from asynccommit.options.job import Mode
from asynccommit.stores.base import Store

_ORDINARY = {"tasks", "_temporary", JOB_OWNER, f"_{JOB_OWNER}"}
"""The names in the directory of a job attempt whose commit has not begun, apart from its sets."""


async def look_ahead(run: UploadContext, inputs: Inputs) -> UploadContext:
    """Return the context with a snapshot of what the commit asks first.

    It has none where each question must be asked by itself: unless the job is as its tasks have
    left it, or if its files are in another store than the destination. Pending sets are left out:
    a set is read after the listing whose etag the commit checks once more. A destination whose
    content is replaced is left out, as other jobs are looked for before it is listed.
    """
    if not _is_listing_enough(run):
        return run
    layout, appends = run.layout, inputs.mode is Mode.APPEND and not inputs.overwrite
    dest = [layout.dest.path] if appends else []
    found = await take_snapshot(
        run.store,
        infos=dest,
        listings=[layout.attempts_dir, layout.attempt_dir, *dest],
        files=[],
    )
    if not _is_ordinary(found, layout):
        return run
    shown = found.listings.get(layout.dest.path)
    copies_elsewhere = within(layout.aside_dir, [layout.attempt_dir])
    used = shown is None or layout.temporary in shown or not copies_elsewhere
    return replace(run, snapshot=view(run.store, found), uses_temporary=used)


async def look_at_destination(run: UploadContext) -> Store | None:
    """Return the store with a snapshot of the destination.

    A setup asks for it before it creates something. Return ``None`` where each question must be
    asked by itself.
    """
    if not _is_listing_enough(run):
        return None
    dest = run.layout.dest.path
    return view(run.store, await take_snapshot(run.store, infos=[dest], listings=[dest], files=[]))


def _is_listing_enough(run: UploadContext) -> bool:
    """Return whether a listing tells what each entry of it would."""
    traits, same = run.store.traits, run.environment.pending is run.environment.store
    return same and traits.consistent_listing and traits.whole_listings and not traits.links


def _is_ordinary(found: Snapshot, layout: UploadLayout) -> bool:
    """Return whether nobody has begun to commit or to abort the job.

    The end of a job deletes the living file before the record. So while one listing shows the file
    and no record, no commit has ended, and ``_SUCCESS`` may be read at the same time.
    """
    inside = found.listings.get(layout.attempt_dir) or {}
    alone = [*(found.listings.get(layout.attempts_dir) or ())] == [layout.attempt_dir]
    names = {path.rpartition("/")[2] for path in inside if path != layout.living}
    others = {name for name in names if not layout.is_set(name)}
    return alone and layout.living in inside and others <= _ORDINARY

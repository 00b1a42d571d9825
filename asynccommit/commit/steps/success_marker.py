"""The final files of a job: ``_SUCCESS`` and the report."""

from __future__ import annotations

from contextlib import suppress
from typing import cast

import orjson

from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.drafts import MOVES, found_again, reserve
from asynccommit.commit.driver.durable import make_durable
from asynccommit.commit.errors import lease_lost
from asynccommit.commit.job.success import (
    COMMIT,
    EARLIER,
    MAX_KEYS,
    keys_of,
    marker_bytes,
    read_success,
    summarise,
)
from asynccommit.commit.ownership.directory_of import directory_of
from asynccommit.commit.planning.plan import Plan, aside_path
from asynccommit.errors import ManifestError, NotFoundError, OutcomeUnknownError, PreconditionError
from asynccommit.formats.success import decode_success, encode_success
from asynccommit.stores.base import DraftingStore, Info


async def reserve_success(run: CommitContext) -> str | None:
    """Create an empty file for the content of ``_SUCCESS``, and its directory.

    What fills it later creates nothing: once another owner has taken the directory, it fails.
    Returns its path, if there is one.
    """
    if _is_written_ahead(run):
        return await reserve(run.store, run.layout.epoch_dir(1))
    return None


def _is_written_ahead(run: CommitContext) -> bool:
    return run.options.mark_success and not run.options.diagnostics_directory


async def prepare_success(run: CommitContext, plan: Plan) -> Info | None:
    """Write the temporary file of ``_SUCCESS``.

    It has no meaning until it is renamed. It can be written while the output is validated and the
    outcome is written, unless its content is known only later. Returns ``None`` if it was not
    written; ``write_success`` then writes it.
    """
    if _is_written_ahead(run):
        with suppress(Exception):  # raised again once the job is committed
            return await _write_temp(run, plan)
    return None


async def write_success(run: CommitContext, plan: Plan, temp: Info | None = None) -> None:
    """Write ``_SUCCESS`` atomically, if enabled and not yet written.

    Args:
        run: the commit, which is decided.
        plan: what the marker lists.
        temp: what ``prepare_success`` has written.
    """
    layout = run.layout
    if not run.options.mark_success:
        return
    with run.meter.timed("job_stage_save_success_marker"):
        run.note_success()
        if run.identity.epoch > 1 and await _is_written(run):
            return
        run.check_lease()
        await _move_marker(run, temp or await _write_temp(run, plan))
        await make_durable(run, layout.dest.path)


async def _write_temp(run: CommitContext, plan: Plan) -> Info:
    layout = run.layout
    if any(aside.path == layout.success for aside in plan.aside):
        await _keep_keys(run)
    temp = layout.success_temp(run.identity.epoch)
    run.note_sizes(plan.loaded.sizes)
    data = encode_success(summarise(run, "committer_commit_job", plan.sample))
    reserved, plan.reserved = plan.reserved, None
    if reserved is not None:
        return await cast(DraftingStore, run.store).fill(reserved, data)
    written = await directory_of(run).write(run, temp, data)
    await make_durable(run, temp)
    return written


async def _move_marker(run: CommitContext, temp: Info) -> None:
    """Rename the marker, unless another owner deleted it.

    Under its etag: a creation and a move that come again late would put an empty file in its place.
    """
    for left in reversed(range(MOVES)):
        try:
            await run.store.rename(temp.path, run.layout.success, replace=True, etag=temp.etag)
            return
        except NotFoundError:
            if not run.store.traits.content_etags:
                raise
            raise lease_lost(run) from None
        except (PreconditionError, OutcomeUnknownError) as error:
            found = await found_again(run.store, temp) if left else None
            unknown = isinstance(error, OutcomeUnknownError)
            if found is None or (unknown and found.etag == temp.etag):
                raise
            temp = found


async def _keep_keys(run: CommitContext) -> None:
    """Remember the keys of the marker that this one takes the place of."""
    place = aside_path(run.layout, run.place, run.layout.success)
    try:
        data = await marker_bytes(run.store, place)
        keys = keys_of(decode_success(data, place)) if data else []
    except (NotFoundError, ManifestError):
        return
    if keys:
        run.note(EARLIER, orjson.dumps(keys[:MAX_KEYS]).decode())


async def _is_written(run: CommitContext) -> bool:
    """Return whether an earlier owner of this commit has written its marker."""
    try:
        marker = await read_success(run)
    except ManifestError:
        return False
    return marker is not None and marker.diagnostics.get(COMMIT) == run.identity.commit_id

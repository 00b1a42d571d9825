"""The manifests kept for diagnostics; a failure is only a warning."""

from __future__ import annotations

from asynccommit.commit.context import CommitContext
from asynccommit.commit.errors import reason
from asynccommit.commit.job.reports import MAX_REPORTS
from asynccommit.commit.steps.identity import identity_of
from asynccommit.commit.trees import merge
from asynccommit.errors import ExistsError, NotFoundError, UnsupportedError
from asynccommit.stores.tree import is_there, list_if_there
from asynccommit.stores.urls import Address, parse_url


async def _keep(run: CommitContext, directory: Address) -> Address:
    """Move the manifests below ``directory``; return their new place."""
    if not directory.same_store(run.layout.dest):
        raise UnsupportedError(f"{directory} is not on the store of {run.layout.dest}")
    await run.store.mkdir(directory.path)
    for number in range(1, MAX_REPORTS):
        place = directory.child(run.layout.job_id + (f"-{number}" if number > 1 else ""))
        try:
            await _move(run, place.path)
        except ExistsError:
            continue
        return place
    raise ExistsError("rename", directory.path, f"has {MAX_REPORTS} of job {run.layout.job_id}")


async def _move(run: CommitContext, place: str) -> None:
    """Move the manifests to the unused ``place``."""
    if run.store.traits.fences:
        await run.store.rename(f"{run.epoch_dir}/manifests", place)
        return
    if await is_there(run.store, place) and not await _is_of_commit(run, place):
        raise ExistsError("rename", place, "is there")
    if not await merge(run, run.layout.manifests_dir, place):
        raise NotFoundError("rename", run.layout.manifests_dir)


async def _is_of_commit(run: CommitContext, place: str) -> bool:
    """Return whether this commit has begun to move manifests to ``place``.

    An earlier owner of the commit may have done so.
    """
    since = await identity_of(run).begun_at()
    found = await list_if_there(run.store, place)
    return run.identity.epoch > 1 and all(info.modified >= since for info in found)


async def keep_manifests(run: CommitContext) -> str | None:
    """Move the manifests to the diagnostics directory, if configured.

    Return its URL.
    """
    if run.options.diagnostics_directory is None or run.layout.shared:
        return None
    try:
        place = await _keep(run, parse_url(run.options.diagnostics_directory))
    except NotFoundError:
        return None  # an earlier owner of the commit has kept them
    except Exception as problem:
        run.warn(f"the manifests were not kept for diagnostics: {reason(problem)}")
        return None
    run.note("manifests", place.encode())
    return place.encode()

"""The summary in the report directory, and the manifests kept for diagnostics.

Neither may fail a commit: what goes wrong here is a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from asynccommit.commit.by_rename.reconcile import begun_at
from asynccommit.commit.by_rename.success_marker import summarise
from asynccommit.commit.by_rename.swap import merge
from asynccommit.commit.context import CommitContext
from asynccommit.commit.errors import reason
from asynccommit.errors import ExistsError, NotFoundError, UnsupportedError
from asynccommit.formats.success import SuccessData, encode_success
from asynccommit.stores.base import Store
from asynccommit.stores.tree import is_there, list_all, list_if_there
from asynccommit.stores.urls import Address, parse_url

log = logging.getLogger(__name__)

_MAX_REPORTS = 10_000


async def report_on(
    run: CommitContext,
    stage: str,
    filenames: Sequence[str] = (),
    error: BaseException | None = None,
) -> str | None:
    """Save the summary of this job, if reports are wanted; return its URL."""
    if run.options.report_directory is None:
        return None
    threads = {"mapreduce.manifest.committer.io.threads": str(run.workers)}
    try:
        data = summarise(run, stage, filenames, error, threads)
        place = parse_url(run.options.report_directory)
        path = await _save(_store_of(run, place), place.path, run.layout.job_id, data)
        return place.at(path).encode()
    except Exception as problem:
        run.warn(f"no report was saved: {reason(problem)}")
        log.warning("job %s: no report was saved: %s", run.layout.job_id, reason(problem))
        return None


async def has_report(run: CommitContext) -> bool:
    """Return whether any attempt of this job left a summary."""
    if run.options.report_directory is None:
        return False
    try:
        place = parse_url(run.options.report_directory)
        found = await list_all(_store_of(run, place), place.path)
    except Exception:
        return False  # none can be read; saving one tells why
    return f"summary-{run.layout.job_id}.json" in {i.path.rpartition("/")[2] for i in found}


def _store_of(run: CommitContext, place: Address) -> Store:
    if place.same_store(run.layout.dest):
        return run.store
    if run.open_store is None:
        raise UnsupportedError(f"{place} is not on the store of {run.layout.dest}")
    return run.open_store(place)


async def _save(store: Store, directory: str, job_id: str, data: SuccessData) -> str:
    """Write a summary beside those of earlier attempts, never over one; return its path.

    The first of a job is ``summary-<job id>.json``, the name that Hadoop gives it; the next ones
    are ``summary-<job id>-2.json`` and so on.
    """
    await store.mkdir(directory)
    content = encode_success(data)
    for number in range(1, _MAX_REPORTS):
        name = f"summary-{job_id}" + (f"-{number}" if number > 1 else "") + ".json"
        path = f"{directory.rstrip('/')}/{name}"
        try:
            await store.put(path, content, overwrite=False)
        except ExistsError:
            continue
        return path
    raise ExistsError("put", directory, f"has {_MAX_REPORTS} reports of job {job_id}")


async def _keep(run: CommitContext, directory: Address) -> Address:
    """Move the manifests below ``directory``, beside what is there; return where they are."""
    if not directory.same_store(run.layout.dest):
        raise UnsupportedError(f"{directory} is not on the store of {run.layout.dest}")
    await run.store.mkdir(directory.path)
    for number in range(1, _MAX_REPORTS):
        place = directory.child(run.layout.job_id + (f"-{number}" if number > 1 else ""))
        try:
            await _move(run, place.path)
        except ExistsError:
            continue
        return place
    raise ExistsError("rename", directory.path, f"has {_MAX_REPORTS} of job {run.layout.job_id}")


async def _move(run: CommitContext, place: str) -> None:
    """Move the manifests to ``place``, which nobody has."""
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
    since = await begun_at(run)
    found = await list_if_there(run.store, place)
    return run.epoch > 1 and all(info.modified >= since for info in found)


async def keep_manifests(run: CommitContext) -> str | None:
    """Move the job's manifests to the diagnostics directory, if there is one; return its URL."""
    if run.options.diagnostics_directory is None or run.layout.shared:
        return None
    try:
        place = await _keep(run, parse_url(run.options.diagnostics_directory))
    except NotFoundError:
        return None  # an earlier owner of the commit has kept them
    except Exception as problem:
        run.warn(f"the manifests were not kept for diagnostics: {reason(problem)}")
        return None
    run.diagnostics["manifests"] = place.encode()
    return place.encode()

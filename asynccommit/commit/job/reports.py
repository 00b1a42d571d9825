"""The summary in the report directory; a failure is only a warning."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from asynccommit.commit.context import CommitContext
from asynccommit.commit.errors import reason
from asynccommit.commit.job.success import summarise
from asynccommit.errors import ExistsError, UnsupportedError
from asynccommit.formats.success import SuccessData, encode_success
from asynccommit.results import JobReport
from asynccommit.stores.base import Store
from asynccommit.stores.policies.request_series import MAX_BUCKETS
from asynccommit.stores.tree import list_all
from asynccommit.stores.urls import Address, parse_url

log = logging.getLogger(__name__)


MAX_REPORTS = 10_000


async def report_on(
    run: CommitContext,
    stage: str,
    filenames: Sequence[str] = (),
    error: BaseException | None = None,
    *,
    report: JobReport | None = None,
) -> str | None:
    """Save the summary of this job, if reports are wanted; return its URL."""
    if run.options.report_directory is None:
        return None
    threads = {"mapreduce.manifest.committer.io.threads": str(run.workers)}
    try:
        data = summarise(run, stage, filenames, error, threads, MAX_BUCKETS, report)
        place = parse_url(run.options.report_directory)
        path = await _save(_store_of(run, place), place.path, run.layout.job_id, data)
        return place.at(path).encode()
    except Exception as problem:
        run.warn(f"no report was saved: {reason(problem)}")
        told = run.layout.job_id, reason(problem)
        log.warning("job %s: no report was saved: %s", *told, extra=run.layout.log_fields)
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
    if run.environment.open_store is None:
        raise UnsupportedError(f"{place} is not on the store of {run.layout.dest}")
    return run.environment.open_store(place)


async def _save(store: Store, directory: str, job_id: str, data: SuccessData) -> str:
    """Write a summary beside those of earlier attempts; return its path.

    The first of a job is ``summary-<job id>.json``, the name that Hadoop gives it; the next ones
    are ``summary-<job id>-2.json`` and so on.
    """
    await store.mkdir(directory)
    content = encode_success(data)
    for number in range(1, MAX_REPORTS):
        name = f"summary-{job_id}" + (f"-{number}" if number > 1 else "") + ".json"
        path = f"{directory.rstrip('/')}/{name}"
        try:
            await store.put(path, content, overwrite=False)
        except ExistsError:
            continue
        return path
    raise ExistsError("put", directory, f"has {MAX_REPORTS} reports of job {job_id}")

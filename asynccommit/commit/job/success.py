"""The content of ``_SUCCESS`` and of reports."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence

import orjson

from asynccommit.commit.context import CommitContext
from asynccommit.commit.job.timeline import course_of
from asynccommit.errors import NotFoundError, PreconditionError, RejectedError
from asynccommit.formats.course import COURSE, encode_course
from asynccommit.formats.statistics import Statistics
from asynccommit.formats.success import (
    MAX_FILENAMES,
    MAX_SUCCESS_BYTES,
    SuccessData,
    decode_success,
)
from asynccommit.redact import redact
from asynccommit.results import JobReport
from asynccommit.stores.base import Kind, Store
from asynccommit.stores.policies.stats import Count

COMMIT = "asynccommit.commit"


EPOCH = "asynccommit.epoch"


TASKS = "asynccommit.tasks"


JOB_KEY = "asynccommit.job.key"


EARLIER = "asynccommit.job.keys.earlier"
"""Names in the diagnostics of ``_SUCCESS`` and reports: commit, owner, tasks and job keys."""


MARKER_BUCKETS = 120
"""Points in time of the requests in a marker, which stays small; a report has more."""


MAX_KEYS = 100
"""Maximum number of keys of earlier jobs in a marker."""


def summarise(
    run: CommitContext,
    stage: str,
    filenames: Sequence[str] = (),
    error: BaseException | None = None,
    extra: Mapping[str, str] | None = None,
    buckets: int = MARKER_BUCKETS,
    report: JobReport | None = None,
) -> SuccessData:
    """Return the marker or report of this job as things stand.

    Prose is redacted: a stack trace has the errors of libraries in it, which may have the URLs of
    requests. Values for programs, such as the job key, are kept unchanged.

    Args:
        run: the commit or abort under way.
        stage: the stage that ends, or failed.
        filenames: decoded paths of committed files.
        error: why the job failed; ``None`` for success.
        extra: further diagnostics.
        buckets: number of points in time of the requests to keep.
        report: what the job has done, once that is known.
    """
    diagnostics = {"principal": run.host.user, "stage": stage, **run.promise.notes, **(extra or {})}
    if error is not None:
        diagnostics["exception"] = redact(f"{type(error).__name__}: {error}")
        diagnostics["stacktrace"] = redact("".join(traceback.format_exception(error)))
    if run.identity.commit_id:
        diagnostics |= {
            COMMIT: run.identity.commit_id,
            EPOCH: str(run.identity.epoch),
            TASKS: run.identity.manifests,
        }
    if run.options.job_key is not None:
        diagnostics[JOB_KEY] = run.options.job_key
    diagnostics[COURSE] = encode_course(course_of(run, report), buckets)
    if run.warnings:
        diagnostics["warnings"] = redact("\n".join(run.warnings))
    diagnostics = {name: _escaped(text) for name, text in diagnostics.items()}
    return SuccessData(
        timestamp_ms=int(run.host.now() * 1000),
        success=error is None,
        hostname=run.host.name,
        committer=run.committer,
        job_id=run.layout.job_id,
        job_id_source=run.options.job_id_source,
        diagnostics=diagnostics,
        filenames=[run.shown(path) for path in filenames[:MAX_FILENAMES]],
        statistics=snapshot(run),
    )


def _escaped(text: str) -> str:
    """Return ``text`` for JSON, with invalid Unicode escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


_OPERATIONS = {
    "rename": "commit_file_rename",
    "mkdir": "op_mkdirs",
    "list": "op_list_status",
    "head": "op_get_file_status",
    "delete": "op_delete",
    "delete_tree": "op_delete_dir",
    "put": "op_create_file",
}
"""Method of a store -> the name under which Hadoop counts it."""


def snapshot(run: CommitContext) -> Statistics:
    """Return the statistics of stages and requests together."""
    whole = Statistics()
    whole.merge(run.meter.statistics)
    for name, counted in run.environment.counted.items():
        if name in _OPERATIONS and counted.n:
            _add(whole, _OPERATIONS[name], counted)
    traffic = run.environment.traffic()
    if recovered := traffic.recovered.get("rename"):
        whole.count("commit_file_rename_recovered", recovered)
    if waited := traffic.waited.get("rate"):
        whole.duration("store_io_rate_limited", waited, failed=False)
    return whole


def _add(whole: Statistics, name: str, counted: Count) -> None:
    whole.count(name, counted.n)
    whole.count(f"{name}.failures", counted.failures)
    whole.means[f"{name}.mean"] = (counted.n, int(counted.seconds * 1000))
    whole.maximums[f"{name}.max"] = int(counted.longest * 1000)


def keys_of(marker: SuccessData) -> list[str]:
    """Return the job keys of a marker, including earlier jobs'."""
    try:
        earlier = orjson.loads(marker.diagnostics.get(EARLIER, "[]"))
    except orjson.JSONDecodeError:
        earlier = []
    keys = [marker.diagnostics.get(JOB_KEY), *(earlier if isinstance(earlier, list) else [])]
    return [key for key in keys if isinstance(key, str)]


async def read_success(run: CommitContext) -> SuccessData | None:
    """Return the marker; ``None`` if missing or of another committer."""
    layout = run.layout
    data = await marker_bytes(run.store, layout.success)
    return decode_success(data, layout.url(layout.success)) if data else None


async def marker_bytes(store: Store, path: str) -> bytes | None:
    """Return the content of a file that may be a marker of this package.

    ``None`` if it is missing; a directory is no such file, nor one that is longer than any marker.
    """
    try:
        return await store.get(path, MAX_SUCCESS_BYTES)
    except NotFoundError:
        return None
    except (PreconditionError, RejectedError):
        there = await store.head(path)
        if there.kind is Kind.FILE and there.size <= MAX_SUCCESS_BYTES:
            raise
        return None

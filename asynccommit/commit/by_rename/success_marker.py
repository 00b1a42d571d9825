"""The output at the end of a job: ``_SUCCESS``, and the report that failed jobs have too."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence

import orjson

from asynccommit.commit.by_rename.lease import lease_lost, write_held
from asynccommit.commit.by_rename.plan import Plan, aside_path
from asynccommit.commit.context import CommitContext
from asynccommit.commit.durable import make_durable
from asynccommit.errors import ManifestError, NotFoundError
from asynccommit.formats.statistics import Statistics
from asynccommit.formats.success import (
    MAX_FILENAMES,
    MAX_SUCCESS_BYTES,
    SuccessData,
    decode_success,
    encode_success,
)
from asynccommit.redact import redact
from asynccommit.stores.base import Info
from asynccommit.stores.policies.stats import Count

COMMIT = "asynccommit.commit"
EPOCH = "asynccommit.epoch"
TASKS = "asynccommit.tasks"
JOB_KEY = "asynccommit.job.key"
EARLIER = "asynccommit.job.keys.earlier"
"""Names in the diagnostics of ``_SUCCESS`` and reports: which commit, owner, tasks, whose work."""


MAX_KEYS = 100
"""How many keys of earlier jobs a marker remembers."""


def summarise(
    run: CommitContext,
    stage: str,
    filenames: Sequence[str] = (),
    error: BaseException | None = None,
    extra: Mapping[str, str] | None = None,
) -> SuccessData:
    """Return the marker or report of this job as things stand.

    Prose is redacted: a stack trace has the errors of libraries in it, which may have the URLs of
    requests. What programs read, as the job's key, is kept as it is.

    Args:
        run: the commit or abort under way.
        stage: the stage that ends, or failed.
        filenames: decoded paths of committed files.
        error: why the job failed; ``None`` for success.
        extra: further diagnostics.
    """
    diagnostics = {"principal": run.host.user, "stage": stage, **run.diagnostics, **(extra or {})}
    if error is not None:
        diagnostics["exception"] = redact(f"{type(error).__name__}: {error}")
        diagnostics["stacktrace"] = redact("".join(traceback.format_exception(error)))
    if run.commit_id:
        diagnostics |= {COMMIT: run.commit_id, EPOCH: str(run.epoch), TASKS: run.manifests}
    if run.options.job_key is not None:
        diagnostics[JOB_KEY] = run.options.job_key
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
    """Return ``text`` for JSON, with names that are no Unicode shown as escapes."""
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
    whole.merge(run.statistics)
    for name, counted in run.counted.items():
        if name in _OPERATIONS and counted.n:
            _add(whole, _OPERATIONS[name], counted)
    traffic = run.traffic()
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


async def write_success(run: CommitContext, plan: Plan) -> None:
    """Write ``_SUCCESS`` through a temporary name, if it is wanted and not there yet."""
    layout = run.layout
    if not run.options.mark_success:
        return
    with run.timed("job_stage_save_success_marker"):
        run.success = layout.url(layout.success)
        if run.epoch > 1 and await _is_written(run):
            return
        run.check_lease()
        await _keep_keys(run)
        temp = layout.success_temp(run.epoch)
        data = encode_success(summarise(run, "committer_commit_job", plan.sample))
        if run.store.traits.fences:
            await run.store.put(temp, data)
            await make_durable(run, temp)
            await run.store.rename(temp, layout.success, replace=True)
        else:
            await _move_marker(run, await write_held(run, temp, data))
        await make_durable(run, layout.dest.path)


async def _move_marker(run: CommitContext, temp: Info) -> None:
    """Rename the marker, unless another owner has ended the commit and deleted it."""
    try:
        etag = temp.etag if run.store.traits.content_etags else None
        await run.store.rename(temp.path, run.layout.success, replace=True, etag=etag)
    except NotFoundError:
        raise lease_lost(run) from None


def keys_of(marker: SuccessData) -> list[str]:
    """Return the job key of a marker, and those of earlier jobs that it remembers."""
    try:
        earlier = orjson.loads(marker.diagnostics.get(EARLIER, "[]"))
    except orjson.JSONDecodeError:
        earlier = []
    keys = [marker.diagnostics.get(JOB_KEY), *(earlier if isinstance(earlier, list) else [])]
    return [key for key in keys if isinstance(key, str)]


async def _keep_keys(run: CommitContext) -> None:
    """Remember the keys of the marker that this one takes the place of."""
    place = aside_path(run.layout, run.place, run.layout.success)
    try:
        data = await run.store.get(place, MAX_SUCCESS_BYTES)
        keys = keys_of(decode_success(data, place)) if data else []
    except (NotFoundError, ManifestError):
        return
    if keys:
        run.diagnostics[EARLIER] = orjson.dumps(keys[:MAX_KEYS]).decode()


async def _is_written(run: CommitContext) -> bool:
    """Return whether an earlier owner of this commit has written its marker."""
    try:
        marker = await read_success(run)
    except ManifestError:
        return False
    return marker is not None and marker.diagnostics.get(COMMIT) == run.commit_id


async def read_success(run: CommitContext) -> SuccessData | None:
    """Return the marker that is there, ``None`` without one or with another committer's."""
    layout = run.layout
    try:
        data = await run.store.get(layout.success, MAX_SUCCESS_BYTES)
    except NotFoundError:
        return None
    return decode_success(data, layout.url(layout.success)) if data else None

"""Before a job begins: what other jobs left undone, and whether its work is done already."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime

from asynccommit.errors import CommittedError, ManifestError, UnfinishedError
from asynccommit.job import Layout
from asynccommit.options import Mode, OnUnfinished
from asynccommit.results import JobStatus, State
from asynccommit.stages.modes import refuse_mode
from asynccommit.stages.run import Run
from asynccommit.stages.summary import JOB_KEY, read_success
from asynccommit.stages.unfinished import find_others

_NAMED = 5


async def others_to_settle(run: Run) -> list[tuple[Layout, str]]:
    """Return the unfinished commits of other jobs, each with ``resume`` or ``rollback``.

    Raises ``UnfinishedError`` if there are some and the options refuse them.
    """
    found = [status for status, _ in await find_others(run) if status.unfinished]
    if not found:
        return []
    if run.options.on_unfinished is OnUnfinished.REFUSE:
        ids = [status.job_id for status in found]
        raise UnfinishedError(run.layout.job_id, "job_stage_setup", ids, _refusal(run, found))
    return [(Layout(run.layout.dest, s.job_id, s.attempt), _action(run, s)) for s in found]


def _action(run: Run, status: JobStatus) -> str:
    """Return what is to be done about a commit; what is decided is done."""
    decided = status.state in (State.COMMITTED, State.ROLLING_BACK)
    return "resume" if decided else run.options.on_unfinished.value


def _refusal(run: Run, found: Sequence[JobStatus]) -> str:
    dest = run.layout.dest
    lines = [f"{_count(found)} under {dest} cut short, so nothing was written"]
    for status in found[:_NAMED]:
        lines += _remedies(shlex.quote(str(dest)), status)
    if found[_NAMED:]:
        lines.append(f"  and {len(found) - _NAMED} more: asynccommit status {dest}")
    lines.append("  or set asynccommit.on.unfinished to resume or rollback, and run this job again")
    return "\n".join(lines)


def _count(found: Sequence[JobStatus]) -> str:
    return "a commit was" if len(found) == 1 else f"{len(found)} commits were"


def _remedies(dest: str, status: JobStatus) -> list[str]:
    began = datetime.fromtimestamp(status.started_ms / 1000, UTC).isoformat(timespec="seconds")
    what = f"  job {status.job_id} ({status.state}), begun {began} by {status.owner}"
    where = f"{dest} --job-id {shlex.quote(status.job_id)}"
    lines = [what, f"    finish it: asynccommit resume {where}"]
    if status.state not in (State.COMMITTED, State.ROLLING_BACK):
        lines.append(f"    or undo it: asynccommit abort --rollback {where}")
    return lines


async def check_setup(run: Run, mode: Mode, overwrite: Sequence[str]) -> None:
    """Refuse a mode that the destination does not allow, and work that is done.

    Raises ``CommittedError`` if the marker says that work of this key is done, and what
    ``refuse_mode`` raises.
    """
    await refuse_mode(run, mode, overwrite)
    key = run.options.job_key
    if key is None:
        return
    try:
        marker = await read_success(run)
    except ManifestError:
        return
    if marker is not None and marker.success and marker.diagnostics.get(JOB_KEY) == key:
        when = datetime.fromtimestamp(marker.timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
        text = (
            f"what {key!r} stands for was done by job {marker.job_id} at {when}: nothing was "
            "written. Give another asynccommit.job.key to do it again"
        )
        raise CommittedError(run.layout.job_id, "job_stage_setup", (), text)

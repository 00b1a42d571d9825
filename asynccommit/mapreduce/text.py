"""Show staging directories and next steps, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from asynccommit.commit.hints import quoted
from asynccommit.mapreduce.markers import FAIL, STARTED, SUCCESS, Action
from asynccommit.mapreduce.refusals import who
from asynccommit.mapreduce.staging import StagedJob, Staging, StagingState
from asynccommit.redact import redact
from asynccommit.runtime.cells import ROWS, columns, safe
from asynccommit.runtime.terminal import show_seconds

_DOES = {
    Action.RUN: "runs the job",
    Action.REPEAT: f"deletes {STARTED}, runs the job again, and commits it again",
    Action.SUCCEEDED: "runs nothing, and reports SUCCEEDED",
    Action.FAILED: "runs nothing, and reports FAILED",
    Action.ERROR: "runs nothing, and reports ERROR",
}


def staging_json(found: Staging, now: float) -> dict[str, Any]:
    """Return the jobs as plain JSON values.

    ``now`` is seconds since the epoch.
    """
    return {
        "place": str(found.place),
        "jobs": [_job_json(job, now) for job in found.jobs],
        "warnings": [redact(warning) for warning in found.warnings],
    }


def staging_text(found: Staging, now: float) -> RenderableType:
    """Return the jobs as tables; ``now`` is seconds since the epoch."""
    head = Text.assemble(("staging ", "bold"), safe(found.place))
    if not found.jobs:
        return Group(head, Text("  no job"))
    parts: list[RenderableType] = [head, Padding(_overview(found, now), (0, 0, 0, 2))]
    for job in found.jobs[:ROWS]:
        parts += _details(job)
    return Group(*parts)


def would_do(job: StagedJob) -> str:
    """Describe what the next attempt of Hadoop's application master will do."""
    effects = [_DOES[action] for action in job.would]
    if len(effects) < 2:
        return effects[0] if effects else "unknown"
    return f"{effects[0]} if its commit may be repeated; otherwise {effects[1]}"


class Step(NamedTuple):
    """A hint or action for the user, with the command for it, if there is one."""

    says: str
    command: str = ""


def next_steps(job: StagedJob) -> list[Step]:
    """Return the possible next steps for a job."""
    return [*(Step(says) for says in _known(job)), *_to_do(job)]


def _known(job: StagedJob) -> Iterator[str]:
    owner = who(job.standing.start)
    if job.state is StagingState.RUNNING:
        yield "no commit has begun"
        if job.conf.committer == "FileOutputCommitter v2":
            yield "its tasks publish as they commit: part of the output may be visible"
    elif job.state is StagingState.COMMITTING:
        yield f"{owner} is committing it: leave it alone"
    elif job.state is StagingState.EXPIRED:
        again = job.standing.start is not None and job.standing.start.repeatable
        yield f"{owner} has sent no heartbeat for longer than its lease"
        yield f"a later attempt of ours {'takes it over' if again else 'does not commit it again'}"
    elif job.state is StagingState.OPEN:
        yield "its commit has begun, and no end marker was written"
        yield f"a _SUCCESS in its output that is younger than {STARTED} means that it was done"
    elif job.state is StagingState.COMMITTED:
        yield "it is committed: its output is complete"
    elif job.state is StagingState.FAILED:
        error = job.standing.fail.error if job.standing.fail is not None else ""
        yield f"its commit failed: {error or 'Hadoop gives no reason'}"
    elif job.state is StagingState.STRAY:
        ends = " and ".join(name for name, there in _markers(job) if there)
        yield f"{ends} without {STARTED} has no meaning now, but will once its commit has begun"
        yield "check its owner, and delete it"


def _to_do(job: StagedJob) -> Iterator[Step]:
    output = redact(job.conf.output)
    if output and job.state in (StagingState.OPEN, StagingState.EXPIRED, StagingState.FAILED):
        verb = "hdfs dfs -ls -R" if _is_hadoops(output) else "asynccommit status"
        says = "part of its output may be published: check it before the job is run again"
        yield Step(says, f"{verb} {quoted(output)}")
    application = _application(job)
    if application and job.state is not StagingState.COMMITTING:
        says = "if it is no longer running, delete its staging directory"
        yield Step(says, f"yarn application -status {application}")


def _is_hadoops(output: str) -> bool:
    """Return whether only Hadoop's own tools can access this place."""
    scheme, colon, _ = output.partition("://")
    return not colon or scheme in ("hdfs", "viewfs", "webhdfs", "swebhdfs", "o3fs", "ofs")


def _application(job: StagedJob) -> str:
    _, cluster, number = job.job_id.split("_")
    return f"application_{cluster}_{number}" if cluster.isdigit() else ""


def _markers(job: StagedJob) -> list[tuple[str, bool]]:
    there = job.standing.markers
    return [(STARTED, there.started), (SUCCESS, there.success), (FAIL, there.fail)]


def _overview(found: Staging, now: float) -> Table:
    table = columns("job", "user", "state", "changed", "attempts", "committer", "markers")
    for job in found.jobs:
        age = f"{show_seconds(max(0.0, now - job.modified))} ago" if job.modified else ""
        names = [name.removeprefix("COMMIT_") for name, there in _markers(job) if there]
        row = (job.job_id, job.user, str(job.state), age, str(job.attempts or ""))
        cells = (*row, job.conf.committer, " ".join(names))
        table.add_row(*(safe(cell) for cell in cells))
    return table


def _details(job: StagedJob) -> Iterator[RenderableType]:
    yield Text()
    name = f" {job.conf.name}" if job.conf.name else ""
    yield Padding(safe(f"job {job.job_id}{name}", "bold"), (0, 0, 0, 2))
    facts = [("output", redact(job.conf.output)), ("next", would_do(job))]
    facts += [("problem", problem) for problem in job.problems]
    for key, value in facts:
        if value:
            yield _line(f"{key:<8}{value}", "red" if key == "problem" else "")
    for index, step in enumerate(next_steps(job)):
        yield _line(f"{'' if index else 'do':<8}{step.says}")
        if step.command:
            yield _line(f"{'':<10}{step.command}")


def _line(text: str, style: str = "") -> Text:
    """Return a line that tables do not wrap: it may be a command."""
    line = safe(f"    {text}", style)
    line.no_wrap, line.overflow = True, "ignore"
    return line


def _job_json(job: StagedJob, now: float) -> dict[str, Any]:
    start = job.standing.start
    return {
        "job_id": job.job_id,
        "user": job.user,
        "place": str(job.place),
        "state": str(job.state),
        "markers": [name for name, there in _markers(job) if there],
        "owner": None if start is None else {"epoch": start.epoch, **start.owner.to_json()},
        "silent": max(0.0, now - job.standing.seen) if start is not None else None,
        "attempts": job.attempts,
        "modified": job.modified,
        "name": job.conf.name,
        "output": redact(job.conf.output),
        "committer": job.conf.committer,
        "repeatable": job.conf.repeatable,
        "would": [str(action) for action in job.would],
        "advice": [step._asdict() for step in next_steps(job)],
        "problems": [redact(problem) for problem in job.problems],
    }

"""Format reports as compact tables; names cannot inject markup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from asynccommit.commit.meter import OUTERMOST
from asynccommit.engine.report import BulkReport
from asynccommit.engine.verification import Mismatch, VerifyReport
from asynccommit.inspect.dry_run import PlannedEffect
from asynccommit.inspect.files import Inspection, Rename, UploadCompletion, moment
from asynccommit.inspect.status import JobView, Situation
from asynccommit.progress.stage_names import stage_name
from asynccommit.results import AbortReport, JobReport, JobState, JobStatus
from asynccommit.runtime.cells import ROWS, add_list, columns, copied, facts_table, safe
from asynccommit.runtime.terminal import count_of, plain, show_bytes, show_seconds

_PLANNED = ("destination", "directories made", "replaced")  # facts of a dry run
_WORTH = 0.1  # seconds of waiting that are worth reporting
_WIDE = 110
"""Columns from which the table of jobs has their ages and owners."""
_COLOURS = {
    JobState.RUNNING: "green",
    JobState.COMMITTING: "green",
    JobState.UNKNOWN: "yellow",
    JobState.ROLLING_BACK: "yellow",
    JobState.DEAD: "red",
    JobState.STOPPED: "red",
    JobState.EXPIRED: "red",
}


def job_report(report: JobReport) -> RenderableType:
    """Return the report of a commit or resume, or of its dry run."""
    head = job_headline(report)
    if report.already_committed:
        return safe(head)
    if report.rolled_back:
        return safe(head, "bold")
    return Group(safe(head, "bold"), Padding(_job_facts(report), (0, 0, 0, 2)))


def job_headline(report: JobReport) -> str:
    """Return the first line of the report of a commit."""
    if report.already_committed:
        return f"job {report.job_id} was committed before: nothing was done"
    if report.rolled_back:
        head = f"job {report.job_id} was being rolled back; the rollback is finished"
        return head + _not_as_before(report.not_restored)
    verb = "would commit" if report.dry_run else "committed"
    head = (
        f"job {report.job_id} {verb} {count_of(report.files, 'file')}, "
        f"{show_bytes(report.bytes)}, of {count_of(len(report.tasks), 'task')}"
    )
    if report.resumed:
        head += ", resumed,"
    if not report.dry_run:
        head += f" in {show_seconds(report.seconds)}"
        if report.seconds > 0 and report.files and not report.resumed:
            head += f" ({report.files / report.seconds:,.0f} files/s)"
    return head


def _job_facts(report: JobReport) -> Table:
    facts = job_facts(report)
    if not report.dry_run:
        return facts_table(facts)
    table = facts_table({name: fact for name, fact in facts.items() if name in _PLANNED})
    if report.replacing:
        add_list(table, "would be replaced", report.replacing, report.replaced)
        table.add_row("files replaced", f"{report.replaced_files:,}")
    add_list(table, "files", report.filenames, report.files)
    return table


def job_facts(report: JobReport) -> dict[str, str]:
    """Return the facts of a commit by their names, without those that are nothing."""
    facts = {
        "destination": report.dest,
        "directories made": f"{report.directories:,}" if report.directories else "",
        "replaced": f"{report.replaced:,}" if report.replaced else "",
        "stages": stage_times(report.stages),
        "requests": request_trouble(report),
        "workers": "; ".join(_work(name, work) for name, work in report.workers.items()),
        "marker": report.success,
        "report": report.report,
    }
    return {name: fact for name, fact in facts.items() if fact}


def _work(name: str, work: Mapping[str, float]) -> str:
    """Return what a process did for the commit."""
    done = f"{name} {work['files']:,.0f} files in {show_seconds(work['seconds'])}"
    return done + (f", {work['refused']:,.0f} requests refused" if work["refused"] else "")


def request_trouble(report: JobReport) -> str:
    """Return the errors, retries and waits of a store's requests."""
    parts = [f"{count_of(sum(report.recovered.values()), 'lost response')} settled"] * bool(
        report.recovered
    )
    if report.refused:
        parts.append(f"{report.refused:,} rejected by the rate limit")
    if sum(report.waited.values()) >= _WORTH:
        reasons = ", ".join(f"{why} {show_seconds(took)}" for why, took in report.waited.items())
        parts.append(f"total wait: {reasons}")
    return "; ".join(parts)


def stage_times(stages: Mapping[str, float]) -> str:
    """Return the time that a commit spent in each stage."""
    inner = [(name, took) for name, took in stages.items() if name != OUTERMOST]
    return ", ".join(f"{stage_name(name)} {show_seconds(took)}" for name, took in inner)


def check_list(checks: Mapping[str, bool]) -> RenderableType:
    """Return the checks, one per line, and whether each passed."""
    return Group(
        *(
            Text(f"{'yes' if held else 'NO '}  {what}", "green" if held else "bold red")
            for what, held in checks.items()
        )
    )


def abort_report(report: AbortReport) -> RenderableType:
    """Return the report of an abort or rollback."""
    what = report.kept or report.outcome
    if report.rolled_back:
        what = f"rolled back: {count_of(report.files, 'file')} undone"
        if report.restored:
            what += f", {report.restored:,} restored"
        what += _not_as_before(report.not_restored)
    if report.uploads:
        what += f", {count_of(report.uploads, 'upload')} aborted"
    return safe(f"job {report.job_id}: {what}", "bold")


def _not_as_before(left: Sequence[str]) -> str:
    return f"; {count_of(len(left), 'place')} NOT as before" if left else ""


def what_would_go(going: PlannedEffect, name: str) -> RenderableType:
    """Return what a verb would do to the job with this name, in a dry run."""
    return Group(would_do(going, name), Text("nothing was changed"))


def would_do(going: PlannedEffect, name: str) -> RenderableType:
    """Return what a verb would do to the job with this name."""
    status = None if going.view is None else going.view.status
    state = "" if status is None else f" ({status.state})"
    why = "" if status is None or not status.why else f": {status.why}"
    parts: list[RenderableType] = [safe(f"job {name}{state}{why}", "bold")]
    parts.append(safe(f"  {'would be refused' if going.refused else 'effect'}: {going.does}"))
    for place in going.places[:ROWS]:
        counted = f"{count_of(place.files, 'file')}, {show_bytes(place.bytes)}"
        parts.append(copied(f"{counted:<20}  {place.path}", 2))
    if len(going.places) > ROWS:
        parts.append(Text(f"  and {len(going.places) - ROWS} more"))
    return Group(*parts)


def as_rich(result: JobReport | JobStatus | AbortReport) -> RenderableType:
    """Return a result with its warnings, for ``print`` of rich."""
    if isinstance(result, JobReport):
        return Group(job_report(result), *_warnings(result.warnings))
    if isinstance(result, AbortReport):
        return Group(abort_report(result), *_warnings(result.warnings))
    return Group(*_status(result))


def _warnings(texts: Sequence[str]) -> list[Text]:
    return [safe(f"warning: {text}", "yellow") for text in texts]


def _status(status: JobStatus) -> Iterator[RenderableType]:
    yield safe(f"job {status.job_id}: {status.state}", "bold")
    facts = {"done": _done(status), "owner": status.owner, "reason": status.why}
    facts["belongs to"] = status.belongs_to
    table = facts_table({name: text for name, text in facts.items() if text})
    yield Padding(table, (0, 0, 0, 2))
    if status.error:
        yield Padding(safe(status.error, "red"), (0, 0, 0, 2))


def situation(found: Situation) -> RenderableType:
    """Return the jobs under a destination and what can be done about each."""
    parts: list[RenderableType] = [Text.assemble(("destination ", "bold"), safe(found.dest))]
    if found.last is not None:
        by = f" by job {found.last.job_id}" if found.last.job_id else ""
        parts.append(copied(f"last success {moment(found.last.at_ms)}{by}", 2))
    parts.append(_Jobs(found.jobs) if found.jobs else Text("  no job"))
    for name in found.classic:
        text = f"found job {name} of FileOutputCommitter: commit it with --committer file_v1"
        parts.append(Padding(safe(text), (0, 0, 0, 2)))
    if found.rubbish:
        text = f"{count_of(len(found.rubbish), 'directory', 'directories')} of jobs that ended"
        parts.append(Padding(safe(f"{text}; to delete them:"), (1, 0, 0, 2)))
        commands = list(dict.fromkeys(found.rubbish.values()))[:ROWS]
        parts += [copied(command, 4) for command in commands]
    return Group(*parts)


@dataclass(frozen=True, slots=True)
class _Jobs:
    """The table of jobs, and what can be done about each.

    On a narrow terminal age and owner of each job are below the table, so that ids are not folded.
    """

    jobs: Sequence[JobView]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.max_width >= _WIDE
        yield Padding(_overview(self.jobs, wide=wide), (0, 0, 0, 2))
        for job in self.jobs[:ROWS]:
            yield from _next_steps(job, wide=wide)


def _overview(jobs: Sequence[JobView], *, wide: bool) -> Table:
    table = columns()
    several = any(job.committer != "manifest" for job in jobs)
    for name in (
        "job",
        *["committer"] * several,
        "state",
        *["age"] * wide,
        "done",
        *["owner", "last heartbeat"] * wide,
    ):
        table.add_column(name, overflow="fold", no_wrap=name == "job" and not wide)
    for job in jobs:
        status = job.status
        named = [safe(job.name), *[safe(job.committer)] * several]
        if status is None:
            table.add_row(*named, "unknown")
            continue
        row = (_age(job),) * wide + (_done(status),) + (status.owner, _heartbeat(job)) * wide
        state = safe(status.state, _COLOURS.get(status.state, ""))
        table.add_row(*named, state, *(safe(cell) for cell in row))
    return table


def _done(status: JobStatus) -> str:
    if not status.epoch:
        return f"{count_of(status.tasks, 'task')} committed"
    if status.done is None:
        return count_of(status.files, "file")
    return f"{status.done:,} of {count_of(status.files, 'file')}"


def _age(job: JobView) -> str:
    return "" if job.age is None else show_seconds(job.age)


def _heartbeat(job: JobView) -> str:
    return "" if job.silent is None else f"{show_seconds(job.silent)} ago"


def _next_steps(job: JobView, *, wide: bool) -> Iterator[RenderableType]:
    """Yield why a job stopped and what can be done, each command on one line to copy."""
    yield Text()
    yield Padding(safe(f"job {job.name}", "bold"), (0, 0, 0, 2))
    status = job.status
    if job.age is not None and not wide:
        yield _step("age", _age(job))
    if status is not None and status.owner and not wide:
        seen = f", last heartbeat {_heartbeat(job)}" * (job.silent is not None)
        yield _step("owner", f"{status.owner}{seen}")
    if status is not None and status.why:
        yield _step(status.state, status.why)
    if why := job.problem or (status.error if status is not None else ""):
        yield _step("why", why, "red")
    for name, advice in (("resume", job.resume), ("abort", job.abort)):
        if advice.does:
            yield _step(name, advice.does)
        if advice.command:
            yield copied(advice.command, 12)


def _step(name: str, text: str, style: str = "") -> RenderableType:
    """Return a line whose continuation is indented as its text."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(min_width=7, no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(safe(name, style), safe(text, style))
    return Padding(table, (0, 0, 0, 4))


def inspection(found: Inspection) -> RenderableType:
    """Return the inspection of a path, with the objections to a commit."""
    return Group(*_inspection(found))


def _inspection(found: Inspection) -> Iterator[RenderableType]:
    yield Text.assemble((f"{found.kind} ", "bold"), safe(found.path))
    inner: list[RenderableType] = [facts_table(found.facts)]
    if found.tasks:
        inner.append(_tasks(found.tasks))
    if found.renames:
        inner.append(_files("would be renamed to", found.renames, found))
    if found.uploads:
        inner.append(_files("would be completed", found.uploads, found))
    inner += [safe(f"problem: {problem}", "red") for problem in found.problems[:ROWS]]
    if len(found.problems) > ROWS:
        inner.append(Text(f"and {len(found.problems) - ROWS} more problems", "red"))
    if found.kind == "job" and found.tasks and not found.problems:
        inner.append(Text("ready to commit", "green"))
    yield Padding(Group(*inner), (0, 0, 0, 2))
    for part in found.parts:
        yield Padding(inspection(part), (1, 0, 0, 2))


def _tasks(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = columns("task attempt", numbers=("files", "size"))
    for row in rows[:ROWS]:
        files, size = f"{row['files']:,}", show_bytes(row["bytes"])
        table.add_row(safe(row["task_attempt_id"]), files, size)
    if len(rows) > ROWS:
        table.add_row(f"and {len(rows) - ROWS:,} more", "", "")
    return table


def _files(head: str, files: Sequence[Rename | UploadCompletion], found: Inspection) -> Table:
    table = columns(head, numbers=("size",))
    shown = files[:ROWS]
    for file in shown:
        table.add_row(safe(file.dest), show_bytes(file.size))
    more = int(found.facts.get("files", len(shown))) - len(shown)
    if more > 0:
        table.add_row(f"and {more:,} more", "")
    return table


_SHOWN = 20
_VERBS = {
    "rename_files": ("moved", "would move"),
    "move_tree": ("moved", "would move"),
    "delete_files": ("deleted", "would delete"),
    "delete_tree": ("deleted", "would delete"),
    "make_directories": ("made", "would make"),
    "resume": ("moved", "would move"),
    "undo": ("moved back", "would move back"),
}
_GONE = "did not exist"
_SKIPPED = {"resume": "had been moved before", "undo": "had been moved back before"}


def bulk_report(report: BulkReport) -> Text:
    """Return what was done, and the first failures."""
    done, would = _VERBS[report.operation]
    parts = []
    if report.directories:
        whole = count_of(report.directories, "whole directory", "whole directories")
        parts.append(whole)
    if report.done or not report.directories:
        size = f" ({show_bytes(report.bytes)})" if report.bytes else ""
        parts.append(count_of(report.done, "file") + size)
    lines = [f"{would if report.dry_run else done} {' and '.join(parts)}"]
    if report.skipped:
        lines.append(f"{count_of(report.skipped, 'file')} {_SKIPPED.get(report.operation, _GONE)}")
    if report.recovered:
        settled = count_of(sum(report.recovered.values()), "request")
        lines.append(f"{settled} found done although the response was lost")
    took = f"{count_of(report.requests, 'request')} in {show_seconds(report.seconds)}"
    lines.append(took + (f", {report.refused:,} refused for the rate" if report.refused else ""))
    lines += _failures(report)
    return Text("\n").join(Text(plain(line)) for line in lines)


def _failures(report: BulkReport) -> list[str]:
    if not report.failed:
        return []
    would = "would fail" if report.dry_run else "failed"
    shown = [f"  {failure.reason}" for failure in report.failures[:_SHOWN]]
    if report.failed > len(shown):
        shown.append(f"  and {report.failed - len(shown):,} more; --json names a thousand")
    return [f"{count_of(report.failed, 'file')} {would}:", *shown]


def verify_report(report: VerifyReport) -> Text:
    """Return what was compared, and the first differences."""
    took = f"{count_of(report.requests, 'request')} in {show_seconds(report.seconds)}"
    lines = [f"compared {count_of(report.checked, 'file')}, {took}"]
    if report.ok and report.checked:
        lines.append("all are as expected")
    else:
        lines.append(f"{report.missing:,} missing, {report.changed:,} changed:")
    lines += [f"  {_difference(it)}" for it in report.mismatches[:_SHOWN]]
    if report.missing + report.changed > _SHOWN:
        rest = report.missing + report.changed - _SHOWN
        lines.append(f"  and {rest:,} more; --json names a thousand")
    return Text("\n").join(Text(plain(line)) for line in lines)


def _difference(it: Mismatch) -> str:
    found = ", ".join(f"{key} {value}" for key, value in it.found.items())
    expected = ", ".join(
        f"{key} {value}" for key, value in it.expected.items() if value is not None
    )
    return f"{it.path}: {found or 'missing'}" + (f", expected {expected}" if expected else "")

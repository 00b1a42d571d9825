"""The page of a job: one HTML file that needs no other and no network.

Whatever comes from a store is escaped, and a policy in the page forbids scripts and requests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

from asynccommit.commit.meter import OUTERMOST
from asynccommit.formats.course import Course
from asynccommit.inspect.html import safe, utc
from asynccommit.inspect.plots import (
    PERCENTILES,
    latency_plot,
    partitions_plot,
    rate_plot,
    stages_plot,
)
from asynccommit.inspect.record_text import percentiles
from asynccommit.inspect.saved import JobRecord, record_of_report
from asynccommit.inspect.status import JobView, Situation
from asynccommit.progress.stage_names import stage_name
from asynccommit.results import JobReport, StageTime, Timeline
from asynccommit.runtime.terminal import count_of, show_bytes, show_short
from asynccommit.version import __version__

_NAMED = 100
_AS_SENT = '<p class="sub">Requests that were refused are among those sent.</p>'


def page_of(report: JobReport) -> str:
    """Return the page of a job that was committed in this process.

    Raises ``UnsupportedError`` without matplotlib.
    """
    return page(record_of_report(report))


def page(record: JobRecord, situation: Situation | None = None) -> str:
    """Return the page of a job.

    Args:
        record: the job.
        situation: what is left to do under its destination.

    Raises ``UnsupportedError`` without matplotlib.
    """
    parts = [_head(record), _tiles(record)]
    if record.error:
        parts.append(_note(record.error))
    if situation is not None:
        parts.append(_left_to_do(situation))
    parts.append(_stages(record))
    if record.course is not None:
        parts += _course(record.course)
    else:
        parts.append(
            _section(
                "course",
                "Requests",
                "<p>The program that committed this job has left no record of its requests.</p>",
            )
        )
    parts += [_warnings(record.warnings), _files(record), _foot(record)]
    return _document(record, "".join(parts))


def save(file: str | os.PathLike[str], text: str) -> None:
    """Write a page to a file; a file that is there is replaced.

    Raises ``OSError``.
    """
    Path(file).write_text(text, "utf-8")


def _document(record: JobRecord, body: str) -> str:
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{safe(record.dest)}: job {safe(record.job_id)}</title>\n"
        f"<style>{_style()}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def _style() -> str:
    return files("asynccommit.inspect").joinpath("page.css").read_text("utf-8")


def _head(record: JobRecord) -> str:
    bad = "" if record.outcome.startswith("committed") else " bad"
    parts = [f"job {record.job_id}", utc(record.at_ms), record.host and f"on {record.host}"]
    if record.course is not None and record.course.epoch > 1:
        parts.append(f"finished by owner {record.course.epoch} after an interruption")
    line = " · ".join(safe(text) for text in parts if text)
    return (
        f'<h1>{safe(record.dest)} <span class="outcome{bad}" id="outcome">'
        f'{safe(record.outcome)}</span></h1>\n<div class="sub">{line}</div>\n'
    )


def _tiles(record: JobRecord) -> str:
    course = record.course
    seconds = record.stages.get(OUTERMOST, 0.0)
    tiles: dict[str, str] = {}
    if course is not None:
        seconds = max(course.seconds, seconds)
        tiles = {"files": f"{course.files:,}", "size": show_bytes(course.bytes)}
        tiles |= {"tasks": f"{course.tasks:,}"} if course.tasks else {}
        if course.timeline.directories:
            tiles["directories"] = f"{course.timeline.directories:,}"
    if seconds:
        tiles["job commit"] = show_short(seconds)
    if course is not None:
        if seconds and course.files:
            tiles["files a second"] = f"{course.files / seconds:,.0f}"
        tiles["requests"] = f"{course.sent:,}"
        tiles |= {"replaced": f"{course.replaced:,}"} if course.replaced else {}
    inner = "".join(
        f'<div class="tile"><b>{safe(value)}</b>{safe(name)}</div>' for name, value in tiles.items()
    )
    return f'<div class="tiles" id="tiles">{inner}</div>\n'


def _left_to_do(situation: Situation) -> str:
    if not situation.jobs and not situation.rubbish:
        return _section(
            "left", "Left to do", "<p>Nothing: no other job is at this destination.</p>"
        )
    jobs = "".join(_job(job) for job in situation.jobs)
    rubbish = "".join(
        f'<div class="job">half-deleted directory {safe(path)}<pre>{safe(command)}</pre></div>'
        for path, command in situation.rubbish.items()
    )
    return _section("left", "Left to do", jobs + rubbish)


def _job(job: JobView) -> str:
    status = job.status
    state = job.problem or "unknown" if status is None else str(status.state)
    parts = [f"<b>job {safe(job.name)}</b>: {safe(state)}"]
    if status is not None:
        if status.done is not None:
            parts.append(f"; {status.done:,} of {status.files:,} files are at their destinations")
        if status.why or status.error:
            parts.append(f"<br>{safe(status.error or status.why)}")
    for name, advice in (("Finish it", job.resume), ("Abort it", job.abort)):
        if advice.command:
            parts.append(f"<br>{name}: {safe(advice.does)}<pre>{safe(advice.command)}</pre>")
    return f'<div class="job">{"".join(parts)}</div>'


def _stages(record: JobRecord) -> str:
    timeline = record.course.timeline if record.course else Timeline(0)
    rows: list[tuple[str, ...]]
    stages = [one for one in timeline.stages if one.name != OUTERMOST]
    if stages:
        rows = [
            (stage_name(one.name), show_short(one.begin), show_short(one.seconds)) for one in stages
        ]
        table = _folded("as a table", _table(("stage", "begin", "duration"), rows))
        return _section("stages", "Stages", stages_plot(_longest(stages)) + table)
    rows = [
        (stage_name(name), show_short(took))
        for name, took in record.stages.items()
        if name != OUTERMOST
    ]
    inner = _table(("stage", "duration"), rows) if rows else "<p>None was recorded.</p>"
    return _section("stages", "Stages", inner)


def _longest(stages: Sequence[StageTime]) -> list[StageTime]:
    """Return the longest stages, in their order."""
    longest = sorted(stages, key=lambda stage: -stage.seconds)[:20]
    return [stage for stage in stages if stage in longest]


def _course(course: Course) -> Iterator[str]:
    timeline = course.timeline
    if any(timeline.sent):
        yield _section("rate", "Requests over time", rate_plot(timeline) + _AS_SENT)
    if found := percentiles(timeline.latency, (*PERCENTILES, 100)):
        counts = {method: sum(n for _, n in timeline.latency[method]) for method in found}
        rows = [
            (method, f"{counts[method]:,}", *(show_short(value) for value in values))
            for method, values in found.items()
        ]
        names = ("request", "number", *(f"p{percent}" for percent in PERCENTILES), "slowest")
        table = _folded("as a table", _table(names, rows))
        note = '<p class="sub">Each attempt by itself; a value is at most a quarter too high.</p>'
        yield _section("latency", "Latency", latency_plot(found) + table + note)
    yield _section("throttling", "Throttling and lost responses", _trouble(course))
    if timeline.partitions:
        rows = [
            (one.path or "all others", f"{one.files:,}", show_bytes(one.bytes))
            for one in timeline.partitions
        ]
        table = _folded(
            "as a table", _table(("directory", "files", "size"), rows), is_open=len(rows) == 1
        )
        yield _section(
            "partitions", "Directories by size", partitions_plot(timeline.partitions) + table
        )


def _trouble(course: Course) -> str:
    rows = [("requests refused by the store for their rate", f"{course.refused:,}")]
    rows += [
        (f"waited: {reason}, added up over requests", show_short(seconds))
        for reason, seconds in course.waited.items()
        if seconds >= 0.001
    ]
    rows += [
        (f"lost responses to {method}, settled by asking the store", f"{count:,}")
        for method, count in course.recovered.items()
    ]
    if not course.recovered:
        rows.append(("lost responses that were settled", "0"))
    if course.epoch > 1:
        rows.append(("owners of the commit, one after the other", f"{course.epoch}"))
    return _table(("what", "how much"), rows)


def _warnings(warnings: Sequence[str]) -> str:
    if not warnings:
        return ""
    return _section("warnings", "Warnings", "".join(_note(text) for text in warnings[:_NAMED]))


def _files(record: JobRecord) -> str:
    if not record.filenames:
        return ""
    shown = record.filenames[:_NAMED]
    whole = record.course.files if record.course else len(record.filenames)
    items = "".join(f"<li>{safe(name)}</li>" for name in shown)
    if whole > len(shown):
        items += f"<li>and {whole - len(shown):,} more</li>"
    listed = _folded(count_of(whole, "file"), f"<ul>{items}</ul>")
    return _section("files", "Files", listed)


def _foot(record: JobRecord) -> str:
    source = f"read from {record.source}" if record.source else "report of the committing process"
    return f'<p class="sub">asynccommit {safe(__version__)}, {safe(source)}</p>\n'


def _section(name: str, title: str, inner: str) -> str:
    return f'<section id="{name}"><h2>{safe(title)}</h2>\n{inner}</section>\n'


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{safe(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{safe(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>\n"


def _folded(title: str, inner: str, *, is_open: bool = False) -> str:
    return f"<details{' open' * is_open}><summary>{safe(title)}</summary>{inner}</details>\n"


def _note(text: str) -> str:
    return f'<div class="note">{safe(text)}</div>\n'

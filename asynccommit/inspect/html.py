"""Format reports as HTML for notebooks; names cannot inject markup.

The styles are in the elements and take the colours of the page, so a report is readable in light
and in dark notebooks, and is one fragment that can be pasted into any page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from asynccommit.commit.meter import OUTERMOST
from asynccommit.inspect.text import job_facts, job_headline
from asynccommit.progress.stage_names import stage_name
from asynccommit.results import AbortReport, JobReport, JobStatus
from asynccommit.runtime.terminal import count_of, plain, show_bytes, show_seconds

_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
_OTHER = "#bbbbbb"
_SMALL = 0.01
"""Share of the time below which a stage has no segment of its own."""

_CHIP = "display:inline-block;width:.7em;height:.7em;margin:0 .3em 0 .8em"
_NAMED = 100


def job_report(report: JobReport) -> str:
    """Return the report of a commit: head, stage bar, counts, warnings, names."""
    facts = job_facts(report)
    facts.pop("stages", None)  # the bar shows them
    if report.replaced_files:
        facts["files replaced"] = f"{report.replaced_files:,}"
    return _block(
        _head(job_headline(report)),
        _stage_bar(report.stages, report.seconds),
        _facts(facts),
        _warnings(report.warnings),
        _folded("file", report.filenames, report.files),
        _folded(
            "path not restored", report.not_restored, len(report.not_restored), "paths not restored"
        ),
    )


def job_status(status: JobStatus) -> str:
    """Return the status of a job: state, bar of its files, and owner."""
    facts: dict[str, object] = {"tasks committed": f"{status.tasks:,}"}
    if status.epoch:
        facts["files"] = f"{count_of(status.files, 'file')}, {show_bytes(status.bytes)}"
    if status.key is not None:
        facts["key"] = status.key
    facts |= {
        name: text
        for name, text in (
            ("commit began", utc(status.started_ms)),
            ("owner", status.owner),
            ("last heartbeat", utc(status.seen_ms)),
            ("reason", status.why),
            ("belongs to", status.belongs_to),
        )
        if text
    }
    attempt = f", attempt {status.attempt}" if status.attempt else ""
    return _block(
        _head(f"job {status.job_id}{attempt}: {status.state}"),
        _done_bar(status.done, status.files),
        _facts(facts),
        _warnings([status.error] if status.error else []),
    )


def abort_report(report: AbortReport) -> str:
    """Return the report of an abort or a rollback."""
    what = f"{count_of(report.files, 'file')} undone" if report.rolled_back else report.outcome
    facts: dict[str, object] = {
        name: f"{number:,}"
        for name, number in (("restored", report.restored), ("uploads aborted", report.uploads))
        if number
    }
    if report.report:
        facts["report"] = report.report
    return _block(
        _head(f"job {report.job_id}: {'rolled back, ' * report.rolled_back}{what}"),
        _facts(facts),
        _warnings([*([report.kept] if report.kept else []), *report.warnings]),
        _folded(
            "path not restored", report.not_restored, len(report.not_restored), "paths not restored"
        ),
    )


def _block(*parts: str) -> str:
    style = "font-family:system-ui,sans-serif;font-size:13px;line-height:1.5;max-width:60em"
    return f'<div class="asynccommit" style="{style}">{"".join(parts)}</div>'


def safe(text: object) -> str:
    """Return foreign text without markup or control characters."""
    return escape(plain(str(text)))


def _head(text: str) -> str:
    return f'<div style="font-weight:600">{safe(text)}</div>'


def _stage_bar(stages: Mapping[str, float], seconds: float) -> str:
    """Return one segment for each stage, as wide as its share of the time."""
    whole = max(seconds, sum(took for name, took in stages.items() if name != OUTERMOST))
    if whole <= 0:
        return ""
    shown = [
        (stage_name(name), took)
        for name, took in stages.items()
        if name != OUTERMOST and took >= _SMALL * whole
    ]
    coloured = [
        (name, took, _COLOURS[index % len(_COLOURS)]) for index, (name, took) in enumerate(shown)
    ]
    rest = whole - sum(took for _, took in shown)
    if rest >= _SMALL * whole:
        coloured.append(("other", rest, _OTHER))
    label = ", ".join(f"{name} {show_seconds(took)}" for name, took, _ in coloured)
    return _bar([(took / whole, colour) for _, took, colour in coloured], label) + (
        f'<div style="opacity:.8;margin-left:-.8em">{"".join(_legend(coloured))}</div>'
    )


def _legend(stages: Sequence[tuple[str, float, str]]) -> Iterator[str]:
    for name, took, colour in stages:
        chip = f'<span style="{_CHIP};background:{colour}"></span>'
        text = f"{safe(name)} {show_seconds(took)}"
        yield f'<span style="white-space:nowrap">{chip}{text}</span> '


def _done_bar(done: int | None, files: int) -> str:
    if done is None or not files:
        return ""
    label = f"{done:,} of {count_of(files, 'file')} at their destinations"
    bar = _bar([(min(1.0, done / files), _COLOURS[0])], label)
    return f'{bar}<div style="opacity:.8">{label}</div>'


def _bar(segments: Sequence[tuple[float, str]], text: str) -> str:
    style = "display:flex;height:.8em;margin:.4em 0;background:rgba(128,128,128,.2)"
    inner = "".join(
        f'<div style="width:{100 * share:.2f}%;background:{colour}"></div>'
        for share, colour in segments
    )
    label = safe(text)
    return f'<div role="img" aria-label="{label}" title="{label}" style="{style}">{inner}</div>'


def _facts(facts: Mapping[str, object]) -> str:
    if not facts:
        return ""
    cell = "text-align:left;vertical-align:top;padding:0 1em 0 0;background:none;border:none"
    rows = "".join(
        f'<tr style="background:none"><th style="{cell};font-weight:400;opacity:.7">{safe(name)}'
        f'</th><td style="{cell};overflow-wrap:anywhere">{safe(value)}</td></tr>'
        for name, value in facts.items()
    )
    style = "border-collapse:collapse;margin:.3em 0;font-size:inherit"
    return f'<table style="{style}"><tbody>{rows}</tbody></table>'


def _warnings(texts: Sequence[str]) -> str:
    style = "border-left:3px solid #cc3311;padding-left:.6em;margin:.3em 0;overflow-wrap:anywhere"
    return "".join(f'<div style="{style}">{safe(text)}</div>' for text in texts)


def _folded(noun: str, names: Sequence[str], count: int, plural: str = "") -> str:
    """Return a list that is closed at first, with at most a hundred names."""
    if not names:
        return ""
    items = "".join(f"<li>{safe(name)}</li>" for name in names[:_NAMED])
    more = count - len(names[:_NAMED])
    if more > 0:
        items += f"<li>and {more:,} more</li>"
    style = "margin:.2em 0;padding-left:1.5em;overflow-wrap:anywhere"
    summary = f'<summary style="cursor:pointer">{safe(count_of(count, noun, plural))}</summary>'
    return f'<details>{summary}<ul style="{style}">{items}</ul></details>'


def utc(milliseconds: int) -> str:
    """Return a time since the epoch as people read it; 0 is unknown and empty."""
    if not milliseconds:
        return ""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


_VIEWS: Mapping[type, Any] = {
    JobReport: job_report,
    JobStatus: job_status,
    AbortReport: abort_report,
}


def as_html(result: JobReport | JobStatus | AbortReport) -> str:
    """Return a result as an HTML fragment."""
    text: str = _VIEWS[type(result)](result)
    return text

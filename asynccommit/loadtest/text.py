"""The result of a load test as text."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from asynccommit.inspect.cells import safe
from asynccommit.inspect.terminal import count_of, show_seconds
from asynccommit.inspect.text import facts_table
from asynccommit.loadtest.report import LoadReport, RateFound

_STOPPED = {
    "max_requests": "ended early by --max-requests: steps are missing or cut short; with fewer "
    "--files all of them fit",
    "max_seconds": "ended early by --max-seconds: steps are missing or cut short; give more time",
}


def load_report(report: LoadReport) -> RenderableType:
    """Return the report as text."""
    head = (
        f"{report.store}: {count_of(report.requests, 'request')} in "
        f"{show_seconds(report.seconds)}, {report.refused:,} refused for the rate"
    )
    parts: list[RenderableType] = [safe(head, "bold")]
    if report.stopped:
        parts.append(Text(_STOPPED[report.stopped], "yellow"))
    elif report.files < report.planned:
        parts.append(safe(_fewer(report)))
    inner = Group(_facts(report), Text(), _steps(report), Text(), _methods(report))
    return Group(*parts, Padding(inner, (0, 0, 0, 2)))


def _fewer(report: LoadReport) -> str:
    made = f"{report.files:,} of {count_of(report.planned, 'file')}"
    return f"measured with {made}: writing more would have left no time for the other steps"


def _facts(report: LoadReport) -> Table:
    table = facts_table({"directory": report.url, "in flight": f"{report.in_flight:,}"})
    for kind, found in report.rates.items():
        table.add_row(kind, safe(_rate(found)))
    if report.forecast is not None:
        table.add_row("forecast", safe(_forecast(report)))
    for directory in report.removed:
        table.add_row("removed", safe(f"{directory}, of a run that had died"))
    for directory, why in report.kept.items():
        table.add_row("kept", safe(f"{directory}: {why}"))
    if report.left:
        table.add_row("left", safe(f"its own directory: {report.left}", "red"))
    return table


def _rate(found: RateFound) -> str:
    limit = "the account refused more" if found.limited else "or more: nothing was refused"
    took = show_seconds(found.seconds)
    return f"{found.per_second:,.0f} {found.method}/s during {took}, {limit}"


def _forecast(report: LoadReport) -> str:
    forecast = report.forecast
    assert forecast is not None
    how = {
        "simulated": "simulated with the latency and the rate of writes measured here",
        "scaled": "scaled from the commit measured here",
    }[forecast.how]
    took = show_seconds(forecast.seconds)
    return f"a commit of {count_of(forecast.files, 'file')} takes {took}: {how}"


def _steps(report: LoadReport) -> Table:
    table = _table("step", "time", "files", "requests", "refused")
    for name, took in report.steps.items():
        counts = (took.files, took.requests, took.refused)
        table.add_row(name, show_seconds(took.seconds), *(f"{count:,}" for count in counts))
    return table


def _methods(report: LoadReport) -> Table:
    table = _table("requests", "sent", "p50", "p90", "p99", "longest", "refused")
    for name, times in report.methods.items():
        seconds = (times.p50, times.p90, times.p99, times.longest)
        shown = (show_seconds(one) if times.longest else "" for one in seconds)
        table.add_row(name, f"{times.sent:,}", *shown, f"{times.refused:,}")
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table

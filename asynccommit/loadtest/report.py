"""The result of a load test, and its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from asynccommit.results import Printed
from asynccommit.runtime.cells import columns, facts_table, safe, sheet
from asynccommit.runtime.terminal import count_of, show_seconds


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """The times of the requests of one store method.

    Attributes:
        sent: number of requests that ended.
        refused: number of those that the store refused for their rate.
        failed: number of those that failed otherwise, such as a file that is not there.
        p50: seconds in which half of the others were answered.
        p90: the same for 90 of a hundred.
        p99: the same for 99 of a hundred.
        longest: the longest time in seconds.
    """

    sent: int
    refused: int = 0
    failed: int = 0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    longest: float = 0.0


@dataclass(frozen=True, slots=True)
class StepTimes:
    """One step of a load test.

    Attributes:
        files: number of files that it was about.
        seconds: its duration.
        requests: number of requests sent.
        refused: number of those that the store refused for their rate.
    """

    files: int
    seconds: float
    requests: int
    refused: int


@dataclass(frozen=True, slots=True)
class RateFound:
    """The rate that an account bears for one kind of request.

    Attributes:
        per_second: requests a second that the account accepted in the second half of the time.
        limited: whether the account refused some; if not, it may bear more.
        accepted: number of accepted requests in that half.
        seconds: duration of that half.
        method: the store method that was called.
    """

    per_second: float
    limited: bool
    accepted: int
    seconds: float
    method: str


@dataclass(frozen=True, slots=True)
class MillionForecast:
    """The forecast of a commit of a million files.

    Attributes:
        files: number of files.
        seconds: duration of the commit.
        how: ``simulated`` on the model of the store with the measured latency and rate, or
            ``scaled`` from the measured commit, where there is no model.
    """

    files: int
    seconds: float
    how: str


@dataclass(frozen=True, slots=True)
class LoadReport(Printed):
    """The result of a load test.

    Attributes:
        url: the directory below which it ran.
        store: name of the store.
        files: number of files that the job made.
        planned: number of files that it would have made in more time.
        in_flight: maximum number of requests in flight.
        steps: step -> its figures, in the order of the steps; rates are found in ``press reads``
            and ``press writes``.
        methods: store method -> the times of its requests.
        rates: kind of request (``reads``, ``writes``, ``deletes``) -> the rate found.
        requests: number of requests sent, every attempt and the clean-up counted.
        refused: number of those that the store refused for their rate.
        seconds: duration.
        stopped: the bound that ended the measurements early: ``max_requests`` or ``max_seconds``;
            ``""`` if none did.
        forecast: the forecast; ``None`` without figures for it.
        removed: directories of earlier runs that had died, which were deleted.
        kept: directories of other runs that may be alive, and why.
        left: why the own directory is still there; ``""`` if it is deleted.
    """

    url: str
    store: str
    files: int
    planned: int
    in_flight: int
    steps: Mapping[str, StepTimes] = field(default_factory=dict)
    methods: Mapping[str, RequestTimes] = field(default_factory=dict)
    rates: Mapping[str, RateFound] = field(default_factory=dict)
    requests: int = 0
    refused: int = 0
    seconds: float = 0.0
    stopped: str = ""
    forecast: MillionForecast | None = None
    removed: Sequence[str] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    left: str = ""

    def __rich__(self) -> Any:
        return load_report(self)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


_TIMES = ("sent", "p50", "p90", "p99", "longest", "refused")
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
    notes = []
    if report.stopped:
        notes.append(Text(_STOPPED[report.stopped], "yellow"))
    elif report.files < report.planned:
        notes.append(safe(_fewer(report)))
    return sheet(head, _facts(report), _steps(report), _methods(report), notes=notes)


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
    table = columns("step", numbers=("time", "files", "requests", "refused"), gap=3)
    for name, took in report.steps.items():
        counts = (took.files, took.requests, took.refused)
        table.add_row(name, show_seconds(took.seconds), *(f"{count:,}" for count in counts))
    return table


def _methods(report: LoadReport) -> Table:
    table = columns("requests", numbers=_TIMES, gap=3)
    for name, times in report.methods.items():
        seconds = (times.p50, times.p90, times.p99, times.longest)
        shown = (show_seconds(one) if times.longest else "" for one in seconds)
        table.add_row(name, f"{times.sent:,}", *shown, f"{times.refused:,}")
    return table

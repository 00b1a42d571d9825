"""Format the record of a job for a terminal, with percentiles of its latencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding

from asynccommit.commit.meter import OUTERMOST
from asynccommit.formats.course import Course
from asynccommit.inspect.files import moment
from asynccommit.inspect.saved import JobRecord
from asynccommit.inspect.status import Situation
from asynccommit.inspect.text import situation, stage_times
from asynccommit.runtime.cells import facts_table, safe
from asynccommit.runtime.terminal import count_of, show_bytes, show_seconds, show_short

_SHOWN = 3


def record_text(record: JobRecord, around: Situation) -> RenderableType:
    """Return a job's record, and what is left to do at its destination."""
    head = f"job {record.job_id}: {record.outcome}" if record.job_id else record.outcome
    facts = {"destination": record.dest}
    if record.at_ms:
        facts["ended"] = moment(record.at_ms)
    if record.course is not None:
        facts |= _counts(record.course)
    seconds = record.stages.get(OUTERMOST, 0.0)
    if record.course is not None:
        seconds = max(seconds, record.course.seconds)
    if seconds:
        facts["job commit"] = show_seconds(seconds)
    if record.stages:
        facts["stages"] = stage_times(record.stages)
    if record.error:
        facts["error"] = record.error
    facts |= {f"warning {number}": text for number, text in enumerate(record.warnings, 1)}
    if record.source:
        facts["read from"] = record.source
    table = Padding(facts_table(facts), (0, 0, 0, 2))
    if not around.jobs and not around.rubbish:
        return Group(safe(head, "bold"), table, safe("  nothing is left to do"))
    return Group(safe(head, "bold"), table, safe("left to do", "bold"), situation(around))


def _counts(course: Course) -> dict[str, str]:
    facts = {"files": f"{count_of(course.files, 'file')}, {show_bytes(course.bytes)}"}
    if course.timeline.directories:
        facts["directories"] = f"{course.timeline.directories:,}"
    facts["requests"] = f"{course.sent:,}, {course.refused:,} refused for their rate"
    if course.recovered:
        facts["requests"] += f", {sum(course.recovered.values()):,} lost responses settled"
    slow = percentiles(course.timeline.latency, (50, 99))
    shown = list(slow.items())[:_SHOWN]
    if shown:
        facts["latency"] = ", ".join(
            f"{method} p50 {show_short(low)} p99 {show_short(high)}"
            for method, (low, high) in shown
        )
    return facts


Histogram = Sequence[tuple[float, int]]


def percentile(histogram: Histogram, percent: float) -> float:
    """Return the upper bound that so many percent of the values are below.

    Args:
        histogram: upper bounds, ascending, and the number of values of each.
        percent: from 0 to 100.
    """
    rank = sum(count for _, count in histogram) * percent / 100
    seen = 0
    for bound, count in histogram:
        seen += count
        if seen >= rank:
            return bound
    return 0.0


def percentiles(
    latency: Mapping[str, Histogram], percents: Sequence[float]
) -> dict[str, tuple[float, ...]]:
    """Return the percentiles of each method, the most frequent method first."""
    by_count = sorted(latency.items(), key=lambda item: -_count(item[1]))
    return {
        method: tuple(percentile(histogram, percent) for percent in percents)
        for method, histogram in by_count
        if _count(histogram)
    }


def _count(histogram: Histogram) -> int:
    return sum(count for _, count in histogram)

"""The course of a commit over time, from what was recorded meanwhile."""

from __future__ import annotations

from asynccommit.commit.context import CommitContext
from asynccommit.formats.course import Course
from asynccommit.results import JobReport, Timeline

MAX_PARTITIONS = 100
"""Number of directories that a report names with their files and bytes."""


def begin_timeline(run: CommitContext) -> None:
    """Record the requests of a commit from now on."""
    series = run.environment.traffic().series
    if series is not None:
        series.restart()


def timeline_of(run: CommitContext) -> Timeline:
    """Return the course of a commit until now."""
    began = int((run.host.now() - run.meter.elapsed) * 1000)
    series, sizes = run.environment.traffic().series, run.promise.sizes
    timeline = Timeline(
        began,
        tuple(run.meter.course),
        partitions=() if sizes is None else sizes.largest(run.layout.dest.path, MAX_PARTITIONS),
        directories=0 if sizes is None else sizes.directories,
    )
    if series is None:
        return timeline
    return Timeline(
        timeline.began_ms,
        timeline.stages,
        series.width,
        tuple(series.sent),
        tuple(series.refused),
        tuple(series.limits),
        series.latencies(),
        timeline.partitions,
        timeline.directories,
    )


def course_of(run: CommitContext, report: JobReport | None = None) -> Course:
    """Return the counts of a commit, and its course until now."""
    traffic, sizes = run.environment.traffic(), run.promise.sizes
    counted = run.environment.counted.items()
    return Course(
        str(run.layout.dest),
        timeline_of(run),
        files=sizes.files if sizes else 0,
        bytes=sizes.bytes if sizes else 0,
        tasks=len(report.tasks) if report else 0,
        replaced=report.replaced if report else 0,
        seconds=run.meter.elapsed,
        requests={name: count.n for name, count in counted if count.n},
        sent=sum(traffic.series.sent) if traffic.series else traffic.sent,
        refused=traffic.refused,
        recovered=traffic.recovered,
        waited=traffic.waited,
        epoch=max(run.identity.epoch, 1),
    )

"""Read the report of a job back from the store, or take it from a commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from asynccommit.api import StorageOptions
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.meter import OUTERMOST
from asynccommit.errors import ManifestError, NotFoundError, UrlError
from asynccommit.formats.course import COURSE, Course, decode_course
from asynccommit.formats.success import MAX_SUCCESS_BYTES, SuccessData, decode_success
from asynccommit.inspect.discovery import open_place
from asynccommit.inspect.errors import NothingThereError
from asynccommit.redact import redact
from asynccommit.results import JobReport, Timeline
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Store
from asynccommit.stores.tree import list_all, read_if_there
from asynccommit.stores.urls import Address, parse_url

MAX_SUMMARIES = 1000
"""Number of the newest reports in a report directory that are read."""

_PREFIX = "summary-"
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class JobRecord:
    """All that is known about a job that has ended, for a page.

    Attributes:
        job_id: the job.
        dest: the destination.
        outcome: ``committed``, ``failed``, ``rolled back`` and the like.
        at_ms: when it ended, milliseconds since the epoch; 0 if that is unknown.
        source: where this was read; empty for a report of this process.
        host: the machine of the driver.
        course: counts and the course over time; ``None`` if the writer has left none.
        stages: stage -> seconds, by their Hadoop statistic names.
        error: why the job failed.
        warnings: problems that did not fail the commit.
        filenames: the first files.
    """

    job_id: str
    dest: str
    outcome: str
    at_ms: int = 0
    source: str = ""
    host: str = ""
    course: Course | None = None
    stages: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    warnings: Sequence[str] = ()
    filenames: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        value = asdict(self)
        if self.course is not None:
            timeline = value["course"]["timeline"]
            timeline["stages"] = [stage._asdict() for stage in self.course.timeline.stages]
            timeline["partitions"] = [one._asdict() for one in self.course.timeline.partitions]
        return value


def record_of_report(report: JobReport) -> JobRecord:
    """Return the record of a job that was committed in this process."""
    timeline = report.timeline or Timeline(0)
    course = Course(
        report.dest,
        timeline,
        files=report.files,
        bytes=report.bytes,
        tasks=len(report.tasks),
        replaced=report.replaced,
        seconds=report.seconds,
        requests=report.requests,
        sent=sum(timeline.sent) or sum(report.requests.values()),
        refused=report.refused,
        recovered=report.recovered,
        waited=report.waited,
        epoch=report.epoch,
    )
    return JobRecord(
        report.job_id,
        report.dest,
        _outcome(report),
        timeline.began_ms + int(report.seconds * 1000) if timeline.began_ms else 0,
        host="",
        course=course,
        stages=report.stages,
        warnings=report.warnings,
        filenames=report.filenames,
    )


def _outcome(report: JobReport) -> str:
    if report.dry_run:
        return "not committed: dry run"
    if report.already_committed:
        return "committed before"
    return "rolled back" if report.rolled_back else "committed"


def record_of_success(data: SuccessData, dest: str, source: str) -> JobRecord:
    """Return the record of a job from its ``_SUCCESS`` or its report."""
    course = None
    text = data.diagnostics.get(COURSE)
    if text is not None:
        with suppress(ManifestError):  # the rest of the file can be shown
            course = decode_course(text, source)
    stages = {
        name: mean[1] / 1000
        for name, mean in sorted(_means(data).items())
        if name.startswith("job_stage_") or name == OUTERMOST
    }
    warnings = [line for line in data.diagnostics.get("warnings", "").split("\n") if line]
    return JobRecord(
        data.job_id,
        course.dest if course else dest,
        "committed" if data.success else "failed",
        data.timestamp_ms,
        source,
        data.hostname,
        course,
        stages,
        redact(data.diagnostics.get("exception", "")),
        [redact(warning) for warning in warnings],
        data.filenames,
    )


def _means(data: SuccessData) -> dict[str, tuple[int, int]]:
    """Return the durations of stages: count and total milliseconds."""
    means = data.statistics.means
    return {name.removesuffix(".mean"): mean for name, mean in means.items() if mean[0] > 0}


async def read_record(
    dest: Address,
    storage: StorageOptions = None,
    reports: str | None = None,
    job_id: str | None = None,
) -> JobRecord:
    """Return the record of a job under a destination, by default the last.

    Args:
        dest: the destination.
        storage: options of the store.
        reports: URL of the report directory of the jobs, if they have one.
        job_id: the job; by default the last to which a report or ``_SUCCESS`` belongs.

    Raises:
        NothingThereError: no report is found.
        StoreError: a file cannot be read.
    """
    found = [] if reports is None else await _saved(parse_url(reports), dest, storage, job_id)
    marker = await _marker(dest, storage)
    if marker is not None and job_id in (None, marker.job_id):
        found.append(marker)
    if not found:
        named = f" of job {job_id}" if job_id else ""
        raise NothingThereError(
            f"{dest} has no report{named}: there is no _SUCCESS with details, and no report was "
            "found in a report directory; -o mapreduce.manifest.committer.summary.report.directory="
            "URL names one"
        )
    # A report has more than the marker of the same job.
    return max(found, key=lambda record: (record.at_ms, record is not marker))


async def _marker(dest: Address, storage: StorageOptions) -> JobRecord | None:
    path = Layout(dest, "any").success
    async with open_place(dest, storage) as store:
        data = await read_if_there(store, path, MAX_SUCCESS_BYTES)
    if not data:
        return None
    return record_of_success(decode_success(data, path), str(dest), str(dest.at(path)))


async def _saved(
    place: Address, dest: Address, storage: StorageOptions, job_id: str | None
) -> list[JobRecord]:
    """Return the reports in a report directory that belong to a destination."""
    async with open_place(place, storage) as store:
        try:
            infos = await list_all(store, place.path)
        except NotFoundError as error:
            raise NothingThereError(f"the report directory {place} does not exist") from error
        named = f"{_PREFIX}{job_id or ''}"
        files = [info for info in infos if info.path.rpartition("/")[2].startswith(named)]
        files.sort(key=lambda info: (info.modified, info.path))
        found: list[JobRecord] = []

        async def read(info: Info) -> None:
            record = await _read(store, place, info)
            if record is not None and _is_of(record, dest, job_id):
                found.append(record)

        await for_each(files[-MAX_SUMMARIES:], read, workers=_AT_ONCE)
        return found


async def _read(store: Store, place: Address, info: Info) -> JobRecord | None:
    source = str(place.at(info.path))
    try:
        data = await store.get(info.path, MAX_SUCCESS_BYTES)
        return record_of_success(decode_success(data, source), "", source)
    except (ManifestError, NotFoundError):  # of another program, or deleted meanwhile
        return None


def _is_of(record: JobRecord, dest: Address, job_id: str | None) -> bool:
    if job_id is not None and record.job_id != job_id:
        return False
    if record.course is None:
        return job_id is not None
    with suppress(UrlError):
        there = parse_url(record.course.dest)
        return there.same_store(dest) and there.path == dest.path
    return False

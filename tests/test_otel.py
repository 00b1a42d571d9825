"""Spans and metrics of OpenTelemetry, by its own SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import asynccommit
import asynccommit.otel
from asynccommit import open_job, sync
from asynccommit.results import JobReport
from asynccommit.spark.stream_reports import tell
from asynccommit.testing import AdlsEmulator
from asynccommit.testing.models.fault_profiles import THROTTLED


class Recorded:
    """What the SDK has recorded."""

    def __init__(self) -> None:
        self.spans = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    def named(self, name: str) -> ReadableSpan:
        """Return the only span of this name."""
        (found,) = (span for span in self.spans.get_finished_spans() if span.name == name)
        return found

    def points(self, name: str) -> list[Any]:
        """Return the data points of a metric."""
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    """Instrument this process for a test."""
    recorded = Recorded()
    asynccommit.otel.instrument(tracer_provider=recorded.tracers, meter_provider=recorded.meters)
    yield recorded
    asynccommit.otel.uninstrument()
    recorded.tracers.shutdown()
    recorded.meters.shutdown()


def write(table: Path, files: int = 3) -> None:
    """Commit a job of one task."""
    with sync.open_job(table) as job, job.task(0) as task:
        for number in range(files):
            task.put(f"part-{number}", b"12345")


def test_job_is_a_span_with_its_stages_as_children(recorded: Recorded, tmp_path: Path) -> None:
    """The span of a job has what was committed, and the spans of its stages are its children."""
    write(tmp_path / "table")

    job = recorded.named("asynccommit commit")
    rename = recorded.named("job_stage_rename_files")

    assert job.attributes is not None
    assert job.attributes["asynccommit.files"] == 3
    assert job.attributes["asynccommit.bytes"] == 15
    assert job.attributes["asynccommit.outcome"] == "committed"
    assert job.attributes["asynccommit.store"] == "file"
    assert int(str(job.attributes["asynccommit.requests.sent"])) > 0
    assert rename.parent is not None
    assert rename.parent.span_id == job.context.span_id


def test_span_of_a_blocking_caller_is_the_parent(recorded: Recorded, tmp_path: Path) -> None:
    """A commit that blocking code calls in a span of its own belongs to that span."""
    with trace.get_tracer("test", tracer_provider=recorded.tracers).start_as_current_span("night"):
        write(tmp_path / "table")

    job, night = recorded.named("asynccommit job"), recorded.named("night")
    assert job.parent is not None
    assert job.parent.span_id == night.context.span_id


def test_a_blocking_job_is_one_trace(recorded: Recorded, tmp_path: Path) -> None:
    """Setup, tasks and commit of a job are one trace, whose root is the job."""
    write(tmp_path / "table")

    spans = recorded.spans.get_finished_spans()
    assert [span.name for span in spans if span.parent is None] == ["asynccommit job"]
    assert len({span.context.trace_id for span in spans}) == 1
    assert {"job_stage_setup", "task_stage_commit"} < {span.name for span in spans}


async def test_two_jobs_at_once_are_two_traces(recorded: Recorded, tmp_path: Path) -> None:
    """Each job has a trace of its own, and a span of the program stays where it was."""
    tracer = trace.get_tracer("test", tracer_provider=recorded.tracers)

    async def run(name: str) -> None:
        async with open_job(tmp_path / name) as job, job.task(0) as task:
            with tracer.start_as_current_span("mine"):
                await task.put("part", b"x")

    await asyncio.gather(run("a"), run("b"))

    spans = recorded.spans.get_finished_spans()
    roots = [span.name for span in spans if span.parent is None]
    assert sorted(roots) == ["asynccommit job", "asynccommit job", "mine", "mine"]


def test_failed_job_is_a_span_with_an_error(recorded: Recorded, tmp_path: Path) -> None:
    """A refused commit has status ERROR, and its text but no traceback."""
    with pytest.raises(asynccommit.PreflightError), sync.open_job(tmp_path / "table") as job:
        for number in range(2):
            with job.task(number) as task:
                task.put("part-0", b"twice")

    span = recorded.named("asynccommit commit")
    assert span.status.status_code is trace.StatusCode.ERROR
    assert span.attributes is not None
    assert span.attributes["error.type"] == "PreflightError"
    assert [set(event.attributes or ()) for event in span.events] == [
        {"exception.type", "exception.message"}
    ]


def test_metrics_count_jobs_and_files(recorded: Recorded, tmp_path: Path) -> None:
    """Durations are histograms by outcome; files and bytes are counters; nothing stays active."""
    write(tmp_path / "table")
    write(tmp_path / "other", files=2)

    (jobs,) = recorded.points("asynccommit.job.duration")
    assert jobs.count == 2
    assert jobs.attributes["asynccommit.outcome"] == "committed"
    assert [point.value for point in recorded.points("asynccommit.files")] == [5]
    assert [point.value for point in recorded.points("asynccommit.bytes")] == [25]
    assert [point.value for point in recorded.points("asynccommit.jobs.active")] == [0]
    assert recorded.points("asynccommit.stage.duration")


def test_batch_that_ended_elsewhere(recorded: Recorded) -> None:
    """A batch of a stream, told of when it has ended, is a span that began when the batch did."""
    tell([JobReport("batch 3 of query q", "/t", 2, 10, seconds=60.0)], ["file"], lambda _: None)

    batch = recorded.named("asynccommit batch")
    assert batch.attributes is not None
    assert batch.attributes["asynccommit.job.id"] == "batch 3 of query q"
    assert batch.attributes["asynccommit.files"] == 2
    assert batch.start_time is not None
    assert batch.end_time is not None
    assert batch.end_time - batch.start_time >= 60 * 10**9
    assert [point.value for point in recorded.points("asynccommit.bytes")] == [10]


async def test_refused_requests_are_counted(
    recorded: Recorded, adls_emulator: AdlsEmulator
) -> None:
    """Requests that an account refuses for their rate are in the metrics of the job."""
    adls_emulator.model.create_filesystem("data")
    storage = {"connection_string": adls_emulator.connection_string}
    async with asynccommit.open_job("abfs://data/table", storage_options=storage) as job:
        async with job.task(0) as task:
            for number in range(20):
                await task.put(f"part-{number}", b"x")
        adls_emulator.weather.climate = THROTTLED

    assert sum(point.value for point in recorded.points("asynccommit.requests.refused")) > 0


def test_nothing_is_recorded_after_uninstrument(recorded: Recorded, tmp_path: Path) -> None:
    """After ``uninstrument`` a commit leaves neither spans nor measurements."""
    asynccommit.otel.uninstrument()

    write(tmp_path / "table")

    assert not asynccommit.otel.is_instrumented()
    assert recorded.spans.get_finished_spans() == ()
    assert recorded.points("asynccommit.files") == []

"""OpenTelemetry: a span for each job, operation and stage, and metrics.

::

    import asynccommit.otel

    asynccommit.otel.instrument()

Spans and measurements go to the providers that the program has set up; without an SDK nothing is
recorded. A commit that is called in a span has that span as its parent, also from blocking code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from asynccommit.commit.observers import ObservedWork, OnEnd, WorkEnd, add_observer, remove_observer
from asynccommit.errors import UnsupportedError
from asynccommit.redact import redact
from asynccommit.results import JobReport
from asynccommit.runtime.host import this_host
from asynccommit.version import __version__

try:
    from opentelemetry import context, metrics, trace
    from opentelemetry.trace import Status, StatusCode
except ModuleNotFoundError as error:
    raise UnsupportedError(
        "OpenTelemetry is not installed: pip install 'asynccommit[otel]'"
    ) from error

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

__all__ = ["instrument", "is_instrumented", "uninstrument"]

Attributes = dict[str, str | int | float]

_NAME = "asynccommit"
_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
"""Bounds of the histograms: a commit takes milliseconds on a disk, and up to an hour on a store."""

_observer: _Tracing | None = None


def instrument(
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> None:
    """Record spans and metrics of all commits of this process from now on.

    A second call replaces the providers of the first.

    Args:
        tracer_provider: where spans go; by default the global provider.
        meter_provider: where measurements go; by default the global provider.
    """
    global _observer
    uninstrument()
    _observer = _Tracing(
        trace.get_tracer(_NAME, __version__, tracer_provider),
        metrics.get_meter(_NAME, __version__, meter_provider),
    )
    add_observer(_observer)


def uninstrument() -> None:
    """Record nothing for work that begins from now on."""
    global _observer
    if _observer is not None:
        remove_observer(_observer)
        _observer = None


def is_instrumented() -> bool:
    """Return whether commits of this process are recorded."""
    return _observer is not None


class _Tracing:
    def __init__(self, tracer: trace.Tracer, meter: metrics.Meter) -> None:
        self._tracer = tracer
        self._instruments = _Instruments(meter)
        self._runs: dict[str, tuple[Span, Span]] = {}  # job id -> its span, and what was around it

    def __call__(self, work: ObservedWork) -> OnEnd:
        if work.kind == "run":
            return self._begin_run(work)
        job = work.kind == "job"
        name = f"asynccommit {work.name}" if job else work.name
        began = None
        if work.since:
            began = int((this_host().now() - work.since) * 1e9)
        span = self._tracer.start_span(
            name, self._parent(work), attributes=_described(work), start_time=began
        )
        # Stages, and the spans of an instrumented HTTP client, are children of this one.
        token = context.attach(trace.set_span_in_context(span))
        labels: Attributes = {"asynccommit.store": work.store} if job else {}
        if job:
            labels["asynccommit.operation"] = work.name
            self._instruments.active.add(1, labels)

        def end(ended: WorkEnd) -> None:
            context.detach(token)
            _finish(span, ended)
            if job:
                self._instruments.active.add(-1, labels)
                self._instruments.record_job(labels, ended)
            else:
                self._instruments.stages.record(ended.seconds, {"asynccommit.stage": work.name})

        return end

    def _begin_run(self, work: ObservedWork) -> OnEnd:
        span = self._tracer.start_span("asynccommit job", attributes=_described(work))
        self._runs[work.job_id] = span, trace.get_current_span()

        def end(ended: WorkEnd) -> None:
            self._runs.pop(work.job_id, None)
            _finish(span, ended)

        return end

    def _parent(self, work: ObservedWork) -> context.Context | None:
        """Return the context of the job's span, or none for the caller's.

        A caller in a span within the job has that one as the parent. Each step of a blocking job
        is a task of the event loop, so no context reaches all of them.
        """
        span, outer = self._runs.get(work.job_id, (None, None))
        if span is None or outer is None:
            return None
        here = trace.get_current_span().get_span_context()
        within = here.is_valid and here.span_id != outer.get_span_context().span_id
        return None if within else trace.set_span_in_context(span)


class _Instruments:
    def __init__(self, meter: metrics.Meter) -> None:
        self.active = meter.create_up_down_counter(
            "asynccommit.jobs.active", "{job}", "Job operations that run now"
        )
        self.stages = meter.create_histogram(
            "asynccommit.stage.duration",
            "s",
            "Duration of the stages of jobs and tasks",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._jobs = meter.create_histogram(
            "asynccommit.job.duration",
            "s",
            "Duration of job operations by outcome",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        count = meter.create_counter
        self._files = count("asynccommit.files", "{file}", "Files that commits made visible")
        self._bytes = count("asynccommit.bytes", "By", "Size of the files made visible")
        self._requests = count("asynccommit.requests", "{request}", "Requests sent by jobs")
        self._refused = count(
            "asynccommit.requests.refused", "{request}", "Requests that a store refused"
        )
        self._recovered = count(
            "asynccommit.requests.recovered", "{request}", "Lost responses that were settled"
        )
        self._waited = count(
            "asynccommit.requests.wait", "s", "Time that requests waited before they were sent"
        )

    def record_job(self, labels: Attributes, ended: WorkEnd) -> None:
        """Record the end of a job operation."""
        self._jobs.record(ended.seconds, {**labels, "asynccommit.outcome": ended.outcome})
        if isinstance(ended.report, JobReport) and ended.outcome == "committed":
            self._files.add(ended.report.files, labels)
            self._bytes.add(ended.report.bytes, labels)
        self._requests.add(ended.counts.sent, labels)
        self._refused.add(ended.counts.refused, labels)
        self._add(self._recovered, labels, "asynccommit.method", ended.counts.recovered)
        self._add(self._waited, labels, "asynccommit.reason", ended.counts.waited)

    def _add(
        self,
        counter: metrics.Counter,
        labels: Attributes,
        name: str,
        counts: Mapping[str, int] | Mapping[str, float],
    ) -> None:
        for key, amount in counts.items():
            if amount > 0:
                counter.add(amount, {**labels, name: key})


def _described(work: ObservedWork) -> Attributes:
    said: Attributes = {"asynccommit.job.id": work.job_id} if work.job_id else {}
    if work.kind != "stage":
        said |= {"asynccommit.destination": work.dest, "asynccommit.store": work.store}
    if work.kind == "job":
        said["asynccommit.operation"] = work.name
    return said


def _finish(span: Span, ended: WorkEnd) -> None:
    span.set_attribute("asynccommit.outcome", ended.outcome)
    if isinstance(ended.report, JobReport):
        span.set_attributes(
            {
                "asynccommit.files": ended.report.files,
                "asynccommit.bytes": ended.report.bytes,
                "asynccommit.tasks": len(ended.report.tasks),
            }
        )
    if ended.counts.sent:
        span.set_attributes(
            {
                "asynccommit.requests.sent": ended.counts.sent,
                "asynccommit.requests.refused": ended.counts.refused,
                "asynccommit.requests.recovered": sum(ended.counts.recovered.values()),
            }
        )
    if ended.error is not None:
        _fail(span, ended.error)
    span.end()


def _fail(span: Span, error: BaseException) -> None:
    """Note an error without its traceback, which may hold URLs."""
    kind, text = type(error).__name__, redact(str(error))
    span.set_attribute("error.type", kind)
    span.add_event("exception", {"exception.type": kind, "exception.message": text})
    span.set_status(Status(StatusCode.ERROR, text))

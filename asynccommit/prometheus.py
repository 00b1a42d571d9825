"""Prometheus: counters and histograms of jobs, stages and requests.

::

    import asynccommit.prometheus
    from prometheus_client import start_http_server

    asynccommit.prometheus.instrument()
    start_http_server(9100)

Counters of files and requests change when a job operation ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asynccommit.commit.observers import ObservedWork, OnEnd, WorkEnd, add_observer, remove_observer
from asynccommit.errors import UnsupportedError
from asynccommit.results import JobReport

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
except ModuleNotFoundError as error:
    raise UnsupportedError(
        "prometheus-client is not installed: pip install 'asynccommit[prometheus]'"
    ) from error

__all__ = ["instrument", "is_instrumented", "uninstrument"]

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
_JOB = ("operation", "store")

_observer: _Counting | None = None


def instrument(registry: CollectorRegistry = REGISTRY) -> None:
    """Count all commits of this process from now on.

    A second call replaces the registry of the first, and starts at zero.

    Args:
        registry: the registry that is exported.
    """
    global _observer
    uninstrument()
    _observer = _Counting(registry)
    add_observer(_observer)


def uninstrument() -> None:
    """Count nothing more, and take the metrics out of their registry."""
    global _observer
    if _observer is not None:
        remove_observer(_observer)
        _observer.unregister()
        _observer = None


def is_instrumented() -> bool:
    """Return whether commits of this process are counted."""
    return _observer is not None


class _Counting:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._made: list[Any] = []
        make = self._make
        self._active = make(Gauge, "jobs_active", "Job operations that run now", *_JOB)
        self._seconds = make(
            Histogram, "job_duration_seconds", "Duration of job operations", *_JOB, "outcome"
        )
        self._stages = make(Histogram, "stage_duration_seconds", "Duration of stages", "stage")
        self._success = make(
            Gauge, "last_success_timestamp_seconds", "Time of the last commit that succeeded"
        )
        self._files = make(Counter, "files", "Files that commits made visible", *_JOB)
        self._bytes = make(Counter, "bytes", "Size of the files made visible", *_JOB)
        self._sent = make(Counter, "requests", "Requests sent by jobs", *_JOB)
        self._refused = make(Counter, "requests_refused", "Requests a store refused", *_JOB)
        self._recovered = make(
            Counter, "requests_recovered", "Lost responses that were settled", *_JOB, "method"
        )
        self._waited = make(
            Counter,
            "requests_wait_seconds",
            "Time that requests waited before they were sent",
            *_JOB,
            "reason",
        )

    def _make(self, kind: Callable[..., Any], name: str, text: str, *labels: str) -> Any:
        buckets = {"buckets": _SECONDS} if kind is Histogram else {}
        made = kind(f"asynccommit_{name}", text, labels, registry=self._registry, **buckets)
        self._made.append(made)
        return made

    def unregister(self) -> None:
        """Take all metrics out of the registry."""
        for made in self._made:
            self._registry.unregister(made)

    def __call__(self, work: ObservedWork) -> OnEnd:
        if work.kind == "stage":
            return lambda ended: self._stages.labels(work.name).observe(ended.seconds)
        job = (work.name, work.store)
        self._active.labels(*job).inc()
        return lambda ended: self._end(job, ended)

    def _end(self, job: tuple[str, str], ended: WorkEnd) -> None:
        self._active.labels(*job).dec()
        self._seconds.labels(*job, ended.outcome).observe(ended.seconds)
        if isinstance(ended.report, JobReport) and ended.outcome == "committed":
            self._success.set_to_current_time()
            self._files.labels(*job).inc(ended.report.files)
            self._bytes.labels(*job).inc(ended.report.bytes)
        self._sent.labels(*job).inc(ended.sent)
        self._refused.labels(*job).inc(ended.refused)
        for method, count in ended.recovered.items():
            self._recovered.labels(*job, method).inc(max(count, 0))
        for reason, seconds in ended.waited.items():
            self._waited.labels(*job, reason).inc(max(seconds, 0))

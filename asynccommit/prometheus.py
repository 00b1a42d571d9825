"""Prometheus: counters and histograms of jobs, stages and requests.

::

    import asynccommit.prometheus
    from prometheus_client import start_http_server

    asynccommit.prometheus.instrument()
    start_http_server(9100)

Counters of requests are those of the moment; counters of files change when a commit ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from asynccommit.commit.observers import (
    ObservedWork,
    OnEnd,
    RequestCounts,
    WorkEnd,
    add_observer,
    remove_observer,
)
from asynccommit.errors import UnsupportedError
from asynccommit.results import JobReport

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, Metric
    from prometheus_client.registry import Collector
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


@dataclass(slots=True, eq=False)
class _Live:
    """A job operation that runs, and those of its requests that were counted."""

    job: tuple[str, str]
    counts: Callable[[], RequestCounts]
    told: RequestCounts = field(default_factory=RequestCounts)


class _Counting(Collector):
    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._lock = threading.Lock()
        self._live: list[_Live] = []
        self._made: list[Any] = [self]
        registry.register(self)  # before its metrics, so that it is collected before them
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

    def __call__(self, work: ObservedWork) -> OnEnd | None:
        if work.kind == "run":  # its operations are counted
            return None
        if work.kind == "stage":
            return lambda ended: self._stages.labels(work.name).observe(ended.seconds)
        live = _Live((work.name, work.store), work.counts)
        self._active.labels(*live.job).inc()
        with self._lock:
            self._live.append(live)
        return lambda ended: self._end(live, ended)

    def collect(self) -> Iterable[Metric]:
        """Bring the counters of running operations up to date, before a scrape."""
        with self._lock:
            for live in self._live:
                with suppress(RuntimeError):  # a count changed while it was read: next time
                    self._add(live, live.counts())
        return ()

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the metrics are collected by themselves."""
        return ()

    def _end(self, live: _Live, ended: WorkEnd) -> None:
        job = live.job
        self._active.labels(*job).dec()
        self._seconds.labels(*job, ended.outcome).observe(ended.seconds)
        if isinstance(ended.report, JobReport) and ended.outcome == "committed":
            self._success.set_to_current_time()
            self._files.labels(*job).inc(ended.report.files)
            self._bytes.labels(*job).inc(ended.report.bytes)
        with self._lock:
            self._live.remove(live)
            self._add(live, ended.counts)

    def _add(self, live: _Live, now: RequestCounts) -> None:
        """Count what has been added since the last time."""
        job, told = live.job, live.told
        self._sent.labels(*job).inc(max(now.sent - told.sent, 0))
        self._refused.labels(*job).inc(max(now.refused - told.refused, 0))
        for method, count in now.recovered.items():
            more = count - told.recovered.get(method, 0)
            self._recovered.labels(*job, method).inc(max(more, 0))
        for reason, seconds in now.waited.items():
            longer = seconds - told.waited.get(reason, 0)
            self._waited.labels(*job, reason).inc(max(longer, 0))
        live.told = now

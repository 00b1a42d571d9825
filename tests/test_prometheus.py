"""Counters of Prometheus, as its own client exports them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import asynccommit
import asynccommit.prometheus
from asynccommit import sync

JOB = {"operation": "commit", "store": "file"}


@pytest.fixture
def registry() -> Iterator[CollectorRegistry]:
    """Count this process for a test."""
    registry = CollectorRegistry()
    asynccommit.prometheus.instrument(registry)
    yield registry
    asynccommit.prometheus.uninstrument()


def write(table: Path, files: int = 3) -> None:
    """Commit a job of one task."""
    with sync.open_job(table) as job, job.task(0) as task:
        for number in range(files):
            task.put(f"part-{number}", b"12345")


def test_commit_is_counted(registry: CollectorRegistry, tmp_path: Path) -> None:
    """A commit counts its files, bytes, requests and duration, and is no longer active."""
    write(tmp_path / "table")

    value = registry.get_sample_value
    assert value("asynccommit_files_total", JOB) == 3
    assert value("asynccommit_bytes_total", JOB) == 15
    assert (value("asynccommit_requests_total", JOB) or 0) > 0
    assert value("asynccommit_jobs_active", JOB) == 0
    committed = {**JOB, "outcome": "committed"}
    assert value("asynccommit_job_duration_seconds_count", committed) == 1
    assert (value("asynccommit_last_success_timestamp_seconds") or 0) > 1.7e9
    stage = {"stage": "job_stage_rename_files"}
    assert value("asynccommit_stage_duration_seconds_count", stage) == 1


def test_requests_of_a_running_job_are_counted(registry: CollectorRegistry, tmp_path: Path) -> None:
    """A scrape in the middle of a commit shows its requests so far, and counts none twice."""
    seen: list[float] = []

    def total() -> float:
        return registry.get_sample_value("asynccommit_requests_total", JOB) or 0

    write(tmp_path / "unseen", 1)
    each = total()
    watched = sync.open_job(tmp_path / "seen", on_progress=lambda _: seen.append(total()))
    with watched as job, job.task(0) as task:
        task.put("part-0", b"12345")

    assert total() == 2 * each
    assert seen == sorted(seen)
    assert len({*seen}) > 2
    assert each < max(seen) <= total()


def test_failure_is_counted_by_outcome(registry: CollectorRegistry, tmp_path: Path) -> None:
    """A commit that fails is counted as failed, and no files with it."""
    with pytest.raises(asynccommit.PreflightError), sync.open_job(tmp_path / "table") as job:
        for number in range(2):
            with job.task(number) as task:
                task.put("part-0", b"twice")

    failed = {**JOB, "outcome": "failed"}
    assert registry.get_sample_value("asynccommit_job_duration_seconds_count", failed) == 1
    assert registry.get_sample_value("asynccommit_files_total", JOB) is None


def test_export_is_what_prometheus_reads(registry: CollectorRegistry, tmp_path: Path) -> None:
    """The exported text is read by the parser of Prometheus' own client."""
    write(tmp_path / "table")

    text = generate_latest(registry).decode()

    names = {family.name for family in text_string_to_metric_families(text)}
    assert {
        "asynccommit_files",
        "asynccommit_requests",
        "asynccommit_job_duration_seconds",
    } <= names


def test_second_registry_replaces_the_first(registry: CollectorRegistry, tmp_path: Path) -> None:
    """The metrics move to the new registry, and start at zero there."""
    write(tmp_path / "table")
    other = CollectorRegistry()

    asynccommit.prometheus.instrument(other)
    write(tmp_path / "other", files=1)

    assert list(registry.collect()) == []
    assert other.get_sample_value("asynccommit_files_total", JOB) == 1

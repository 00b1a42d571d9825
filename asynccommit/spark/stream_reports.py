"""Report batches of Spark's own file sink, as the JVM tells of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from asynccommit.commit.meter import OUTERMOST, OnProgress, Progress
from asynccommit.commit.observers import ObservedWork, WorkEnd, observe_ended
from asynccommit.redact import redact
from asynccommit.results import JobReport
from asynccommit.runtime.host import this_host
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.urls import decode_uri

log = logging.getLogger("asynccommit.spark")


def job_of(batch: int, query: str) -> str:
    """Return the id under which a batch of a query is reported."""
    return f"batch {batch} of query {query}"


def report_of(batch: Mapping[str, Any]) -> JobReport:
    """Return the report of a batch that is in the log."""
    return JobReport(
        job_of(batch["batch"], batch["query"]),
        str(decode_uri(batch["dest"])),
        batch["files"],
        batch["bytes"],
        seconds=batch["seconds"],
    )


def tell(reports: Sequence[JobReport], schemes: Sequence[str], on_progress: OnProgress) -> None:
    """Tell observers and a progress callback of batches.

    Args:
        reports: their reports.
        schemes: the schemes of their tables.
        on_progress: called once for each.
    """
    submit(_observe(reports, schemes))
    for report in reports:
        done = Progress(report.job_id, OUTERMOST, report.files, report.files, report.seconds)
        try:
            on_progress(done)
        except Exception as error:  # the batch is in the log
            log.warning("on_progress failed: %s: %s", type(error).__name__, redact(str(error)))


async def _observe(reports: Sequence[JobReport], schemes: Sequence[str]) -> None:
    clock = this_host().clock
    for report, scheme in zip(reports, schemes, strict=True):
        work = ObservedWork(
            "job", "batch", report.job_id, report.dest, scheme, since=report.seconds
        )
        observe_ended(work, WorkEnd(report.seconds, report=report), clock)

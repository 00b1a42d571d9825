"""Tell observers about a job operation and its requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from asynccommit.commit.context import CommitContext
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.observers import ObservedWork, Operation, RequestCounts, WorkEnd, observed
from asynccommit.redact import redact

log = logging.getLogger(__name__)
N = TypeVar("N", int, float)


@contextmanager
def observed_job(run: CommitContext, operation: Operation) -> Iterator[WorkEnd]:
    """Call the observers for a job operation in the block.

    The block sets the result that they are given.
    """
    layout = run.layout
    before = run.environment.traffic()

    def counts() -> RequestCounts:
        now = run.environment.traffic()
        return RequestCounts(
            now.sent - before.sent,
            now.refused - before.refused,
            _more(now.recovered, before.recovered),
            _more(now.waited, before.waited),
        )

    dest = redact(str(layout.dest))
    work = ObservedWork("job", operation, layout.job_id, dest, layout.dest.scheme, counts)
    with observed(work, asyncio.get_running_loop().time) as ended:
        try:
            yield ended
        finally:
            try:
                ended.counts = counts()
            except Exception:  # the job may be committed: its end is told without counts
                text = "job %s: its requests could not be counted"
                log.exception(text, layout.job_id, extra=layout.log_fields)


@contextmanager
def observed_run(layout: Layout) -> Iterator[None]:
    """Call the observers for a job in the block, from its setup to its end."""
    dest = redact(str(layout.dest))
    work = ObservedWork("run", "job", layout.job_id, dest, layout.dest.scheme)
    with observed(work, asyncio.get_running_loop().time):
        yield


def _more(now: Mapping[str, N], before: Mapping[str, N]) -> dict[str, N]:
    return {name: value - before.get(name, 0) for name, value in now.items()}

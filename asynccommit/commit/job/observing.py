"""Tell observers about a job operation and its requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from asynccommit.commit.context import CommitContext
from asynccommit.commit.observers import ObservedWork, Operation, observed
from asynccommit.redact import redact

log = logging.getLogger(__name__)
N = TypeVar("N", int, float)


@contextmanager
def observed_job(run: CommitContext, operation: Operation) -> Iterator[None]:
    """Call the observers for a job operation in the block.

    Its result is ``run.result`` when the block ends.
    """
    layout = run.layout
    work = ObservedWork(
        "job", operation, layout.job_id, redact(str(layout.dest)), layout.dest.scheme
    )
    before = run.environment.traffic()
    with observed(work, asyncio.get_running_loop().time) as ended:
        try:
            yield
        finally:
            ended.report = run.result
            try:
                now = run.environment.traffic()
                ended.sent = now.sent - before.sent
                ended.refused = now.refused - before.refused
                ended.recovered = _more(now.recovered, before.recovered)
                ended.waited = _more(now.waited, before.waited)
            except Exception:  # the job may be committed: its end is told without counts
                log.exception("job %s: its requests could not be counted", layout.job_id)


def _more(now: Mapping[str, N], before: Mapping[str, N]) -> dict[str, N]:
    return {name: value - before.get(name, 0) for name, value in now.items()}

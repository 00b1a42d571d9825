"""What a committer is opened with, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from asynccommit.options.job import Options
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.policies.stats import Count
from asynccommit.stores.policies.traffic import Traffic
from asynccommit.stores.urls import Address


@dataclass(frozen=True, slots=True)
class JobContext:
    """A job attempt, and what its committer works with.

    Attributes:
        dest: the destination of the job.
        job_id: unique among all jobs with this destination.
        attempt: the job attempt number.
        store: where the destination is.
        options: how to commit.
        host: clock, ids and names.
        open_store: opens other stores; whoever made it closes them.
        pending: where tasks leave their pending sets, if the committer has them elsewhere.
        counted: the store's request counters, for statistics.
        traffic: what has become of the store's requests, for statistics.
    """

    dest: Address
    job_id: str
    attempt: int
    store: Store
    options: Options
    host: Host
    open_store: Callable[[Address], Store]
    pending: Address | None = None
    counted: Mapping[str, Count] = field(default_factory=dict)
    traffic: Callable[[], Traffic] = Traffic

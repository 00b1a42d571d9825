"""The arguments with which any committer is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from asynccommit.commit.orders import Runner
from asynccommit.options.job import Options
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.policies.stats import Count
from asynccommit.stores.policies.traffic import Traffic
from asynccommit.stores.urls import Address


@dataclass(frozen=True, slots=True)
class JobContext:
    """A job attempt, and the objects that its committer works with.

    Attributes:
        dest: the destination of the job.
        job_id: unique among all jobs with this destination.
        attempt: the job attempt number.
        store: the destination's store.
        options: options of the commit.
        host: clock, ids and names.
        open_store: opens other stores; its creator closes them.
        pending: the place where tasks leave their pending sets, if the committer keeps them
            elsewhere.
        counted: the store's request counters, for statistics.
        traffic: outcomes of the store's requests, for statistics.
        runner: has workers that move files of a commit; ``None`` for this process alone.
        storage: options of the store that the caller gave, for workers.
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
    runner: Runner | None = None
    storage: Mapping[str, object] = field(default_factory=dict, repr=False)

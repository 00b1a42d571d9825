"""The counts of all policies around a store, in one value for reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from asynccommit.stores.base import Store
from asynccommit.stores.policies.adaptive_rate import Adaptive
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.lost_replies import Recover
from asynccommit.stores.policies.per_object_rate import PerObjectRate
from asynccommit.stores.policies.request_series import RequestSeries
from asynccommit.stores.policies.retry import Retry
from asynccommit.stores.policies.stats import Stats


@dataclass(frozen=True, slots=True)
class Traffic:
    """The counts of the requests of one store.

    Attributes:
        sent: requests sent, every attempt counted.
        refused: requests that the store refused for their rate.
        recovered: method -> number of requests found done without a matching response.
        waited: reason -> seconds that requests waited before they were sent, added up over requests
            that waited at the same time.
        series: the live record of requests over time.
    """

    sent: int = 0
    refused: int = 0
    recovered: Mapping[str, int] = field(default_factory=dict)
    waited: Mapping[str, float] = field(default_factory=dict)
    series: RequestSeries | None = None


def traffic_of(store: Wrapped) -> Traffic:
    """Return the counts of the policies of ``store``."""
    sent = refused = 0
    series: RequestSeries | None = None
    recovered: Counter[str] = Counter()
    waited: Counter[str] = Counter()
    for policy in store.policies:
        if isinstance(policy, Stats) and policy.name == "sent":
            sent, refused, series = policy.n, policy.waits, policy.series
            continue
        if isinstance(policy, Recover):
            recovered += policy.recovered
        if isinstance(policy, Adaptive | PerObjectRate | Recover | Retry):
            waited.update({why: seconds for why, seconds in policy.waited.items() if seconds})
    return Traffic(sent, refused, dict(recovered), dict(waited), series)


def waiting_for(store: Store) -> str:
    """Return how many requests wait to be sent again, and why most of them do.

    Empty if none does. It may be called from any thread.
    """
    waiting: Counter[str] = Counter()
    for policy in store.policies if isinstance(store, Wrapped) else ():
        if isinstance(policy, Recover | Retry):
            for reason, count in list(policy.waiting.items()):
                waiting[reason] += count
    if not waiting:
        return ""
    (reason, _), total = waiting.most_common(1)[0], waiting.total()
    return f"{total:,} {'request waits' if total == 1 else 'requests wait'}: {reason}"

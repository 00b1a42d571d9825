"""Counts of what has struck in simulations: an actor that never strikes proves nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from asynccommit.testing.models.crashes import Process, When
from asynccommit.testing.models.fault_rules import FaultDecision, FaultInjector

_COUNTS: Counter[str] = Counter()


def strike(actor: str) -> None:
    """Count one strike of an actor of the simulation that runs."""
    _COUNTS[actor] += 1


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count the strikes within the block; the counter is complete after it."""
    before, strikes = _COUNTS.copy(), Counter[str]()
    try:
        yield strikes
    finally:
        strikes.update(_COUNTS - before)


class CountedProcess(Process):
    """A process each of whose deaths and suspensions is a strike."""

    async def before(self, writes: bool, what: str) -> When | None:
        """See ``Process.before``."""
        when = await super().before(writes, what)
        if when is not None:
            strike("death")
        return when

    def suspend(self) -> None:
        """See ``Process.suspend``."""
        strike("suspension")
        super().suspend()


class CountedWeather(FaultInjector):
    """Weather each of whose faults is an actor: ``request cut``, ``request late`` and so on."""

    __slots__ = ()

    def decide(self, op: str, path: str) -> FaultDecision:
        """See ``FaultInjector.decide``."""
        decision = super().decide(op, path)
        if decision.kind:
            strike(f"request {decision.kind}")
        return decision

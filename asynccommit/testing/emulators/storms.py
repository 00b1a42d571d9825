"""Carry out requests under injected faults, on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from asynccommit.testing.models.fault_rules import FaultDecision, take_effect

A = TypeVar("A")


class Storm(Generic[A]):
    """A request that is performed when, and if, its fault decision says so."""

    def __init__(self, decision: FaultDecision, perform: Callable[[], A]) -> None:
        self._decision = decision
        self._perform = perform

    def meet(self, end: Callable[[A | None], None]) -> None:
        """Perform the request; pass the true response to ``end``, if there is one.

        The client may have disconnected.
        """
        later(self._decision.before, partial(self._act, end))

    def _act(self, end: Callable[[A | None], None]) -> None:
        decision = self._decision
        answer = take_effect(decision, self._perform, later)
        later(decision.after, partial(end, answer))


def later(seconds: float, act: Callable[[], object]) -> None:
    """Call ``act`` after a delay; at once if the delay is 0."""
    if seconds > 0:
        asyncio.get_running_loop().call_later(seconds, act)
    else:
        act()

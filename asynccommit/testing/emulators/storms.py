"""Requests that do not pass undisturbed: they happen in the time of their decision, on the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from asynccommit.testing.models.fault_rules import Effect, FaultDecision

A = TypeVar("A")


class Storm(Generic[A]):
    """One request, which is performed when, and if, its decision says so."""

    def __init__(self, decision: FaultDecision, perform: Callable[[], A]) -> None:
        self._decision = decision
        self._perform = perform

    def meet(self, end: Callable[[A | None], None]) -> None:
        """Let it happen; ``end`` is given the true answer, if there is one in time.

        No client need stay for it.
        """
        later(self._decision.before, partial(self._act, end))

    def _act(self, end: Callable[[A | None], None]) -> None:
        decision, answer = self._decision, None
        if decision.effect is Effect.NOW:
            answer = self._perform()
        elif decision.effect is Effect.LATE:
            later(decision.late, self._perform)
        later(decision.after, partial(end, answer))


def later(seconds: float, act: Callable[[], object]) -> None:
    """Do something after so many seconds; at once if there are none."""
    if seconds > 0:
        asyncio.get_running_loop().call_later(seconds, act)
    else:
        act()

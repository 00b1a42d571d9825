"""Send the requests of an in-process store to a model through injected faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from asynccommit.errors import StoreError
from asynccommit.testing.models.adls.errors import Asked, LostError
from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.fault_rules import (
    CLEAR,
    Effect,
    FaultDecision,
    FaultInjector,
    Reply,
)
from asynccommit.testing.models.virtual_loop import pause

T = TypeVar("T")


class Sender:
    """The common base of stores over a model: requests one by one, and late effects.

    Args:
        options: ``weather``, a ``FaultInjector``, and ``patience``, the timeout in seconds for a
            response that never comes; both are optional.
        translate: turns a response into a store error.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        translate: Callable[[Asked, Refusal | LostError], StoreError],
    ) -> None:
        self._weather: FaultInjector | None = options.get("weather")
        self._patience = float(options.get("patience", 0.0))
        self._late: set[asyncio.Future[None]] = set()
        self._translate = translate

    async def aclose(self) -> None:
        """Wait for all late effects."""
        while self._late:
            await asyncio.wait(self._late)

    async def _ask(self, asked: Asked, op: str, path: str, apply: Callable[[], T]) -> T:
        """Send one request through the fault injector."""
        decision = CLEAR if self._weather is None else self._weather.decide(op, path)
        try:
            if decision.before:
                await pause(decision.before)
            if not decision.kind:  # no fault
                return apply()
            return await self._carry_out(decision, apply)
        except (Refusal, LostError) as error:
            raise self._translate(asked, error) from error

    async def _carry_out(self, decision: FaultDecision, apply: Callable[[], T]) -> T:
        answer: T | Refusal | None = None
        if decision.effect is Effect.NOW:
            try:
                answer = apply()
            except Refusal as no:
                answer = no
        elif decision.effect is Effect.LATE:
            self._apply_later(decision.late, apply)
        if decision.after:
            await pause(decision.after)
        if decision.reply is Reply.NEVER and self._patience:
            await pause(self._patience)
        if decision.reply in (Reply.CUT, Reply.NEVER):
            raise LostError
        if decision.refusal is not None:
            raise decision.refusal
        if isinstance(answer, Refusal):
            raise answer
        return answer  # type: ignore[return-value]  # the effect was now

    def _apply_later(self, seconds: float, apply: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        self._late.add(done)

        def act() -> None:
            self._late.discard(done)
            with suppress(Refusal):  # the response is lost
                apply()
            done.set_result(None)

        loop.call_later(seconds, act)

"""Send requests to a model through injected faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from asynccommit.errors import OutcomeUnknownError, StoreError, ThrottledError, UnavailableError
from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.fault_rules import (
    CLEAR,
    FaultDecision,
    FaultInjector,
    Reply,
    take_effect,
)
from asynccommit.testing.models.virtual_loop import pause

T = TypeVar("T")

TIMED_OUT = "OperationTimedOut"
"""The code of ADLS for a request that took too long because the account is busy."""


class LostError(Exception):
    """Raised when no response came."""


class SimRequest(NamedTuple):
    """The request that a response belongs to.

    Attributes:
        method: method of the store.
        path: path of the call.
        writes: the request changes data that others see.
        new: the request may succeed only if the path does not exist.
        aside: the request concerns a temporary file, which may be created again: it has changed
            nothing.
    """

    method: str
    path: str
    writes: bool = False
    new: bool = False
    aside: bool = False


class LateEffects:
    """The common base of all that answers requests in this process.

    Args:
        patience: timeout in seconds for a response that never comes.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._late: set[asyncio.Future[None]] = set()

    async def aclose(self) -> None:
        """Wait for all late effects."""
        while self._late:
            await asyncio.wait(self._late)

    async def carry_out(self, decision: FaultDecision, apply: Callable[[], T]) -> T | None:
        """Execute a request as its fault says.

        Returns the response, or ``None`` for the refusal of the fault. Raises ``LostError`` if no
        response comes.
        """
        answer = take_effect(decision, apply, self.later)
        if decision.after:
            await pause(decision.after)
        if decision.reply is Reply.NEVER and self._patience:
            await pause(self._patience)
        if decision.reply in (Reply.CUT, Reply.NEVER):
            raise LostError
        return None if decision.reply is Reply.REFUSAL else answer

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Call ``act`` after a delay; ``aclose`` waits for it."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        self._late.add(done)

        def happen() -> None:
            self._late.discard(done)
            act()
            if not done.done():
                done.set_result(None)

        loop.call_later(seconds, happen)


class Sender(LateEffects):
    """The common base of stores over a model, with late effects.

    Args:
        options: ``weather``, a ``FaultInjector``, and ``patience``, the timeout in seconds for a
            response that never comes; both are optional.
        kind_of: tells the store error of a refusal that is not about the service's load.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        kind_of: Callable[[SimRequest, Refusal], type[StoreError]],
    ) -> None:
        super().__init__(float(options.get("patience", 0.0)))
        self._weather: FaultInjector | None = options.get("weather")
        self._kind_of = kind_of

    async def _ask(self, asked: SimRequest, op: str, path: str, apply: Callable[[], T]) -> T:
        """Send one request through the fault injector."""
        decision = CLEAR if self._weather is None else self._weather.decide(op, path)
        try:
            if decision.before:
                await pause(decision.before)
            if not decision.kind:  # no fault
                return apply()
            answer = await self.carry_out(decision, partial(caught, apply))
            if decision.refusal is not None:
                raise decision.refusal
            if isinstance(answer, Refusal):
                raise answer
            return answer  # type: ignore[return-value]  # the effect was now
        except (Refusal, LostError) as error:
            raise self.translated(asked, error) from error

    def translated(self, asked: SimRequest, answer: Refusal | LostError) -> StoreError:
        """Return the store error for a response, or for none."""
        method, path = asked.method, asked.path
        lost = OutcomeUnknownError if asked.writes else UnavailableError
        if isinstance(answer, LostError):
            return lost(method, path, "no response came")
        detail = str(answer)
        if answer.status == 503:
            wait = answer.headers.get("Retry-After")
            return ThrottledError(method, path, detail, None if wait is None else float(wait))
        if answer.status < 500 or answer.status == 501:
            return self._kind_of(asked, answer)(method, path, detail)
        if answer.code != TIMED_OUT:
            return lost(method, path, detail)
        if asked.writes:
            return OutcomeUnknownError(method, path, detail, busy=True)
        return ThrottledError(method, path, detail)


def caught(apply: Callable[[], T]) -> T | Refusal:
    """Return the response of ``apply``, or the refusal that it raises."""
    try:
        return apply()
    except Refusal as no:
        return no

"""Sending again what is safe to send again."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

from asynccommit.errors import (
    NotFoundError,
    OutcomeUnknownError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.wrappers.base import Call, Op

_AGAIN = (ThrottledError, UnavailableError, OutcomeUnknownError)
_DELETES = frozenset({"delete", "delete_tree"})


class Retry:
    """Send a request again after a refusal, and after a lost answer if that is harmless.

    A refusal (``ThrottledError``, ``UnavailableError``) left nothing done: anything is sent
    again. A lost answer (``OutcomeUnknownError``) may have been a success: only what is
    ``Op.repeatable`` is sent again. Then the second answer is read in that light: a delete that
    finds nothing has done its work, and a write that fails for any other reason stays unknown,
    because its first sending may yet have happened.

    The wait is drawn evenly from nothing to ``base`` doubled with each attempt, at most ``cap``
    seconds, upon what the store asked for (``retry_after``). Throttled answers wait but do not
    use up ``attempts``: a busy store delays a request and only ``deadline`` fails it.

    Args:
        rng: where the waits are drawn from.
        attempts: how often a request is sent at most, throttled answers aside.
        deadline: seconds after which a request is not sent again.
        base: bound of the first wait, in seconds.
        cap: bound of every wait that the store did not ask for, in seconds.
        sleep: how to wait.
        clock: what the deadline is measured with.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        attempts: int = 8,
        deadline: float = 600.0,
        base: float = 0.1,
        cap: float = 20.0,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if attempts < 1:
            raise ValueError(f"attempts must be at least 1, not {attempts}")
        self._rng = rng
        self._attempts = attempts
        self._deadline = deadline
        self._base = base
        self._cap = cap
        self._sleep = sleep
        self._clock = clock

    def __repr__(self) -> str:
        return f"Retry(attempts={self._attempts}, deadline={self._deadline})"

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""
        clock = self._clock

        async def retried(op: Op) -> Any:
            start = clock()
            try:
                return await call(op)
            except _AGAIN as error:
                first = error
            return await self._again(call, op, first, start)

        return retried

    async def _again(self, call: Call, op: Op, error: StoreError, start: float) -> Any:
        clock = self._clock
        spent, sent, lost = 0, 1, False
        while True:
            lost = lost or isinstance(error, OutcomeUnknownError)
            spent += not isinstance(error, ThrottledError)
            wait = self._wait(error, sent)
            late = clock() - start + wait > self._deadline
            if late or spent >= self._attempts or (lost and not op.repeatable):
                error.add_note(f"given up after being sent {sent} times in {clock() - start:.1f} s")
                break
            await self._sleep(wait)
            sent += 1
            try:
                return await call(op)
            except _AGAIN as again:
                error = again
            except StoreError as answer:
                if lost and op.name in _DELETES and isinstance(answer, NotFoundError):
                    return None
                error = answer
                break
        if lost and op.writes and not isinstance(error, OutcomeUnknownError):
            raise OutcomeUnknownError(
                op.name, op.path, f"one answer was lost, then: {error}"
            ) from error
        raise error

    def _wait(self, error: StoreError, sent: int) -> float:
        wait = self._rng.uniform(0, min(self._cap, self._base * 2 ** min(sent - 1, 30)))
        if isinstance(error, ThrottledError) and error.retry_after is not None:
            wait += error.retry_after
        return wait

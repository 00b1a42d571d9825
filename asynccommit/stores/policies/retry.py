"""Repeat requests that are safe to repeat."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.redact import Redacted
from asynccommit.runtime.at_exit import seconds_of_end
from asynccommit.stores.policies.funnel import Call, Op
from asynccommit.stores.policies.retry_budget import Backoff, is_throttled

log = logging.getLogger(__name__)

END_UNREACHED = 5.0
"""Seconds for which a program that has ended tries to connect to its store."""
END_REFUSED = 30.0
"""Seconds for which a program that has ended sends a request again."""
_AGAIN = (ThrottledError, UnavailableError, OutcomeUnknownError)
_DELETES = frozenset({"delete", "delete_tree"})
# There is no such upload any more, by whomever: aborted or completed, which the caller has to tell.
_UPLOADS = frozenset({"abort_stream", "abort_upload", "put_block", "put_part"})


class Retry:
    """Send a request again after a refusal or a harmless lost response.

    A refusal (``ThrottledError``, ``UnavailableError``) left nothing done: anything is sent again.
    A lost response (``OutcomeUnknownError``) may have been a success: only ``Op.repeatable``
    requests are sent again; ``Recover`` handles the others. Then the second answer is read in that
    light: a delete that finds nothing has done its work, and a write that fails for any other
    reason stays unknown, because its first sending may yet have happened. A missing upload is a
    definite answer for an abort or a part. An unknown origin of a ``completed`` object is an answer
    as well, which a repetition does not improve.

    ``Backoff`` waits in between, and limits repetitions by a budget. Throttled answers wait but use
    up neither the budget nor ``attempts``: a busy store, like an empty budget, delays a request,
    and only ``deadline`` fails it. ``waited`` has the seconds spent so, by reason.

    Args:
        rng: where the waits are drawn from.
        attempts: how often a request is sent at most, throttled answers aside.
        first: the same, if less, as long as the store has never answered: its name may be wrong.
        account: names what shares a budget; empty for one of its own.
        deadline: seconds after which a request is not sent again.
        base: bound of the first wait, in seconds.
        cap: bound of every wait that the store did not ask for, in seconds.
        sleep: how to wait.
        clock: what the deadline is measured with; ``None`` for the running loop's time.
        log_fields: the ``extra`` of log records.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        attempts: int = 8,
        first: int = 7,
        account: str = "",
        deadline: float = 600.0,
        base: float = 0.1,
        cap: float = 20.0,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] | None = None,
        log_fields: Mapping[str, str] | None = None,
    ) -> None:
        if attempts < 1:
            raise ValueError(f"attempts must be at least 1, not {attempts}")
        self._attempts = attempts
        self._first = first
        self._answered = False
        self._log_fields = log_fields
        self._backoff = Backoff(
            rng, account=account, deadline=deadline, base=base, cap=cap, sleep=sleep, clock=clock
        )
        self.waited, self.waiting = self._backoff.waited, self._backoff.waiting
        self.begin = self._backoff.begin

    def __repr__(self) -> str:
        return f"Retry(attempts={self._attempts}, deadline={self._backoff.deadline})"

    def answered(self) -> None:
        """Record that the store has answered."""
        self._answered = True

    def around(self, call: Call) -> Call:
        async def retried(op: Op) -> Any:
            start = self.begin() if op.first is None else op.first.begun
            try:
                answer = await call(op)
            except _AGAIN as error:
                if _is_told(op, error):
                    raise
                first = error
            except StoreError:
                self._answered = True
                raise
            else:
                self._answered = True
                return answer
            return await self._again(call, op, first, start)

        return retried

    async def _again(self, call: Call, op: Op, error: StoreError, start: float) -> Any:
        spent, sent, lost = 0, 1, False
        while True:
            lost = lost or isinstance(error, OutcomeUnknownError)
            spent += not is_throttled(error)
            if not await self._may_go(op, error, spent, sent, lost, start):
                break
            sent += 1
            try:
                answered = await call(op)
            except _AGAIN as again:
                if _is_told(op, again):
                    raise
                error = again
                continue
            except StoreError as answer:
                self._answered = True
                if lost and isinstance(answer, NotFoundError):
                    if op.name in _DELETES:
                        return None
                    if op.name in _UPLOADS:
                        raise
                if lost and op.name in _DELETES and isinstance(answer, ExistsError):
                    raise  # the directory is not empty, so neither request has deleted it
                error = answer
                break
            self._answered = True
            return answered
        if lost and op.writes and not isinstance(error, OutcomeUnknownError):
            raise OutcomeUnknownError(
                op.name, op.path, f"one response was lost, then: {error}"
            ) from error
        raise error

    async def _may_go(
        self, op: Op, error: StoreError, spent: int, sent: int, lost: bool, start: float
    ) -> bool:
        """Wait until the request may be sent again, if it may."""
        log.debug("attempt %d failed: %s", sent, Redacted(error), extra=self._log_fields)
        most = self._attempts if self._answered else min(self._attempts, self._first)
        tried = spent >= most or (lost and not op.repeatable)
        tried = tried or _is_too_late(error, self._backoff.now() - start)
        if not tried and await self._backoff.wait(error, sent, start):
            facts = op.name, op.path, sent + 1
            log.debug("%s %s is sent again, attempt %d", *facts, extra=self._log_fields)
            return True
        seconds = self._backoff.now() - start
        error.add_note(f"gave up after {sent} attempts in {seconds:.1f} s")
        return False


def _is_too_late(error: StoreError, age: float) -> bool:
    """Return whether only a request of this age keeps a program alive."""
    if isinstance(error, UnavailableError) and not error.reached:
        return seconds_of_end() > END_UNREACHED
    return min(age, seconds_of_end()) > END_REFUSED


def _is_told(op: Op, error: StoreError) -> bool:
    """Return whether an unknown outcome is the reply of ``completed`` itself."""
    return op.name == "completed" and isinstance(error, OutcomeUnknownError)

"""The policies of an account in two coroutines, for ordinary requests.

Six policies around a request are six coroutines, which every response passes through: a third of
what our own code costs a rename. Nearly all requests succeed at once and wait for nothing. For
those ``merged`` does what the policies do, in their order, in two coroutines. Each other request
goes through the policies themselves; after a failure, as one whose first attempt has been made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asynccommit.errors import StoreError
from asynccommit.stores.policies.adaptive_rate import Adaptive
from asynccommit.stores.policies.funnel import Call, FirstAttempt, Op, Policy, stacked
from asynccommit.stores.policies.in_flight import InFlightLimit
from asynccommit.stores.policies.lost_replies import Recover
from asynccommit.stores.policies.retry import Retry
from asynccommit.stores.policies.stats import BULK, Stats

_MANY = frozenset({*BULK, "delete_many"})
"""Calls for many files, which the policies count file by file."""


def merged(policies: Sequence[Policy], call: Call) -> Call:
    """Return ``call`` with these policies around it, the outermost first.

    Other stacks than that of an account are composed policy by policy.
    """
    match policies:
        case (
            Stats() as asked,
            Recover() as recover,
            Retry() as retry,
            *between,
            Adaptive() as pace,
            InFlightLimit() as limit,
            Stats() as sent,
        ) if limit.slots is not None:
            call = stacked(between, _sending(pace, limit, sent, call))
            return _asking(asked, recover, retry, call)
        case _:
            return stacked(policies, call)


def _sending(pace: Adaptive, limit: InFlightLimit, sent: Stats, call: Call) -> Call:
    """Merge what is done for each attempt: its rate, its slot, its count."""
    waiting, slots, clock = stacked((pace, limit, sent), call), limit.free_slots, sent.clock

    async def passed(op: Op) -> Any:
        if op.name in _MANY or not slots.free or (quota := pace.take(op)) is None:
            return await waiting(op)
        slots.take()
        epoch, start = quota.epoch, clock()
        try:
            answer = await call(op)
        except BaseException as error:
            sent.failed(op.name, start, error)
            slots.release()
            if isinstance(error, StoreError):
                pace.failed(quota, epoch, 1, error)
            raise
        sent.ended(op.name, start)
        slots.release()
        if epoch == quota.epoch:
            quota.good += 1
        return answer

    return passed


def _asking(asked: Stats, recover: Recover, retry: Retry, call: Call) -> Call:
    """Merge what is done for each request, once for all its attempts."""
    settling, clock = stacked((asked, recover, retry), _after_first(call)), asked.clock

    async def passed(op: Op) -> Any:
        ready = None if op.name in _MANY else recover.ready(op)
        if ready is None:
            return await settling(op)
        start, begun = clock(), retry.begin()
        try:
            answer = await call(ready)
        except StoreError as error:
            ready.first = FirstAttempt(start, begun, error)
        except BaseException as error:
            asked.failed(op.name, start, error)
            raise
        else:
            retry.answered()
            asked.ended(op.name, start)
            return answer
        return await settling(ready)  # outside, so that the error is not the context of another

    return passed


def _after_first(call: Call) -> Call:
    """Return ``call``, which raises the error of an attempt that was made."""

    async def called(op: Op) -> Any:
        first, op.first = op.first, None
        if first is not None:
            raise first.error
        return await call(op)

    return called

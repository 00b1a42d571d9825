"""The merged policies do what the policies do one by one, in fewer calls."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable
from dataclasses import asdict
from types import FrameType
from typing import Any

import pytest

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.stores.adls.store import AdlsStore
from asynccommit.stores.base import Info, Kind, Traits
from asynccommit.stores.http.base import Response
from asynccommit.stores.policies.adaptive_rate import Adaptive
from asynccommit.stores.policies.funnel import Call, Op, Policy, stacked
from asynccommit.stores.policies.in_flight import InFlightLimit
from asynccommit.stores.policies.lost_replies import Recover
from asynccommit.stores.policies.merged import merged
from asynccommit.stores.policies.per_object_rate import PerObjectRate
from asynccommit.stores.policies.request_series import RequestSeries
from asynccommit.stores.policies.retry import Retry
from asynccommit.stores.policies.stats import Stats
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.urls import parse_url
from asynccommit.testing.models.virtual_loop import run_virtual
from bench.adls import account, senders
from tests.support.stack import Answers, delete, head, put, rename

TOKENS = Traits("keeps tokens", tokens=True, account="adls:here", workers=2)
VERSIONS = Traits(
    "keeps versions", account="gs:here", workers=2, content_etags=True, etag_survives_rename=False
)
FILE = Info("/b", Kind.FILE, 1, "1-a")

BUSY = ThrottledError("rename", "/a", "busy")
DOWN = UnavailableError("rename", "/a", "down")
LOST = OutcomeUnknownError("rename", "/a", "reset")
GONE = NotFoundError("rename", "/a")
THERE = ExistsError("rename", "/a")
CRASH = RuntimeError("a fault of the store")


def _renames() -> Op:
    return Op("rename", ("/a", "/b"), True, False, {"replace": False, "etag": "1-a", "token": None})


def _many() -> Op:
    return Op("delete_many", ([FILE, FILE],), True, True)


class _Stack:
    """The policies of an account around set answers that take a while."""

    def __init__(self, traits: Traits, answers: Answers) -> None:
        clock = asyncio.get_running_loop().time
        rng = random.Random(1)
        self.policies: tuple[Any, ...] = (
            Stats("asked", clock=clock),
            Recover(traits, rng, attempts=3),
            Retry(rng, attempts=3, account=traits.account),
            *((PerObjectRate(1.0, traits.account),) if traits.content_etags else ()),
            Adaptive(traits),
            InFlightLimit(traits.workers),
            Stats("sent", clock=clock, series=RequestSeries(clock, lambda: None)),
        )
        self.answers = answers

    async def call(self, op: Op) -> Any:
        """Give the next answer after a while."""
        await asyncio.sleep(0.25)
        return await self.answers(op)

    def counts(self) -> list[Any]:
        """Return what the policies have counted."""
        asked, recover, retry, *_, pace, limit, sent = self.policies
        assert limit.free_slots.free == limit.slots
        counts = [{name: asdict(count) for name, count in _.counts.items()} for _ in (asked, sent)]
        return [
            *counts,
            dict(recover.recovered),
            [recover.waited, retry.waited, pace.waited, pace.refused],
            [sent.series.sent, sent.series.refused],
        ]


async def _told(
    compose: Callable[[Any, Call], Call], traits: Traits, make: Callable[[], Op], given: list[Any]
) -> list[Any]:
    """Send three requests at once with these answers; return all that can be seen of it."""
    answers = Answers(*given)
    stack = _Stack(traits, answers)
    call = compose(stack.policies, stack.call)
    said = await asyncio.gather(*(call(make()) for _ in range(3)), return_exceptions=True)
    shown = [
        (type(one), str(one), getattr(one, "__notes__", []), one.__context__)
        if isinstance(one, BaseException)
        else one
        for one in said
    ]
    end = asyncio.get_running_loop().time()
    return [shown, [repr(op) for op in answers.ops], stack.counts(), end]


@pytest.mark.parametrize("traits", [TOKENS, VERSIONS], ids=lambda one: one.account)
@pytest.mark.parametrize("make", [_renames, rename, put, head, delete, _many])
@pytest.mark.parametrize(
    "given",
    [[], [BUSY], [DOWN, BUSY], [LOST, FILE], [LOST, GONE, GONE], [GONE], [THERE], [CRASH]],
    ids=lambda given: "-".join(type(one).__name__ for one in given) or "none",
)
def test_merged_policies_do_what_the_policies_do(
    traits: Traits, make: Callable[[], Op], given: list[Any]
) -> None:
    """Requests, answers, errors, counts and waits are the same."""
    if make is _many:
        given = [one if isinstance(one, StoreError) else [None, None] for one in [*given, 1, 1, 1]]
    apart = run_virtual(_told(stacked, traits, make, given))
    assert run_virtual(_told(merged, traits, make, given)) == apart


def test_other_stacks_are_composed_one_by_one() -> None:
    """A stack without the policies of an account is what ``stacked`` makes."""
    policies: tuple[Policy, ...] = (Stats("asked"), InFlightLimit(None))
    call = Answers()
    assert type(merged(policies, call)) is type(stacked(policies, call))
    assert merged((), call) is call


class _Instant:
    """A transport that answers at once."""

    async def send(self, *_: Any, **__: Any) -> Response:
        """Answer that it was created."""
        return Response(201, {"x-ms-request-id": "1"}, b"")

    async def aclose(self) -> None:
        """Do nothing."""


async def test_a_rename_of_a_commit_takes_few_calls() -> None:
    """The calls in Python of one rename, from the step of the commit to the transport."""
    options = account.storage_options("127.0.0.1:1")
    bare = AdlsStore(parse_url(account.URL), options, transport=_Instant())
    sender = senders.of_commit(wrap(bare, StoreSettings(rng=random.Random(1))))
    assert sender.every is not None
    calls = []
    for count in (20, 120):  # fewer than the account takes at once at first
        pairs, number = account.pairs(count), 0

        def note(frame: FrameType, event: str, arg: object) -> None:
            nonlocal number
            number += event == "call"

        sys.setprofile(note)
        try:
            await sender.every(pairs, 8)
        finally:
            sys.setprofile(None)
        calls.append(number)
    assert (calls[1] - calls[0]) / 100 <= 52

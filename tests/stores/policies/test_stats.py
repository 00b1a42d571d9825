"""Stats counts what passes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from asynccommit.errors import NotFoundError, OutcomeUnknownError, ThrottledError, UnavailableError
from asynccommit.stores.base import Page
from asynccommit.stores.policies.funnel import Op
from asynccommit.stores.policies.retry import Retry
from asynccommit.stores.policies.stats import Count, Stats
from tests.support.stack import Answers, Clock, Random, head, rename

PAIRS = [("/a", "/1", None), ("/b", "/2", None), ("/c", "/3", None), ("/d", "/4", None)]


async def test_calls_are_counted_by_method_with_their_times(clock: Clock) -> None:
    """Each method has its number of calls, the time of all of them and the longest."""
    times = iter([1.0, 3.0, 2.0])

    async def answer(op: Op) -> Any:
        clock.now += next(times)

    stats = Stats("asked", clock=clock.time)
    call = stats.around(answer)
    for op in (rename(), rename(), head()):
        await call(op)
    assert stats.counts == {
        "rename": Count(n=2, seconds=4.0, longest=3.0),
        "head": Count(n=1, seconds=2.0, longest=2.0),
    }
    assert (stats.n, stats.waits) == (3, 0)


async def test_failures_are_counted_and_raised() -> None:
    """An error is counted as a failure, and as a wait if it is for the rate, and passes on."""
    stats = Stats("asked")
    call = stats.around(Answers(NotFoundError("head", "/a"), ThrottledError("head", "/a")))
    for kind in (NotFoundError, ThrottledError):
        with pytest.raises(kind):
            await call(head())
    await call(head())
    assert (stats.counts["head"].n, stats.counts["head"].failures, stats.waits) == (3, 2, 1)


async def test_a_cancelled_call_is_a_failure(clock: Clock) -> None:
    """A call whose caller was cancelled is counted."""
    stats = Stats("asked")
    never = asyncio.Event()

    async def answer(op: Op) -> Any:
        await never.wait()

    task = asyncio.ensure_future(stats.around(answer)(head()))
    await clock.settle()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (stats.counts["head"].n, stats.counts["head"].failures) == (1, 1)


async def test_asked_and_sent_differ_by_what_lies_between(clock: Clock) -> None:
    """One request asked, sent again twice, is three sent; the waits are in the time asked."""
    asked, sent = (Stats(name, clock=clock.time) for name in ("asked", "sent"))
    answers = Answers(ThrottledError("head", "/a", "", 5.0), ThrottledError("head", "/a", "", 7.0))
    retry = Retry(Random(0.0), sleep=clock.sleep, clock=clock.time)
    await asked.around(retry.around(sent.around(answers)))(head())
    assert (asked.n, asked.waits, asked.counts["head"].seconds) == (1, 0, 12.0)
    assert (sent.n, sent.waits, sent.counts["head"].seconds) == (3, 2, 0.0)


async def test_busy_answers_are_waits(clock: Clock) -> None:
    """What the store was too busy for counts as refused for the rate."""
    stats = Stats("sent")
    call = stats.around(Answers(OutcomeUnknownError("head", "/a", busy=True)))
    with pytest.raises(OutcomeUnknownError):
        await call(head())
    assert stats.waits == 1


async def test_files_that_are_renamed_together_are_renames(clock: Clock) -> None:
    """Each file counts as a rename that took its share of the time, also the one that failed."""

    async def answer(op: Op) -> Any:
        clock.now += 6.0
        return 2, ThrottledError("rename", "/c")

    stats = Stats("asked", clock=clock.time)
    await stats.around(answer)(Op("rename_many", (PAIRS,), True, False))
    assert stats.counts == {"rename": Count(n=3, failures=1, waits=1, seconds=6.0, longest=2.0)}


async def test_directories_that_are_listed_together_are_listings(clock: Clock) -> None:
    """Each page counts as a listing that took its share of the time; what is missing does not."""

    async def answer(op: Op) -> Any:
        clock.now += 6.0
        return [Page(()), None, Page(())]

    stats = Stats("asked", clock=clock.time)
    await stats.around(answer)(Op("list_many", (["/a", "/b", "/c"],), False, True))
    assert stats.counts == {"list": Count(n=2, seconds=6.0, longest=3.0)}


async def test_renames_that_were_never_answered_are_one_failure(clock: Clock) -> None:
    """A call that raises is a failure, however many files it was to rename."""
    stats = Stats("asked", clock=clock.time)
    call = stats.around(Answers(UnavailableError("rename", "/a")))
    with pytest.raises(UnavailableError):
        await call(Op("rename_many", (PAIRS,), True, False))
    assert stats.counts == {"rename": Count(n=1, failures=1)}

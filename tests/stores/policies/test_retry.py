"""Retry sends again what is safe to send again, for as long as it is told to."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.stores.policies import retry
from asynccommit.stores.policies.funnel import Op
from asynccommit.stores.policies.retry import Retry
from tests.support.stack import Answers, Clock, Random, delete, head, put, rename

THROTTLED = ThrottledError("op", "/a", "busy")
UNAVAILABLE = UnavailableError("op", "/a", "away")
LOST = OutcomeUnknownError("op", "/a", "reset")
NOT_FOUND = NotFoundError("op", "/a", "nothing there")
FINAL = [
    error("op", "/a", "no")
    for error in (NotFoundError, ExistsError, PreconditionError, DeniedError, RejectedError)
]


def timed(clock: Clock, share: float, **options: Any) -> Retry:
    """Return a policy that waits by ``clock`` and draws always the same share of its waits."""
    return Retry(Random(share), first=1000, sleep=clock.sleep, clock=clock.time, **options)


def delete_tree() -> Op:
    """The other delete."""
    return Op("delete_tree", ("/a",), True, True)


@pytest.mark.parametrize("op", [head, put, delete, rename])
@pytest.mark.parametrize("refused", [THROTTLED, UNAVAILABLE])
async def test_a_refusal_is_sent_again(
    clock: Clock, op: Callable[[], Op], refused: StoreError
) -> None:
    """Whatever was refused with nothing done is sent again, renames too."""
    answers = Answers(refused, refused, "done")
    assert await timed(clock, 1.0).around(answers)(op()) == "done"
    assert len(answers.ops) == 3


@pytest.mark.parametrize("error", FINAL, ids=lambda error: type(error).__name__)
async def test_an_answer_is_an_answer(clock: Clock, error: StoreError) -> None:
    """What the store answered is not asked again, and comes as it was answered."""
    answers = Answers(error)
    with pytest.raises(type(error)) as caught:
        await timed(clock, 1.0).around(answers)(put())
    assert caught.value is error
    assert (len(answers.ops), clock.slept) == (1, [])


async def test_a_lost_answer_of_a_rename_is_not_sent_again(clock: Clock) -> None:
    """A rename whose answer is lost may have happened: it ends as unknown."""
    answers = Answers(LOST)
    with pytest.raises(OutcomeUnknownError):
        await timed(clock, 1.0).around(answers)(rename())
    assert len(answers.ops) == 1


@pytest.mark.parametrize("op", [head, put, delete, delete_tree])
async def test_a_lost_answer_is_sent_again_where_that_is_harmless(
    clock: Clock, op: Callable[[], Op]
) -> None:
    """Reads, overwriting puts and deletes are sent again after a lost response."""
    answers = Answers(LOST, "done")
    assert await timed(clock, 1.0).around(answers)(op()) == "done"
    assert len(answers.ops) == 2


@pytest.mark.parametrize("op", [delete, delete_tree])
async def test_a_repeated_delete_that_finds_nothing_is_done(
    clock: Clock, op: Callable[[], Op]
) -> None:
    """After a lost response nothing there means that the first delete worked."""
    answers = Answers(LOST, THROTTLED, NOT_FOUND)
    assert await timed(clock, 1.0).around(answers)(op()) is None


@pytest.mark.parametrize(
    "op",
    [
        Op("abort_upload", ("/a", "id"), True, True),
        Op("put_part", ("/a", "id", 1, b"data"), True, True),
    ],
    ids=lambda op: str(op.name),
)
async def test_that_an_upload_is_gone_is_the_truth(clock: Clock, op: Op) -> None:
    """After a lost response too: an upload may be completed, which its abort must not hide."""
    with pytest.raises(NotFoundError):
        await timed(clock, 1.0).around(Answers(LOST, THROTTLED, NOT_FOUND))(op)


@pytest.mark.parametrize("op", [delete, delete_tree])
async def test_a_directory_that_is_not_empty_was_not_deleted(
    clock: Clock, op: Callable[[], Op]
) -> None:
    """After a lost response too: neither request has deleted it, and neither will."""
    full = ExistsError("delete", "/a", "the directory is not empty")
    with pytest.raises(ExistsError):
        await timed(clock, 1.0).around(Answers(LOST, THROTTLED, full))(op())


async def test_a_delete_that_was_only_refused_reports_nothing_there(clock: Clock) -> None:
    """A refusal deleted nothing, so nothing there is the true answer."""
    call = timed(clock, 1.0).around(Answers(UNAVAILABLE, NOT_FOUND))
    with pytest.raises(NotFoundError):
        await call(delete())


@pytest.mark.parametrize("last", [NOT_FOUND, *FINAL, UNAVAILABLE])
async def test_a_lost_answer_of_a_write_is_not_forgotten(clock: Clock, last: StoreError) -> None:
    """A put with a lost response that fails later stays unknown: its first sending may land."""
    retry = timed(clock, 1.0, attempts=2)
    with pytest.raises(OutcomeUnknownError, match=last.detail) as caught:
        await retry.around(Answers(LOST, last))(put())
    assert caught.value.__cause__ is last


async def test_a_lost_answer_of_a_read_is_forgotten(clock: Clock) -> None:
    """A read changed nothing, so its last answer counts."""
    call = timed(clock, 1.0).around(Answers(LOST, NOT_FOUND))
    with pytest.raises(NotFoundError):
        await call(head())


@pytest.mark.parametrize("attempts", [1, 2, 5])
async def test_attempts_are_bounded(clock: Clock, attempts: int) -> None:
    """A store that stays away is asked so often and no more; the error says so."""
    answers = Answers(*[UnavailableError("op", "/a") for _ in range(10)])
    retry = timed(clock, 1.0, attempts=attempts)
    with pytest.raises(UnavailableError) as caught:
        await retry.around(answers)(head())
    assert len(answers.ops) == attempts
    assert f"after {attempts} attempts" in caught.value.__notes__[0]


async def test_a_store_that_never_answered_is_given_up_soon(clock: Clock) -> None:
    """A wrong name is told in seconds; a store that has answered once gets all attempts."""
    retry = Retry(Random(1.0), attempts=9, sleep=clock.sleep, clock=clock.time)
    for first, sent in ((None, 7), ("an answer", 9)):
        answers = Answers(*[UnavailableError("op", "/a") for _ in range(20)])
        call = retry.around(answers)
        if first:
            await retry.around(Answers(first))(head())
        with pytest.raises(UnavailableError):
            await call(head())
        assert len(answers.ops) == sent


async def test_throttling_spends_no_attempts_but_time(clock: Clock) -> None:
    """A store that asks to slow down delays a request; only the deadline fails it."""
    answers = Answers(*[ThrottledError("op", "/a") for _ in range(10_000)])
    retry = timed(clock, 1.0, attempts=2, deadline=600, cap=20)
    start = clock.now
    with pytest.raises(ThrottledError, match="op /a"):
        await retry.around(answers)(head())
    assert 580 <= clock.now - start <= 600
    assert len(answers.ops) > 30


async def test_the_store_is_not_asked_before_it_wants_to_be(clock: Clock) -> None:
    """A wait that the store asks for is obeyed, with the jitter on top of it."""
    busy = ThrottledError("op", "/a", "busy", retry_after=30.0)
    await timed(clock, 0.5, base=2.0).around(Answers(busy))(head())
    assert clock.slept == [31.0]


async def test_a_wait_past_the_deadline_is_not_begun(clock: Clock) -> None:
    """If the store asks for more time than is left, the request fails at once."""
    busy = ThrottledError("op", "/a", "busy", retry_after=3600.0)
    with pytest.raises(ThrottledError):
        await timed(clock, 1.0).around(Answers(busy))(head())
    assert clock.slept == []


async def test_waits_double_up_to_the_cap(clock: Clock) -> None:
    """The bound of the wait doubles with each attempt until it reaches the cap."""
    answers = Answers(*[UNAVAILABLE] * 7)
    retry = timed(clock, 1.0, attempts=9, base=0.5, cap=4)
    await retry.around(answers)(head())
    assert clock.slept == [0.5, 1, 2, 4, 4, 4, 4]


@given(seed=st.integers(), failures=st.integers(1, 7))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
async def test_waits_are_drawn_evenly_from_nothing_on(seed: int, failures: int) -> None:
    """Every wait lies between nothing and its bound, and the same seed draws the same waits."""
    runs = []
    for _ in range(2):
        clock = Clock()
        rng = random.Random(seed)
        retry = Retry(rng, first=8, sleep=clock.sleep, clock=clock.time, base=0.1, cap=1.0)
        await retry.around(Answers(*[UNAVAILABLE] * failures))(head())
        runs.append(clock.slept)
    assert runs[0] == runs[1]
    bounds = [min(1.0, 0.1 * 2**number) for number in range(failures)]
    assert all(0 <= wait <= bound for wait, bound in zip(runs[0], bounds, strict=True))


def test_attempts_below_one_are_refused() -> None:
    """A request must be sent at least once."""
    with pytest.raises(ValueError, match="attempts"):
        Retry(Random(1.0), attempts=0)


async def test_a_busy_answer_spends_no_attempts(clock: Clock) -> None:
    """A repeatable request that the store was too busy to finish is sent until it is done."""
    busy = OutcomeUnknownError("op", "/a", "timed out", busy=True)
    answers = Answers(*[busy] * 20, "done")
    assert await timed(clock, 0.1, attempts=2).around(answers)(put()) == "done"


async def test_what_is_sent_again_stays_below_a_tenth(clock: Clock) -> None:
    """At 30% failures the requests wait longer, all succeed, and few are sent again at a time."""
    rng = random.Random(1)
    sent = 0

    async def store(op: Op) -> None:
        nonlocal sent
        sent += 1
        if rng.random() < 0.3:
            raise UNAVAILABLE

    retry = timed(clock, 0.5, attempts=50)
    call = retry.around(store)
    begin = clock.now
    for _ in range(1000):
        await call(head())
    assert sent - 1000 <= 10 + 100 + (clock.now - begin)
    assert retry.waited["budget"] > 10


async def test_an_answer_to_a_second_sending_counts_as_one(clock: Clock) -> None:
    """A store that answered at the second try is no stranger."""
    retry = Retry(Random(1.0), attempts=9, sleep=clock.sleep, clock=clock.time)
    await retry.around(Answers(UnavailableError("op", "/a"), "an answer"))(head())
    answers = Answers(*[UnavailableError("op", "/a") for _ in range(20)])
    with pytest.raises(UnavailableError):
        await retry.around(answers)(head())

    assert len(answers.ops) == 9


@pytest.mark.parametrize(
    "error, seconds",
    [
        (UnavailableError("op", "/a", "refused", reached=False), retry.END_UNREACHED),
        (UNAVAILABLE, retry.END_REFUSED),
        (THROTTLED, retry.END_REFUSED),
    ],
)
async def test_the_end_of_a_program_bounds_how_long_a_request_is_sent_again(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, error: StoreError, seconds: float
) -> None:
    """A program that has ended waits seconds for a store, not until the deadline."""
    ended = clock.now
    monkeypatch.setattr(retry, "seconds_of_end", lambda: clock.now - ended)
    policy = timed(clock, 1.0, attempts=1000, cap=1.0)

    with pytest.raises(type(error)):
        await policy.around(Answers(*[error] * 1000))(delete())

    assert seconds < sum(clock.slept) < seconds + 2.0


async def test_a_request_that_has_just_failed_is_sent_again_at_the_end_of_a_program(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long clean-up goes on after the program's end: only a request's own wait is bounded."""
    monkeypatch.setattr(retry, "seconds_of_end", lambda: 1000.0)

    assert await timed(clock, 1.0).around(Answers(THROTTLED, "done"))(delete()) == "done"

"""Bearer tokens: who waits for one, when it is renewed, and what a refusal leads to."""

from __future__ import annotations

import asyncio
import math

import pytest

from asynccommit.stores.http.tokens import Flight, Fresh, Holder, Renewal, TokenError


class Clock:
    """Seconds since the epoch, as set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        """Tell them."""
        return self.now


class Answers:
    """A source: ``answers`` are the tokens it gives, or what it raises."""

    def __init__(self, *answers: Fresh | Exception) -> None:
        self.answers = list(answers)
        self.secrets: tuple[str, ...] = ("hunter2",)
        self.holder = Holder("the managed identity", "is it of this tenant?")
        self.asked = 0
        self.closed = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def ask(self) -> Fresh:
        """Give the next token; the last one again and again."""
        self.asked += 1
        await asyncio.sleep(0)  # as whatever asks over a network
        await self.gate.wait()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def explain(self, error: Exception) -> TokenError:
        """Say what the network does may pass, and the rest not."""
        return TokenError(f"no token: {error}", again=isinstance(error, OSError))

    async def aclose(self) -> None:
        """Take note."""
        self.closed = True


@pytest.fixture
def clock() -> Clock:
    """A clock that is moved by hand."""
    return Clock()


def hour(clock: Clock, name: str) -> Fresh:
    """Return a token that is good for an hour from now."""
    return Fresh(name, clock.now + 3600)


async def test_many_requests_wait_for_one_token(clock: Clock) -> None:
    """The first token is asked for once."""
    source = Answers(hour(clock, "one"))
    tokens = Renewal(source, clock)

    await asyncio.gather(*(tokens.renew() for _ in range(50)))

    assert source.asked == 1
    assert tokens.header == "Bearer one"


@pytest.mark.parametrize(
    "left, after",
    [(3600, 3300), (600, 300), (60, 30), (1, 1), (0, 1), (-100, 1), (math.inf, math.inf)],
)
async def test_a_token_is_renewed_before_it_expires(
    clock: Clock, left: float, after: float
) -> None:
    """Five minutes before, a short one halfway, and not more than once a second."""
    tokens = Renewal(Answers(Fresh("one", clock.now + left)), clock)
    assert tokens.renew_at <= clock.now
    await tokens.renew()

    assert tokens.renew_at == clock.now + after


async def test_nobody_waits_for_a_renewal_while_the_token_is_good(clock: Clock) -> None:
    """One request renews; those meanwhile see no need to, and go on with the old token."""
    source = Answers(hour(clock, "one"), hour(clock, "two"))
    tokens = Renewal(source, clock)
    await tokens.renew()
    clock.now += 3400
    source.gate.clear()
    renewal = asyncio.ensure_future(tokens.renew())
    await asyncio.sleep(0)

    assert tokens.renew_at > clock.now
    assert tokens.header == "Bearer one"
    source.gate.set()
    await renewal
    assert tokens.header == "Bearer two"


async def test_a_failed_renewal_is_tried_again_while_the_token_is_good(clock: Clock) -> None:
    """The old token goes on; half a minute later is the next attempt."""
    tokens = Renewal(Answers(hour(clock, "one"), OSError("no route")), clock)
    await tokens.renew()
    clock.now += 3400
    await tokens.renew()

    assert tokens.header == "Bearer one"
    assert tokens.renew_at == clock.now + 30
    clock.now += 300
    with pytest.raises(TokenError, match="no route") as caught:
        await tokens.renew()
    assert caught.value.again


async def test_one_failure_serves_all_who_wait(clock: Clock) -> None:
    """Fifty requests do not ask fifty times for what is not to be had; the next one asks anew."""
    source = Answers(ValueError("no"))
    tokens = Renewal(source, clock)

    found = await asyncio.gather(*(tokens.renew() for _ in range(50)), return_exceptions=True)
    assert all(isinstance(error, TokenError) and not error.again for error in found)
    assert source.asked == 1
    with pytest.raises(TokenError):
        await tokens.renew()
    assert source.asked == 2


async def test_a_refused_token_is_renewed_once_for_all(clock: Clock) -> None:
    """Every request that it was refused to is to be sent again with the new one."""
    source = Answers(hour(clock, "one"), hour(clock, "two"), hour(clock, "three"))
    tokens = Renewal(source, clock)
    await tokens.renew()
    sent = {"authorization": tokens.header}

    assert await asyncio.gather(*(tokens.refused(sent) for _ in range(20))) == [True] * 20
    assert tokens.header == "Bearer two"
    assert await tokens.refused(sent)
    assert source.asked == 2


async def test_a_new_token_that_is_refused_too_is_not_renewed(clock: Clock) -> None:
    """It is not its age that is wrong; an hour later it may be."""
    tokens = Renewal(Answers(hour(clock, "1"), hour(clock, "2"), hour(clock, "3")), clock)
    await tokens.renew()
    await tokens.refused({"authorization": tokens.header})

    assert tokens.explain() == ""
    clock.now += 2.5
    assert not await tokens.refused({"authorization": tokens.header})
    assert tokens.explain() == (
        "the token of the managed identity was refused twice within 3 s, although it was renewed: "
        "is it of this tenant?"
    )
    clock.now += 3600
    assert await tokens.refused({"authorization": tokens.header})
    assert tokens.explain() == ""


async def test_a_token_that_was_accepted_may_expire_again_at_once(clock: Clock) -> None:
    """The refusal of a new token is final only while no request with it has succeeded."""
    tokens = Renewal(Answers(*(hour(clock, str(number)) for number in range(4))), clock)
    await tokens.renew()

    for _ in range(2):
        assert await tokens.refused({"authorization": tokens.header})
        assert tokens.in_doubt
        tokens.accepted({"authorization": "Bearer old"})
        assert tokens.in_doubt
        tokens.accepted({"authorization": tokens.header})
        assert not tokens.in_doubt
    assert await tokens.refused({"authorization": tokens.header})
    assert not await tokens.refused({"authorization": tokens.header})
    assert "refused twice" in tokens.explain()


async def test_the_same_token_again_is_no_help(clock: Clock) -> None:
    """A source that gives what was refused has nothing better."""
    tokens = Renewal(Answers(hour(clock, "one")), clock)
    await tokens.renew()

    for _ in range(2):
        assert not await tokens.refused({"authorization": tokens.header})
        assert "managed identity was refused, and its renewal gave the same one" in tokens.explain()


async def test_a_refused_token_that_cannot_be_renewed_says_why(clock: Clock) -> None:
    """The cause is the source's, not the refusal."""
    tokens = Renewal(Answers(hour(clock, "one"), OSError("no route")), clock)
    await tokens.renew()

    with pytest.raises(TokenError, match="no route"):
        await tokens.refused({"authorization": tokens.header})


async def test_secrets_are_hidden(clock: Clock) -> None:
    """Those of the source, and the token, in whatever is said."""
    tokens = Renewal(Answers(hour(clock, "eyJ0"), ValueError("hunter2 for eyJ0")), clock)
    await tokens.renew()
    clock.now += 3600

    with pytest.raises(TokenError, match=r"no token: \*\*\* for \*\*\*") as caught:
        await tokens.renew()
    assert caught.value.__cause__ is None
    assert repr(tokens) == "Renewal()"
    assert tokens.hide("got Bearer eyJ0") == "got Bearer ***"


async def test_a_source_that_does_not_answer_is_given_up(clock: Clock) -> None:
    """It may answer another time."""
    source = Answers(hour(clock, "one"))
    source.gate.clear()

    with pytest.raises(TokenError) as caught:
        await Renewal(source, clock, patience=0.01).renew()
    assert caught.value.again


async def test_the_source_is_closed(clock: Clock) -> None:
    """With whoever renews from it."""
    source = Answers(hour(clock, "one"))
    await Renewal(source, clock).aclose()

    assert source.closed


async def test_a_flight_goes_on_with_the_next_if_the_first_is_cancelled() -> None:
    """Whoever waits is not cancelled with whoever began."""
    gate = asyncio.Event()
    begun = []

    async def call() -> int:
        begun.append(1)
        await gate.wait()
        return len(begun)

    flight = Flight(call)
    first, second = (asyncio.ensure_future(flight()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    gate.set()

    assert await second == 2

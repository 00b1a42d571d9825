"""Bearer tokens: who waits for one, when it is renewed, and what a refusal leads to."""

from __future__ import annotations

import asyncio
import threading
from typing import NamedTuple

import pytest
from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError

from asynccommit.stores.adls_wire import query
from asynccommit.stores.azure_credentials import TokenError
from asynccommit.stores.azure_tokens import SCOPE, Flight, Tokens


class Token(NamedTuple):
    """What a credential object of azure-identity gives."""

    token: str
    expires_on: int


class Source:
    """A credential object: ``answers`` are the tokens it gives, or what it raises."""

    def __init__(self, *answers: Token | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.closed = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def get_token(self, *scopes: str) -> Token:
        """Give the next token; the last one again and again."""
        self.asked += scopes
        await asyncio.sleep(0)  # as whatever asks over a network
        await self.gate.wait()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        """Take note."""
        self.closed = True


class Clock:
    """Seconds since the epoch, as set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        """Tell them."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock that is moved by hand."""
    return Clock()


def header(tokens: Tokens) -> str:
    """Return what a request would carry."""
    headers: dict[str, str] = {}
    tokens.authorize("GET", "/", query(), headers, 0)
    return headers["authorization"]


def hour(clock: Clock, name: str) -> Token:
    """Return a token that is good for an hour from now."""
    return Token(name, int(clock.now) + 3600)


async def test_many_requests_wait_for_one_token(clock: Clock) -> None:
    """The first token is asked for once, for storage."""
    source = Source(hour(clock, "one"))
    tokens = Tokens(source, clock)

    await asyncio.gather(*(tokens.renew() for _ in range(50)))

    assert source.asked == [SCOPE]
    assert header(tokens) == "Bearer one"


async def test_a_token_is_renewed_before_it_expires(clock: Clock) -> None:
    """Five minutes before, so that no request meets its end."""
    tokens = Tokens(Source(hour(clock, "one")), clock)
    await tokens.renew()

    assert tokens.renew_at == clock.now + 3300


@pytest.mark.parametrize("left, after", [(600, 300), (60, 30), (1, 1), (0, 1), (-100, 1)])
async def test_a_short_token_is_renewed_halfway(clock: Clock, left: int, after: float) -> None:
    """But not more than once a second, however short."""
    tokens = Tokens(Source(Token("one", int(clock.now) + left)), clock)
    await tokens.renew()

    assert tokens.renew_at == clock.now + after


async def test_nobody_waits_for_a_renewal_while_the_token_is_good(clock: Clock) -> None:
    """One request renews; those meanwhile see no need to, and go on with the old token."""
    source = Source(hour(clock, "one"), hour(clock, "two"))
    tokens = Tokens(source, clock)
    await tokens.renew()
    clock.now += 3400
    assert tokens.renew_at <= clock.now
    source.gate.clear()
    renewal = asyncio.ensure_future(tokens.renew())
    await asyncio.sleep(0)

    assert tokens.renew_at > clock.now
    assert header(tokens) == "Bearer one"
    source.gate.set()
    await renewal
    assert header(tokens) == "Bearer two"


async def test_a_failed_renewal_is_tried_again_while_the_token_is_good(clock: Clock) -> None:
    """The old token goes on; half a minute later is the next attempt."""
    source = Source(hour(clock, "one"), ServiceRequestError("no route"))
    tokens = Tokens(source, clock)
    await tokens.renew()
    clock.now += 3400
    await tokens.renew()

    assert header(tokens) == "Bearer one"
    assert tokens.renew_at == clock.now + 30
    clock.now += 300
    with pytest.raises(TokenError, match="no route"):
        await tokens.renew()


@pytest.mark.parametrize(
    "error, again",
    [
        (ServiceRequestError("cannot connect"), True),
        (TimeoutError("too long"), True),
        (ConnectionResetError("cut"), True),
        (ClientAuthenticationError("AADSTS7000215: invalid client secret"), False),
        (ValueError("no such thing"), False),
        (ValueError(), False),
    ],
)
async def test_no_token_is_told_by_its_cause(clock: Clock, error: Exception, again: bool) -> None:
    """What lies in the network may pass; what the identity service refuses does not."""
    tokens = Tokens(Source(error), clock)

    with pytest.raises(TokenError, match=str(error) or "ValueError") as caught:
        await tokens.renew()
    assert caught.value.again is again
    assert caught.value.__cause__ is None


async def test_one_failure_serves_all_who_wait(clock: Clock) -> None:
    """Fifty requests do not ask fifty times for what is not to be had; the next one asks anew."""
    source = Source(ClientAuthenticationError("no"))
    tokens = Tokens(source, clock)

    found = await asyncio.gather(*(tokens.renew() for _ in range(50)), return_exceptions=True)
    assert all(isinstance(error, TokenError) for error in found)
    assert len(source.asked) == 1
    with pytest.raises(TokenError):
        await tokens.renew()
    assert len(source.asked) == 2


async def test_secrets_are_hidden_in_a_failure(clock: Clock) -> None:
    """A library that repeats the secret is not repeated."""
    tokens = Tokens(
        Source(ValueError("bad secret hunter2hunter2")), clock, secrets=("hunter2hunter2",)
    )

    with pytest.raises(TokenError, match=r"bad secret \*\*\*"):
        await tokens.renew()


async def test_a_refused_token_is_renewed_once_for_all(clock: Clock) -> None:
    """Every request that it was refused to is to be sent again with the new one."""
    source = Source(hour(clock, "one"), hour(clock, "two"), hour(clock, "three"))
    tokens = Tokens(source, clock)
    await tokens.renew()
    sent = {"authorization": header(tokens)}

    assert await asyncio.gather(*(tokens.refused(sent) for _ in range(20))) == [True] * 20
    assert header(tokens) == "Bearer two"
    assert len(source.asked) == 2
    assert await tokens.refused(sent)
    assert len(source.asked) == 2


async def test_a_new_token_that_is_refused_too_is_not_renewed(clock: Clock) -> None:
    """It is not its age that is wrong; an hour later it may be."""
    tokens = Tokens(Source(hour(clock, "1"), hour(clock, "2"), hour(clock, "3")), clock)
    await tokens.renew()
    await tokens.refused({"authorization": header(tokens)})

    assert not await tokens.refused({"authorization": header(tokens)})
    clock.now += 3600
    assert await tokens.refused({"authorization": header(tokens)})


async def test_the_same_token_again_is_no_help(clock: Clock) -> None:
    """A credential that gives what was refused has nothing better."""
    tokens = Tokens(Source(hour(clock, "one")), clock)
    await tokens.renew()

    assert not await tokens.refused({"authorization": header(tokens)})


async def test_a_refused_token_that_cannot_be_renewed_says_why(clock: Clock) -> None:
    """The cause is the credential's, not the refusal."""
    tokens = Tokens(Source(hour(clock, "one"), ServiceRequestError("no route")), clock)
    await tokens.renew()

    with pytest.raises(TokenError, match="no route"):
        await tokens.refused({"authorization": header(tokens)})


async def test_a_blocking_credential_is_asked_in_a_thread(clock: Clock) -> None:
    """Those of azure.identity itself are as good as those of azure.identity.aio."""
    threads = []

    class Blocking:
        def get_token(self, *scopes: str) -> Token:
            threads.append(threading.current_thread())
            return hour(clock, "one")

    tokens = Tokens(Blocking(), clock)
    await tokens.renew()

    assert header(tokens) == "Bearer one"
    assert threads != [threading.current_thread()]


async def test_only_a_credential_of_ours_is_closed(clock: Clock) -> None:
    """The user's own may be in use elsewhere."""
    given, made, unused = (Source(hour(clock, "one")) for _ in range(3))
    theirs = Tokens(given, clock)
    ours = Tokens(None, clock, make=lambda: made)
    for tokens in (theirs, ours):
        await tokens.renew()
    for tokens in (theirs, ours, Tokens(None, clock, make=lambda: unused)):
        await tokens.aclose()

    assert [source.closed for source in (given, made, unused)] == [False, True, False]


async def test_a_credential_that_cannot_be_made_gives_no_token(clock: Clock) -> None:
    """The error is the one of a credential that refuses."""

    def make() -> Source:
        raise ValueError("no such authority")

    with pytest.raises(TokenError, match="no such authority"):
        await Tokens(None, clock, make=make).renew()


async def test_a_token_is_no_repr_and_hidden(clock: Clock) -> None:
    """Neither a debugger nor an error shows it."""
    tokens = Tokens(Source(hour(clock, "eyJ0.secret")), clock)
    await tokens.renew()

    assert repr(tokens) == "Tokens()"
    assert tokens.hide("got Bearer eyJ0.secret") == "got Bearer ***"


async def test_a_credential_that_does_not_answer_is_given_up(clock: Clock) -> None:
    """It may answer another time."""
    source = Source(hour(clock, "one"))
    source.gate.clear()

    with pytest.raises(TokenError, match="TimeoutError") as caught:
        await Tokens(source, clock, patience=0.01).renew()
    assert caught.value.again


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

"""Bearer tokens: who waits for one, when it is renewed, and what a refusal leads to."""

from __future__ import annotations

import asyncio
import threading
from typing import NamedTuple

import pytest
from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError

from asynccommit.stores.adls.tokens import SCOPE, AzureTokens
from asynccommit.stores.adls.wire import query
from asynccommit.stores.http.tokens import TokenError


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


def header(tokens: AzureTokens) -> str:
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
    tokens = AzureTokens(source, clock)

    await asyncio.gather(*(tokens.renew() for _ in range(50)))

    assert source.asked == [SCOPE]
    assert header(tokens) == "Bearer one"


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
    tokens = AzureTokens(Source(error), clock)

    with pytest.raises(TokenError, match=str(error) or "ValueError") as caught:
        await tokens.renew()
    assert caught.value.again is again
    assert caught.value.__cause__ is None


async def test_secrets_are_hidden_in_a_failure(clock: Clock) -> None:
    """A library that repeats the secret is not repeated."""
    tokens = AzureTokens(
        Source(ValueError("bad secret hunter2hunter2")), clock, secrets=("hunter2hunter2",)
    )

    with pytest.raises(TokenError, match=r"bad secret \*\*\*"):
        await tokens.renew()


async def test_a_blocking_credential_is_asked_in_a_thread(clock: Clock) -> None:
    """Those of azure.identity itself are as good as those of azure.identity.aio."""
    threads = []

    class Blocking:
        def get_token(self, *scopes: str) -> Token:
            threads.append(threading.current_thread())
            return hour(clock, "one")

    tokens = AzureTokens(Blocking(), clock)
    await tokens.renew()

    assert header(tokens) == "Bearer one"
    assert threads != [threading.current_thread()]


async def test_only_a_credential_of_ours_is_closed(clock: Clock) -> None:
    """The user's own may be in use elsewhere."""
    given, made, unused = (Source(hour(clock, "one")) for _ in range(3))
    theirs = AzureTokens(given, clock)
    ours = AzureTokens(None, clock, make=lambda: made)
    for tokens in (theirs, ours):
        await tokens.renew()
    for tokens in (theirs, ours, AzureTokens(None, clock, make=lambda: unused)):
        await tokens.aclose()

    assert [source.closed for source in (given, made, unused)] == [False, True, False]


async def test_a_credential_that_cannot_be_made_gives_no_token(clock: Clock) -> None:
    """The error is the one of a credential that refuses."""

    def make() -> Source:
        raise ValueError("no such authority")

    with pytest.raises(TokenError, match="no such authority"):
        await AzureTokens(None, clock, make=make).renew()


async def test_a_token_is_no_repr_and_hidden(clock: Clock) -> None:
    """Neither a debugger nor an error shows it."""
    tokens = AzureTokens(Source(hour(clock, "eyJ0.secret")), clock)
    await tokens.renew()

    assert repr(tokens) == "AzureTokens()"
    assert tokens.hide("got Bearer eyJ0.secret") == "got Bearer ***"


async def test_a_credential_that_does_not_answer_is_given_up(clock: Clock) -> None:
    """It may answer another time."""
    source = Source(hour(clock, "one"))
    source.gate.clear()

    with pytest.raises(TokenError, match="TimeoutError") as caught:
        await AzureTokens(source, clock, patience=0.01).renew()
    assert caught.value.again

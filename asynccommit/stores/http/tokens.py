"""Bearer tokens: their renewal, and the reaction to a refused token.

For every source of tokens, no request waits for a renewal while the old token is valid, one renewal
serves all requests that need it, and a token that the service refuses is renewed: again and again
if the service accepts each new one for some time, and once if it does not.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from asynccommit.redact import redact, short

T = TypeVar("T")

_EARLY = 300.0  # seconds before its end in which a token is renewed
_PAUSE = 30.0  # seconds between two attempts to renew a token that is still good
_DOUBT = 60.0  # seconds in which the refusal of a new token that was never accepted is final


class TokenError(Exception):
    """Raised when a credential gave no token; ``again`` if a later attempt may succeed."""

    def __init__(self, detail: str, *, again: bool) -> None:
        super().__init__(detail)
        self.detail = detail
        self.again = again


ROOM = 1000
"""Maximum length of text from a library or an identity service."""


class Fresh(NamedTuple):
    """A token, and its expiry in seconds since the epoch, infinite if unknown.

    The text of it does not show the token.
    """

    token: str
    expires: float

    def __repr__(self) -> str:
        return f"Fresh(expires={self.expires})"


class Holder(NamedTuple):
    """The identity that a token or a session is of.

    Attributes:
        kind: its kind, with an article.
        remedy: what to check if the service refuses what is new.
    """

    kind: str
    remedy: str


class Refusals(Generic[T]):
    """The last refusal of a credential that was renewed after it.

    Args:
        thing: what is refused: a token, or a session.
        now: seconds since the epoch.

    Attributes:
        in_doubt: no request with what was renewed has been accepted yet.
    """

    def __init__(self, thing: str, now: Callable[[], float]) -> None:
        self._thing = thing
        self._now = now
        self.in_doubt = False
        self._renewed: T | None = None
        self._since = self._until = -math.inf
        self._last = ""

    def is_second(self, sent: T) -> bool:
        """Record a refusal; return whether it is the second in a row."""
        now = self._now()
        if sent != self._renewed or not self.in_doubt or now >= self._until:
            self._since, self._last = now, ""
            return False
        seconds = max(1, math.ceil(now - self._since))
        self._last = self._last or f"refused twice within {seconds} s, although it was renewed"
        return True

    def is_renewed(self, sent: T, given: T) -> bool:
        """Record what a renewal gave; return whether it is another than ``sent``."""
        self._renewed, self._until = given, self._now() + _DOUBT
        self.in_doubt = True
        if sent == given:
            self._last = "refused, and its renewal gave the same one"
        return sent != given

    def accepted(self, sent: T) -> None:
        """Record that a request was accepted: a later refusal is for the age."""
        if sent == self._renewed:
            self.in_doubt, self._last = False, ""

    def explain(self, holder: Holder) -> str:
        """Return what refusals mean that a renewal did not end; ``""`` before one."""
        if not self._last:
            return ""
        return f"the {self._thing} of {holder.kind} was {self._last}: {holder.remedy}"


class TokenSource(Protocol):
    """A source of tokens."""

    @property
    def holder(self) -> Holder:
        """The identity that the tokens are of."""
        ...

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secret texts that no error may show."""
        ...

    async def ask(self) -> Fresh:
        """Request a new token, in one attempt."""
        ...

    def explain(self, error: Exception) -> TokenError:
        """Explain a failure of ``ask``."""
        ...

    async def aclose(self) -> None:
        """Release the resources of the source."""
        ...


class HttpCredential(Protocol):
    """A credential that authorises requests by their headers.

    Attributes:
        renew_at: time from which ``renew`` must be awaited before a request; infinite for some.
    """

    renew_at: float

    @property
    def in_doubt(self) -> bool:
        """True while ``accepted`` must be called for requests that succeed."""
        ...

    async def renew(self) -> None:
        """Get a new token. Raises ``TokenError`` if no token is usable."""
        ...

    async def refused(self, headers: dict[str, str]) -> bool:
        """Record that these were rejected; return whether newer ones exist."""
        ...

    def accepted(self, headers: dict[str, str]) -> None:
        """Record that a request with these succeeded."""
        ...

    def explain(self) -> str:
        """Return why a renewal did not end the refusals; ``""`` before one."""
        ...

    def hide(self, text: str) -> str:
        """Return ``text`` with every secret in it replaced."""
        ...

    async def aclose(self) -> None:
        """Release the resources of the credential."""
        ...


class FixedCredential:
    """The base of credentials that are never renewed."""

    in_doubt = False

    def __init__(self) -> None:
        self.renew_at = math.inf

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    async def renew(self) -> None:
        return None

    async def refused(self, headers: dict[str, str]) -> bool:
        return False

    def accepted(self, headers: dict[str, str]) -> None:
        return None

    def explain(self) -> str:
        return ""

    def hide(self, text: str) -> str:
        return redact(text)

    async def aclose(self) -> None:
        return None


class Flight(Generic[T]):
    """A call that is made once for all who ask while it is under way.

    ``call`` raises nothing: what goes wrong is a result too, for all of them.
    """

    def __init__(self, call: Callable[[], Awaitable[T]]) -> None:
        self._call = call
        self._lock = asyncio.Lock()
        self._ended = 0
        self._result: T

    async def __call__(self) -> T:
        """Make the call, or wait for the one under way; return its result."""
        seen = self._ended
        async with self._lock:
            if self._ended == seen:  # and if whoever made it was cancelled, the next one does
                self._result = await self._call()
                self._ended += 1
            return self._result


class Renewal:
    """The token of ``source``, renewed before it expires.

    Args:
        source: gives the tokens; it is closed here.
        now: seconds since the epoch.
        patience: seconds that the source may take.

    Attributes:
        header: authorises a request; empty before the first token.
        renew_at: time from which ``renew`` must be awaited before a request.
    """

    def __init__(
        self, source: TokenSource, now: Callable[[], float], *, patience: float = 60.0
    ) -> None:
        self.header = ""
        self.renew_at = -math.inf
        self._source = source
        self._now = now
        self._patience = patience
        self._expires = -math.inf
        self._refusals = Refusals[str]("token", now)
        self._flight = Flight(self._fetch)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    async def renew(self) -> None:
        """Get a new token. Raises ``TokenError`` if no token is usable."""
        failure = await self._flight()
        if failure is not None and self._now() >= self._expires:
            raise TokenError(failure.detail, again=failure.again)

    async def refused(self, headers: dict[str, str]) -> bool:
        """Record that the service refused ``headers``; return if a token is new.

        Raises ``TokenError`` if no new token can be got.
        """
        sent = headers["authorization"]
        if sent != self.header:
            return True  # renewed since
        if self._refusals.is_second(sent):
            return False
        failure = await self._flight()
        if failure is not None:
            raise TokenError(failure.detail, again=failure.again)
        return self._refusals.is_renewed(sent, self.header)

    @property
    def in_doubt(self) -> bool:
        """True until a request with the renewed token has succeeded."""
        return self._refusals.in_doubt

    def accepted(self, headers: dict[str, str]) -> None:
        """Record that the service accepted ``headers``."""
        self._refusals.accepted(headers["authorization"])

    def explain(self) -> str:
        """Return why a renewal did not end the refusals; ``""`` before one."""
        return self._refusals.explain(self._source.holder)

    def hide(self, text: str) -> str:
        """Return ``text`` with every secret in it replaced."""
        return redact(text, (*self._source.secrets, self.header.removeprefix("Bearer ")))

    async def aclose(self) -> None:
        """Close the source."""
        await self._source.aclose()

    async def _fetch(self) -> TokenError | None:
        """Get a token; return what kept it from that."""
        now = self._now()
        if now < self._expires:
            self.renew_at = now + _PAUSE  # meanwhile the others go on with the old one
        try:
            async with asyncio.timeout(self._patience):
                self._keep(await self._source.ask())
        except Exception as error:  # of whatever library: the source tells them apart
            failure = self._source.explain(error)
            return TokenError(short(self.hide(failure.detail), ROOM), again=failure.again)
        return None

    def _keep(self, fresh: Fresh) -> None:
        now = self._now()
        self.header = f"Bearer {fresh.token}"
        self._expires = fresh.expires
        left = fresh.expires - now
        self.renew_at = now + max(left - _EARLY, left / 2, 1.0)

"""Bearer tokens: where they come from, and when they are renewed.

A credential object of azure-identity keeps and renews tokens itself; what is added here is that
no request waits for a renewal while the old token is good, that one renewal serves all who need
it, and that a token which the service refuses is renewed once.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from asynccommit.stores.adls_wire import Query
from asynccommit.stores.azure_credentials import Anonymous, TokenError, hide

T = TypeVar("T")

SCOPE = "https://storage.azure.com/.default"

_EARLY = 300.0  # seconds before its end in which a token is renewed
_PAUSE = 30.0  # seconds between two attempts to renew a token that is still good
_DOUBT = 60.0  # seconds in which a second refusal is not for the token's age


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


class Tokens(Anonymous):
    """Bearer tokens of a credential object of azure-identity, or of anything like one.

    Args:
        source: has ``get_token(scope)``, a coroutine or not, which gives ``token`` and
            ``expires_on``; ``None`` if it is to be made.
        now: seconds since the epoch.
        make: makes the source, in a thread, when the first token is needed; it is closed here.
        secrets: texts that the source knows and no error may show.
        patience: seconds that the source may take; some would wait for minutes.
    """

    def __init__(
        self,
        source: Any,
        now: Callable[[], float],
        *,
        make: Callable[[], Any] | None = None,
        secrets: tuple[str, ...] = (),
        patience: float = 60.0,
    ) -> None:
        self.renew_at = -math.inf
        self._source = source
        self._make = make
        self._now = now
        self._secrets = secrets
        self._patience = patience
        self._header = ""
        self._expires = -math.inf
        self._doubt = ("", -math.inf)
        self._flight = Flight(self._fetch)

    def authorize(
        self, verb: str, path: str, query: Query, headers: dict[str, str], length: int
    ) -> None:
        headers["authorization"] = self._header

    async def renew(self) -> None:
        failure = await self._flight()
        if failure is not None and self._now() >= self._expires:
            raise TokenError(failure.detail, again=failure.again)

    async def refused(self, headers: dict[str, str]) -> bool:
        sent = headers["authorization"]
        if sent != self._header:
            return True  # renewed since
        refused, until = self._doubt
        if sent == refused and self._now() < until:
            return False
        failure = await self._flight()
        if failure is not None:
            raise TokenError(failure.detail, again=failure.again)
        self._doubt = (self._header, self._now() + _DOUBT)
        return sent != self._header

    def hide(self, text: str) -> str:
        return hide(text, (*self._secrets, self._header.removeprefix("Bearer ")))

    async def aclose(self) -> None:
        if self._make is not None and self._source is not None:
            await self._source.close()

    async def _fetch(self) -> TokenError | None:
        """Get a token; return what kept it from that."""
        now = self._now()
        if now < self._expires:
            self.renew_at = now + _PAUSE  # meanwhile the others go on with the old one
        try:
            async with asyncio.timeout(self._patience):
                token = await self._ask()
            self._keep(str(token.token), float(token.expires_on))
        except Exception as error:  # of whatever library: they are all told apart there
            return _failure(error, self.hide)
        return None

    async def _ask(self) -> Any:
        if self._source is None and self._make is not None:
            self._source = await asyncio.to_thread(self._make)
        get_token = self._source.get_token
        if inspect.iscoroutinefunction(get_token):
            return await get_token(SCOPE)
        token = await asyncio.to_thread(get_token, SCOPE)
        return await token if inspect.isawaitable(token) else token

    def _keep(self, token: str, expires: float) -> None:
        now = self._now()
        self._header = f"Bearer {token}"
        self._expires = expires
        left = expires - now
        self.renew_at = now + max(left - _EARLY, left / 2, 1.0)


def _failure(error: Exception, hide: Callable[[str], str]) -> TokenError:
    text = hide(" ".join(str(error).split()))[:800] or f"the credential gave {type(error).__name__}"
    names = {kind.__name__ for kind in type(error).__mro__}
    # Refused by the identity service, or no credential was found: as in azure.core.exceptions,
    # which need not be installed.
    final = "ClientAuthenticationError" in names or not names & {"AzureError", "OSError"}
    return TokenError(f"no token: {text}", again=not final)

"""Sessions of directory buckets: keys of five minutes, for one bucket.

Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateSession.html
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple

from asynccommit.redact import redact
from asynccommit.stores.http.tokens import Flight, Holder, Refusals, TokenError
from asynccommit.stores.s3.credentials import S3Credential
from asynccommit.stores.s3.sign import SessionKeys, SigningKeys
from asynccommit.stores.s3.xml import children, parse, values

QUERY = "session"
"""The query of the request that creates one."""
_EARLY = 120.0  # seconds before its end in which a session is renewed
_PAUSE = 15.0  # seconds between two attempts while the old one is good
_HOLDER = Holder("this bucket", "does the policy allow s3express:CreateSession, for ReadWrite?")


class Session(NamedTuple):
    """The keys of a session, and when they end in seconds since the epoch."""

    keys: SessionKeys
    expires: float


class SessionCredential:
    """The keys of a session, renewed before they end.

    All requests share one renewal, and none waits for it while the old keys are good.

    Args:
        own: the caller's own credential, which creates sessions.
        create: creates one; what goes wrong is a result too.
        now: seconds since the epoch.
    """

    anonymous = False

    def __init__(
        self,
        own: S3Credential,
        create: Callable[[], Awaitable[Session | TokenError]],
        now: Callable[[], float],
    ) -> None:
        self.renew_at = -math.inf
        self._own = own
        self._now = now
        self._keys: SessionKeys | None = None
        self._expires = -math.inf
        self._create = create
        self._refusals = Refusals[SigningKeys | None]("session", now)
        self._flight = Flight(self._fetch)

    def __repr__(self) -> str:
        return f"SessionCredential({self._own!r})"

    @property
    def keys(self) -> SigningKeys | None:
        return self._keys

    async def renew(self) -> None:
        good = self._expires > self._now()
        if good:  # others go on with the old keys meanwhile
            self.renew_at = self._now() + _PAUSE
        failure = await self._flight()
        if failure is not None and not good:
            raise TokenError(failure.detail, again=failure.again)

    async def refused(self, keys: SigningKeys) -> bool:
        if keys != self._keys:
            return True  # renewed since
        if self._refusals.is_second(keys):
            return False
        failure = await self._flight()
        if failure is not None:
            raise TokenError(failure.detail, again=failure.again)
        return self._refusals.is_renewed(keys, self._keys)

    @property
    def in_doubt(self) -> bool:
        return self._refusals.in_doubt

    def accepted(self, keys: SigningKeys) -> None:
        self._refusals.accepted(keys)

    def explain(self) -> str:
        return self._refusals.explain(_HOLDER) or self._own.explain()

    def hide(self, text: str) -> str:
        return redact(self._own.hide(text), self._keys[1:] if self._keys else ())

    async def _fetch(self) -> TokenError | None:
        made = await self._create()
        if isinstance(made, TokenError):
            return made
        self._keys, self._expires = made
        self.renew_at = max(self._expires - _EARLY, self._now() + _PAUSE)
        return None


def session_of(body: bytes) -> Session:
    """Return the session in a response. Raises ``ValueError``."""
    root = parse(body, "CreateSessionResult", "CreateSessionOutput")
    found = next((values(one) for one in children(root, "Credentials")), {})
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
    access, secret, token = (found.get(name, "").strip() for name in names)
    if not (access and secret and token) or len(token) > 4096:
        raise ValueError("the response has no keys of a session")
    expires = datetime.fromisoformat(found.get("Expiration", "").strip()).timestamp()
    return Session(SessionKeys(access, secret, token), expires)

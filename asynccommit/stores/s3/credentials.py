"""Sign requests to S3: with given keys, with those of the machine, or not at all.

A ``S3Credential`` knows its own secrets, so that no error repeats one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import partial
from typing import Protocol

from asynccommit.redact import redact, short
from asynccommit.stores.http.tokens import ROOM, Flight, TokenError
from asynccommit.stores.s3.machine import AwsMachine, explain
from asynccommit.stores.s3.sign import SigningKeys

_LOOK = 30.0  # seconds between two checks whether keys need renewal
_DOUBT = 60.0  # seconds in which a second refusal is not for the keys' age
_PATIENCE = 60.0


class S3Credential(Protocol):
    """A credential that signs requests.

    Attributes:
        renew_at: time from which ``renew`` must be awaited before a request; infinite for some.
    """

    renew_at: float

    @property
    def anonymous(self) -> bool:
        """Return whether it signs nothing."""
        ...

    @property
    def keys(self) -> SigningKeys | None:
        """The signing keys; ``None`` before the first ``renew``, and if anonymous."""
        ...

    async def renew(self) -> None:
        """Get keys. Raises ``TokenError`` if there are none to use."""
        ...

    async def refused(self, keys: SigningKeys) -> bool:
        """Record that ``keys`` have expired; return whether there are others."""
        ...

    def hide(self, text: str) -> str:
        """Return ``text`` with every secret in it replaced."""
        ...


class Given:
    """Keys that somebody gave, for as long as they last; without any, requests are not signed."""

    def __init__(self, keys: SigningKeys | None = None) -> None:
        self.renew_at = math.inf
        self._keys = keys

    def __repr__(self) -> str:
        return f"Given({self._keys!r})"

    @property
    def anonymous(self) -> bool:
        return self._keys is None

    @property
    def keys(self) -> SigningKeys | None:
        return self._keys

    async def renew(self) -> None:
        return None

    async def refused(self, keys: SigningKeys) -> bool:
        return False

    def hide(self, text: str) -> str:
        return redact(text, self._keys[1:] if self._keys else ())


class OfMachine:
    """The keys that the machine has, renewed ahead of their end.

    One renewal serves all, and while there are keys only the request that began it waits.

    Args:
        machine: where they are found.
        now: seconds since the epoch.
        patience: seconds that finding them may take.
    """

    anonymous = False

    def __init__(
        self, machine: AwsMachine, now: Callable[[], float], *, patience: float = _PATIENCE
    ) -> None:
        self.renew_at = -math.inf
        self._machine = machine
        self._now = now
        self._patience = patience
        self._keys: SigningKeys | None = None
        self._doubt: tuple[SigningKeys | None, float] = (None, -math.inf)
        self._flight = Flight(self._fetch)
        self._anew = Flight(partial(self._fetch, anew=True))

    def __repr__(self) -> str:
        return f"OfMachine({self._machine!r})"

    @property
    def keys(self) -> SigningKeys | None:
        return self._keys

    async def renew(self) -> None:
        if self._keys is not None:
            self.renew_at = self._now() + _LOOK
            if not self._machine.stale():
                return
        failure = await self._flight()
        if failure is not None and self._keys is None:
            raise TokenError(failure.detail, again=failure.again)

    async def refused(self, keys: SigningKeys) -> bool:
        if keys != self._keys:
            return True  # renewed since
        doubted, until = self._doubt
        if keys == doubted and self._now() < until:
            return False
        failure = await self._anew()
        if failure is not None:
            raise TokenError(failure.detail, again=failure.again)
        self._doubt = (self._keys, self._now() + _DOUBT)
        return keys != self._keys

    def hide(self, text: str) -> str:
        return redact(text, self._keys[1:] if self._keys else ())

    async def _fetch(self, *, anew: bool = False) -> TokenError | None:
        """Find keys; return what kept it from that."""
        try:
            async with asyncio.timeout(self._patience):
                self._keys = await asyncio.to_thread(self._machine.keys, anew=anew)
        except Exception as error:  # of botocore and all that it asks: the machine tells them apart
            failure = explain(error)
            return TokenError(short(self.hide(failure.detail), ROOM), again=failure.again)
        self.renew_at = self._now() + _LOOK
        return None

"""Authorise requests to Google Cloud Storage: by a bearer token, or not at all.

A ``GcsCredential`` puts its header into each request, and knows its own secrets, so that no error
repeats one.
"""

from __future__ import annotations

import math
from typing import Protocol

from asynccommit.redact import redact
from asynccommit.stores.http.tokens import Renewal


class GcsCredential(Protocol):
    """A credential that authorises requests.

    Attributes:
        renew_at: time from which ``renew`` must be awaited before a request; infinite for some.
        anonymous: whether it authorises nothing.
    """

    renew_at: float

    @property
    def anonymous(self) -> bool:
        """Return whether it authorises nothing."""
        ...

    def authorize(self, headers: dict[str, str]) -> None:
        """Add to ``headers``, which are by lower-case name."""
        ...

    async def renew(self) -> None:
        """Get a new token. Raises ``TokenError`` if no token is usable."""
        ...

    async def refused(self, headers: dict[str, str]) -> bool:
        """Record that the service refused these; return whether others are new."""
        ...

    def hide(self, text: str) -> str:
        """Return ``text`` with every secret in it replaced."""
        ...

    async def aclose(self) -> None:
        """Give back what it holds."""
        ...


class GcsAnonymous:
    """No authorisation: for what is public, and for emulators."""

    anonymous = True

    def __init__(self) -> None:
        self.renew_at = math.inf

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def authorize(self, headers: dict[str, str]) -> None:
        return None

    async def renew(self) -> None:
        return None

    async def refused(self, headers: dict[str, str]) -> bool:
        return False

    def hide(self, text: str) -> str:
        return redact(text)

    async def aclose(self) -> None:
        return None


class GcsTokens(Renewal):
    """Tokens of a source, renewed ahead of their end."""

    anonymous = False

    def authorize(self, headers: dict[str, str]) -> None:
        headers["authorization"] = self.header

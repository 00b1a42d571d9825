"""Authorise requests to Azure Storage: by key, shared access signature, token, or not at all.

A ``AdlsCredential`` puts its headers into each request, and knows its own secrets, so that no error
repeats one. Tokens are in ``azure_tokens``.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import formatdate
from hashlib import sha256
from typing import Any, Protocol
from urllib.parse import quote, unquote

from asynccommit.errors import OptionError
from asynccommit.redact import redact
from asynccommit.stores.adls.wire import SignedQuery

_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


class AdlsCredential(Protocol):
    """A credential that authorises requests.

    Attributes:
        suffix: the suffix of every URL's query, without ``&``; it may be secret.
        renew_at: time from which ``renew`` must be awaited before a request; infinite for most.
    """

    suffix: str
    renew_at: float

    def authorize(
        self, verb: str, path: str, query: SignedQuery, headers: dict[str, str], length: int
    ) -> None:
        """Add to ``headers``, which are complete but for this.

        Args:
            verb: in capitals.
            path: of the URL, percent-encoded, from the first slash after the host.
            query: of the URL.
            headers: by lower-case name.
            length: of the body.
        """
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


class AdlsAnonymous:
    """No authorisation: for what is public. The other kinds begin with this one."""

    suffix = ""
    renew_at = math.inf

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def authorize(
        self, verb: str, path: str, query: SignedQuery, headers: dict[str, str], length: int
    ) -> None:
        return None

    async def renew(self) -> None:
        return None

    async def refused(self, headers: dict[str, str]) -> bool:
        return False

    def hide(self, text: str) -> str:
        return redact(text)

    async def aclose(self) -> None:
        return None


class SharedKey(AdlsAnonymous):
    """Signs each request with an account key.

    Args:
        account: the account's name.
        key: as text in base64.
        now: seconds since the epoch.

    Raises:
        OptionError: ``key`` is no base64.
    """

    def __init__(self, account: str, key: str, now: Callable[[], float]) -> None:
        self._secrets = (key,)
        self._inner, self._outer = _pads(_decode(key))
        self._start = f"SharedKey {account}:"
        self._resource = f"/{account}"
        self._now = now
        self._second = -1
        self._date = ""

    def authorize(
        self, verb: str, path: str, query: SignedQuery, headers: dict[str, str], length: int
    ) -> None:
        second = int(self._now())
        if second != self._second:
            self._date = formatdate(second, usegmt=True)
            self._second = second
        headers["x-ms-date"] = self._date
        get = headers.get
        own = "".join(sorted([f"{_}:{headers[_]}\n" for _ in headers if _.startswith("x-ms-")]))
        # Of the headers that are signed, these are the ones that are ever sent.
        text = (
            f"{verb}\n\n\n{length or ''}\n\n{get('content-type', '')}\n\n\n{get('if-match', '')}\n"
            f"{get('if-none-match', '')}\n\n{get('range', '')}\n"
            f"{own}{self._resource}{path}{query.signed}"
        )
        # HMAC by copies of prepared states: half the time of hmac.digest, which also gives up the
        # interpreter's lock, and a busy thread of the transport does not give it back at once.
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(text.encode())
        outer.update(inner.digest())
        signature = binascii.b2a_base64(outer.digest(), newline=False).decode("ascii")
        headers["authorization"] = self._start + signature

    def hide(self, text: str) -> str:
        return redact(text, self._secrets)


class Sas(AdlsAnonymous):
    """A shared access signature, which is part of every URL.

    Raises:
        OptionError: ``token`` has no signature.
    """

    def __init__(self, token: str) -> None:
        pairs = [pair.partition("=")[::2] for pair in token.strip().lstrip("?").split("&")]
        known = {name: unquote(value) for name, value in pairs if name}
        if not known.get("sig"):
            raise OptionError("the SAS token has no sig=...: give all of it, sv=...&...&sig=...")
        self.suffix = "&".join(f"{name}={quote(value, safe='')}" for name, value in known.items())
        self._start, self._end = known.get("st", ""), known.get("se", "")
        self._secrets = (known["sig"],)

    def hide(self, text: str) -> str:
        return redact(text, self._secrets)

    def fault(self, now: float) -> str:
        """Explain why the credential was refused at this service time.

        The explanation includes the remedy.
        """
        if _instant(self._end, now) < now:
            return f"the SAS token expired at {self._end}: get a new one"
        if _instant(self._start, now) > now:
            return f"the SAS token is valid from {self._start} only"
        return "the SAS token is not signed for this: is it whole, and of this account?"


def _instant(text: str, default: float) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return default
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _pads(key: bytes) -> tuple[Any, Any]:
    """Return the two states that an HMAC-SHA256 with ``key`` begins with."""
    block = (key if len(key) <= 64 else sha256(key).digest()).ljust(64, b"\0")
    return sha256(block.translate(_INNER)), sha256(block.translate(_OUTER))


def _decode(key: str) -> bytes:
    try:
        decoded = base64.b64decode(key.strip(), validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if not decoded:
        raise OptionError("the account key is not base64: copy it whole, as the portal shows it")
    return decoded

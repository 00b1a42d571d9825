"""Authorise requests to Azure Storage.

By account key, shared access signature, bearer token, or not at all.

A ``AdlsCredential`` puts its headers into each request, and knows its own secrets, so that no error
repeats one. Tokens are in ``tokens``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import formatdate
from hashlib import sha256
from typing import Any, Protocol
from urllib.parse import quote, unquote

from asynccommit.errors import OptionError
from asynccommit.redact import redact
from asynccommit.stores.adls.endpoint import AdlsEndpoint
from asynccommit.stores.adls.hadoop import AbfsOptions
from asynccommit.stores.adls.identity import Application, default_tokens, tokens_of
from asynccommit.stores.adls.wire import VERSION, SignedQuery
from asynccommit.stores.http.options import flag
from asynccommit.stores.http.tokens import FixedCredential, HttpCredential

_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


class AdlsCredential(HttpCredential, Protocol):
    """A credential that authorises requests.

    Attributes:
        suffix: the suffix of every URL's query, without ``&``; it may be secret.
    """

    suffix: str

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


class AdlsAnonymous(FixedCredential):
    """No authorisation, for public data; the base of the other kinds."""

    suffix = ""

    def authorize(
        self, verb: str, path: str, query: SignedQuery, headers: dict[str, str], length: int
    ) -> None:
        return None


class SharedKey(AdlsAnonymous):
    """Signs each request with an account key.

    Args:
        account: the account's name.
        key: as text in base64.
        now: seconds since the epoch.

    Raises:
        OptionError: ``key`` is not base64.

    Attributes:
        key: the key.
    """

    def __init__(self, account: str, key: str, now: Callable[[], float]) -> None:
        super().__init__()
        self.key = key
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
        signed = []
        for name, value in headers.items():  # a comprehension is one call more
            if name[:5] == "x-ms-":
                signed.append(f"{name}:{value}\n")
        signed.sort()
        own = "".join(signed)
        # Of the headers that are signed, these are the ones that are ever sent.
        text = (
            f"{verb}\n\n\n{length or ''}\n{get('content-md5', '')}\n{get('content-type', '')}\n\n\n"
            f"{get('if-match', '')}\n"
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

    def sas(self, resource: str, permissions: str, until: datetime) -> dict[str, str]:
        """Return the parameters of a signature for one blob that ends at a moment.

        Source: https://learn.microsoft.com/rest/api/storageservices/create-service-sas
        """
        end = f"{until:%Y-%m-%dT%H:%M:%SZ}"
        text = "\n".join([permissions, "", end, resource, "", "", "", VERSION, "b", *[""] * 7])
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(text.encode())
        outer.update(inner.digest())
        signature = binascii.b2a_base64(outer.digest(), newline=False).decode("ascii")
        return {"sv": VERSION, "sr": "b", "sp": permissions, "se": end, "sig": signature}

    def hide(self, text: str) -> str:
        return redact(text, (self.key,))


class Sas(AdlsAnonymous):
    """A shared access signature, which is part of every URL.

    Raises:
        OptionError: ``token`` has no signature.
    """

    def __init__(self, token: str) -> None:
        super().__init__()
        pairs = [pair.partition("=")[::2] for pair in token.strip().lstrip("?").split("&")]
        known = {name: unquote(value) for name, value in pairs if name}
        if not known.get("sig"):
            raise OptionError(
                "the SAS token has no sig=...: expected the whole token, sv=...&...&sig=..."
            )
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
            return f"the SAS token is not valid before {self._start}"
        return (
            "the signature of the SAS token does not match: is the token complete, and of this "
            "account?"
        )


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
        raise OptionError("the account key is not base64: copy all of it from the portal")
    return decoded


# --- the choice among several ----------------------------------------------------------------


KINDS = ("credential", "connection_string", "account_key", "sas_token", "client_secret", "anon")
"""The options that name a credential, of which only one may be given."""

_OF_ACCOUNTS = ("connection_string", "account_key", "sas_token", "anon")


def credential_of(
    told: Mapping[str, Any],
    hadoop: AbfsOptions,
    around: Mapping[str, Any],
    place: AdlsEndpoint,
    now: Callable[[], float],
) -> AdlsCredential:
    """Return the credential from the options, or else that of the machine.

    Args:
        told: options under their own names.
        hadoop: Hadoop's options, for what ``told`` does not set.
        around: options from the environment, unless it names another account.
        place: the account and container.
        now: seconds since the epoch.

    Raises:
        OptionError: the credential is invalid, or would be sent unencrypted.
        UnsupportedError: azure-identity is needed and not installed.
    """
    if place.onelake:
        _refuse_keys(told, hadoop, place)
        around = {name: around[name] for name in around if name not in _OF_ACCOUNTS}
    names = {name: around[name] for name in ("tenant_id", "client_id") if name in around}
    credential = _of_options({**names, **told}, place, now) or _of_hadoop(hadoop, place, now)
    if credential is None and around.get("account_name", place.account) == place.account:
        credential = _of_options(around, place, now)
    if credential is None:
        place.refuse_plain_tokens()
        return default_tokens(told, now)
    return credential


def _refuse_keys(told: Mapping[str, Any], hadoop: AbfsOptions, place: AdlsEndpoint) -> None:
    """Raise ``OptionError`` if options give OneLake no token."""
    given = [name for name in _OF_ACCOUNTS if name in told and (name != "anon" or flag(told, name))]
    if "credential" in told and not hasattr(told["credential"], "get_token"):
        given.append("credential")
    if not any(name in told for name in KINDS):
        found = hadoop.credential(place.host, place.container)
        if found is not None and isinstance(found[1], str):
            given.append(f"fs.azure.{'account.key' if found[0] == 'key' else 'sas.fixed.token'}")
    if given:
        raise OptionError(
            f"{given[0]} is given, but OneLake takes only tokens of Entra ID here: give "
            "credential, an object of azure.identity, or tenant_id, client_id and client_secret; "
            "OneLake has no account keys, and its SAS, of a user and for an hour at most, is not "
            "supported"
        )


def refuse_two(named: Mapping[str, Any]) -> None:
    """Raise ``OptionError`` if options name more than one credential."""
    given = [_ for _ in KINDS if _ in named and (_ != "anon" or flag(named, _))]
    if len(given) > 1:
        raise OptionError(f"{' and '.join(given)} are given: set only one of them")


def _of_options(
    told: Mapping[str, Any], place: AdlsEndpoint, now: Callable[[], float]
) -> AdlsCredential | None:
    if "credential" in told:
        return _of_object(told["credential"], place, now)
    if "account_key" in told:
        return SharedKey(place.account, str(told["account_key"]), now)
    if "sas_token" in told:
        return _sas(str(told["sas_token"]), place)
    if "client_secret" in told:
        return _of_application(told, place, now)
    if flag(told, "anon"):
        return AdlsAnonymous()
    return None


def _sas(token: str, place: AdlsEndpoint) -> Sas:
    place.refuse_plain_tokens()
    return Sas(token)


def _of_object(given: Any, place: AdlsEndpoint, now: Callable[[], float]) -> AdlsCredential:
    """Read ``credential``: any value that Azure's libraries accept for it."""
    if isinstance(given, str):
        return _sas(given, place) if "sig=" in given else SharedKey(place.account, given, now)
    if hasattr(given, "get_token"):
        place.refuse_plain_tokens()
        return tokens_of(given, now)
    if hasattr(given, "signature"):  # AzureSasCredential
        return _sas(str(given.signature), place)
    if hasattr(given, "named_key"):  # AzureNamedKeyCredential
        return SharedKey(place.account, str(given.named_key.key), now)
    raise OptionError(
        f"credential is a {type(given).__name__}: expected a token credential of azure.identity, "
        "an account key or a SAS token"
    )


def _of_application(
    told: Mapping[str, Any], place: AdlsEndpoint, now: Callable[[], float]
) -> AdlsCredential:
    missing = [name for name in ("tenant_id", "client_id") if name not in told]
    if missing:
        raise OptionError(f"client_secret is given without {' and '.join(missing)}")
    place.refuse_plain_tokens()
    names = ("tenant_id", "client_id", "client_secret")
    return Application(*(str(told[name]) for name in names)).tokens(now)


def _of_hadoop(
    hadoop: AbfsOptions, place: AdlsEndpoint, now: Callable[[], float]
) -> AdlsCredential | None:
    found = hadoop.credential(place.host, place.container)
    if found is None:
        return None
    kind, value = found
    if isinstance(value, str):
        return SharedKey(place.account, value, now) if kind == "key" else _sas(value, place)
    place.refuse_plain_tokens()
    return value.tokens(now)

"""Authenticate requests by SharedKey, SAS or bearer token; the development account by default."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from urllib.parse import unquote

from asynccommit.testing.emulators.adls.call import AdlsCall, Query
from asynccommit.testing.models.adls.account import Refusal

DEVELOPMENT_ACCOUNT = "devstoreaccount1"
DEVELOPMENT_KEY = (  # Published with the emulator of the blob service; it protects nothing.
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


def connection_string(url: str, account: str, key: str) -> str:
    """Return the connection string of an account with one URL."""
    return (
        f"DefaultEndpointsProtocol={url.partition(':')[0]};AccountName={account};"
        f"AccountKey={key};BlobEndpoint={url};DfsEndpoint={url};"
    )


_SKEW = 15 * 60
_TENANT = "00000000-0000-0000-0000-000000000000"
_CHALLENGE = (
    f"Bearer authorization_uri=https://login.microsoftonline.com/{_TENANT}/oauth2/authorize "
    "resource_id=https://storage.azure.com"
)
_FAILED = (
    "Server failed to authenticate the request. Make sure the value of Authorization header is "
    "formed correctly including the signature."
)
_REFER = (
    "Server failed to authenticate the request. Please refer to the information in the "
    "www-authenticate header."
)
_MISMATCH = "This request is not authorized to perform this operation using this permission."

# Permission letters of a shared access signature, one of which an operation requires.
_PERMISSIONS = {
    "read": "r",
    "head": "rle",
    "list": "l",
    "create": "cw",
    "mkdir": "cw",
    "append": "aw",
    "flush": "w",
    "rename": "mw",
    "delete": "d",
    "lease": "w",
    "properties": "w",
}


class DetailedRefusal(Refusal):
    """A refusal with further detail, in the field that the service has for it."""

    def __init__(self, status: int, code: str, message: str, detail: str) -> None:
        headers = {"WWW-Authenticate": _CHALLENGE} if status == 401 else {}
        super().__init__(status, code, message, headers)
        self.detail = detail


@dataclass(slots=True)
class AccountKeys:
    """The accepted credentials.

    Attributes:
        keys: account name -> its key, as base64 text.
        tokens: valid bearer tokens; ``None`` if any token is valid.
        expired: bearer tokens that have expired.
    """

    keys: Mapping[str, str] = field(
        default_factory=lambda: {DEVELOPMENT_ACCOUNT: DEVELOPMENT_KEY}, repr=False
    )
    tokens: set[str] | None = field(default=None, repr=False)
    expired: set[str] = field(default_factory=set, repr=False)

    def check(self, call: AdlsCall, op: str, now: float) -> None:
        """Raise ``Refusal`` unless the request may do ``op``."""
        header = call.headers.get("authorization", "")
        scheme, _, credential = header.partition(" ")
        if scheme == "SharedKey":
            self._check_key(call, credential, now)
        elif scheme.lower() == "bearer":
            self._check_token(credential)
        elif not header and "sig" in call.query:
            _check_sas(call, op, self.keys[call.account], now)
        elif header:
            raise DetailedRefusal(403, "AuthenticationFailed", _FAILED, f"No scheme {scheme!r}.")
        else:
            raise DetailedRefusal(401, "NoAuthenticationInformation", _REFER, "")

    def _check_key(self, call: AdlsCall, credential: str, now: float) -> None:
        account, _, signature = credential.partition(":")
        date = call.headers.get("x-ms-date") or call.headers.get("date", "")
        sent = _seconds(date)
        if sent is None or abs(sent - now) > _SKEW:
            detail = f"Request date header too old or not given: '{date}'"
            raise DetailedRefusal(403, "AuthenticationFailed", _FAILED, detail)
        text = string_to_sign(call)
        if account != call.account or not _signed(self.keys[call.account], text, signature):
            detail = (
                f"The MAC signature found in the HTTP request '{signature}' is not the same as "
                f"any computed signature. Server used following string to sign: '{text}'."
            )
            raise DetailedRefusal(403, "AuthenticationFailed", _FAILED, detail)

    def _check_token(self, token: str) -> None:
        if token in self.expired:
            detail = "Lifetime validation failed. The token is expired."
            raise DetailedRefusal(401, "InvalidAuthenticationInfo", _REFER, detail)
        if not token or (self.tokens is not None and token not in self.tokens):
            detail = "Signature validation failed."
            raise DetailedRefusal(401, "InvalidAuthenticationInfo", _REFER, detail)


def string_to_sign(call: AdlsCall) -> str:
    """Return the string that a SharedKey signature covers.

    It consists of the request as received, with the path undecoded.
    """
    headers = call.headers
    get = headers.get
    length = get("content-length", "")
    own = sorted([name for name in headers if name.startswith("x-ms-")])
    lines = [
        call.request.method,
        get("content-encoding", ""),
        get("content-language", ""),
        "" if length == "0" else length,
        get("content-md5", ""),
        get("content-type", ""),
        "" if "x-ms-date" in headers else get("date", ""),
        get("if-modified-since", ""),
        get("if-match", ""),
        get("if-none-match", ""),
        get("if-unmodified-since", ""),
        get("range", ""),
        *[f"{name}:{headers[name]}" for name in own],
        f"/{call.account}{call.target.raw_path}",
        *[f"{key}:{value}" for key, value in sorted(call.query.items())],
    ]
    return "\n".join(lines)


def sign(key: str, text: str) -> str:
    """Return the signature of ``text`` under the account key ``key``."""
    digest = hmac.digest(_bytes_of(key), text.encode(), "sha256")
    return base64.b64encode(digest).decode("ascii")


def _signed(key: str, text: str, signature: str) -> bool:
    digest = hmac.digest(_bytes_of(key), text.encode(), "sha256")
    # Not in constant time: the key is published, so timing reveals no secret.
    return binascii.b2a_base64(digest, newline=False) == signature.encode("latin-1")


@lru_cache(maxsize=64)
def _bytes_of(key: str) -> bytes:
    return base64.b64decode(key)


@lru_cache(maxsize=256)
def _seconds(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, IndexError):
        return None


def _check_sas(call: AdlsCall, op: str, key: str, now: float) -> None:
    query = call.query
    start, end = _instant(query.get("st", "")), _instant(query.get("se", ""))
    if end is None or not (start or 0.0) <= now <= end:
        raise DetailedRefusal(403, "AuthenticationFailed", _FAILED, _frame(start, end, now))
    if "skoid" in query:
        key, texts = _delegated(query, key, now), delegated_strings(call)
    else:
        texts = sas_strings(call)
    if not any(_signed(key, text, query["sig"]) for text in texts):
        detail = "Signature did not match."
        raise DetailedRefusal(403, "AuthenticationFailed", _FAILED, detail)
    allowed = "f" if query.get("comp") == "blobs" else _PERMISSIONS.get(op, "")
    if allowed and "sp" in query and not set(allowed) & set(query["sp"]):
        raise Refusal(403, "AuthorizationPermissionMismatch", _MISMATCH)


def _frame(start: float | None, end: float | None, now: float) -> str:
    return (
        "Signature not valid in the specified time frame: "
        f"Start [{_shown(start)}] - Expiry [{_shown(end)}] - Current [{_shown(now)}]"
    )


def _shown(moment: float | None) -> str:
    if moment is None:
        return ""
    return f"{datetime.fromtimestamp(moment, UTC):%a, %d %b %Y %H:%M:%S} GMT"


@lru_cache(maxsize=256)
def _instant(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def delegation_key(key: str, parts: Iterable[str]) -> str:
    """Return the delegation key of a user.

    Only the holder of ``key``, the account's, can make it. ``parts`` are the user, tenant,
    start, expiry, service, version and delegated tenant.
    """
    return sign(key, "\n".join(["delegation", *parts]))


def _delegated(query: Query, key: str, now: float) -> str:
    """Return the delegation key that a SAS names, which must be valid now."""
    start, end = _instant(query.get("skt", "")), _instant(query.get("ske", ""))
    if start is None or end is None or not start - _SKEW <= now <= end:
        raise DetailedRefusal(403, "AuthenticationFailed", _FAILED, _frame(start, end, now))
    names = ("skoid", "sktid", "skt", "ske", "sks", "skv", "skdutid")
    return delegation_key(key, [query.get(name, "") for name in names])


def delegated_strings(call: AdlsCall) -> list[str]:
    """Return the strings that a SAS with a delegation key may cover.

    The newest format comes first.
    """
    get = call.query.get
    given = [unquote(name) for name in get("srh", "").split(",") if name]
    headers = "".join(f"{name}:{call.headers.get(name.lower(), '')}\n" for name in given)
    given = [unquote(name) for name in get("srq", "").split(",") if name]
    parameters = "".join(f"\n{name}:{get(name.lower(), '')}" for name in given)
    names = ("skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid")
    head = [get("sp", ""), get("st", ""), get("se", ""), _sas_resource(call)]
    head += [get(_, "") for _ in names]
    tenants = [get("skdutid", ""), get("sduoid", "")]
    middle = [get(_, "") for _ in ("sip", "spr", "sv", "sr")]
    scope, tail = [get("ses", "")], [get(_, "") for _ in ("rscc", "rscd", "rsce", "rscl", "rsct")]
    return [
        "\n".join([*head, *tenants, *middle, "", *scope, headers, parameters, *tail]),
        "\n".join([*head, *tenants, *middle, "", *scope, *tail]),
        "\n".join([*head, *middle, "", *scope, *tail]),
        "\n".join([*head, *middle, "", *tail]),
    ]


def sas_strings(call: AdlsCall) -> list[str]:
    """Return the strings that a SAS may cover, newest format first."""
    query = call.query
    get = query.get
    scope = [get("ses", "")]
    if "ss" in query:
        parts = [call.account, *(get(_, "") for _ in ("sp", "ss", "srt", "st", "se"))]
        parts += [get(_, "") for _ in ("sip", "spr", "sv")]
        return ["\n".join([*parts, *scope, ""]), "\n".join([*parts, ""])]
    head = [get("sp", ""), get("st", ""), get("se", ""), _sas_resource(call)]
    head += [get(_, "") for _ in ("si", "sip", "spr", "sv", "sr")]
    tail = [get(_, "") for _ in ("rscc", "rscd", "rsce", "rscl", "rsct")]
    return ["\n".join([*head, "", *scope, *tail]), "\n".join([*head, "", *tail])]


def _sas_resource(call: AdlsCall) -> str:
    container = f"/blob/{call.account}/{call.filesystem}"
    get = call.query.get
    kind = get("sr", "")
    if kind == "d":  # a listing of it names it in a parameter
        depth, path = get("sdd", ""), call.path or get("directory") or get("prefix", "")
        names = path.strip("/").split("/")[: int(depth) if depth.isdigit() else 0]
        return "/".join([container, *names])
    return container if kind == "c" or not call.path else f"{container}/{call.path}"

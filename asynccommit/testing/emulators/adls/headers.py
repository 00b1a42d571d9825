"""Parse the request headers of ADLS Gen2."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import lru_cache
from urllib.parse import unquote

from asynccommit.testing.emulators.adls.call import AdlsCall, decode
from asynccommit.testing.models.adls.account import NO_CONDITIONS, Attributes, Conditions
from asynccommit.testing.models.adls.nodes import PLAIN, Cipher
from asynccommit.testing.models.adls.refusals import refusal

Headers = Mapping[str, str]

_CONDITIONS = ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since")
_KEY_LENGTH = 32  # bytes of an AES-256 key
_TRANSACTIONS = "2024-11-04"
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch
_NAME = re.compile(r"[A-Za-z0-9_.!#$%&'*+^`|~-]+").fullmatch  # valid characters of a header name
_CONTENT = ("type", "encoding", "language", "disposition", "md5")


def conditions(headers: Headers) -> Conditions:
    """Return the conditions on the path itself; an empty header is ignored."""
    get = headers.get
    match, none_match = get("if-match"), get("if-none-match")
    since, until = get("if-modified-since"), get("if-unmodified-since")
    lease = get("x-ms-lease-id")
    if match is None is none_match is since is until is lease:
        return NO_CONDITIONS
    return Conditions(match, none_match, _moment(since), _moment(until), lease)


def source_conditions(headers: Headers) -> Conditions:
    """Return the conditions on the source of a rename or copy."""
    found = [headers.get(f"x-ms-source-{name}") for name in _CONDITIONS]
    lease = headers.get("x-ms-source-lease-id")
    if lease is None and not any(found):
        return NO_CONDITIONS
    match, none_match, since, until = found
    return Conditions(match, none_match, _moment(since), _moment(until), lease)


def blob_conditions(headers: Headers) -> Conditions:
    """Return the conditions on the blob that a request for its tags names."""
    match, none_match, since, until = [headers.get(f"x-ms-blob-{name}") for name in _CONDITIONS]
    return Conditions(match, none_match, _moment(since), _moment(until))


@lru_cache(maxsize=1024)
def _moment(text: str | None) -> float | None:
    if not text:
        return None
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, IndexError):
        raise refusal("InvalidHeaderValue") from None


def attributes(headers: Headers, now: float) -> Attributes | None:
    """Return the attributes of a new path, or ``None``."""
    get = headers.get
    found = Attributes(
        properties=properties(headers),
        permissions=get("x-ms-permissions") or None,
        umask=get("x-ms-umask") or None,
        owner=get("x-ms-owner") or None,
        group=get("x-ms-group") or None,
        acl=get("x-ms-acl") or None,
        headers=content_headers(headers),
        expires=expiry(headers, now),
        cipher=None if (cipher := encryption(headers)) is PLAIN else cipher,
    )
    return found if any(_ is not None for _ in found) else None


def encryption(headers: Headers) -> Cipher:
    """Return the encryption that a request names; ``PLAIN`` if it names none."""
    get = headers.get
    key, scope = get("x-ms-encryption-key"), get("x-ms-encryption-scope")
    context = get("x-ms-encryption-context")
    if key is None is scope is context:
        return PLAIN
    return Cipher(None if key is None else _key_digest(headers), scope, context)


def _key_digest(headers: Headers) -> str:
    """Return the SHA-256 of the key. Raises ``Refusal`` for an invalid key."""
    digest = headers.get("x-ms-encryption-key-sha256", "")
    if headers.get("x-ms-encryption-algorithm", "AES256") != "AES256" or (
        "x-ms-encryption-scope" in headers
    ):
        raise refusal("InvalidHeaderValue")
    try:
        key = base64.b64decode(headers["x-ms-encryption-key"], validate=True)
    except binascii.Error:
        raise refusal("InvalidHeaderValue") from None
    if not digest:
        raise refusal("MissingRequiredHeader")
    computed = base64.b64encode(hashlib.sha256(key).digest()).decode("ascii")
    if len(key) != _KEY_LENGTH or digest != computed:
        raise refusal("InvalidHeaderValue")
    return digest


def default_scope(headers: Headers) -> tuple[str | None, bool]:
    """Return the default scope of a filesystem, and whether it is fixed."""
    fixed = headers.get("x-ms-deny-encryption-scope-override", "").lower() == "true"
    return headers.get("x-ms-default-encryption-scope") or None, fixed


def public_access(headers: Headers) -> str | None:
    """Return who may read a container without a key, or ``None`` for nobody."""
    found = headers.get("x-ms-blob-public-access") or None
    if found not in (None, "container", "blob"):
        raise refusal("InvalidHeaderValue")
    return found


def expiry(headers: Headers, now: float, created: float | None = None) -> float | None:
    """Return the time at which a file created at ``created`` expires, or ``None``."""
    option = headers.get("x-ms-expiry-option", "").lower()
    given = headers.get("x-ms-expiry-time", "")
    if not option and not given:
        return None
    if option == "neverexpire" and not given:
        return None
    if option == "absolute" and given:
        return _moment(given)
    if option in ("relativetonow", "relativetocreation") and given.isdecimal():
        start = now if option == "relativetonow" or created is None else created
        return start + int(given[:15]) / 1000
    raise refusal("InvalidHeaderValue")


def properties(headers: Headers) -> Mapping[str, str] | None:
    """Return the user's properties in either endpoint's headers, or ``None``.

    Values are bytes, kept as Latin-1 text, so that they are returned as they were sent.
    """
    if "x-ms-properties" in headers:
        return _decoded(headers["x-ms-properties"])
    found = {name[10:]: value for name, value in headers.items() if name.startswith("x-ms-meta-")}
    if not all(map(_NAME, found)):
        raise refusal("InvalidPropertyName")
    return found or None


def _decoded(text: str) -> Mapping[str, str]:
    found = {}
    for pair in filter(None, text.split(",")):
        name, equals, value = pair.strip().partition("=")
        try:
            found[name] = base64.b64decode(value, validate=True).decode("latin-1")
        except binascii.Error:
            raise refusal("InvalidHeaderValue") from None
        if not equals or not _NAME(name):
            raise refusal("InvalidPropertyName")
    return found


def encoded(values: Mapping[str, str]) -> str:
    """Encode properties for the header ``x-ms-properties``."""
    return ",".join(
        f"{name}={base64.b64encode(value.encode('latin-1', 'replace')).decode('ascii')}"
        for name, value in values.items()
    )


def content_headers(headers: Headers) -> Mapping[str, str] | None:
    """Return the content headers to set on the path, or ``None``."""
    found = {}
    for part in (*(f"content-{_}" for _ in _CONTENT), "cache-control"):
        value = headers.get(f"x-ms-{part}") or headers.get(f"x-ms-blob-{part}")
        if value:
            found[part] = value
    return found or None


def content_md5(headers: Headers, name: str = "content-md5") -> bytes | None:
    """Return the expected digest of the body, or ``None``."""
    try:
        return base64.b64decode(headers.get(name, ""), validate=True) or None
    except binascii.Error:
        raise refusal("InvalidHeaderValue") from None


def encoded_md5(digest: bytes) -> str:
    """Encode a digest for a header."""
    return base64.b64encode(digest).decode("ascii")


def size(headers: Headers, name: str) -> int | None:
    """Return a number of bytes, or ``None``."""
    text = headers.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise refusal("InvalidHeaderValue")
    return int(text)


def knows_transactions(headers: Headers) -> bool:
    """Return whether the requested version supports client transaction ids."""
    return headers.get("x-ms-version", "") >= _TRANSACTIONS


def transaction_id(headers: Headers) -> str | None:
    """Return the transaction id of a create or rename; old versions have none."""
    text = headers.get("x-ms-client-transaction-id")
    if not text or not knows_transactions(headers):
        return None
    if not _UUID(text):
        raise refusal("InvalidHeaderValue")
    return text


def byte_range(headers: Headers, name: str = "x-ms-range") -> tuple[int, int | None] | None:
    """Return start and exclusive end of the requested range."""
    text = headers.get(name) or headers.get("range", "")
    unit, _, span = text.partition("=")
    if not text or unit.strip() != "bytes" or "," in span:
        return None
    first, _, last = span.strip().partition("-")
    if not first.isdigit() or not (last.isdigit() or not last) or len(span) > 40:
        return None
    if last and int(last) < int(first):
        return None
    return int(first), int(last) + 1 if last else None


def rename_source(call: AdlsCall) -> tuple[str, str]:
    """Return filesystem and path of ``x-ms-rename-source``.

    Its slashes may be encoded too. Azure's SDK for Node has the account in it where a URL ends with
    the account's name, and leaves it out of the request's path.
    """
    raw = call.headers["x-ms-rename-source"].partition("?")[0]
    filesystem, _, path = decode(raw).strip("/").partition("/")
    places = (call.headers.get("host", "").partition(".")[0], call.target.raw_path.split("/")[1])
    if filesystem == call.account and call.account not in places:
        filesystem, _, path = path.partition("/")
    if not filesystem or not path:
        raise refusal("InvalidSourceUri")
    return filesystem, path


def copy_source(headers: Headers) -> tuple[str, str, str]:
    """Return account, filesystem and path of ``x-ms-copy-source``."""
    raw = headers["x-ms-copy-source"].partition("?")[0]
    _, colon, rest = raw.partition("://")
    host, _, path = (rest if colon else raw).partition("/")
    label = host.partition(".")[0]
    names = unquote(path).strip("/")
    return label, *_pair(names)


def _pair(names: str) -> tuple[str, str]:
    first, _, rest = names.partition("/")
    return first, rest

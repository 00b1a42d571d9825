"""Remove credentials from texts such as a service's messages.

A secret is searched in the text with every escape undone, however often it was escaped:
percent-escapes, escapes of JSON and XML, ``+`` or white space for either, both alphabets of base64,
and all of that in either case. Six consecutive characters of a secret are a match, because the text
may have been cut; so are six characters of its base64, which headers hold. A match is replaced
where it stands. Parameters, headers and elements that hold credentials are also recognised by their
names, for every service.

Redact a text before cutting it: up to five characters of a secret that was cut may remain.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain

HIDDEN = "***"

_MOST = 100_000  # characters that are searched
_LEVELS = 6  # maximum number of times that a text was escaped
_LEAST = 4  # characters of a secret's beginning at the end of a text
_PART = 6  # characters of a secret anywhere
_ESCAPE = re.compile(
    r"%[0-9a-f]{2}|\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|\\[/\\\"'nrt]"
    r"|&#[0-9]{1,7};|&#x[0-9a-f]{1,6};|&(?:amp|lt|gt|quot|apos);",
    re.IGNORECASE,
)
_PARTIAL = re.compile(r"(?:%[0-9a-f]?|\\(?:[ux][0-9a-f]{0,3})?|&#?[a-z0-9]{0,7})\Z", re.IGNORECASE)
_NAMED_ENTITY = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_BACKSLASH = {"n": "\n", "r": "\r", "t": "\t"}
# White space and + are equivalent in queries, and so are the two alphabets of base64.
_ALIKE = {**dict.fromkeys((*range(33), 0x7F, 0x85, 0xA0), "+"), ord("-"): "+", ord("_"): "/"}
_NAMES = (
    "sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token|x-goog-signature"
    "|x-goog-credential|x-goog-security-token|awsaccesskeyid|googleaccessid|accountkey"
    "|account_key|sharedaccesskey|sharedaccesssignature|access_token|refresh_token|id_token"
    "|client_secret|client_assertion|aws_secret_access_key|secret_access_key|secret_key"
    "|aws_session_token|session_token|sas_token|private_key|password"
    "|secretaccesskey|sessiontoken|signatureprovided"
)
# A name right after a slash is a partition column, not a parameter.
_NAMED = re.compile(
    rf"(?<![a-z0-9/])(?:{_NAMES})[\"']?\s*[=:]\s*[\"']?([^\s&\"'<>,;]+)"
    r"|[?&;](?:token|sas|secret|pwd|key)=([^\s&\"'<>,;]+)",
    re.IGNORECASE,
)
_ELEMENT = re.compile(
    rf"<(?:[a-z0-9._-]+:)?(?:{_NAMES})(?:\s[^<>]*)?>\s*(?:<!\[cdata\[)?\s*([^<>\]]+)", re.IGNORECASE
)
_HEADER = re.compile(
    r"(?<![a-z0-9])(?:proxy-)?authorization[\"']?\s*[=:]\s*[\"']?"
    r"((?:[a-z0-9-]+ +)?[^\s\"'<>,]+)"
    r"|(?<![a-z0-9])bearer\s+([a-z0-9._~+/=-]{16,})"
    r"|(?<![a-z0-9])sharedkey(?:lite)?\s+([a-z0-9]+:[a-z0-9+/=]+)"
    r"|://([^/\s:@]*:[^/\s@]+)@",
    re.IGNORECASE,
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return ``text`` without ``secrets`` and the values of secret parameters.

    The beginning of a secret at the end of the text is removed too, because the sender may have cut
    the text. A text of more than a hundred thousand characters is cut there.
    """
    if len(text) > _MOST:
        text = text[:_MOST]
    known = list(chain.from_iterable(_canonical(secret) for secret in secrets if secret))
    spans: list[tuple[int, int]] = []
    for plain, places in _readings(text):
        alike = _alike(plain)
        found = chain(
            _named(plain), *(_shared(alike, secret) for secret in known), _cut(alike, known)
        )
        spans += [(places[start], places[end]) for start, end in found if start < end]
    return _without(text, spans)


class Redacted:
    """An error or another object whose text is shown without credentials.

    The text is made when it is asked for, so a log line that is not written costs nothing.

    Args:
        thing: the object; known ``secrets`` of a store must have been removed from it.
    """

    __slots__ = ("_thing",)

    def __init__(self, thing: object) -> None:
        self._thing = thing

    def __str__(self) -> str:
        try:
            return redact(str(self._thing))
        except Exception:  # from an exception whose text cannot be formatted
            return type(self._thing).__name__


def short(text: str, room: int) -> str:
    """Return both ends of a redacted text if it is longer than ``room``.

    A shorter text is returned unchanged.
    """
    if len(text) <= room:
        return text
    end = room // 4
    return f"{text[: room - end - 3]}...{text[-end:]}"


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    parts, at = [], 0
    for start, end in sorted(spans):
        if start >= at:
            parts += [text[at:start], HIDDEN]
        at = max(at, end)
    return "".join((*parts, text[at:]))


# --- what to hide ----------------------------------------------------------------------------


def _named(plain: str) -> Iterable[tuple[int, int]]:
    """Yield the spans of values of secret parameters, elements and headers."""
    for pattern in (_NAMED, _ELEMENT, _HEADER):
        for found in pattern.finditer(plain):
            if found.lastindex is not None:
                yield found.span(found.lastindex)


def _shared(alike: str, secret: str) -> Iterable[tuple[int, int]]:
    """Yield spans where the text has a part of a secret, or a whole short one."""
    size, parts = _parts(secret)
    start = end = 0
    for at in range(len(alike) - size + 1):
        if alike[at : at + size] in parts:
            if at > end:
                yield start, end
                start = at
            end = at + size
    yield start, end


@lru_cache(maxsize=64)
def _parts(secret: str) -> tuple[int, frozenset[str]]:
    size = min(_PART, len(secret))
    return size, frozenset(secret[at : at + size] for at in range(len(secret) - size + 1))


def _cut(alike: str, secrets: Iterable[str]) -> Iterable[tuple[int, int]]:
    """Yield the span of a secret's beginning at the text's end.

    A part of an escape may follow it.
    """
    partial = _PARTIAL.search(alike)
    for end in {len(alike), partial.start() if partial else len(alike)}:
        for secret in secrets:
            at = alike.find(secret[:_LEAST], max(0, end - len(secret)), end)
            while at >= 0:
                if secret.startswith(alike[at:end]):
                    yield at, len(alike)
                    break
                at = alike.find(secret[:_LEAST], at + 1, end)


# --- undoing escapes -------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _canonical(secret: str) -> tuple[str, ...]:
    """Return a secret with its escapes undone and normalised, and its base64.

    There are more forms of a secret that is not ASCII: a percent-escape stands for a byte.
    """
    *_, (last, _) = _readings(secret)
    plain = last.strip() or secret
    octets = plain.encode("utf-8", "replace").decode("latin-1")
    encoded = chain(_base64(secret), _base64(last.strip()))
    return tuple(dict.fromkeys(map(_alike, (plain, octets, *encoded))))


def _alike(text: str) -> str:
    """Return a text in which what services may write differently is the same.

    Each character stays one: the few whose lower case is longer keep theirs.
    """
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(low if len(low := one.lower()) == 1 else one for one in text)
    return lower.translate(_ALIKE)


def _base64(secret: str) -> Iterable[str]:
    """Yield the parts of base64 that every text with this secret contains.

    The parts depend on the position of the secret in the text: three bytes become four characters.
    """
    octets = secret.encode("utf-8", "replace")
    for before in range(3):
        size = before + len(octets)
        encoded = b64encode(bytes(before) + octets).decode()
        found = encoded[(0, 2, 3)[before] : size * 8 // 6]
        if len(found) >= _PART:
            yield found


def _readings(text: str) -> Iterable[tuple[str, list[int] | range]]:
    """Yield the text, then with its escapes undone one more level each.

    Each comes with the positions of its characters in the original text, and the end.
    """
    places: list[int] | range = range(len(text) + 1)
    yield text, places
    for _ in range(_LEVELS):
        if not _ESCAPE.search(text):
            return
        text, places = _undone(text, places)
        yield text, places


def _undone(text: str, places: list[int] | range) -> tuple[str, list[int]]:
    parts: list[str] = []
    starts: list[int] = []
    at = 0
    for found in _ESCAPE.finditer(text):
        parts.append(text[at : found.start()])
        starts += places[at : found.start()]
        parts.append(_character(found[0]))
        starts.append(places[found.start()])
        at = found.end()
    parts.append(text[at:])
    return "".join(parts), [*starts, *places[at:]]


def _character(escape: str) -> str:
    """Return the one character that an escape stands for."""
    escape = escape.lower()
    match escape[:2]:
        case "\\u" | "\\x":
            return chr(int(escape[2:], 16))
        case "&#":
            digits = escape[2:-1]
            number = int(digits[1:], 16) if digits[0] == "x" else int(digits)
            return chr(number) if number < 0x110000 else "?"
    match escape[0]:
        case "%":
            return chr(int(escape[1:], 16))
        case "&":
            return _NAMED_ENTITY[escape[1:-1]]
    return _BACKSLASH.get(escape[1], escape[1])

"""Keeping credentials out of texts: what a service says may repeat what it was sent.

A secret is looked for in the text as it reads once every escape in it is undone, however often it
was escaped: percent-escapes of either case, those of JSON and XML, ``+`` or white space for either,
and both alphabets of base64. Six characters of it in a row are enough, as others may have cut it;
so are six of its base64, which headers hold. What is found is replaced where it stands. Parameters,
headers and elements that hold credentials are known by their names, too, whoever they are of.

Redact first and cut then: of a secret that is cut, up to five characters may be left.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain

HIDDEN = "***"

_MOST = 100_000  # characters that are looked at
_LEVELS = 6  # how often a text may have been escaped
_LEAST = 4  # characters of the beginning of a secret at the end of a text
_PART = 6  # characters of a secret anywhere
_ESCAPE = re.compile(
    r"%[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\[/\\\"'nrt]"
    r"|&#[0-9]{1,7};|&#[xX][0-9a-fA-F]{1,6};|&(?:amp|lt|gt|quot|apos);"
)
_PARTIAL = re.compile(r"(?:%[0-9a-fA-F]?|\\(?:[ux][0-9a-fA-F]{0,3})?|&#?[a-zA-Z0-9]{0,7})\Z")
_NAMED_ENTITY = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_BACKSLASH = {"n": "\n", "r": "\r", "t": "\t"}
# White space and + stand for each other in queries, and so do two alphabets of base64.
_ALIKE = {**dict.fromkeys((*range(33), 0x7F, 0x85, 0xA0), "+"), ord("-"): "+", ord("_"): "/"}
_NAMES = (
    "sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token|x-goog-signature"
    "|x-goog-credential|x-goog-security-token|awsaccesskeyid|googleaccessid|accountkey"
    "|account_key|sharedaccesskey|sharedaccesssignature|access_token|refresh_token|id_token"
    "|client_secret|client_assertion|aws_secret_access_key|secret_access_key|secret_key"
    "|aws_session_token|session_token|sas_token|private_key|password"
    "|secretaccesskey|sessiontoken|signatureprovided"
)
# What comes right after a slash is the column of a partition, no parameter.
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
    """Return ``text`` without the values of parameters that hold credentials, and ``secrets``.

    The beginning of a secret at the very end of the text counts, too: whoever sent it may have cut
    it. Of a text of more than a hundred thousand characters the rest is dropped.
    """
    if len(text) > _MOST:
        text = text[:_MOST]
    known = list(chain.from_iterable(_canonical(secret) for secret in secrets if secret))
    spans: list[tuple[int, int]] = []
    for plain, places in _readings(text):
        alike = plain.translate(_ALIKE)
        found = chain(
            _named(plain), *(_shared(alike, secret) for secret in known), _cut(alike, known)
        )
        spans += [(places[start], places[end]) for start, end in found if start < end]
    return _without(text, spans)


def short(text: str, room: int) -> str:
    """Return a text that is redacted in ``room`` characters; of a longer one both ends."""
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
    """Yield where the values of parameters, elements and headers are that hold credentials."""
    for pattern in (_NAMED, _ELEMENT, _HEADER):
        for found in pattern.finditer(plain):
            if found.lastindex is not None:
                yield found.span(found.lastindex)


def _shared(alike: str, secret: str) -> Iterable[tuple[int, int]]:
    """Yield where the text has a part of a secret, or all of a secret that is shorter than one."""
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
    """Yield where the text ends in the beginning of a secret, a part of an escape aside."""
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
    """Return a secret with its escapes undone, what is alike made equal, and its base64.

    There are more if it is not ASCII: a percent-escape stands for a byte.
    """
    *_, (last, _) = _readings(secret)
    plain = (last.strip() or secret).translate(_ALIKE)
    octets = plain.encode("utf-8", "replace").decode("latin-1").translate(_ALIKE)
    encoded = chain(_base64(secret), _base64(last.strip()))
    return tuple(dict.fromkeys((plain, octets, *encoded)))


def _base64(secret: str) -> Iterable[str]:
    """Yield what of the base64 of any text does not change that has a secret in it.

    That depends on where in the text it is: three bytes are four characters.
    """
    octets = secret.encode("utf-8", "replace")
    for before in range(3):
        size = before + len(octets)
        encoded = b64encode(bytes(before) + octets).decode()
        found = encoded[(0, 2, 3)[before] : size * 8 // 6]
        if len(found) >= _PART:
            yield found


def _readings(text: str) -> Iterable[tuple[str, list[int] | range]]:
    """Yield the text, and what it reads with its escapes undone, once more each time.

    With each comes where in the text its characters begin, and the end.
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
    match escape[:2]:
        case "\\u" | "\\x":
            return chr(int(escape[2:], 16))
        case "&#":
            digits = escape[2:-1]
            number = int(digits[1:], 16) if digits[0] in "xX" else int(digits)
            return chr(number) if number < 0x110000 else "?"
    match escape[0]:
        case "%":
            return chr(int(escape[1:], 16))
        case "&":
            return _NAMED_ENTITY[escape[1:-1]]
    return _BACKSLASH.get(escape[1], escape[1])

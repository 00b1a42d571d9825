"""Checksums that S3 keeps beside an object, and which one requests carry."""

from __future__ import annotations

import hashlib
import zlib
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.stores.parts import Part


def _crc32(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "big")


def _crc32c(data: bytes) -> bytes:
    value: int = import_module("google_crc32c").value(data)
    return value.to_bytes(4, "big")


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


_DIGESTS: Mapping[str, Callable[[bytes], bytes]] = MappingProxyType(
    {"CRC32": _crc32, "CRC32C": _crc32c, "SHA256": _sha256, "SHA1": _sha1}
)
KINDS = tuple(_DIGESTS)
"""Algorithms whose checksum of a whole object is made of those of its parts."""


def check_kind(name: str) -> str:
    """Return the service's name of an option's algorithm; empty for none."""
    found = name.strip().upper().replace("-", "")
    if found in ("", "NONE", "FALSE"):
        return ""
    if found not in _DIGESTS:
        known = ", ".join(_DIGESTS)
        raise OptionError(f"{name[:100]!r} is not a supported checksum: expected {known} or none")
    if found == "CRC32C":
        try:
            import_module("google_crc32c")
        except ImportError:
            raise UnsupportedError(
                "CRC32C needs google-crc32c: pip install google-crc32c, or use CRC32"
            ) from None
    return found


def checksum(kind: str, data: bytes) -> str:
    """Return the checksum of ``data`` as a header has it."""
    return b64encode(_DIGESTS[kind](data)).decode()


def headers(kind: str, data: bytes) -> dict[str, str]:
    """Return the checksum headers for ``data``; none if ``kind`` is empty."""
    if not kind:
        return {}
    return {f"x-amz-checksum-{kind.lower()}": checksum(kind, data)}


def said_in(answer: Mapping[str, str]) -> tuple[str, str]:
    """Return algorithm and checksum in a response's headers, or ``""``."""
    for kind in _DIGESTS:
        name = f"x-amz-checksum-{kind.lower()}"
        if name in answer:
            return kind, answer[name]
    return "", ""


def composite(parts: Sequence[Part]) -> tuple[str, str]:
    """Return algorithm and checksum of an object of ``parts``, or ``""``."""
    kind = parts[0].algorithm.upper() if parts else ""
    if kind not in _DIGESTS or any(part.algorithm.upper() != kind for part in parts):
        return "", ""
    try:
        raw = b"".join([b64decode(part.checksum, validate=True) for part in parts])
    except (Base64Error, ValueError):
        return "", ""
    return kind, f"{checksum(kind, raw)}-{len(parts)}"

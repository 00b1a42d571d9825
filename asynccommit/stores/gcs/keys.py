"""Keys of the customer's that Google Cloud Storage encrypts content with."""

from __future__ import annotations

import base64
import binascii
import re
from hashlib import sha256

from asynccommit.errors import OptionError

_KMS = re.compile(r"projects/[^/\s]+/locations/[^/\s]+/keyRings/[^/\s]+/cryptoKeys/[^/\s]+", re.A)
_HEADER = "x-goog-encryption-"
_SOURCE = "x-goog-copy-source-encryption-"


def kms_key_name(name: str) -> str:
    """Return ``name`` if a key of Cloud KMS can have it.

    Raises ``OptionError``.
    """
    if not _KMS.fullmatch(name):
        raise OptionError(
            f"kms_key_name is {name[:300]!r}: say projects/PROJECT/locations/LOCATION/keyRings/"
            "RING/cryptoKeys/KEY"
        )
    return name


def encryption_headers(
    key: str | bytes, digest: str = "", algorithm: str = "", *, name: str = "encryption_key"
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers with ``key``: for content, and for a copy's source."""
    if algorithm not in ("", "AES256"):
        raise OptionError(f"the encryption algorithm is {algorithm[:100]!r}: there is AES256 only")
    raw = key if isinstance(key, bytes) else _decode(key)
    if len(raw) != 32:
        raise OptionError(
            f"{name} is not 32 bytes in base64: make one with openssl rand -base64 32"
        )
    known = base64.b64encode(sha256(raw).digest()).decode()
    if digest not in ("", known):
        raise OptionError(f"{name} has another hash than {name}.hash says: which one is it?")
    values = {"algorithm": "AES256", "key": base64.b64encode(raw).decode(), "key-sha256": known}
    return (
        {_HEADER + part: value for part, value in values.items()},
        {_SOURCE + part: value for part, value in values.items()},
    )


def _decode(key: str) -> bytes:
    try:
        return base64.b64decode(key.strip(), validate=True)
    except (binascii.Error, ValueError):
        return b""

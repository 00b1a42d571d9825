"""The acknowledged parts of an upload, and the etag of their object."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple


class Part(NamedTuple):
    """One part of an upload; its number is its place among the parts, from 1.

    Attributes:
        etag: as the service gave it, in quotes or without.
        algorithm: of the checksum, under the service's name; empty without one.
        checksum: as the service gave it.
    """

    etag: str
    algorithm: str = ""
    checksum: str = ""


def composite_etag(parts: Sequence[Part]) -> str | None:
    """Return the etag of an object made of ``parts``, without quotes.

    The etag is the MD5 of the parts' MD5s, with the number of parts, as on S3 where an etag is an
    MD5. The result is ``None`` if an etag is not an MD5, or there are no parts.
    """
    try:
        digests = b"".join(bytes.fromhex(part.etag.strip('"')) for part in parts)
    except ValueError:
        return None
    if not parts or len(digests) != 16 * len(parts):
        return None
    return f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(parts)}"

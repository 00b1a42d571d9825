"""One object at one moment, with the checksums of its parts.

An ``S3Object`` is never changed, only replaced, so that copies of a bucket share all objects.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from asynccommit.stores.parts import Part, composite_etag
from asynccommit.testing.models.gcs.checksums import crc32c
from asynccommit.testing.models.s3.refusals import refuse

NOTHING: Mapping[str, str] = MappingProxyType({})
_LONGEST_KEY = 1024  # bytes of UTF-8

_DIGESTS: Mapping[str, Callable[[bytes], bytes]] = {
    "CRC32": lambda data: binascii.crc32(data).to_bytes(4, "big"),
    "CRC32C": lambda data: crc32c(data).to_bytes(4, "big"),
    "SHA1": lambda data: hashlib.sha1(data, usedforsecurity=False).digest(),
    "SHA256": lambda data: hashlib.sha256(data).digest(),
}
ALGORITHMS = tuple(_DIGESTS)
"""The checksum algorithms that the model supports."""


class S3Object(NamedTuple):
    """The object at one key.

    Attributes:
        etag: etag without quotes.
        modified: whole seconds since the epoch; for a multipart upload, the time of its creation.
        metadata: the user's own metadata.
        algorithm: checksum algorithm; empty without a checksum.
        checksum: checksum in base64; for a multipart upload followed by the number of parts.
        encrypted: encrypted by a customer's KMS key; the etag is then not an MD5.
    """

    key: str
    data: bytes
    etag: str
    modified: float
    metadata: Mapping[str, str] = NOTHING
    algorithm: str = ""
    checksum: str = ""
    encrypted: bool = False

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self.data)


class SentPart(NamedTuple):
    """A part as it was sent; ``checksum`` is in base64, and empty if absent."""

    number: int
    data: bytes
    etag: str
    modified: float
    algorithm: str = ""
    checksum: str = ""


class CompletedPart(NamedTuple):
    """A part as named in a completion; its checksum is optional."""

    number: int
    etag: str
    checksum: str = ""


def md5(data: bytes) -> bytes:
    """Return the MD5."""
    return hashlib.md5(data, usedforsecurity=False).digest()


def checksum_of(algorithm: str, data: bytes) -> str:
    """Return the checksum in base64; empty without an algorithm."""
    if not algorithm:
        return ""
    return base64.b64encode(_DIGESTS[algorithm](data)).decode()


def composite_checksum(algorithm: str, parts: Iterable[SentPart | Part]) -> str:
    """Return the checksum of an object made of ``parts``.

    It is the checksum of theirs, followed by their number.
    """
    if not algorithm:
        return ""
    each = [base64.b64decode(part.checksum) for part in parts]
    return f"{checksum_of(algorithm, b''.join(each))}-{len(each)}"


def check_key(key: str) -> None:
    """Check the key of an object."""
    if len(key.encode("utf-8", "surrogatepass")) > _LONGEST_KEY:
        raise refuse("KeyTooLongError")
    if not key:
        raise refuse("InvalidArgument", "A key has at least one character.")


def is_made_of(found: S3Object, parts: Sequence[Part]) -> bool | None:
    """Return whether an object was made of ``parts``; ``None`` if unknown."""
    etag = composite_etag(parts)
    if not found.encrypted or found.etag == etag:
        return found.etag == etag
    if not found.etag.endswith(f"-{len(parts)}"):
        return False
    if not found.checksum or any(part.algorithm != found.algorithm for part in parts):
        return None
    return found.checksum == composite_checksum(found.algorithm, parts)

"""Represent one object at one moment: its content and its metadata.

A ``GcsObject`` is never changed, only replaced, so that copies of a service share all objects.
"""

from __future__ import annotations

import binascii
import copy
import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from asynccommit.testing.models.gcs.checksums import crc32c
from asynccommit.testing.models.gcs.refusals import refuse

_NOTHING: Mapping[str, str] = MappingProxyType({})
_LONGEST_NAME = 1024  # bytes of UTF-8
_ACME = ".well-known/acme-challenge/"


class Retention(NamedTuple):
    """An object's own retention.

    ``mode`` is ``Locked`` or ``Unlocked``; ``until`` is in seconds.
    """

    mode: str
    until: float


class Details(NamedTuple):
    """The metadata that a request may set; the JSON names are in camel case.

    Attributes:
        metadata: the user's own metadata.
        kms_key_name: the customer-managed key.
        custom_time: seconds since the epoch.
        retention: retention of this object alone.
    """

    content_type: str = ""
    metadata: Mapping[str, str] = _NOTHING
    cache_control: str = ""
    content_disposition: str = ""
    content_encoding: str = ""
    content_language: str = ""
    storage_class: str = ""
    kms_key_name: str = ""
    custom_time: float | None = None
    temporary_hold: bool = False
    event_based_hold: bool = False
    retention: Retention | None = None


NO_DETAILS = Details()


class Content:
    """The bytes of an upload, shared by its copies.

    Args:
        data: the bytes.
        components: number of objects it was composed of; ``None`` if uploaded.
    """

    __slots__ = ("_crc32c", "_md5", "components", "data")

    def __init__(self, data: bytes, components: int | None = None) -> None:
        self.data = data
        self.components = components
        self._crc32c: int | None = None
        self._md5: bytes | None = None

    @property
    def crc32c(self) -> int:
        """The CRC32C."""
        if self._crc32c is None:
            self._crc32c = crc32c(self.data)
        return self._crc32c

    @property
    def md5(self) -> bytes | None:
        """The MD5, 16 bytes; ``None`` for a composite object."""
        if self._md5 is None and self.components is None:
            self._md5 = hashlib.md5(self.data, usedforsecurity=False).digest()
        return self._md5

    def part(self, start: int, end: int | None) -> bytes:
        """Return the bytes from ``start`` to before ``end``.

        A negative ``start`` counts from the end. Rejected if ``start`` is beyond the end (416).
        """
        data = self.data
        if start == 0 and end is None:
            return data
        if start >= len(data) or (start < 0 and not data):
            raise refuse("requestedRangeNotSatisfiable")
        return data[max(start, -len(data)) : end]


class GcsObject:
    """One generation of an object.

    Attributes:
        bucket: name of the bucket.
        name: name in the bucket.
        generation: microseconds since the epoch, unique.
        metageneration: 1, plus one for each change of the metadata.
        content: bytes and their checksums.
        details: metadata.
        created: seconds since the epoch (``timeCreated``).
        updated: seconds since the epoch.
        deleted: time at which it became noncurrent (``timeDeleted``) or was soft-deleted
            (``softDeleteTime``).
        purged: time at which a soft-deleted object is removed permanently (``hardDeleteTime``);
            ``None`` for others.
    """

    __slots__ = (
        "_etag",
        "bucket",
        "content",
        "created",
        "deleted",
        "details",
        "generation",
        "metageneration",
        "name",
        "purged",
        "updated",
    )

    def __init__(
        self,
        bucket: str,
        name: str,
        generation: int,
        content: Content,
        details: Details,
        now: float,
    ) -> None:
        self.bucket = bucket
        self.name = name
        self.generation = generation
        self.metageneration = 1
        self.content = content
        self.details = details
        self.created = now
        self.updated = now
        self.deleted: float | None = None
        self.purged: float | None = None
        self._etag = ""

    def __repr__(self) -> str:
        return f"<{self.bucket}/{self.name}#{self.generation}, {self.size} bytes>"

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self.content.data)

    @property
    def crc32c(self) -> int:
        """The CRC32C of the bytes."""
        return self.content.crc32c

    @property
    def etag(self) -> str:
        """The etag of the JSON API: generation and metageneration, packed."""
        if not self._etag:
            packed = b"\x08%b\x10%b" % (_varint(self.generation), _varint(self.metageneration))
            self._etag = binascii.b2a_base64(packed, newline=False).decode()
        return self._etag

    def changed(self, details: Details, now: float) -> GcsObject:
        """Return the object with other details: the same generation."""
        made = GcsObject(self.bucket, self.name, self.generation, self.content, details, now)
        made.metageneration = self.metageneration + 1
        made.created = self.created
        return made

    def called(self, name: str) -> GcsObject:
        """Return the object under another name, otherwise unchanged."""
        made = copy.copy(self)
        made.name = name
        return made

    def ended(self, now: float, purged: float | None) -> GcsObject:
        """Return the object as one that is no longer live."""
        made = copy.copy(self)
        made.deleted = now
        made.purged = purged
        return made


def check_name(name: str) -> None:
    """Check the name of an object.

    Source: https://cloud.google.com/storage/docs/objects#naming
    """
    if not name:
        raise refuse("required", "Required")
    if "\n" in name or "\r" in name:
        raise refuse("invalid", "Disallowed unicode characters present in object name.")
    if name in (".", "..") or name.startswith(_ACME):
        raise refuse("invalid", f"Invalid object name: {name!r}")
    if len(name) * 4 > _LONGEST_NAME and len(name.encode("utf-8", "replace")) > _LONGEST_NAME:
        raise refuse(
            "invalid",
            f"The maximum object length is {_LONGEST_NAME} characters, but got a name with "
            f"{len(name.encode('utf-8', 'replace'))} characters: ''{name[:128]}...''",
        )


def _varint(value: int) -> bytes:
    if 1 << 49 <= value < 1 << 56:  # common case: each response contains one
        low = value & 127 | 128, value >> 7 & 127 | 128, value >> 14 & 127 | 128
        high = value >> 21 & 127 | 128, value >> 28 & 127 | 128, value >> 35 & 127 | 128
        return bytes((*low, *high, value >> 42 & 127 | 128, value >> 49))
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)

"""Compute CRC32C, with ``google-crc32c`` if installed."""

from __future__ import annotations

import binascii
from functools import lru_cache

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, its bits reversed


def crc32c(data: bytes) -> int:
    """Return the CRC32C (Castagnoli) of ``data``."""
    value: int = _value(data)
    return value


def encode_crc32c(value: int) -> str:
    """Return a checksum as in the JSON API: four bytes, big-endian, base64."""
    return binascii.b2a_base64(value.to_bytes(4, "big"), newline=False).decode()


@lru_cache(maxsize=1)
def _table() -> tuple[int, ...]:
    found = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return tuple(found)


# Simulated jobs write the same few contents many times.
@lru_cache(maxsize=256)
def by_table(data: bytes) -> int:
    """Return the CRC32C of ``data`` without a library."""
    table, value = _table(), 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


try:
    from google_crc32c import value as _value
except ImportError:
    _value = by_table

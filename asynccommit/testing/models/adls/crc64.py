"""Compute the CRC-64 of Azure Storage, by Azure's library if installed.

It is the one that is catalogued as CRC-64/NVME. ``azure-storage-extensions`` is what Azure's SDK
needs for the same checksums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any

_POLYNOMIAL = 0x9A6C9329AC4BC9B5  # its bits reversed
_ONES = (1 << 64) - 1
_LANE, _FEW = 512, 32  # bytes of a lane, and lanes that are worth it
LENGTH = 8
"""Bytes of a checksum; they are sent with the lowest first."""


def crc64(data: bytes, before: int = 0) -> int:
    """Return the CRC-64 of ``data``; ``before`` is that of the bytes before."""
    return _best()(data, before)


def encode_crc64(value: int) -> bytes:
    """Return a checksum as it is sent."""
    return value.to_bytes(LENGTH, "little")


@lru_cache(maxsize=1)
def _best() -> Callable[[bytes, int], int]:
    try:
        library: Any = import_module("azure.storage.extensions.checksums")
    except ImportError:
        return by_tables
    compute: Callable[[bytes, int], int] = library.crc64.compute
    return compute


def by_tables(data: bytes, before: int = 0) -> int:
    """Return the same as ``crc64`` without a library.

    Large data is cut into lanes of equal length, which are computed side by side.
    """
    lanes = len(data) // _LANE
    if lanes < _FEW:
        return _one_by_one(data, before ^ _ONES) ^ _ONES
    value = 0
    for lane in _side_by_side(data, lanes, before ^ _ONES):
        value = _after_lane(value) ^ lane
    return _one_by_one(data[lanes * _LANE :], value) ^ _ONES


def _one_by_one(data: bytes, value: int) -> int:
    table = _table()
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return value


def _side_by_side(data: bytes, lanes: int, first: int) -> Iterable[int]:
    """Return the state after each lane.

    The first lane begins with ``first``, the others with 0. The states are kept byte by byte: a
    number has the same byte of all of them.
    """
    whole, translations = lanes * _LANE, _translations()
    state = [first >> 8 * place & 0xFF for place in range(LENGTH)]
    for position in range(_LANE):
        column = int.from_bytes(data[position:whole:_LANE], "little") ^ state[0]
        looked_up = column.to_bytes(lanes, "little")
        added = [int.from_bytes(looked_up.translate(_), "little") for _ in translations]
        state = [old ^ new for old, new in zip([*state[1:], 0], added, strict=True)]
    parts = [number.to_bytes(lanes, "little") for number in state]
    return (int.from_bytes(bytes(lane), "little") for lane in zip(*parts, strict=True))


def _after_lane(value: int) -> int:
    """Return the state that a lane of zeros makes of ``value``."""
    found = 0
    for table, byte in zip(_lane_tables(), value.to_bytes(LENGTH, "little"), strict=True):
        found ^= table[byte]
    return found


@lru_cache(maxsize=1)
def _table() -> list[int]:
    found = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return found


@lru_cache(maxsize=1)
def _translations() -> list[bytes]:
    """Return the table of each byte of a state."""
    return [bytes(value >> 8 * place & 0xFF for value in _table()) for place in range(LENGTH)]


@lru_cache(maxsize=1)
def _lane_tables() -> list[list[int]]:
    """Return what a lane of zeros makes of each value of each byte of a state."""
    zeros = bytes(_LANE)
    found = []
    for place in range(LENGTH):
        bits = [_one_by_one(zeros, 1 << 8 * place + bit) for bit in range(8)]
        table = [0]
        for value in bits:
            table += [value ^ other for other in table]
        found.append(table)
    return found

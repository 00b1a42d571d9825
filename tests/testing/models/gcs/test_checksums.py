"""CRC32C by a library and by hand."""

from __future__ import annotations

import importlib.util
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.testing.models.gcs import checksums
from asynccommit.testing.models.gcs.checksums import by_table, crc32c, encode_crc32c


@pytest.mark.parametrize(
    "data,value",
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_known_values(data: bytes, value: int) -> None:
    """The check value of the algorithm, and the examples of RFC 3720, B.4."""
    assert crc32c(data) == value
    assert by_table(data) == value


@given(st.binary())
def test_the_table_agrees_with_the_library(data: bytes) -> None:
    """Where no library is installed the same comes out."""
    assert by_table(data) == crc32c(data)


def test_encoding() -> None:
    """Four bytes, the highest first, in base64: as in https://cloud.google.com/storage/docs/hashes-etags."""
    assert encode_crc32c(0) == "AAAAAA=="
    assert encode_crc32c(0xE3069283) == "4waSgw=="


def test_no_library_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one the module computes by its table."""
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    spec = importlib.util.find_spec(checksums.__name__)
    assert spec is not None
    assert spec.loader is not None
    alone = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(alone)

    assert alone.crc32c(b"123456789") == 0xE3069283
    assert alone._value is alone.by_table

"""The CRC-64 of Azure Storage."""

from __future__ import annotations

import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.testing.models.adls.crc64 import by_tables, crc64, encode_crc64


@pytest.mark.parametrize("compute", [by_tables, crc64])
def test_checksum_is_the_catalogued_one(compute: object) -> None:
    """The check value is that of CRC-64/NVME, and the service's is from a recording."""
    assert callable(compute)
    assert compute(b"123456789") == 0xAE8B14860A799888
    assert base64.b64encode(encode_crc64(compute(b"Hello World"))) == b"YeJLfssylmU="
    assert compute(b"") == 0


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_checksum_goes_on(first: bytes, second: bytes) -> None:
    """The checksum of two parts, one after the other, is that of the whole."""
    assert by_tables(second, by_tables(first)) == by_tables(first + second)


@pytest.mark.parametrize("size", [512 * 32 - 1, 512 * 32, 512 * 40 + 3])
def test_checksum_of_large_data(size: int) -> None:
    """What is computed in lanes is the same as in small pieces, whatever comes before."""
    data = random.Random(size).randbytes(size)
    value = 7
    for start in range(0, size, 1000):
        value = by_tables(data[start : start + 1000], value)

    assert by_tables(data, 7) == value


@given(st.binary(max_size=300))
def test_checksum_is_that_of_azures_library(data: bytes) -> None:
    """The tables give what ``azure-storage-extensions`` gives, if it is installed."""
    library = pytest.importorskip("azure.storage.extensions.checksums")

    assert by_tables(data) == library.crc64.compute(data, 0)

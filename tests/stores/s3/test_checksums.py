"""Checksums of parts, and of what is made of them."""

from __future__ import annotations

import base64
import zlib

import pytest

from asynccommit.errors import OptionError
from asynccommit.stores.parts import Part
from asynccommit.stores.s3.checksums import KINDS, check_kind, checksum, composite, headers, said_in


def test_known_checksums() -> None:
    """The check values of the catalogues, as a header has them."""
    assert checksum("CRC32", b"123456789") == "y/Q5Jg=="  # 0xCBF43926
    assert checksum("CRC32C", b"123456789") == "4waSgw=="  # 0xE3069283
    assert base64.b64decode(checksum("SHA256", b""))[:4].hex() == "e3b0c442"
    assert base64.b64decode(checksum("SHA1", b""))[:4].hex() == "da39a3ee"


@pytest.mark.parametrize("said", ["crc32", "CRC-32", "CRC32"])
def test_names_are_read_as_they_are_written(said: str) -> None:
    """Upper case or lower, with a hyphen or without."""
    assert check_kind(said) == "CRC32"


def test_none_is_no_checksum() -> None:
    """A switch for servers that know none."""
    assert check_kind("none") == ""
    assert headers("", b"data") == {}
    assert said_in({}) == ("", "")


def test_an_unknown_one_is_refused() -> None:
    """The error names those there are."""
    with pytest.raises(OptionError, match="CRC32, CRC32C, SHA256, SHA1 or none"):
        check_kind("md4")


def test_a_whole_is_made_of_its_parts() -> None:
    """The checksum of an object is that of its parts' checksums, and how many they are."""
    datas = [b"one", b"two"]
    parts = [Part("e", "crc32", checksum("CRC32", data)) for data in datas]
    raw = b"".join(zlib.crc32(data).to_bytes(4, "big") for data in datas)
    expected = base64.b64encode(zlib.crc32(raw).to_bytes(4, "big")).decode() + "-2"

    assert composite(parts) == ("CRC32", expected)


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [Part("e")],
        [Part("e", "CRC32", "AAAAAA=="), Part("e")],
        [Part("e", "CRC32", "AAAAAA=="), Part("e", "SHA1", "AAAA")],
        [Part("e", "CRC64NVME", "AAAA")],
        [Part("e", "CRC32", "no base64!")],
    ],
)
def test_it_is_not_known_of_others(parts: list[Part]) -> None:
    """Without a checksum of every part, all of one algorithm, nothing is said of the whole."""
    assert composite(parts) == ("", "")


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_request_carries_is_found_in_an_answer(kind: str) -> None:
    """The header of a request is the one that answers have."""
    assert said_in(headers(kind, b"data")) == (kind, checksum(kind, b"data"))

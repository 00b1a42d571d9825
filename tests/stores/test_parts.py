"""What an object made of parts bears."""

from __future__ import annotations

import hashlib

import pytest

from asynccommit.stores.parts import Part, composite_etag


def md5(data: bytes) -> str:
    """Return a digest as text."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


@pytest.mark.parametrize("quote", ["", '"'])
def test_an_etag_is_that_of_its_parts(quote: str) -> None:
    """It is the MD5 of the parts' MD5s, and their number, in quotes or without."""
    parts = [Part(f"{quote}{md5(data)}{quote}") for data in (b"one", b"two")]
    of_both = hashlib.md5(b"one", usedforsecurity=False).digest()
    of_both += hashlib.md5(b"two", usedforsecurity=False).digest()

    assert composite_etag(parts) == f"{md5(of_both)}-2"


@pytest.mark.parametrize("etags", [[], [""], ["not hex"], [md5(b"one"), "ab"], ["ab" * 17]])
def test_no_etag_where_a_part_has_none(etags: list[str]) -> None:
    """Where an etag is no MD5 nothing is known of the whole."""
    assert composite_etag([Part(etag) for etag in etags]) is None

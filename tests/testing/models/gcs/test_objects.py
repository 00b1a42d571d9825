"""Objects: what is shared, what is computed, which names there are."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.testing.models.gcs.objects import NO_DETAILS, Content, GcsObject, check_name
from tests.testing.models.gcs.model import refused


def made(generation: int = 1_700_000_000_000_000) -> GcsObject:
    """Return an object."""
    return GcsObject("data", "a/b", generation, Content(b"abc"), NO_DETAILS, 1.0)


def test_checksums_are_of_the_data() -> None:
    """CRC32C and MD5; a composite object has no MD5."""
    content = Content(b"abc")

    assert content.crc32c == 0x364B3FB7
    assert content.md5 == hashlib.md5(b"abc", usedforsecurity=False).digest()
    assert Content(b"abc", components=2).md5 is None


@given(st.integers(1, 2**63 - 1) | st.integers(2**49 - 1, 2**56), st.integers(1, 2**20))
def test_etag_packs_generation_and_metageneration(generation: int, metageneration: int) -> None:
    """A protobuf of the two as fields 1 and 2, as the JSON API's etags can be read."""
    found = made(generation)
    found.metageneration = metageneration
    packed = list(base64.b64decode(found.etag))

    numbers = []
    for field in (0x08, 0x10):
        assert packed.pop(0) == field
        value = shift = 0
        while True:
            byte = packed.pop(0)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        numbers.append(value)
    assert numbers == [generation, metageneration]
    assert packed == []


def test_changes_make_other_objects() -> None:
    """What is said, its name and its end; the content is shared, the first stays as it was."""
    first = made()
    said = first.changed(NO_DETAILS._replace(cache_control="no-store"), 5.0)
    ended = said.ended(7.0, 9.0)

    assert (said.generation, said.metageneration) == (first.generation, 2)
    assert (said.created, said.updated) == (1.0, 5.0)
    assert first.called("c").name == "c"
    assert (ended.deleted, ended.purged) == (7.0, 9.0)
    assert ended.content is first.content
    assert (first.name, first.metageneration, first.deleted) == ("a/b", 1, None)
    assert "a/b" in repr(first)


@pytest.mark.parametrize(
    "name",
    ["a", "a/b", "/", "a//b", "a/", "/a", "./a", "a/..", "ü", "#?%", "a b\t", "\x7f", "x" * 1024],
)
def test_names_that_there_are(name: str) -> None:
    """Any characters but a few: https://cloud.google.com/storage/docs/objects#naming."""
    check_name(name)


@pytest.mark.parametrize(
    "name",
    ["a\nb", "a\rb", ".", "..", ".well-known/acme-challenge/x", "x" * 1025, "ü" * 513],
)
def test_names_that_there_are_not(name: str) -> None:
    """Line ends, dots alone and names of more than 1,024 bytes."""
    with refused(400, "invalid"):
        check_name(name)


def test_a_name_is_required() -> None:
    """The empty one is none."""
    with refused(400, "required"):
        check_name("")

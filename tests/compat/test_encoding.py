"""Paths in manifests: our text is the text of Hadoop's ``Path``, and back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asynccommit.stores.urls import Address, Under, decode_uri, encode_path
from tests.support.hadoop import Hadoop

pytestmark = pytest.mark.jvm

# Whole of the basic plane without NUL, slash and surrogates, and some of the planes above.
CHARACTERS = [
    chr(code)
    for code in (*range(1, 0xD800), *range(0xE000, 0x10000), *range(0x1F300, 0x1F700), 0x10FFFF)
    if chr(code) != "/"
]
PARTITIONS = [
    *(
        "a b",
        " leading",
        "trailing ",
        "50%",
        "p=50%25",
        "%zz",
        "x+y",
        "k=v=w",
        "a&b;c,d",
        "~!$'()*",
    ),
    *("é", "e\u0301", "日本", "😀", "👨‍👩‍👧", "[x]", "{y}", 'q"t', "back\\slash", "#frag", "what?"),
    *("_hidden", ".hidden", "__HIVE_DEFAULT_PARTITION__", "a:b", "...", "..a", "@host", "-"),
]
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1)


def _paths() -> Iterator[str]:
    """Yield paths that together hold every character, each within a name of its own."""
    for start in range(0, len(CHARACTERS), 4000):
        yield "".join(f"/x{character}y" for character in CHARACTERS[start : start + 4000])


def test_encode_path_of_every_character_as_hadoop(hadoop: Hadoop) -> None:
    """Every character, within a name, is encoded exactly as Hadoop encodes it."""
    for path in _paths():
        assert hadoop.encode(path) == f"file:{encode_path(path)}"


def test_decode_uri_of_every_character_as_hadoop(hadoop: Hadoop) -> None:
    """What Hadoop encodes decodes here, and what we encode decodes there."""
    for path in _paths():
        uri = hadoop.encode(path)

        assert decode_uri(uri) == Address("file", "", path)
        assert hadoop.decode(Address("file", "", path).encode()) == path


@pytest.mark.parametrize("name", PARTITIONS)
def test_encode_of_partition_names_as_hadoop(hadoop: Hadoop, name: str) -> None:
    """Awkward directory names have the same text here and in Hadoop, and are found below a base."""
    place = Address("file", "", f"/data/{name}/part-0")

    assert hadoop.encode(place.path) == place.encode()
    assert Under(Address("file", "", "/data")).path(hadoop.encode(place.path)) == place.path


@given(st.lists(NAMES.filter(lambda name: name not in (".", "..")), min_size=1, max_size=50))
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_encode_of_any_names_as_hadoop(hadoop: Hadoop, names: list[str]) -> None:
    """Any names, characters in any order, have the same text here and in Hadoop."""
    path = "/" + "/".join(names)

    assert hadoop.encode(path) == f"file:{encode_path(path)}"

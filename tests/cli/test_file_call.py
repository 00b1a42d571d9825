"""The files that a command names are selected as the help says."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit import OptionError
from asynccommit.cli.file_call import (
    below,
    fixed_part,
    is_pattern,
    read_lines,
    read_lines_aside,
    second_place,
)
from asynccommit.stores.urls import parse_url


@pytest.mark.parametrize(
    "path, fixed", [("/a/b*/c", "/a"), ("/*", "/"), ("/a/b/c[1]", "/a/b"), ("/a?/b", "/")]
)
def test_fixed_part_of_a_pattern(path: str, fixed: str) -> None:
    """The fixed part is the directory above the first wildcard."""
    place = parse_url("/x").at(path)
    assert is_pattern(place)
    assert fixed_part(place) == fixed


def test_a_slash_at_the_end_means_into() -> None:
    """``DEST/`` takes the name of the source; another store is refused."""
    first = parse_url("gs://b/in/a")
    assert second_place(first, "gs://b/out", "a").path == "/out"
    assert second_place(first, "gs://b/out/", "a").path == "/out/a"
    assert second_place(first, "gs://b/", "a").path == "/a"
    with pytest.raises(OptionError, match="different stores"):
        second_place(first, "gs://c/out")
    assert below("/", "a/b") == "/a/b"
    assert below("/d", "a/b") == "/d/a/b"


async def test_lines_are_read_in_order(tmp_path: Path) -> None:
    """All lines but empty ones, whatever ends them, and as many as there are."""
    (tmp_path / "list").write_bytes(b"a\r\n\nb c\n" + b"".join(b"%d\n" % i for i in range(2_500)))

    lines = list(read_lines(str(tmp_path / "list")))

    assert lines[:3] == ["a", "b c", "0"]
    assert len(lines) == 2_502
    assert [line async for line in read_lines_aside(str(tmp_path / "list"))] == lines

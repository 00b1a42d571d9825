"""Paths of callers are absolute and lead where they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit import OptionError
from asynccommit.engine.paths import checked_path, is_within, parent_of


def test_paths_are_taken_as_they_are() -> None:
    """Text and path objects are taken; a slash at the end is not part of a path."""
    assert checked_path("/a/b") == "/a/b"
    assert checked_path("/a/b/") == "/a/b"
    assert checked_path(Path("/a/b")) == "/a/b"
    assert checked_path("/a b/%41=ä") == "/a b/%41=ä"
    assert checked_path("/") == "/"


@pytest.mark.parametrize("path", ["", "a", "s3://b/a", "/a//b", "/a/../b", "/./a", "/a\0b"])
def test_other_paths_are_refused(path: str) -> None:
    """A path that is relative, a URL, or leads elsewhere is an ``OptionError``."""
    with pytest.raises(OptionError):
        checked_path(path)


def test_parents_and_overlaps() -> None:
    """The root is its own parent, and a common prefix of names is no overlap."""
    assert [parent_of("/a/b"), parent_of("/a"), parent_of("/")] == ["/a", "/", "/"]
    assert is_within("/a/b", "/a")
    assert is_within("/a", "/a")
    assert is_within("/a", "/")
    assert not is_within("/ab", "/a")

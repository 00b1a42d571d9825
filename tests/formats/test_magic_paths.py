"""Where files go that are written below a magic directory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import UrlError
from asynccommit.formats.magic_paths import (
    final_path,
    is_magic,
    is_magic_file,
    marker_length,
    marker_metadata,
    pending_path,
)

names = st.text("ab.=_é ", min_size=1, max_size=5).filter(lambda n: not n.startswith("__"))
places = st.lists(names, max_size=3).map(lambda parts: "".join(f"/{part}" for part in parts))


@pytest.mark.parametrize(
    "path,magic,old",
    [
        ("/__magic_job-1", True, True),
        ("/a/__magic_job-/b", True, True),
        ("a/__magic_job-1/b", True, True),
        ("/a/__magic/b", False, True),
        ("/a/__magic", False, True),
        ("/a/__magi/b", False, False),
        ("/a/x__magic_job-1/b", False, False),
        ("/a/b", False, False),
        ("/", False, False),
        ("", False, False),
    ],
)
def test_is_magic(path: str, magic: bool, old: bool) -> None:
    """An element that begins as the committer's does makes a path magic; old names are a choice."""
    assert (is_magic(path), is_magic(path, old=True)) == (magic, old)


@pytest.mark.parametrize(
    "path,magic",
    [
        ("/a/__magic_job-1/b", True),
        ("/a/__magic_job-1/b.pending", False),
        ("/a/__magic_job-1/b.pendingset", False),
        ("/a/__magic_job-1/b.pending.x", True),
        ("/a/b", False),
    ],
)
def test_is_magic_file(path: str, magic: bool) -> None:
    """What the committer itself writes there stays there."""
    assert is_magic_file(path) is magic


@pytest.mark.parametrize(
    "path,final",
    [
        ("/__magic_job-1/a", "/a"),
        ("__magic_job-1/a", "a"),
        ("/t/__magic_job-1/a", "/t/a"),
        ("/t/__magic_job-1/a/", "/t/a"),
        ("/t/__magic_job-1/x/y/z/a", "/t/a"),
        ("/t/__magic_job-1/job-1/00/tasks/1/__base/a", "/t/a"),
        ("/t/__magic_job-1/job-1/00/tasks/1/__base/p=1/q=2/a", "/t/p=1/q=2/a"),
        ("/t/__magic_job-1/__base/a/__base/b", "/t/a/__base/b"),
        ("/t/__magic_job-1/a/__magic_job-2/__base/b", "/t/b"),
        ("/t/__base/u/__magic_job-1/a", "/t/__base/u/a"),
        ("/t/__magic/job-1/__base/a", "/t/__magic/job-1/__base/a"),
        ("/t/a", "/t/a"),
    ],
)
def test_final_path(path: str, final: str) -> None:
    """Scenario 38: what is from the first magic element to the next ``__base`` is left out."""
    assert final_path(path) == final


@given(places, places, names)
def test_final_path_of_a_task(table: str, inside: str, name: str) -> None:
    """A file below ``__base`` has the place in the table that it has there."""
    base = f"{table}/__magic_job-x/job-x/00/tasks/attempt/__base"

    assert final_path(f"{base}{inside}/{name}") == f"{table}{inside}/{name}"


@pytest.mark.parametrize(
    "path,what",
    [
        ("/t/__magic_job-1", "__magic_job-1"),
        ("/t/__magic_job-1/", "__magic_job-1"),
        ("/t/__magic_job-1/a/__base", "__base"),
        ("/t/__magic_job-1/a/__base/", "__base"),
    ],
)
def test_no_file(path: str, what: str) -> None:
    """Scenario 38: a magic directory by itself goes nowhere."""
    with pytest.raises(UrlError, match=f"no file below '{what}'"):
        final_path(path)


def test_pending_path() -> None:
    """The record of an upload is beside its marker."""
    assert pending_path("/t/__magic_job-1/a") == "/t/__magic_job-1/a.pending"


@given(st.integers(0, 2**62))
def test_marker_length(length: int) -> None:
    """A marker says how long its file will be."""
    assert marker_length(marker_metadata(length)) == length


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1e3", " 7", "٣", "9" * 20, "9" * 5000])
def test_marker_length_of_anything_else(text: str) -> None:
    """What is no length is not taken for one."""
    assert marker_length({"x-hadoop-s3a-magic-data-length": text}) is None
    assert marker_length({}) is None

"""Files of the user's cache: whole, small, and of nobody else, or not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from asynccommit.runtime.private_cache import (
    cache_directory,
    make_private,
    read_private,
    write_private,
)


def test_a_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    """A file of the cache is read as it was written, and nobody else can open it."""
    path = tmp_path / "own" / "file"
    write_private(path, b"content", lasts=60)

    assert read_private(path, 7) == b"content"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [found.name for found in path.parent.iterdir()] == ["file"]


def test_files_beside_it_that_are_too_old_go(tmp_path: Path) -> None:
    """A cache does not grow with the servers of the past."""
    path = tmp_path / "file"
    for name, age in (("old", 100), ("young", 10)):
        (tmp_path / name).write_bytes(b"")
        then = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (then, then))
    write_private(path, b"", lasts=60)

    assert {found.name for found in tmp_path.iterdir()} == {"young", "file"}


def _pipe(path: Path) -> None:
    os.mkfifo(path, 0o600)


def _link(path: Path) -> None:
    path.with_name("there").write_bytes(b"x")
    path.symlink_to("there")


def _shared(path: Path) -> None:
    path.write_bytes(b"x")
    path.chmod(0o620)


def test_a_directory_that_others_can_write_to_is_not_read(tmp_path: Path) -> None:
    """Who can write to the directory could bring back an older file of the user."""
    write_private(tmp_path / "own" / "file", b"content", lasts=60)
    (tmp_path / "own").chmod(0o770)

    assert read_private(tmp_path / "own" / "file", 7) is None


@pytest.mark.parametrize("make", [_pipe, _link, _shared, Path.mkdir, lambda path: None])
def test_what_another_could_have_placed_is_not_read(make: object, tmp_path: Path) -> None:
    """Links, pipes, directories and files that a group can write count as absent."""
    make(tmp_path / "file")  # type: ignore[operator]

    assert read_private(tmp_path / "file", 100) is None


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    """The limit is known before anything is read."""
    write_private(tmp_path / "file", b"12345", lasts=60)

    assert read_private(tmp_path / "file", 4) is None


def test_a_directory_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    """Nothing is written where somebody else could replace it."""
    tmp_path.chmod(0o770)
    write_private(tmp_path / "file", b"", lasts=60)

    assert not make_private(tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_a_place_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    """A cache is never needed."""
    (tmp_path / "file").write_bytes(b"")
    write_private(tmp_path / "file" / "below" / "file", b"", lasts=60)

    assert not make_private(tmp_path / "file" / "below")


def test_the_place_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment says where the cache is, and otherwise the home."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert cache_directory("s3") == Path("/cache/asynccommit/s3")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/alice")
    assert cache_directory("s3") == Path("/home/alice/.cache/asynccommit/s3")

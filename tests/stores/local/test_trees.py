"""Deleting trees: any depth, any number of names, nothing outside of the tree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asynccommit.stores.local import trees


def nest(path: Path, depth: int) -> None:
    """Make directories in one another; no path is long enough to name the last ones."""
    path.mkdir()
    fd = os.open(path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("directory", dir_fd=fd)
        inner = os.open("directory", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)


def test_no_depth_is_too_deep(tmp_path: Path) -> None:
    """Directories nested deeper than the stack, a path and the open files allow are deleted."""
    nest(tmp_path / "deep", 1_500)
    trees.delete(str(tmp_path / "deep"))
    assert os.listdir(tmp_path) == []


@given(names=st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_tree_is_deleted(tmp_path: Path, names: list[list[str]]) -> None:
    """Whatever the shape, nothing is left of it, and what is beside it stays."""
    beside = tmp_path / "beside"
    beside.mkdir(exist_ok=True)
    for path in names:
        directory = tmp_path.joinpath("tree", *path)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "file").write_bytes(b"")
    (tmp_path / "tree").mkdir(exist_ok=True)
    trees.delete(str(tmp_path / "tree"))
    assert os.listdir(tmp_path) == ["beside"]


def test_a_link_that_takes_a_directory_s_place_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory swapped for a link after it was seen is not entered through the link."""
    outside, inside = tmp_path / "outside", tmp_path / "tree" / "inside"
    inside.mkdir(parents=True)
    (inside / "file").write_bytes(b"")
    outside.mkdir()
    (outside / "precious").write_bytes(b"")
    rmdir = os.rmdir

    def swap(path: str, *, dir_fd: int | None = None) -> None:
        try:
            rmdir(path, dir_fd=dir_fd)
        finally:
            if not inside.is_symlink():
                inside.rename(tmp_path / "away")
                inside.symlink_to(outside)

    monkeypatch.setattr(os, "rmdir", swap)
    with pytest.raises(OSError, match="replaced while it was deleted"):
        trees.delete(str(tmp_path / "tree"))
    assert os.listdir(outside) == ["precious"]


def test_a_directory_moved_away_while_it_is_emptied_stops_the_delete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way back out of a directory that was moved elsewhere is not taken for the tree's."""
    inside = tmp_path / "tree" / "inside"
    inside.mkdir(parents=True)
    (inside / "file").write_bytes(b"")
    (tmp_path / "precious").write_bytes(b"")
    unlink = os.unlink

    def move(path: str, *, dir_fd: int | None = None) -> None:
        unlink(path, dir_fd=dir_fd)
        inside.rename(tmp_path / "away")

    monkeypatch.setattr(os, "unlink", move)
    with pytest.raises(OSError, match="moved while it was deleted"):
        trees.delete(str(tmp_path / "tree"))
    assert sorted(os.listdir(tmp_path)) == ["away", "precious", "tree"]


def test_what_others_delete_at_the_same_time_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files, directories and the tree itself may be gone before it is their turn."""
    for name in ("a", "b"):
        (tmp_path / "tree" / name / "inner").mkdir(parents=True)
        (tmp_path / "tree" / name / "file").write_bytes(b"")
    rmdir, unlink = os.rmdir, os.unlink

    def twice(path: str, *, dir_fd: int | None = None) -> None:
        rmdir(path, dir_fd=dir_fd)
        rmdir(path, dir_fd=dir_fd)

    def never(path: str, *, dir_fd: int | None = None) -> None:
        unlink(path, dir_fd=dir_fd)
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "rmdir", twice)
    monkeypatch.setattr(os, "unlink", never)
    trees.delete(str(tmp_path / "tree"))
    assert os.listdir(tmp_path) == []

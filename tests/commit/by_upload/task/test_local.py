"""Local files of a staging task: which there are, and that what is read is what was found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from asynccommit.commit.by_upload.task.local import (
    find_files,
    has_entries,
    is_hidden,
    make_private,
    read_part,
    remove,
)
from asynccommit.errors import NotFoundError, OptionError, PreconditionError, RejectedError
from tests.support.jobs import write


def test_found_files(tmp_path: Path) -> None:
    """All files below the directory are found, with their sizes, but those with hidden names."""
    write(
        tmp_path, {"a": "12", "d/e/f": "3", "_x": "", ".y": "", "d/_z": "", "_d/g": "4", "h/": ""}
    )

    found = find_files(str(tmp_path))

    assert [(file.name, file.size) for file in found] == [("_d/g", 1), ("a", 2), ("d/e/f", 1)]


def test_missing_directory(tmp_path: Path) -> None:
    """A task that is not on this machine is told apart from one without files."""
    with pytest.raises(NotFoundError, match="no directory on this machine"):
        find_files(str(tmp_path / "none"))
    with pytest.raises(NotFoundError):
        has_entries(str(tmp_path / "none"))
    assert not has_entries(str(tmp_path))
    assert find_files(str(tmp_path)) == []


@pytest.mark.parametrize("kind", ["link", "dead link", "link to a directory", "pipe"])
def test_what_is_no_file(tmp_path: Path, kind: str) -> None:
    """What is neither file nor directory is refused, and no link is followed."""
    place = tmp_path / "task" / "odd"
    place.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(place)
    else:
        target = {"link": "/etc/hostname", "dead link": "nowhere", "link to a directory": "/etc"}
        place.symlink_to(target[kind])

    with pytest.raises(PreconditionError, match="neither a file nor a directory"):
        find_files(str(tmp_path / "task"))


def test_name_that_is_no_text(tmp_path: Path) -> None:
    """A name that is not UTF-8 cannot be one in S3."""
    (tmp_path / os.fsdecode(b"\xff")).write_text("1")

    with pytest.raises(OptionError, match="UTF-8"):
        find_files(str(tmp_path))


def test_parts_of_a_file(tmp_path: Path) -> None:
    """A file is read a part at a time."""
    (tmp_path / "a").write_bytes(b"0123456789")
    (file,) = find_files(str(tmp_path))

    assert [read_part(file, 0, 4), read_part(file, 8, 2), read_part(file, 0, 10)] == [
        b"0123",
        b"89",
        b"0123456789",
    ]


@pytest.mark.parametrize("change", ["longer", "shorter", "rewritten", "replaced", "deleted"])
def test_file_that_is_changed(tmp_path: Path, change: str) -> None:
    """Whatever happens to a file after it was found is seen when it is read."""
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    os.utime(path, ns=(1, 1))
    (file,) = find_files(str(tmp_path))
    if change in ("deleted", "replaced"):
        path.rename(tmp_path / "away")
    if change != "deleted":
        path.write_bytes({"longer": b"0123456789-", "shorter": b"0"}.get(change, b"9876543210"))

    with pytest.raises(PreconditionError, match="changed during the upload"):
        read_part(file, 0, 4)


def test_directory_of_one_attempt(tmp_path: Path) -> None:
    """A directory is made once, for the user alone, and removed with all below it."""
    top = tmp_path / "buffer" / "of-attempt"

    make_private(f"{top}/a/b", str(top))

    assert (top / "a" / "b").is_dir()
    assert top.stat().st_mode & 0o777 == 0o700
    with pytest.raises(PreconditionError, match="exists already"):
        make_private(f"{top}/a/b", str(top))
    remove(str(top))
    remove(str(top))
    assert not top.exists()


def test_directory_that_cannot_be_made(tmp_path: Path) -> None:
    """What the disk says is told with the option to change."""
    (tmp_path / "buffer").write_text("a file")

    with pytest.raises(RejectedError, match=r"fs\.s3a\.buffer\.dir"):
        make_private(f"{tmp_path}/buffer/x/y", f"{tmp_path}/buffer/x")


@pytest.mark.parametrize(
    "name, hidden", [("_a", True), (".a", True), ("d/_a", True), ("_d/a", False), ("a_", False)]
)
def test_hidden_names(name: str, hidden: bool) -> None:
    """The last name of a path says whether a file is hidden."""
    assert is_hidden(name) is hidden

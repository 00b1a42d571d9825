"""Renaming: what comes after the move cannot make it fail, and half a move is taken back."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from asynccommit.stores import files, hidden, moves


def no_descriptors(*_: object) -> NoReturn:
    """Fail as when too many files are open."""
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_what_comes_after_the_move_raises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a file descriptor to look for checksums a rename is done, and they are not kept."""
    source, dest = tmp_path / "f", tmp_path / "g"
    source.write_bytes(b"new")
    (tmp_path / ".g.crc").write_bytes(b"old")
    known: dict[str, bool] = {}
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", no_descriptors)
        moves.rename(str(source), str(dest), False, known)
    assert os.listdir(tmp_path) == ["g"]
    assert known == {}
    moves.rename(str(dest), str(source), False, known)
    assert known == {str(tmp_path): False}


@pytest.mark.parametrize("replace", [False, True])
def test_a_checksum_that_cannot_be_removed_fails_no_write(tmp_path: Path, replace: bool) -> None:
    """A rename, a put and a delete are done, whatever stands where a checksum might be."""
    (tmp_path / ".g.crc").mkdir()
    (tmp_path / "f").write_bytes(b"new")
    moves.rename(str(tmp_path / "f"), str(tmp_path / "g"), replace, {})
    assert (tmp_path / "g").read_bytes() == b"new"
    files.put(str(tmp_path / "g"), b"newer", True)
    assert (tmp_path / "g").read_bytes() == b"newer"
    files.delete(str(tmp_path / "g"))
    assert os.listdir(tmp_path) == [".g.crc"]


def test_a_move_by_link_that_cannot_unlink_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file whose old name must stay does not keep the new one as well."""
    source, dest = str(tmp_path / "f"), str(tmp_path / "g")
    Path(source).write_bytes(b"")
    unlink = os.unlink

    def sticky(path: str) -> None:
        if path == source:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), path)
        unlink(path)

    monkeypatch.setattr(os, "unlink", sticky)
    with pytest.raises(PermissionError):
        moves.move_by_link(source, dest)
    assert os.listdir(tmp_path) == ["f"]


def test_hidden_names() -> None:
    """Checksums and our temporary files are hidden, nothing that only looks like them."""
    names = (".f.crc", ".asynccommit-1-1.tmp", ".crc", "f.crc", ".f", ".tmp", "asynccommit-1.tmp")
    assert [name for name in names if hidden.is_hidden(name)] == list(names[:3])

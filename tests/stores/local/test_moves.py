"""Renaming: what comes after the move cannot make it fail, and half a move is taken back."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from asynccommit.stores.local import files, moves


@pytest.mark.parametrize("replace", [False, True])
def test_a_checksum_that_cannot_be_removed_fails_no_write(tmp_path: Path, replace: bool) -> None:
    """A rename, a put and a delete are done, whatever stands where a checksum might be."""
    (tmp_path / ".g.crc").mkdir()
    (tmp_path / "f").write_bytes(b"new")
    moves.rename(str(tmp_path / "f"), str(tmp_path / "g"), replace)
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

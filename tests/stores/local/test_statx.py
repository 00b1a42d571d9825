"""When a file was made, as far as its filesystem tells."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from asynccommit.stores.local import statx


def test_what_is_done_with_a_file_leaves_its_birth(tmp_path: Path) -> None:
    """Writes, another time of change and a rename alter nothing, and another file has another."""
    one = tmp_path / "one"
    one.write_text("1")
    made = statx.made_at(str(one))
    if not made:
        pytest.skip("this filesystem does not tell when a file was made")
    one.write_text("more")
    os.utime(one, ns=(5, 5))
    one.rename(tmp_path / "two")
    one.write_text("1")

    assert statx.made_at(f"{tmp_path}/two") == made
    assert statx.made_at(str(one)) >= made


def test_nothing_is_known_of_what_is_not_there(tmp_path: Path) -> None:
    """A path that is gone has no such time."""
    assert statx.made_at(f"{tmp_path}/none") == 0


def test_without_statx_nothing_or_the_systems_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where libc lacks the call, ``os.lstat`` tells on macOS, and nothing does elsewhere."""
    monkeypatch.setattr(statx, "statx", None)
    known = getattr(os.lstat(tmp_path), "st_birthtime", 0)
    assert statx.made_at(str(tmp_path)) == int(known * 1_000_000_000)

"""New files and directories have Hadoop's permissions, whatever the umask of the process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from asynccommit.commit.tasks.writers import LocalWriter
from asynccommit.errors import OptionError
from asynccommit.stores.base import Modes
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.modes import UMASK, make_directories, make_directory, modes_of
from tests.support.permissions import KINDS, directory, facts, like_hadoop, umask


@pytest.mark.parametrize(
    "options, modes",
    [
        ({}, Modes(0o755, 0o644)),
        ({UMASK: "002"}, Modes(0o775, 0o664)),
        ({f"spark.hadoop.{UMASK}": "077"}, Modes(0o700, 0o600)),
        ({UMASK: "u=rwx,g=rx,o="}, Modes(0o750, 0o640)),
        ({UMASK: None, "account_key": "of another store"}, Modes(0o755, 0o644)),
    ],
)
def test_modes_of_options(options: dict[str, str], modes: Modes) -> None:
    """Hadoop's key counts, with Spark's prefix too; options of other stores do not matter."""
    assert modes_of(options) == modes
    assert LocalStore(None, options).traits.modes == modes


def test_a_umask_that_is_none_is_refused() -> None:
    """The error names the key and the value."""
    with pytest.raises(OptionError, match=r"fs\.permissions\.umask-mode is '9': expected octal"):
        LocalStore(None, {UMASK: "9"})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("option", [None, "000", "077"])
async def test_a_private_directory_is_its_owners(
    tmp_path: Path, option: str | None, kind: str
) -> None:
    """Only its owner may enter it, whatever others inherit; its parents are like any other."""
    folder = directory(tmp_path / "t", kind)
    hadoop, _ = like_hadoop(folder, int(option or "022", 8))
    store = LocalStore(None, {UMASK: option})
    await store.mkdir(f"{folder}/a/private", private=True)
    await store.aclose()

    assert facts(folder / "a") == hadoop
    assert (folder / "a/private").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("option", [None, "002", "077"])
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
async def test_what_is_made_has_the_permissions_of_hadoop(
    tmp_path: Path, mask: int, option: str | None, kind: str
) -> None:
    """Mode, owner, group and ACL of each parent, directory and file are as after Hadoop's chmod."""
    folder = directory(tmp_path / "t", kind)
    hadoop, file = like_hadoop(folder, int(option or "022", 8))
    store = LocalStore(None, {UMASK: option})
    with umask(mask):
        await store.mkdir(f"{folder}/a/b")
        await store.mkdir_new(f"{folder}/c/d")
        await store.put(f"{folder}/f", b"")
        await store.copy(f"{folder}/f", f"{folder}/g")
        writer = LocalWriter(f"{folder}/e/h", str(folder), modes_of({UMASK: option}))
        await writer.write(b"data")
        await writer.aclose()
    await store.aclose()

    assert {facts(folder / name) for name in ("a", "a/b", "c", "c/d", "e")} == {hadoop}
    assert {facts(folder / name) for name in ("f", "g", "e/h")} == {file}


def test_a_directory_that_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    """Parents that exist are not touched, nor is a directory that is made twice."""
    directory(tmp_path / "t", "plain").chmod(0o700)
    make_directories(str(tmp_path / "t"), 0o755)
    make_directories(str(tmp_path / "t" / "a"), 0o755)

    assert facts(tmp_path / "t")[0] == "0o700"
    assert facts(tmp_path / "t" / "a")[0] == "0o755"


def test_a_link_in_the_place_of_a_new_directory_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who swaps the directory in between cannot have the permissions of another one changed."""
    directory(tmp_path / "other", "plain").chmod(0o700)
    mkdir = os.mkdir

    def swapped(path: str, mode: int, dir_fd: int | None) -> None:
        mkdir(path, mode, dir_fd=dir_fd)
        os.rmdir(path)
        os.symlink(tmp_path / "other", path)

    monkeypatch.setattr(os, "mkdir", swapped)
    make_directory(str(tmp_path / "a"), 0o755)

    assert facts(tmp_path / "other")[0] == "0o700"

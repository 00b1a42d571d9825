"""Permissions of files and directories: the umask of a process, setgid, default ACLs."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

GROUP = 1234
"""A group that nobody is in; only root can give it to a directory."""
KINDS = ["plain", "setgid", "acl"]

_NONE = 0xFFFFFFFF
_ACL = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", *entry)
    for entry in [
        (0x01, 7, _NONE),  # the owner
        (0x02, 7, 1000),  # a user
        (0x04, 7, _NONE),  # the group
        (0x10, 7, _NONE),  # the mask
        (0x20, 0, _NONE),  # others
    ]
)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """Give this process another umask for a while."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def directory(path: Path, kind: str) -> Path:
    """Make a directory that hands on nothing, its group, or an ACL; skip what cannot be."""
    with umask(0o022):
        path.mkdir(parents=True)
    if kind == "setgid":
        if os.geteuid() == 0:
            os.chown(path, -1, GROUP)
        path.chmod(0o2775)
    if kind == "acl":
        try:
            os.setxattr(path, "system.posix_acl_default", _ACL)
        except (AttributeError, OSError):
            pytest.skip("this filesystem has no ACLs")
    return path


Facts = tuple[str, int, int, bytes, bytes]


def facts(path: Path) -> Facts:
    """Return mode, owner, group and ACLs of a file or a directory."""
    found = path.lstat()
    acls = []
    for name in ("access", "default"):
        acl = b""
        with suppress(AttributeError, OSError):
            acl = os.getxattr(path, f"system.posix_acl_{name}")
        acls.append(acl)
    return oct(stat.S_IMODE(found.st_mode)), found.st_uid, found.st_gid, acls[0], acls[1]


def like_hadoop(folder: Path, mask: int) -> tuple[Facts, Facts]:
    """Return the facts of a directory and a file that are made as Hadoop makes them.

    It makes them with all permissions, and then calls chmod, which keeps setgid.
    """
    made, file = folder / "like-hadoop", folder / "like-hadoop.txt"
    made.mkdir()
    made.chmod(0o777 & ~mask | made.stat().st_mode & stat.S_ISGID)
    file.touch()
    file.chmod(0o666 & ~mask)
    found = facts(made), facts(file)
    made.rmdir()
    file.unlink()
    return found


MALLORY = 1234
"""A user without a name."""
GIVES_AWAY = pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives files away")


def give_away(place: Path) -> None:
    """Make a file, or a directory with all it holds, another user's."""
    for path in (place, *place.rglob("*")):
        os.chown(path, MALLORY, -1, follow_symlinks=False)

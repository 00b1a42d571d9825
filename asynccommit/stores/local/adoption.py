"""Give directories of tasks what ``mkdir`` gives those of the table."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from stat import S_IMODE, S_ISDIR, S_ISGID
from typing import NamedTuple

from asynccommit.stores.modes import set_permissions

_DEFAULT_ACL = "system.posix_acl_default"


class _New(NamedTuple):
    """The owner, group, setgid bit and default ACL of a new directory."""

    owner: int
    group: int
    setgid: int
    acl: bytes | None


def adopt(
    moves: Sequence[tuple[str, str]], like: str, mode: int, real: Callable[[str], str]
) -> list[bool]:
    """Answer ``ModeStore.adopt``.

    Args:
        moves: see there.
        like: see there: its owner is that of a new directory, also where a server has others.
        mode: the permissions.
        real: returns the system's path of a path.
    """
    here = real(like)
    own, above = os.stat(here), os.stat(os.path.dirname(here))
    group = os.getegid() if above.st_mode & S_ISGID else own.st_gid
    known: dict[str, _New] = {}

    def fits(path: str, parent: str) -> bool:
        new = known.get(parent)
        if new is None:
            try:
                new = known[parent] = _inside(real(parent), own.st_uid, group)
            except FileNotFoundError:  # gone since: whoever makes the directory makes this one
                return False
        return _give(real(path), new, mode)

    return [fits(path, parent) for path, parent in moves]


def _inside(parent: str, owner: int, group: int) -> _New:
    """Return the facts about a new directory in ``parent``."""
    stat = os.stat(parent)
    setgid = stat.st_mode & S_ISGID
    return _New(owner, stat.st_gid if setgid else group, setgid, _default_acl(parent))


def _give(path: str, new: _New, mode: int) -> bool:
    try:
        stat = os.lstat(path)
    except FileNotFoundError:  # nothing that differs
        return True
    facts = _New(stat.st_uid, stat.st_gid, stat.st_mode & S_ISGID, new.acl)
    if facts != new or not S_ISDIR(stat.st_mode) or _default_acl(path) != new.acl:
        return False
    if S_IMODE(stat.st_mode) & ~S_ISGID != mode:
        set_permissions(path, mode)
    return True


def _default_acl(path: str) -> bytes | None:
    try:
        return os.getxattr(path, _DEFAULT_ACL)
    except (AttributeError, OSError):  # none, or a system without
        return None

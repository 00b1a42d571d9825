"""The permissions of new files and directories.

Hadoop's ``fs.permissions.umask-mode`` decides. The umask of the process does not count, as in
Hadoop, which sets permissions explicitly. It is one for all threads, so it cannot be changed for a
call. An inherited group, its setgid bit and default ACLs stay; the permissions set their mask.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from stat import S_ISGID
from typing import Any

from asynccommit.errors import OptionError
from asynccommit.options.job import bare
from asynccommit.stores.base import Modes

UMASK = "fs.permissions.umask-mode"
"""Hadoop's key for the permissions that new files and directories lack."""

_OCTAL = re.compile("[0-7]{1,4}")
_SYMBOLIC = re.compile("u=([rwx]*),g=([rwx]*),o=([rwx]*)")
_BITS = {"r": 4, "w": 2, "x": 1}
_PERMISSIONS = 0o777
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

MODES = Modes(0o755, 0o644)
"""The modes without an option."""


def umask_of(conf: Mapping[str, str]) -> int:
    """Return the permissions that new files and directories lack.

    It is octal (``027``) or symbolic, with what they have (``u=rwx,g=rx,o=``).

    Raises:
        OptionError: the value is neither.
    """
    text = conf.get(UMASK, "").strip() or "022"
    if _OCTAL.fullmatch(text):
        return int(text, 8) & _PERMISSIONS
    if found := _SYMBOLIC.fullmatch(text):
        had = 0
        for letters in found.groups():
            had = had << 3 | sum(_BITS[letter] for letter in set(letters))
        return _PERMISSIONS & ~had
    raise OptionError(f"{UMASK} is {text[:100]!r}: expected octal digits such as 027")


def modes_of(options: Mapping[str, Any]) -> Modes:
    """Return the modes that storage options ask for.

    Raises ``OptionError``.
    """
    umask = umask_of({bare(key): str(value) for key, value in options.items() if value is not None})
    return Modes(_PERMISSIONS & ~umask, 0o666 & ~umask)


def make_directory(path: str, mode: int, at: int | None = None) -> None:
    """Make a directory with the permissions ``mode``.

    ``at`` is an open directory that ``path`` may be relative to.
    """
    os.mkdir(path, mode, dir_fd=at)
    with suppress(OSError):  # it was made, whoever has taken it since
        if os.lstat(path, dir_fd=at).st_mode & _PERMISSIONS != mode:
            _set_permissions(path, mode, at)


def make_directories(path: str, mode: int) -> None:
    """Make a directory and those above it, unless they exist."""
    try:
        make_directory(path, mode)
        return
    except FileNotFoundError:
        parent = os.path.dirname(path)
        if parent == path:
            raise
    except OSError:  # which one comes first on a read-only filesystem, the system does not say
        if not os.path.isdir(path):
            raise
        return
    make_directories(parent, mode)
    try:
        make_directory(path, mode)
    except OSError:
        if not os.path.isdir(path):
            raise


def _set_permissions(path: str, mode: int, at: int | None) -> None:
    """Give a directory the permissions ``mode``; it keeps its setgid bit.

    A link is not followed. Where the filesystem has no permissions, nothing happens.
    """
    with suppress(OSError):
        fd = os.open(path, _DIRECTORY, dir_fd=at)
        try:
            os.fchmod(fd, mode | os.fstat(fd).st_mode & S_ISGID)
        finally:
            os.close(fd)


def create(path: str, flags: int, mode: int) -> int:
    """Open a file as ``os.open`` does, and give it the permissions ``mode``."""
    fd = os.open(path, flags | os.O_CLOEXEC, mode)
    with suppress(OSError):  # another's file, or a filesystem without permissions
        if os.fstat(fd).st_mode & _PERMISSIONS != mode:
            os.fchmod(fd, mode)
    return fd

"""Delete a local directory tree, however deep and hostile.

No call uses more than one name below an open directory, and none follows a link. So no depth of
directories is too deep, neither for the interpreter's stack nor for the length of a path nor for
the number of open files, and a link that is put in a directory's place leads nowhere.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _Walk:
    """The directory being emptied, and the way back to the first one."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, _DIRECTORY)
        self.way: list[tuple[str, list[str], tuple[int, int]]] = []

    def enter(self, name: str, others: list[str]) -> None:
        """Go into ``name``; ``others`` wait until it is gone."""
        here = _identity(self.fd)
        self._open(name)
        self.way.append((name, others, here))

    def leave(self) -> list[str]:
        """Return to the parent, and delete the emptied directory.

        Return what waited for that.
        """
        name, others, above = self.way.pop()
        self._open("..")
        if _identity(self.fd) != above:
            raise OSError(errno.EBUSY, "a directory was moved while it was deleted", name)
        with suppress(FileNotFoundError):
            os.rmdir(name, dir_fd=self.fd)
        return others

    def _open(self, name: str) -> None:
        fd = os.open(name, _DIRECTORY, dir_fd=self.fd)
        os.close(self.fd)
        self.fd = fd


def delete(path: str, check: Callable[[], object] | None = None) -> None:
    """Delete the directory ``path``; concurrent deletions are fine."""
    try:
        walk = _Walk(path)
        try:
            if check is not None:
                check()
            _empty(walk)
        finally:
            os.close(walk.fd)
        os.rmdir(path)
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise OSError(errno.EBUSY, "a directory was replaced while it was deleted") from error


def _empty(walk: _Walk) -> None:
    full = _clear(walk.fd)
    while full or walk.way:
        if not full:
            full = walk.leave()
            continue
        try:
            walk.enter(full.pop(), full)
        except FileNotFoundError:
            continue
        full = _clear(walk.fd)


def _clear(fd: int) -> list[str]:
    """Delete files and empty directories; return names of other directories."""
    full = []
    with os.scandir(fd) as listing:
        entries = list(listing)
    for entry in entries:
        name = entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                os.rmdir(name, dir_fd=fd)  # nearly always it is empty, and then it is not read
            else:
                os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            full.append(name)
    return full


def _identity(fd: int) -> tuple[int, int]:
    stat = os.fstat(fd)
    return stat.st_dev, stat.st_ino

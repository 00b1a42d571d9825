"""Keep small files in the user's cache that nobody else can write.

What is read there is no more trusted than the user's own programs. Whatever is not as it was
written counts as absent: a cache is never needed.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def cache_directory(name: str) -> Path:
    """Return the place of a directory in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "asynccommit", name)


def make_private(path: Path) -> bool:
    """Make a directory; return whether only this user can write to it."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _is_private(path.lstat()) and os.access(path, os.W_OK)
    except OSError:
        return False


def _is_private(found: os.stat_result) -> bool:
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return mine and not found.st_mode & _OTHERS


def read_private(path: Path, limit: int) -> bytes | None:
    """Return the content of a file that only this user can write.

    ``None`` if there is no such file, it holds more than ``limit`` bytes, or others can write to
    its directory.
    """
    try:
        if not _is_private(path.parent.lstat()):
            return None
        fd = os.open(path, _FLAGS)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        mine = stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid()
        if not mine or found.st_mode & _OTHERS or found.st_size > limit:
            return None
        data = os.read(fd, limit + 1)
        return data if len(data) <= limit else None
    except OSError:
        return None
    finally:
        os.close(fd)


def write_private(path: Path, data: bytes, *, lasts: float) -> None:
    """Replace a file as a whole, readable by this user only, where possible.

    Files beside it that were written more than ``lasts`` seconds before are deleted.
    """
    folder = path.parent
    if not make_private(folder):
        return
    with suppress(OSError):
        fd, draft = tempfile.mkstemp(dir=folder, prefix=".draft-")
        with open(fd, "wb") as file:
            file.write(data)
            oldest = os.fstat(fd).st_mtime - lasts
        os.replace(draft, path)
        _prune(folder, oldest)


def _prune(folder: Path, oldest: float) -> None:
    with os.scandir(folder) as entries:
        old = [e.path for e in entries if e.stat(follow_symlinks=False).st_mtime < oldest]
    for path in old:
        with suppress(OSError):
            os.unlink(path)

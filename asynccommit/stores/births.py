"""When a file was made: what tells it from one that was given its number later."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Callable

_AT_FDCWD, _NO_FOLLOW, _BIRTH = -100, 0x100, 0x800
_MASK = struct.Struct("=I")
_TIME = struct.Struct("=qI")
_TIME_AT, _SIZE = 80, 256
_SECOND = 1_000_000_000


def _by_stat(path: str) -> int:
    """Return what ``os.lstat`` knows of it, as on macOS; 0 where that is nothing."""
    return int(getattr(os.lstat(path), "st_birthtime", 0) * _SECOND)


def _by_statx() -> Callable[[str], int] | None:
    """Return the same by ``statx``, or nothing where libc lacks it."""
    try:
        statx = ctypes.CDLL(None, use_errno=True).statx
    except (AttributeError, OSError, TypeError):
        return None
    number = ctypes.c_int
    statx.argtypes = [number, ctypes.c_char_p, number, ctypes.c_uint, ctypes.c_char_p]
    coding, errors = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()

    def made(path: str) -> int:
        answer = ctypes.create_string_buffer(_SIZE)
        if statx(_AT_FDCWD, path.encode(coding, errors), _NO_FOLLOW, _BIRTH, answer):
            return 0
        known: int = _MASK.unpack_from(answer)[0]
        seconds, nanoseconds = _TIME.unpack_from(answer, _TIME_AT)
        return int(seconds * _SECOND + nanoseconds) if known & _BIRTH else 0

    return made


made_at: Callable[[str], int] = _by_statx() or _by_stat
"""Return when the file at a path was made, in nanoseconds since the epoch; 0 if unknown."""

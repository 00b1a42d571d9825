"""``statx``, which tells more than ``os.lstat``; built in from 3.15."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

BIRTH, MOUNT = 0x800, 0x1000
IMMUTABLE, APPEND_ONLY, MOUNT_ROOT = 0x10, 0x20, 0x2000


class Told(NamedTuple):
    """The result of ``statx`` for one path.

    Attributes:
        known: bits for the last three fields that are reported: ``BIRTH``, ``MOUNT``.
        attributes: ``IMMUTABLE``, ``APPEND_ONLY``, ``MOUNT_ROOT``.
        supported: the attributes that the filesystem can report.
        born: time of creation in seconds since the epoch.
        nanoseconds: the fraction of ``born``.
        mount: the number of the mount.
    """

    known: int
    attributes: int
    supported: int
    born: int
    nanoseconds: int
    mount: int


def _kernel_statx() -> Callable[..., Told | None] | None:
    """Return a call of ``statx``, or nothing where libc lacks it."""
    try:
        call = ctypes.CDLL(None, use_errno=True).statx
    except (AttributeError, OSError, TypeError):
        return None
    number = ctypes.c_int
    call.argtypes = [number, ctypes.c_char_p, number, ctypes.c_uint, ctypes.c_char_p]

    def ask(path: str, wanted: int, *, follow: bool = False, cached: bool = False) -> Told | None:
        flags = _NO_AUTOMOUNT | (0 if follow else _NO_FOLLOW) | (_AS_CACHED if cached else 0)
        answer = ctypes.create_string_buffer(256)
        if "\0" in path or call(_AT_FDCWD, os.fsencode(path), flags, wanted, answer):
            return None
        return Told._make(_ANSWER.unpack_from(answer))

    return ask


_AT_FDCWD, _NO_FOLLOW, _NO_AUTOMOUNT, _AS_CACHED = -100, 0x100, 0x800, 0x4000
_ANSWER = Struct("=I4xQ40xQ16xqI52xQ")
statx: Callable[..., Told | None] | None = _kernel_statx()
"""Return what is told of a path; ``None`` if the system refuses. There may be no such call."""


_SECOND = 1_000_000_000


def made_at(path: str) -> int:
    """Return when a file was made, in nanoseconds since the epoch, or 0.

    It distinguishes the file from a later one with the same inode number.
    """
    if statx is None:  # macOS knows it all the same
        return int(getattr(os.lstat(path), "st_birthtime", 0) * _SECOND)
    told = statx(path, BIRTH)
    if told is None or not told.known & BIRTH:
        return 0
    return told.born * _SECOND + told.nanoseconds

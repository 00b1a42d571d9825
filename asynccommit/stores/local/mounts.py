"""Mount points and immovable paths, as far as Linux reports them.

The number of a device does not show whether a rename is possible: the kernel renames within one
mount, and a bind mount of the same device is another mount. On other systems only the device number
is available.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from asynccommit.stores.local import statx

MOUNT_POINT, IMMUTABLE, APPEND_ONLY = "a mount point", "immutable", "append-only"


class PathFacts(NamedTuple):
    """The facts that the system reports about one path.

    Attributes:
        mount: the number of the mount that contains it; 0 if the system does not report it.
        fixed: why the path can be neither moved nor deleted; empty if no reason is known.
    """

    mount: int
    fixed: str

    def volume(self, device: int) -> int:
        """Return the number of the volume of a directory on ``device``.

        A rename cannot leave that volume.
        """
        return (self.mount << 64) + device


def place_of(path: str, *, follow: bool = False) -> PathFacts:
    """Return the facts about ``path``, or about the target of a link there.

    Never raises: facts that the system does not report are left unknown.
    """
    ask = statx.statx
    told = None if ask is None else ask(path, statx.MOUNT, follow=follow, cached=True)
    if told is None:
        return by_descriptor(path, follow=follow)
    if told.known & statx.MOUNT and told.supported & statx.MOUNT_ROOT:
        return PathFacts(told.mount, _fixed(told.attributes))
    there = by_descriptor(path, follow=follow)
    return PathFacts(there.mount, _fixed(told.attributes) or there.fixed)


def by_descriptor(path: str, *, follow: bool = False) -> PathFacts:
    """Return what ``place_of`` does, on kernels before 5.8.

    Attributes are left unknown.
    """
    mount = _mount_id(path, follow)
    above = _mount_id(os.path.dirname(path) or "/", True)
    return PathFacts(mount, MOUNT_POINT if mount and above and mount != above else "")


@lru_cache(maxsize=64)  # on some machines there are thousands of mounts to read through
def filesystem(mount: int, device: int) -> str:
    """Return the filesystem type of this mount number, or ``""`` if unknown."""
    start = b"%d " % mount
    with suppress(OSError), open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            if line.startswith(start):
                return line.partition(b" - ")[2].partition(b" ")[0].decode("ascii", "replace")
    return ""


def _mount_id(path: str, follow: bool) -> int:
    flags = getattr(os, "O_PATH", None)
    if flags is None:
        return 0
    try:
        fd = os.open(path, flags | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    except (OSError, ValueError):
        return 0
    try:
        with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
            said = file.read().partition(b"mnt_id:")[2].split(None, 1)
            return int(said[0]) if said else 0
    except OSError:
        return 0
    finally:
        os.close(fd)


def _fixed(flags: int) -> str:
    return next((text for flag, text in _REASONS if flags & flag), "")


_REASONS = (
    (statx.MOUNT_ROOT, MOUNT_POINT),
    (statx.IMMUTABLE, IMMUTABLE),
    (statx.APPEND_ONLY, APPEND_ONLY),
)

"""Check whether the local filesystem can rename a file."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from itertools import count
from stat import S_ISDIR, S_ISVTX

from asynccommit.errors import DeniedError, RejectedError
from asynccommit.stores.local.mounts import MOUNT_POINT, filesystem, place_of

_LAYERED = frozenset({"overlay", "fuse.fuse-overlayfs"})
_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)
_serial = count()


def probe(path: str, place: str) -> None:
    """Answer ``ProbingStore.probe``."""
    stat, parent = os.lstat(path), os.path.dirname(path)
    above, here = os.stat(parent), place_of(path)
    folder, target = place_of(parent, follow=True), place_of(place, follow=True)
    _refuse_fixed(path, here.fixed, "")
    if folder.fixed != MOUNT_POINT:
        _refuse_fixed(path, folder.fixed, f"in {parent}, which is ")
    if folder.volume(above.st_dev) != target.volume(os.stat(place).st_dev):
        raise RejectedError("rename", path, f"on a different filesystem or mount from {place}")
    _refuse_denied(path, parent, stat, above)
    if S_ISDIR(stat.st_mode) and filesystem(folder.mount, above.st_dev) in _LAYERED:
        _refuse_lower(path, place)


def _refuse_fixed(path: str, fixed: str, where: str) -> None:
    if not fixed:
        return
    if fixed == MOUNT_POINT:
        text = "a mount point, which cannot be moved: unmount it (umount), or leave it out"
    else:
        text = f"{where}{fixed} and cannot be moved: clear the attribute (chattr -i -a)"
    raise RejectedError("rename", path, text)


def _refuse_denied(path: str, parent: str, stat: os.stat_result, above: os.stat_result) -> None:
    """Refuse a file that the user may not move out of its directory.

    A directory must be writable itself: the move changes its parent entry.
    """
    if not os.access(parent, os.W_OK | os.X_OK):
        raise DeniedError("rename", path, f"no permission to remove it from {parent}")
    if S_ISDIR(stat.st_mode) and not os.access(path, os.W_OK):
        raise DeniedError("rename", path, "no permission to write to this directory, or to move it")
    if above.st_mode & S_ISVTX and os.geteuid() not in (0, stat.st_uid, above.st_uid):
        text = f"it belongs to another user, in {parent}, where users may move only their own files"
        raise DeniedError("rename", path, text)


def _refuse_lower(path: str, place: str) -> None:
    """Refuse a directory of an overlay's lower layer.

    Such a directory is renamed only with a mount option.
    """
    trap = f"{place}/probe-{os.getpid()}-{next(_serial)}"
    full = f"{trap}/full"
    os.makedirs(f"{full}/x")
    try:
        os.rename(path, full)
    except OSError as error:
        if error.errno == errno.EXDEV:
            text = (
                "in a lower layer of an overlay filesystem, which does not rename directories: "
                "mount the table as a volume, or the overlay with redirect_dir=on"
            )
            raise RejectedError("rename", path, text) from error
        if error.errno not in _NOT_EMPTY:
            raise
    else:  # somebody has emptied it at this very moment
        os.rename(full, path)
        raise RejectedError("rename", path, f"{trap} was deleted by another process: commit again")
    finally:
        for directory in (f"{full}/x", full, trap):
            with suppress(OSError):
                os.rmdir(directory)

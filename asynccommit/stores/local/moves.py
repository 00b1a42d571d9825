"""Renames on the local filesystem, with or without replacement.

Steps after the move itself raise nothing: a failed request counts as one without effect, and a
rename is not sent again.

No system call renames a file only while it has an etag. So one that must have an etag is looked at
just before, from the same descriptor: that costs some 3 us where the rename takes 15.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from stat import S_ISDIR, S_ISLNK

from asynccommit.errors import PreconditionError, RejectedError
from asynccommit.stores.base import NOT_A_LINK
from asynccommit.stores.local.hidden import drop_sidecar, empty_of_hidden
from asynccommit.stores.local.pins import AT_CWD, Reach, path_from
from asynccommit.stores.unchanged import ELSEWHERE


def etag_of(stat: os.stat_result) -> str:
    """Return a file's etag: inode, change time in nanoseconds, and size."""
    return "%x-%x-%x" % (stat.st_ino, stat.st_mtime_ns, stat.st_size)  # noqa: UP031  quicker


def rename(
    source: str, dest: str, replace: bool, reach: Reach | None = None, etag: str | None = None
) -> None:
    """Rename a file. See ``Store.rename``.

    Args:
        source: what to move.
        dest: where to.
        replace: whether something may be there; its checksum goes with it.
        reach: looks up both paths, and checks whether the rename is allowed.
        etag: what the source must have, or ``NOT_A_LINK``; ``None`` for any.
    """
    named, place, here, there = source, dest, AT_CWD, AT_CWD
    if reach is not None:
        named, place, here, there = reach.move(source, dest)
    try:
        if etag is not None:
            _require_etag(named, here, etag)
        if replace:
            _move_over(path_from(here, named), path_from(there, place))
            _end_twin(path_from(here, named), path_from(there, place))
        else:
            move_new(named, place, here, there)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise RejectedError("rename", source, f"{dest} is on another filesystem") from error
        if error.filename2 is not None:
            error.filename2 = dest
        raise
    except (PreconditionError, RejectedError) as error:
        raise type(error)("rename", source, error.detail) from error
    if replace:
        drop_sidecar(path_from(there, place))


def _require_etag(named: str, here: int, etag: str) -> None:
    stat = os.lstat(named, dir_fd=None if here == AT_CWD else here)
    if etag == NOT_A_LINK:
        if S_ISLNK(stat.st_mode):
            text = "a symbolic link, which this job has not put there: remove it"
            raise RejectedError("rename", named, text)
    elif etag_of(stat) != etag:
        text = "has changed or was replaced since the move was planned"
        raise PreconditionError("rename", named, text)


def _move_over(source: str, dest: str) -> None:
    try:
        os.replace(source, dest)
    except OSError as error:
        # Looked up only now, so that the usual rename is one system call.
        here, there = os.lstat(source), _lstat(dest)
        if there is None:
            raise
        if S_ISDIR(here.st_mode) != S_ISDIR(there.st_mode):
            kind = "directory" if S_ISDIR(there.st_mode) else "file"
            raise PreconditionError("rename", source, f"{dest} is a {kind}") from error
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or not empty_of_hidden(dest):
            raise
        os.replace(source, dest)


def _end_twin(source: str, dest: str) -> None:
    """Remove the old name of a file that had both names.

    The system does nothing then, and says that it has. Raises ``PreconditionError`` if the names
    are one, reached through a link.
    """
    here = _lstat(source)
    there = None if here is None else _lstat(dest)
    if here is None or there is None or not os.path.samestat(here, there):
        return
    (above, name), (beside, other) = os.path.split(source), os.path.split(dest)
    if name == other and os.path.samefile(above or ".", beside or "."):
        raise PreconditionError("rename", source, f"{dest} is the same file")
    os.unlink(source)


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def move_by_link(
    source: str, dest: str, here: int = AT_CWD, there: int = AT_CWD, *, atomic: bool = False
) -> None:
    """Move without replacing where the system lacks such a rename.

    Without links it looks first, then renames; with ``atomic`` it raises ``RejectedError`` instead.
    """
    source, dest = path_from(here, source), path_from(there, dest)
    if not S_ISDIR(os.lstat(source).st_mode) and _link(source, dest):
        try:
            os.unlink(source)
        except OSError:
            with suppress(OSError):
                os.unlink(dest)
            raise
        return
    if atomic:
        raise RejectedError("rename", dest, _NEITHER)
    if os.path.lexists(dest):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), source, None, dest)
    os.rename(source, dest)


def _link(source: str, dest: str) -> bool:
    """Give the file a second name, if the filesystem has such a thing."""
    try:
        os.link(source, dest, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.EIO:
            raise OSError(errno.EIO, f"{error.strerror}{_IF_NO_LINKS}", dest) from error
        if error.errno not in _NO_LINKS:
            raise
        return False
    return True


def _kernel_rename() -> Callable[..., None] | None:
    """Return a move by ``renameat2(RENAME_NOREPLACE)``, or ``None``.

    The result is ``None`` if libc lacks the call.
    """
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return None
    path, number = ctypes.c_char_p, ctypes.c_int
    renameat2.argtypes = [number, path, number, path, ctypes.c_uint]
    coding, errors = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()

    def move(
        source: str, dest: str, here: int = AT_CWD, there: int = AT_CWD, *, atomic: bool = False
    ) -> None:
        if "\0" in source or "\0" in dest:  # C would stop there and name another file
            raise ValueError("embedded null byte")
        named, place = source.encode(coding, errors), dest.encode(coding, errors)
        if not renameat2(here, named, there, place, _NO_REPLACE):
            return
        code = ctypes.get_errno()
        if code not in _NO_RENAMEAT2:
            raise OSError(code, os.strerror(code), source, None, dest)
        move_by_link(source, dest, here, there, atomic=atomic)

    return move


_NEITHER = (
    "this filesystem has neither hard links nor a rename that never replaces (RENAME_NOREPLACE): "
    f"two drivers could commit one job. Remedy: {ELSEWHERE}"
)
_IF_NO_LINKS = (
    " from a hard link, which is needed where no rename refuses to replace. A mount that makes no "
    f"links, such as rclone's, cannot hold a table: {ELSEWHERE}"
)
_NO_REPLACE = 1
_NO_RENAMEAT2 = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS})
move_new: Callable[..., None] = _kernel_rename() or move_by_link
"""Move ``source`` to ``dest``, where nothing may be; both may be given from a descriptor."""

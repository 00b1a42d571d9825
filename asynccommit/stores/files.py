"""The requests of the local store as blocking functions: system calls and the rules upon them.

They raise ``OSError`` for what the system says and ``StoreError`` for what the contract says
beyond it; ``translate`` makes the first into the second.

Hadoop's local filesystem keeps a checksum of ``NAME`` in ``.NAME.crc`` and refuses to read a file
that disagrees with it. So whatever removes or replaces ``NAME`` removes that, and a directory
that holds nothing else counts as empty. Listings show neither these nor the temporary files that
``put`` and ``copy`` write through.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from stat import S_ISDIR, S_ISREG
from typing import IO

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    UnavailableError,
)
from asynccommit.store import Info, Kind

PAGE = 1000  # entries of one page of a listing: some 3 ms of work

_TEMP = ".asynccommit-"
_serial = count()


# --- reading ---------------------------------------------------------------------------------


def head(path: str) -> Info:
    """Answer ``Store.head``."""
    return _info(path, os.lstat(path))


def get(path: str, limit: int) -> bytes:
    """Answer ``Store.get``."""
    with _open(path, "get") as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(limit + 1) if size <= limit else b""
        if size > limit or len(data) > limit:
            raise RejectedError("get", path, f"holds {size} bytes, more than {limit}")
        return data


def names(path: str) -> list[str]:
    """Return the names in the directory ``path`` that listings show, sorted."""
    try:
        return sorted([name for name in os.listdir(path) if name[0] != "." or not _is_hidden(name)])
    except NotADirectoryError as error:
        if not os.path.lexists(path):
            raise
        raise PreconditionError("list", path, "not a directory") from error


def page(
    path: str, known: list[str] | None, after: str | None
) -> tuple[list[Info], list[str], str | None]:
    """Return one page of the directory ``path``, all its names, and the token of the next page.

    Args:
        path: the directory.
        known: its sorted names, if an earlier page brought them.
        after: the token: the last name of the page before.
    """
    known = names(path) if known is None else known
    start = 0 if after is None else bisect_right(known, after)
    shown = known[start : start + PAGE]
    base = path.rstrip("/")
    entries = []
    for name in shown:
        child = f"{base}/{name}"
        try:
            entries.append(_info(child, os.lstat(child)))
        except FileNotFoundError:  # gone since the names were read
            continue
    return entries, known, shown[-1] if start + PAGE < len(known) else None


def _info(path: str, stat: os.stat_result) -> Info:
    if S_ISREG(stat.st_mode):
        size, volume = stat.st_size, stat.st_dev
        etag = "%x-%x-%x-%x" % (volume, stat.st_ino, stat.st_mtime_ns, size)  # noqa: UP031  quicker
        return Info(path, Kind.FILE, size, etag, stat.st_mtime, volume)
    if S_ISDIR(stat.st_mode):
        writable = os.access(path, os.W_OK | os.X_OK)
        return Info(path, Kind.DIRECTORY, 0, None, stat.st_mtime, stat.st_dev, writable)
    return Info(path, Kind.OTHER, 0, None, stat.st_mtime, stat.st_dev)


def _open(path: str, op: str) -> IO[bytes]:
    """Open a plain file to read; never through a link, never waiting for a pipe's writer."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO) and os.path.lexists(path):
            raise PreconditionError(op, path, "not a plain file") from error
        raise
    if not S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise PreconditionError(op, path, "not a plain file")
    return os.fdopen(fd, "rb", buffering=0)


# --- writing ---------------------------------------------------------------------------------


def put(path: str, data: bytes, overwrite: bool) -> Info:
    """Answer ``Store.put``: readers see all of the file or none of it."""
    with _written_aside("put", path, overwrite) as file:
        file.write(data)
        file.flush()
        stat = os.fstat(file.fileno())
    return _info(path, stat)


def copy(source: str, dest: str, overwrite: bool) -> None:
    """Answer ``Store.copy``."""
    with _open(source, "copy") as data, _written_aside("copy", dest, overwrite) as file:
        shutil.copyfileobj(data, file, 1 << 20)


@contextmanager
def _written_aside(op: str, path: str, overwrite: bool) -> Iterator[IO[bytes]]:
    """Give a new file in the same directory that takes the place ``path`` at the end."""
    directory = path.rpartition("/")[0] or "/"
    file, temp = _temporary(directory)
    try:
        with file:
            yield file
        if overwrite:
            os.replace(temp, path)
        else:
            _move_new(temp, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temp)
        if isinstance(error, OSError) and os.path.isdir(path) and overwrite:
            raise PreconditionError(op, path, "a directory is there") from error
        raise
    _drop_sidecar(path)


def _temporary(directory: str) -> tuple[IO[bytes], str]:
    while True:
        temp = f"{directory}/{_TEMP}{os.getpid()}-{next(_serial)}.tmp"
        with suppress(FileExistsError):  # another host's process of the same number
            return open(temp, "xb"), temp


def mkdir(path: str) -> None:
    """Answer ``Store.mkdir``."""
    try:
        os.makedirs(path, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise PreconditionError("mkdir", path, "a file is there, or above it") from error


def delete(path: str) -> None:
    """Answer ``Store.delete``."""
    try:
        os.unlink(path)
    except (IsADirectoryError, PermissionError):  # Linux says the one, macOS the other
        if not S_ISDIR(os.lstat(path).st_mode):
            raise
        _remove_directory(path)
    else:
        _drop_sidecar(path)


def delete_tree(path: str) -> None:
    """Answer ``Store.delete_tree``; links are removed, not followed."""
    if path == "/":
        raise RejectedError("delete_tree", path, "the root is not deleted")
    if not S_ISDIR(os.lstat(path).st_mode):
        delete(path)
        return
    try:
        _delete_directory(path)
    except FileNotFoundError:  # somebody else deletes it too
        if os.path.lexists(path):
            shutil.rmtree(path, onerror=_raise_unless_gone)


def _delete_directory(path: str) -> None:
    """Delete a directory that is nearly always full of empty directories, and those unread."""
    with os.scandir(path) as listing:
        entries = list(listing)
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)
            continue
        try:
            os.rmdir(entry.path)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            _delete_directory(entry.path)
    os.rmdir(path)


def _raise_unless_gone(function: object, path: str, info: object) -> None:
    error = sys.exc_info()[1]
    if error is not None and not isinstance(error, FileNotFoundError):
        raise error


def _remove_directory(path: str) -> None:
    try:
        os.rmdir(path)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or not _is_bare(path):
            raise
        os.rmdir(path)


def _is_bare(path: str) -> bool:
    """Remove what listings hide, if the directory holds nothing else; say whether."""
    found = os.listdir(path)
    if not all(map(_is_hidden, found)):
        return False
    for name in found:
        with suppress(FileNotFoundError):
            os.unlink(f"{path}/{name}")
    return True


def _is_hidden(name: str) -> bool:
    if name[0] != ".":
        return False
    return name.endswith(".crc") or (name.startswith(_TEMP) and name.endswith(".tmp"))


def _drop_sidecar(path: str) -> None:
    directory, _, name = path.rpartition("/")
    sidecar = f"{directory}/.{name}.crc"
    if os.access(sidecar, os.F_OK):  # cheaper than an exception, and there is nearly never one
        with suppress(FileNotFoundError):
            os.unlink(sidecar)


# --- renaming --------------------------------------------------------------------------------


def rename(source: str, dest: str, replace: bool, sidecars: dict[str, bool]) -> None:
    """Answer ``Store.rename``.

    Args:
        source: what to move.
        dest: where to.
        replace: whether something may be there.
        sidecars: directory -> whether it has checksums; filled here. A checksum without its
            file is rare, and looking for each costs a third of the rename.
    """
    try:
        if replace:
            _move_over(source, dest)
        else:
            _move_new(source, dest)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise RejectedError("rename", source, f"{dest} is on another filesystem") from error
        raise
    directory = dest.rpartition("/")[0]
    known = sidecars.get(directory)
    if known is None:
        known = sidecars[directory] = _has_sidecars(directory)
    if known or replace:
        _drop_sidecar(dest)


def _has_sidecars(directory: str) -> bool:
    with os.scandir(directory or "/") as listing:
        return any(entry.name[0] == "." and entry.name.endswith(".crc") for entry in listing)


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
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or not _is_bare(dest):
            raise
        os.replace(source, dest)


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _move_by_link(source: str, dest: str) -> None:
    """Move without replacing where the kernel or the filesystem has no such rename.

    A hard link never replaces, so files are safe against others; between the two calls the file
    has both names. Directories, and files where there are no links, are checked and then moved:
    an empty directory or a file made between the two is replaced.
    """
    try:
        if not S_ISDIR(os.lstat(source).st_mode):
            os.link(source, dest, follow_symlinks=False)
            os.unlink(source)
            return
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    if os.path.lexists(dest):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), source, None, dest)
    os.rename(source, dest)


def _kernel_rename() -> Callable[[str, str], None] | None:
    """Return a move by ``renameat2(RENAME_NOREPLACE)``, or nothing where libc lacks it."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return None
    path, number = ctypes.c_char_p, ctypes.c_int
    renameat2.argtypes = [number, path, number, path, ctypes.c_uint]
    encode, get_errno = os.fsencode, ctypes.get_errno

    def move(source: str, dest: str) -> None:
        if not renameat2(_AT_FDCWD, _c_path(encode(source)), _AT_FDCWD, _c_path(encode(dest)), 1):
            return
        code = get_errno()
        if code not in _NO_RENAMEAT2:
            raise OSError(code, os.strerror(code), source, None, dest)
        _move_by_link(source, dest)

    return move


def _c_path(path: bytes) -> bytes:
    if b"\0" in path:  # C would stop there and name another file
        raise ValueError("embedded null byte")
    return path


_AT_FDCWD = -100
_NO_RENAMEAT2 = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS})
_move_new: Callable[[str, str], None] = _kernel_rename() or _move_by_link


# --- errors ----------------------------------------------------------------------------------


def _table(kind: type[StoreError], *codes: str) -> dict[int, type[StoreError]]:
    return {getattr(errno, code): kind for code in codes if hasattr(errno, code)}


_KINDS: dict[int, type[StoreError]] = {
    **_table(NotFoundError, "ENOENT", "ENOTDIR"),
    **_table(ExistsError, "EEXIST", "ENOTEMPTY"),
    **_table(PreconditionError, "EISDIR"),
    **_table(DeniedError, "EACCES", "EPERM", "EROFS"),
    **_table(UnavailableError, "EBUSY", "EAGAIN", "EINTR", "EMFILE", "ENFILE", "ENOMEM", "ETXTBSY"),
    **_table(OutcomeUnknownError, "EIO", "ESTALE", "ETIMEDOUT", "EREMOTEIO", "EHOSTDOWN"),
}


def translate(op: str, path: str, error: OSError | ValueError) -> StoreError:
    """Return the ``StoreError`` that says what ``error`` means. Unknown codes are refusals."""
    if isinstance(error, ValueError):
        return RejectedError(op, path, f"no name for this filesystem: {error}")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RejectedError(op, path, f"no space left on the disk of {path}")
    kind = _KINDS.get(error.errno or 0, RejectedError)
    detail = error.strerror or str(error)
    if error.filename2 is not None:
        detail = f"{detail} ({error.filename2})"
    return kind(op, path, detail)

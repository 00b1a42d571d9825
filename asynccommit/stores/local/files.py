"""The requests of the local store as blocking functions.

They raise ``OSError`` for errors of the system and ``StoreError`` for further errors of the
contract; ``translate`` makes the first into the second. Renaming is in ``moves``, and what listings
leave out in ``hidden``.
"""

from __future__ import annotations

import errno
import os
import shutil
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from math import inf
from stat import S_ISDIR, S_ISLNK, S_ISREG
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
from asynccommit.stores.base import Info, Kind, Page
from asynccommit.stores.filesystem_names import temporary_name
from asynccommit.stores.local import moves, trees
from asynccommit.stores.local.hidden import drop_sidecar, empty_of_hidden, sort_out
from asynccommit.stores.local.mounts import APPEND_ONLY, place_of
from asynccommit.stores.local.pins import AT_CWD, PROC, Reach
from asynccommit.stores.local.statx import made_at
from asynccommit.stores.modes import MODES, create, make_directories, make_directory

PAGE = 1000  # entries of one page of a listing: some 3 ms of work
# Filesystems that have nothing to do for a directory say so.
_NO_FSYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_PRIVATE = 0o700
_RACES = 10  # how often a directory is made again that somebody removes at once

_serial = count()
_new = tuple.__new__
_FILE = Kind.FILE


# --- reading ---------------------------------------------------------------------------------


def head(path: str) -> Info:
    """Return the facts of a path. See ``Store.head``."""
    info = _info(path, os.lstat(path))
    if info.is_dir:
        return info
    held = inf if place_of(path).fixed else 0.0
    return info._replace(held=held, made=made_at(path) if info.kind is _FILE else 0)


def get(path: str, limit: int) -> bytes:
    """Return the content of a file. See ``Store.get``."""
    return get_tagged(path, limit)[0]


def get_tagged(path: str, limit: int) -> tuple[bytes, str | None]:
    """Return content and etag of a file. See ``TaggedStore.get_tagged``."""
    with _open(path, "get") as file:
        stat = os.fstat(file.fileno())
        size = stat.st_size
        data = file.read(limit + 1) if size <= limit else b""
        if size > limit or len(data) > limit:
            raise RejectedError("get", path, f"holds {size} bytes, more than {limit}")
        return data, moves.etag_of(stat)


def names(path: str, at: int = AT_CWD) -> tuple[list[str], list[str], list[str]]:
    """Return sorted visible names, stale checksums and temporary files.

    ``at`` is the descriptor of the directory, if it is open.
    """
    real = _opened(path, at)
    try:
        shown, stale, temporary = sort_out(real, os.listdir(real))
        shown.sort()
        return shown, stale, temporary
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP) or not os.path.lexists(path):
            raise
        raise PreconditionError("list", path, "not a directory") from error


def page(
    path: str, known: list[str] | None, after: str | None, at: int = AT_CWD
) -> tuple[Page, list[str]]:
    """Return one page of the directory ``path``, and all its names.

    Args:
        path: the directory.
        known: its sorted names, if an earlier page brought them.
        after: the token: the last name of the page before.
        at: the descriptor of the directory, if it is open.
    """
    stale, temporary = list[str](), list[str]()
    if known is None:
        known, stale, temporary = names(path, at)
    start = 0 if after is None else bisect_right(known, after)
    shown = known[start : start + PAGE]
    base, real, lstat = path.rstrip("/"), _opened(path, at).rstrip("/"), os.lstat
    entries = []
    for name in shown:
        child = f"{base}/{name}"
        try:
            stat = lstat(child) if at == AT_CWD else lstat(name, dir_fd=at)
            entries.append(_info(child, stat, real))
        except FileNotFoundError:  # gone since the names were read
            continue
    token = shown[-1] if start + PAGE < len(known) else None
    stale, temporary = ([f"{base}/{name}" for name in some] for some in (stale, temporary))
    return Page(tuple(entries), token, tuple(stale), tuple(temporary)), known


def _opened(path: str, at: int) -> str:
    """Return the path of an open directory for calls that take no descriptor."""
    return path if at == AT_CWD else f"{PROC}/{at}"


def _info(path: str, stat: os.stat_result, inside: str | None = None) -> Info:
    """Return the facts about ``path``, which is reached in ``inside``."""
    if S_ISREG(stat.st_mode):
        size, time, owner = stat.st_size, stat.st_mtime, stat.st_uid
        # Half the time of Info(...), once for every file of a listing.
        facts = (path, _FILE, size, moves.etag_of(stat), time, stat.st_dev, True, None, 0.0, 0)
        return _new(Info, (*facts, owner))
    if S_ISDIR(stat.st_mode):
        real = path if inside is None else f"{inside}/{path.rpartition('/')[2]}"
        place = place_of(real)
        # Nothing is ever taken out of one that is append-only: no rollback either.
        writable = os.access(real, os.W_OK | os.X_OK) and place.fixed != APPEND_ONLY
        held, volume = inf if place.fixed else 0.0, place.volume(stat.st_dev)
        time, owner = stat.st_mtime, stat.st_uid
        found = (path, Kind.DIRECTORY, 0, None, time, volume, writable, None, held, 0, owner)
        return _new(Info, found)
    return Info(path, Kind.OTHER, 0, None, stat.st_mtime, stat.st_dev, owner=stat.st_uid)


def _open(path: str, op: str) -> IO[bytes]:
    """Open a plain file to read, without following links or blocking."""
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


def put(path: str, data: bytes, overwrite: bool, mode: int = MODES.file) -> Info:
    """Write a file: readers see all of it or nothing. See ``Store.put``."""
    with _written_aside("put", path, overwrite, mode) as file:
        file.write(data)
        file.flush()
        stat = os.fstat(file.fileno())
    return _info(path, stat)


def copy(source: str, dest: str, overwrite: bool, mode: int = MODES.file) -> None:
    """Copy a file. See ``Store.copy``."""
    with _open(source, "copy") as data, _written_aside("copy", dest, overwrite, mode) as file:
        shutil.copyfileobj(data, file, 1 << 20)


@contextmanager
def _written_aside(op: str, path: str, overwrite: bool, mode: int) -> Iterator[IO[bytes]]:
    """Yield a new file in the same directory that becomes ``path`` at the end."""
    directory = path.rpartition("/")[0] or "/"
    file, temp = _temporary(directory, mode)
    try:
        with file:
            yield file
        if overwrite:
            os.replace(temp, path)
        else:
            moves.move_new(temp, path, atomic=op == "put")
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temp)
        if isinstance(error, OSError) and os.path.isdir(path) and overwrite:
            raise PreconditionError(op, path, "a directory is there") from error
        raise
    if overwrite:
        drop_sidecar(path)


def _temporary(directory: str, mode: int) -> tuple[IO[bytes], str]:
    def opener(path: str, flags: int) -> int:
        return create(path, flags, mode)

    while True:
        temp = f"{directory}/{temporary_name(f'{os.getpid()}-{next(_serial)}')}"
        with suppress(FileExistsError):  # another host's process of the same number
            return open(temp, "xb", opener=opener), temp


def mkdir(path: str, mode: int = MODES.directory, reach: Reach | None = None) -> None:
    """Implement ``Store.mkdir``; retry if others remove a parent meanwhile."""
    for left in range(_RACES, -1, -1):
        try:
            if reach is None:
                make_directories(path, mode)
            else:
                reach.release()
                reach.make(path, mode)
            return
        except (FileNotFoundError, FileExistsError, NotADirectoryError) as error:
            if not _was_removed(error):
                raise PreconditionError(
                    "mkdir", path, "a file is in its place, or in that of a parent directory"
                ) from error
            if not left:
                raise
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            text = "a parent directory is a symbolic link to itself"
            raise PreconditionError("mkdir", path, text) from error


def mkdir_private(path: str, mode: int = MODES.directory, reach: Reach | None = None) -> None:
    """Make a private directory. See ``OwnedStore.mkdir``."""
    mkdir(path.rpartition("/")[0] or "/", mode, reach)
    mkdir(path, _PRIVATE, reach)


def mkdir_new(path: str, mode: int = MODES.directory, reach: Reach | None = None) -> None:
    """Implement ``DirectoryStore.mkdir_new`` by one system call."""
    parent = path.rpartition("/")[0]
    for left in range(_RACES, -1, -1):
        mkdir(parent or "/", mode, reach)
        try:
            make_directory(path if reach is None else reach.real(path), mode)
            return
        except FileNotFoundError:  # somebody has removed the parent
            if not left:
                raise


def _was_removed(error: OSError) -> bool:
    """Return whether making a directory failed because one came or went."""
    if isinstance(error, FileExistsError):
        return os.path.isdir(error.filename) or not os.path.lexists(error.filename)
    return isinstance(error, FileNotFoundError)


def delete(path: str) -> None:
    """Delete a file or an empty directory. See ``Store.delete``."""
    mode = os.lstat(path).st_mode
    if S_ISDIR(mode):
        _remove_directory(path)
    elif S_ISLNK(mode):
        raise PreconditionError("delete", path, "a symbolic link, which is not moved")
    else:
        os.unlink(path)
        drop_sidecar(path)


def delete_tree(path: str, check: Callable[[], object] | None = None) -> None:
    """Delete a tree; links are removed, not followed.

    Args:
        path: what to delete.
        check: called once a directory is open and before anything in it is deleted.
    """
    if path == "/":
        raise RejectedError("delete_tree", path, "the root cannot be deleted")
    if S_ISDIR(os.lstat(path).st_mode):
        trees.delete(path, check)
    else:
        if check is not None:
            check()
        os.unlink(path)
        drop_sidecar(path)


def sync(path: str) -> None:
    """Make a path durable. See ``Store.sync``."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except NotADirectoryError:
        with _open(path, "sync") as file:
            _to_disk(path, file.fileno())
        return
    try:
        _to_disk(path, fd)
    except OSError as error:
        if error.errno not in _NO_FSYNC:
            raise
    finally:
        os.close(fd)


def _to_disk(path: str, fd: int) -> None:
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        # Asked again, the kernel says yes: it has forgotten what it could not write.
        raise RejectedError("sync", path, "the data did not reach the disk") from error


def _remove_directory(path: str) -> None:
    try:
        os.rmdir(path)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or not empty_of_hidden(path):
            raise
        os.rmdir(path)


# --- errors ----------------------------------------------------------------------------------


def _table(kind: type[StoreError], *codes: str) -> dict[int, type[StoreError]]:
    return {getattr(errno, code): kind for code in codes if hasattr(errno, code)}


_KINDS: dict[int, type[StoreError]] = {
    **_table(NotFoundError, "ENOENT", "ENOTDIR", "ELOOP"),
    **_table(ExistsError, "EEXIST", "ENOTEMPTY"),
    **_table(PreconditionError, "EISDIR"),
    **_table(DeniedError, "EACCES", "EPERM", "EROFS"),
    **_table(UnavailableError, "EBUSY", "EAGAIN", "EINTR", "EMFILE", "ENFILE", "ENOMEM", "ETXTBSY"),
    **_table(OutcomeUnknownError, "EIO", "ESTALE", "ETIMEDOUT", "EREMOTEIO", "EHOSTDOWN"),
}


def translate(op: str, path: str, error: OSError | ValueError) -> StoreError:
    """Translate ``error`` into a ``StoreError``; unknown codes are refusals."""
    if isinstance(error, ValueError):
        return RejectedError(op, path, f"not a valid name on this filesystem: {error}")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RejectedError(op, path, f"no space left on the disk of {path}")
    kind = _KINDS.get(error.errno or 0, RejectedError)
    detail = error.strerror or str(error)
    if error.filename2 is not None:
        detail = f"{detail} ({error.filename2})"
    if error.errno == errno.EPERM:
        detail += "; if lsattr shows that it is immutable or append-only, use chattr -ia"
    return kind(op, path, detail)

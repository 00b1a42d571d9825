"""The local files of a staging task: found, and read one part at a time.

The functions block: they are called in threads.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection
from dataclasses import dataclass

from asynccommit.errors import NotFoundError, OptionError, PreconditionError, RejectedError
from asynccommit.stores.filesystem_names import file_of, is_checksum

_MAX_DEPTH = 512
_HIDDEN = ("_", ".")


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file that a task has written.

    Attributes:
        path: on this machine.
        name: relative to the task's directory, with slashes.
        size: bytes.
        changed: its last change, in nanoseconds, and its number on the disk.
    """

    path: str
    name: str
    size: int
    changed: tuple[int, int]


def make_private(directory: str, top: str) -> None:
    """Create ``directory`` below ``top``, which must be new and private.

    Raises ``PreconditionError`` if it was, ``RejectedError`` if it cannot be made.
    """
    try:
        os.makedirs(os.path.dirname(top), exist_ok=True)
        try:
            os.mkdir(top, 0o700)
        except FileExistsError:
            text = "this task attempt exists already: use another id"
            raise PreconditionError("mkdir", top, text) from None
        os.makedirs(directory)
    except OSError as error:
        text = f"{error.strerror}: set another fs.s3a.buffer.dir"
        raise RejectedError("mkdir", top, text) from None


def remove(top: str) -> None:
    """Delete a task's directory, if it exists."""
    shutil.rmtree(top, ignore_errors=True)


def is_hidden(name: str) -> bool:
    """Return whether a file of this name, or path, is never committed."""
    return name.rpartition("/")[2].startswith(_HIDDEN)


def has_entries(directory: str) -> bool:
    """Return whether a directory is not empty. Raises ``NotFoundError``."""
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is not None
    except FileNotFoundError:
        raise _missing(directory) from None


def find_files(directory: str, hidden: list[str] | None = None) -> list[LocalFile]:
    """Return the files below a directory whose names are not hidden, by name.

    Args:
        directory: the task's.
        hidden: takes the names of those that are, but for checksums of files beside them.

    Raises ``NotFoundError`` without the directory, ``PreconditionError`` for a link or another
    special file, ``OptionError`` for an invalid name.
    """
    found: list[LocalFile] = []
    waiting = [("", directory)]
    while waiting:
        prefix, place = waiting.pop()
        if prefix.count("/") > _MAX_DEPTH:
            raise RejectedError("list", place, f"directories are nested deeper than {_MAX_DEPTH}")
        try:
            entries = list(os.scandir(place))
        except FileNotFoundError:
            raise _missing(place) from None
        there = {entry.name for entry in entries}
        for entry in entries:
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append((f"{name}/", entry.path))
            elif not is_hidden(name):
                found.append(_local_file(entry, name))
            elif hidden is not None and not _is_sidecar(entry.name, there):
                hidden.append(name)
    return sorted(found, key=lambda file: file.name)


def _is_sidecar(name: str, there: Collection[str]) -> bool:
    return is_checksum(name) and file_of(name) in there


def _local_file(entry: os.DirEntry[str], name: str) -> LocalFile:
    status = entry.stat(follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode):
        raise PreconditionError("list", entry.path, "neither a file nor a directory (a link)")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise OptionError(
            f"{entry.path!r}: the name is not valid UTF-8, which S3 requires"
        ) from None
    return LocalFile(entry.path, name, status.st_size, (status.st_mtime_ns, status.st_ino))


def read_part(file: LocalFile, offset: int, length: int) -> bytes:
    """Read a part of a file.

    Raises ``PreconditionError`` if the file was changed or is gone.
    """
    try:
        with open(file.path, "rb", buffering=0) as opened:
            status = os.fstat(opened.fileno())
            if (status.st_size, (status.st_mtime_ns, status.st_ino)) != (file.size, file.changed):
                raise _changed(file)
            data = _read(opened.fileno(), offset, length)
    except FileNotFoundError:
        raise _changed(file) from None
    if len(data) != length:
        raise _changed(file)
    return data


def _read(number: int, offset: int, length: int) -> bytes:
    """Read all bytes, although the system may return fewer at once."""
    data = os.pread(number, length, offset)
    while len(data) < length:
        more = os.pread(number, length - len(data), offset + len(data))
        if not more:
            break
        data += more
    return data


def _missing(directory: str) -> NotFoundError:
    return NotFoundError("list", directory, "the task attempt has no directory on this machine")


def _changed(file: LocalFile) -> PreconditionError:
    text = "it changed during the upload: close all files before the task commits"
    return PreconditionError("put_part", file.path, text)

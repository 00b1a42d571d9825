"""Files that listings of the local store hide.

These are Hadoop's checksums and this package's temporary files.

Hadoop's local filesystem keeps a checksum of ``NAME`` in ``.NAME.crc`` and refuses to read a file
that does not match it. Therefore replacing or deleting ``NAME`` also removes its checksum, and a
directory that holds only checksums counts as empty. A checksum without its ``NAME`` must not be
removed; a listing names it apart from its entries. A file with such a name that is not a checksum
is shown like any other file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from stat import S_ISREG

from asynccommit.stores.filesystem_names import (
    CHECKSUM_HEADER,
    checksum_of,
    file_of,
    is_checksum,
    is_checksum_data,
    is_temporary,
    is_unlisted,
)


def sort_out(path: str, found: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Return visible names, stale checksums and temporary files."""
    shown = [name for name in found if name[0] != "." or not is_unlisted(name)]
    stale, temporary = list[str](), list[str]()
    if len(shown) == len(found):
        return shown, stale, temporary
    there = set(shown)
    for name in found:
        if is_temporary(name):
            temporary.append(name)
        elif is_checksum(name) and file_of(name) not in there:
            (stale if _is_of_hadoop(f"{path}/{name}") else shown).append(name)
    return shown, stale, temporary


def _is_of_hadoop(path: str, *, exact: bool = False) -> bool:
    """Return whether Hadoop takes ``path`` for a checksum, or it is gone.

    With ``exact`` it must be one to its length: a file to delete.
    """
    try:
        if not S_ISREG(os.lstat(path).st_mode):
            return False
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            head = os.read(fd, 8)
            return head[:4] == CHECKSUM_HEADER and (
                not exact or is_checksum_data(head, os.fstat(fd).st_size)
            )
        finally:
            os.close(fd)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def empty_of_hidden(path: str) -> bool:
    """Remove hidden files if nothing else is there; return whether it was so."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.listdir(fd)
        if sort_out(path, found)[0]:
            return False
        for name in found:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=fd)
    finally:
        os.close(fd)
    return True


def drop_sidecar(path: str) -> None:
    """Remove the checksum of ``path``, whose file was replaced or deleted.

    A missing checksum is fine. Another file of that name is kept: readers ignore it, too.
    """
    sidecar = checksum_of(path)
    # Cheaper than an exception, and there is nearly never one.
    if os.access(sidecar, os.F_OK) and _is_of_hadoop(sidecar, exact=True):
        with suppress(OSError):
            os.unlink(sidecar)

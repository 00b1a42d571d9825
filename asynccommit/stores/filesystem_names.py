"""Hidden names of files that belong to the filesystem, not to a job."""

from __future__ import annotations

import re

TEMPORARY_FILE = ".asynccommit-"
"""The prefix of the temporary files that a store writes; then come two words or more, and ``.tmp``.

Words have letters and digits, and hyphens between them.
"""
_TEMPORARY = re.compile(r"\.asynccommit-[0-9A-Za-z_]+(?:-[0-9A-Za-z_]+)+\.tmp", re.ASCII).fullmatch
CHECKSUM_HEADER = b"crc\0"
"""The header of Hadoop's checksum files; Hadoop ignores a file without it."""


def is_checksum(name: str) -> bool:
    """Return whether Hadoop's local filesystem hides ``name`` as a checksum."""
    return name.startswith(".") and name.endswith(".crc")


def is_checksum_data(head: bytes, size: int) -> bool:
    """Return whether a file is Hadoop's checksum, by 8 bytes and its size.

    These are a header, the number of bytes for each checksum, then checksums of 4 bytes each.
    """
    every = int.from_bytes(head[4:8], "big", signed=True)
    return head[:4] == CHECKSUM_HEADER and len(head) >= 8 and every > 0 and size % 4 == 0


def is_temporary(name: str) -> bool:
    """Return whether ``name`` belongs to a temporary file of our stores."""
    return name.startswith(TEMPORARY_FILE) and _TEMPORARY(name) is not None


def is_unlisted(name: str) -> bool:
    """Return whether a store or Hadoop may leave ``name`` out of a listing."""
    return name[:1] == "." and (is_checksum(name) or is_temporary(name))


def checksum_of(path: str) -> str:
    """Return the path of the checksum that Hadoop keeps for ``path``."""
    directory, slash, name = path.rpartition("/")
    return f"{directory}{slash}.{name}.crc"


def file_of(checksum: str) -> str:
    """Return the name of the file whose checksum has this name, or ``""``."""
    return checksum[1 : -len(".crc")]

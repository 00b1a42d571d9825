"""Hidden names of files that belong to the filesystem, not to a job."""

from __future__ import annotations

_PREFIX, _SUFFIX = ".asynccommit-", ".tmp"
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


def temporary_name(unique: str) -> str:
    """Return the name of a temporary file that a store writes."""
    return f"{_PREFIX}0-{unique}{_SUFFIX}"


def is_temporary(name: str) -> bool:
    """Return whether ``name`` belongs to a temporary file of our stores.

    Between prefix and suffix is a hyphen. A name without one is anybody's.
    """
    return (
        name.startswith(_PREFIX)
        and name.endswith(_SUFFIX)
        and "-" in name[len(_PREFIX) : -len(_SUFFIX)]
    )


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

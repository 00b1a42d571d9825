"""Names of files that belong to the filesystem, not to a job, and that no listing shows."""

from __future__ import annotations

TEMPORARY_FILE = ".asynccommit-"
"""How the name of a file begins that a store writes aside; it ends in ``.tmp``."""


def is_checksum(name: str) -> bool:
    """Return whether Hadoop's local filesystem takes ``name`` for a checksum file and hides it."""
    return name.startswith(".") and name.endswith(".crc")


def is_temporary(name: str) -> bool:
    """Return whether ``name`` is that of a file that a store of ours writes aside."""
    return name.startswith(TEMPORARY_FILE) and name.endswith(".tmp")


def is_unlisted(name: str) -> bool:
    """Return whether a store or Hadoop can leave ``name`` out of a listing."""
    return name[:1] == "." and (is_checksum(name) or is_temporary(name))


def checksum_of(path: str) -> str:
    """Return where Hadoop's local filesystem keeps the checksum of ``path``."""
    directory, slash, name = path.rpartition("/")
    return f"{directory}{slash}.{name}.crc"


def file_of(checksum: str) -> str:
    """Return the name of the file whose checksum has this name; empty for none."""
    return checksum[1 : -len(".crc")]

"""Hidden names of files that belong to the filesystem, not to a job."""

from __future__ import annotations

TEMPORARY_FILE = ".asynccommit-"
"""The prefix of the temporary files that a store writes; their suffix is ``.tmp``."""


def is_checksum(name: str) -> bool:
    """Return whether Hadoop's local filesystem hides ``name`` as a checksum."""
    return name.startswith(".") and name.endswith(".crc")


def is_temporary(name: str) -> bool:
    """Return whether ``name`` belongs to a temporary file of our stores."""
    return name.startswith(TEMPORARY_FILE) and name.endswith(".tmp")


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

"""What listings of the local store hide: Hadoop's checksums and our temporary files.

Hadoop's local filesystem keeps a checksum of ``NAME`` in ``.NAME.crc`` and refuses to read a file
that disagrees with it. So whatever removes or replaces ``NAME`` removes that, and a directory
that holds nothing else counts as empty.
"""

from __future__ import annotations

import os
from contextlib import suppress

TEMP = ".asynccommit-"


def is_hidden(name: str) -> bool:
    """Whether listings leave ``name`` out."""
    return name[0] == "." and (
        name.endswith(".crc") or (name.startswith(TEMP) and name.endswith(".tmp"))
    )


def empty_of_hidden(path: str) -> bool:
    """Remove what is hidden, if the directory holds nothing else; say whether it was so."""
    found = os.listdir(path)
    if not all(map(is_hidden, found)):
        return False
    for name in found:
        with suppress(FileNotFoundError):
            os.unlink(f"{path}/{name}")
    return True


def drop_sidecar(path: str) -> None:
    """Remove the checksum of ``path``, if there is one.

    Never raises ``OSError``: the request it belongs to is done already, and must not be taken for
    one that failed.
    """
    directory, _, name = path.rpartition("/")
    sidecar = f"{directory}/.{name}.crc"
    if os.access(sidecar, os.F_OK):  # cheaper than an exception, and there is nearly never one
        with suppress(OSError):
            os.unlink(sidecar)


def drop_sidecar_seldom(path: str, known: dict[str, bool]) -> None:
    """As ``drop_sidecar``, and look for it only in directories where there are any.

    A checksum without its file is rare, and looking for each costs a third of a rename.

    Args:
        path: of the file that is new.
        known: directory -> whether it has checksums; filled here.
    """
    directory = path.rpartition("/")[0]
    found = known.get(directory)
    if found is None:
        try:
            found = known[directory] = _has_sidecars(directory)
        except OSError:  # nobody knows: look, and ask again next time
            found = True
    if found:
        drop_sidecar(path)


def _has_sidecars(directory: str) -> bool:
    with os.scandir(directory or "/") as listing:
        return any(entry.name[0] == "." and entry.name.endswith(".crc") for entry in listing)

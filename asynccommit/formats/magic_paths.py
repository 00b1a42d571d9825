"""Paths below a magic directory of Hadoop's S3A committer.

A file ``$out/__magic_job-<uuid>/job-<uuid>/NN/tasks/<attempt>/__base/a/b`` is uploaded to
``$out/a/b``. The magic path itself holds an empty marker, with the future length of the file in a
header, and ``<path>.pending``. The functions here only look at names; paths may be absolute or
relative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asynccommit.errors import UrlError
from asynccommit.formats import pending, pending_set

MAGIC = "__magic_job-"
"""The prefix of a magic directory's name."""
ANY_MAGIC = "__magic"
"""The prefix in Hadoop before 3.4, for searches for remains."""
BASE = "__base"
"""The directory of a task attempt whose tree is that of the destination."""
LENGTH_HEADER = "x-hadoop-s3a-magic-data-length"
"""The user metadata of a marker: the bytes that its file will have."""


def is_magic(path: str, *, old: bool = False) -> bool:
    """Return whether a path has a magic element.

    Args:
        path: path with slashes.
        old: whether the element as named by Hadoop before 3.4 counts, too.
    """
    return _place(path.split("/"), ANY_MAGIC if old else MAGIC) is not None


def is_magic_file(path: str) -> bool:
    """Return whether a file of a task written to this path is uploaded elsewhere."""
    return is_magic(path) and not path.endswith((pending.SUFFIX, pending_set.SUFFIX))


def final_path(path: str) -> str:
    """Return the final path of a file written at ``path``; one that is not magic is unchanged.

    Raises:
        UrlError: the path has nothing below the magic element, or nothing below ``__base``.
    """
    names = path.rstrip("/").split("/")
    at = _place(names, MAGIC)
    if at is None:
        return path
    below = names[at + 1 :]
    if not below:
        raise UrlError(f"{path[:300]!r} has no file below {names[at][:100]!r}")
    if BASE not in below:
        return "/".join((*names[:at], below[-1]))
    inside = below[below.index(BASE) + 1 :]
    if not inside:
        raise UrlError(f"{path[:300]!r} has no file below {BASE!r}")
    return "/".join((*names[:at], *inside))


def pending_path(path: str) -> str:
    """Return the path of the pending file for a file written at ``path``."""
    return path + pending.SUFFIX


def marker_metadata(length: int) -> dict[str, str]:
    """Return the user metadata of a marker for a file of ``length`` bytes."""
    return {LENGTH_HEADER: str(length)}


def marker_length(metadata: Mapping[str, str]) -> int | None:
    """Return the file length in a marker's metadata, or ``None`` without a valid one."""
    text = metadata.get(LENGTH_HEADER, "")
    return int(text) if len(text) < 20 and text.isascii() and text.isdigit() else None


def _place(names: Sequence[str], prefix: str) -> int | None:
    """Return the index of the first magic element, or ``None``."""
    return next((at for at, name in enumerate(names) if name.startswith(prefix)), None)

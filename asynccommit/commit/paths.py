"""Relations of decoded paths: above, below, and which names are not data."""

from __future__ import annotations

from collections.abc import Collection, Iterable

SAMPLE = 100
"""Maximum number of files named in ``_SUCCESS``, as in the reference."""


def above(path: str) -> Iterable[str]:
    """Yield the directories above ``path``, the innermost first."""
    while path := path.rpartition("/")[0]:
        yield path


def leaves(directories: Collection[str]) -> list[str]:
    """Return the directories that are no other's parent, in order."""
    parents = {path.rpartition("/")[0] for path in directories}
    return sorted(path for path in directories if path not in parents)


def ancestors(root: str, paths: Iterable[str]) -> set[str]:
    """Return ``paths`` and every directory between them and ``root``."""
    found: set[str] = set()
    for path in paths:
        while path != root and path and path not in found:
            found.add(path)
            path = path.rpartition("/")[0]
    return found


def outermost(paths: Collection[str]) -> list[str]:
    """Return the paths that are below no other of them, in order."""
    found: list[str] = []
    for path in sorted(set(paths), key=lambda path: path.split("/")):
        if not found or not within(path, found[-1:]):
            found.append(path)
    return found


def within(path: str, directories: Collection[str]) -> bool:
    """Return whether ``path`` is one of ``directories`` or below one."""
    return any(path == other or path.startswith(other + "/") for other in directories)


def stays(name: str) -> bool:
    """Return whether a name is not data, so that no mode replaces it.

    As Spark reads tables: names that begin with ``.`` or ``_``, but for ``_part=1`` and the
    summaries of Parquet, which say what the replaced files held.
    """
    if name in ("_metadata", "_common_metadata"):
        return False
    return name.startswith(".") or (name.startswith("_") and "=" not in name)

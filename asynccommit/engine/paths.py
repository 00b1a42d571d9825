"""Check the paths that callers give."""

from __future__ import annotations

import os

from asynccommit.errors import OptionError


def checked_path(given: str | os.PathLike[str]) -> str:
    """Return an absolute, decoded path as the store takes it.

    Raises ``OptionError`` for a path that is relative, or that has an empty, ``.`` or ``..`` part.
    """
    path = os.fspath(given)
    if not path.startswith("/"):
        text = "expected an absolute path in the store, without scheme and bucket, such as /data/a"
        raise OptionError(f"{path[:200]!r}: {text}")
    path = path.rstrip("/") or "/"
    parts = path.split("/")[1:]
    if path != "/" and not {"", ".", ".."}.isdisjoint(parts):
        raise OptionError(f"{path!r}: a path cannot have an empty part, '.' or '..'")
    if "\0" in path:
        raise OptionError(f"{path!r}: a path cannot have a NUL character")
    return path


def parent_of(path: str) -> str:
    """Return the directory of ``path``; the root is its own."""
    return path.rpartition("/")[0] or "/"


def is_within(path: str, directory: str) -> bool:
    """Return whether ``path`` is ``directory`` or below it."""
    return f"{path}/".startswith(directory if directory == "/" else f"{directory}/")

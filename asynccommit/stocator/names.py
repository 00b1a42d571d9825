"""Object names in Stocator's format, which contain the task attempt.

A file that a task attempt writes at ``$out/_temporary/0/_temporary/attempt_X/p=1/part-7.csv`` is
the object ``$out/p=1/part-7-attempt_X.csv`` from the start: the extension is everything after the
first dot of the name. Source: the behaviour of Stocator 1.1, a file system of its own for Hadoop.
"""

from __future__ import annotations

import re

from asynccommit.errors import UrlError

SUCCESS = "_SUCCESS"
TEMPORARY = "_temporary"
_ATTEMPT = "attempt_"
_MARK = re.compile(r"-(attempt_[^./]*)")
_WRITTEN = re.compile(
    r"(?P<out>(?:.*?/)??)_temporary/[^/]*/_temporary/(?P<attempt>attempt_[^/]*)/?"
)


def direct_path(path: str) -> str:
    """Return the object path that Stocator gives a file of a task attempt.

    Args:
        path: the path that the task writes to; any other path is returned unchanged.

    Raises:
        UrlError: the path is the directory of the attempt itself.
    """
    found = _WRITTEN.match(path)
    if found is None:
        return path
    folder, slash, name = path[found.end() :].rpartition("/")
    if not name:
        raise UrlError(f"{path[:300]!r} does not name a file of the task attempt")
    if name != SUCCESS and not name.startswith(_ATTEMPT):
        stem, dot, extension = name.partition(".")
        name = f"{stem}-{found['attempt']}{dot}{extension}"
    return f"{found['out']}{folder}{slash}{name}"


def is_attempt(path: str) -> bool:
    """Return whether an object is the output of one task attempt.

    Other attempts may then have written the same file. Only the object's name counts, not the names
    of its directories.
    """
    name = path.rpartition("/")[2]
    return "part-" in name and _ATTEMPT in name


def attempt_of(path: str) -> str | None:
    """Return the task attempt in the name of an object, or ``None``."""
    found = _MARK.search(path.rpartition("/")[2]) if is_attempt(path) else None
    return found[1] if found else None


def united(path: str) -> str:
    """Return the name shared by all attempts of a file: without the attempt."""
    if attempt_of(path) is None:
        return path
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{_MARK.sub('', name, count=1)}"

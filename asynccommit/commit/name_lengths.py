"""Names of a task's files that are too long, told as the user gave them.

The file of a task has a longer path until its job commits: in the directory of the task attempt,
and often with a suffix.
"""

from __future__ import annotations

import errno
import os
import re
from typing import NamedTuple

from asynccommit.errors import RejectedError

_SHOWN = 300
_TOO_LONG = re.compile(r"File name too long|ENAMETOOLONG", re.IGNORECASE)
_UNNAMED = 255
"""Bytes of a name at most, on a filesystem that does not tell."""


def refuse_long_name(name: str, staged: str, *, longest: int) -> None:
    """Refuse a path below the destination of which a name is too long.

    Args:
        name: the path, as it is while the task runs.
        staged: the suffix that the commit removes.
        longest: bytes of a name at most.

    Raises ``RejectedError``.
    """
    if len(name) * 4 <= longest:
        return
    parts = name.split("/")
    for number, part in enumerate(parts):
        suffix = staged if number == len(parts) - 1 and part.endswith(staged) else ""
        size = len(os.fsencode(part))
        if size > longest:
            own = part.removesuffix(suffix)
            text = f"the name {cut(own, 80)!r} is too long: it has {size - len(suffix)} bytes"
            raise RejectedError(
                "put", cut(name.removesuffix(suffix)), _allowed(text, longest, suffix)
            )


class Lengths(NamedTuple):
    """The length that a path may have below the directory of a task attempt.

    Attributes:
        around: length of the directory, and of what else is added to a path until the commit.
        longest: length of a path at most; 0 for no limit.
        letters: whether letters count, not bytes.
    """

    around: int
    longest: int
    letters: bool = False

    def refuse(self, name: str, staged: str) -> None:
        """Raise ``RejectedError`` for a path that is too long.

        Args:
            name: the path below the destination, as it is while the task runs.
            staged: the suffix that the commit removes.
        """
        if not self.longest or self._size(name) + self.around <= self.longest:
            return
        suffix = staged if name.endswith(staged) else ""
        own = name.removesuffix(suffix)
        unit = "characters" if self.letters else "bytes"
        text = (
            f"the path is too long: it has {self._size(own):,} {unit}, and below this destination "
            f"it may have {max(0, self.longest - self.around - len(suffix)):,}: the store accepts "
            f"{self.longest:,} with the destination and, until the commit, the directory of the "
            "task. Choose shorter names, or a destination nearer to the root"
        )
        raise RejectedError("put", cut(own), text)

    def _size(self, name: str) -> int:
        return len(name) if self.letters else len(name.encode("utf-8", "surrogatepass"))


def longest_name(directory: str) -> int:
    """Return the bytes that a name may have in a local directory."""
    try:
        return os.pathconf(directory, "PC_NAME_MAX")
    except (OSError, ValueError):
        return _UNNAMED


def too_long(error: BaseException, directory: str, staged: str) -> RejectedError | None:
    """Translate another library's error about a name that is too long.

    Returns ``None`` for other errors.

    Args:
        error: what the library has raised.
        directory: the task attempt's directory.
        staged: the suffix that the commit removes.
    """
    try:
        text = f"{error} {getattr(error, 'filename', '')}"
    except Exception:  # of an exception without a text
        return None
    if getattr(error, "errno", 0) != errno.ENAMETOOLONG and not _TOO_LONG.search(text):
        return None
    found = re.search(re.escape(f"{directory}/") + r"([^'\"\n]+)", text)
    if found is None:
        return None
    try:
        refuse_long_name(found[1], staged, longest=longest_name(directory))
    except RejectedError as refused:
        return refused
    return None


def _allowed(text: str, longest: int, suffix: str) -> str:
    most = longest - len(suffix)
    why = f" of the {longest} of this filesystem: {len(suffix)} are needed until the commit"
    return f"{text} and may have {most}{why if suffix else ''}. Choose a shorter one"


def cut(name: str, most: int = _SHOWN) -> str:
    """Return a path as errors show it."""
    return name if len(name) <= most else f"{name[:most]}..."

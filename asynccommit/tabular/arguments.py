"""Arguments of engines' functions: which are refused, and where a task writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from asynccommit.errors import OptionError
from asynccommit.sync import BlockingTask


def refuse(given: Iterable[str], remedies: Mapping[str, str]) -> None:
    """Raise ``OptionError`` for an argument of the engine that a job sets.

    Args:
        given: the names of the arguments.
        remedies: name of such an argument -> what the caller can do instead.
    """
    for name in sorted(given):
        if name in remedies:
            raise OptionError(f"{name} is not an argument here: {remedies[name]}")


def local_directory(task: BlockingTask) -> str | None:
    """Return the directory of a task on this machine.

    ``None`` for a task that has no local files.
    """
    return None if "://" in task.directory else task.directory

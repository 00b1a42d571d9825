"""The place that an engine writes the files of a task to."""

from __future__ import annotations

from asynccommit.sync import BlockingTask


def local_directory(task: BlockingTask) -> str | None:
    """Return the directory of a task on this machine.

    ``None`` for a task that has no local files.
    """
    return None if "://" in task.directory else task.directory

"""Task output that no commit could publish.

Refused when the task commits, only this task fails, and its files are named. Found by the job
commit, the same would fail the job.
"""

from __future__ import annotations

from asynccommit.commit.context import CommitContext
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.planning.plan import undone_path
from asynccommit.commit.spill import Entry
from asynccommit.commit.tasks.scan_task import TaskFiles, refuse_reserved
from asynccommit.errors import PreconditionError, RejectedError
from asynccommit.stores.filesystem_names import is_unlisted

LETTER = 4
"""Bytes of a letter at most."""


def refuse_uncommittable(run: CommitContext, found: TaskFiles, base: str) -> None:
    """Refuse what a job commit would refuse or lose, by its name.

    Args:
        run: the task commit.
        found: what the task attempt has written.
        base: the task attempt's directory.

    Raises ``PreconditionError`` and ``RejectedError`` that name the file, ``UrlError``.
    """
    refuse_reserved(run, found, base)
    cut, most = len(base) + 1, run.store.traits.longest_path
    more = len(undone_path(run.layout, 1, run.layout.root + "/"))
    for entry in found.files:
        inside = entry.source[cut:]
        if "/." in f"/{inside}" and any(map(is_unlisted, inside.split("/"))):
            text = "Hadoop does not list files with such a name: rename it or delete it"
            raise PreconditionError("list", entry.source, text)
        if (len(entry.source) + more) * LETTER > most > 0:
            refuse_long_entry(run.layout, entry, most)


def refuse_long_entry(layout: Layout, entry: Entry, most: int) -> None:
    """Refuse a file whose path is too long to be undone or fenced.

    Raises ``RejectedError``.
    """
    refuse_over(entry.dest, undone_path(layout, 1, entry.dest), most)
    kept = layout.epoch_dir(1) + entry.source[len(layout.sources_dir) :]
    refuse_over(entry.dest, kept, most)


def refuse_over(path: str, place: str, most: int) -> None:
    """Refuse ``path`` if ``place`` has more than ``most`` bytes.

    ``place`` is where it would be moved aside.

    Raises ``RejectedError``.
    """
    size = len(place.encode("utf-8", "surrogatepass"))
    if size > most:
        text = (
            f"its path is too long to be moved aside: {size} bytes, and the store accepts "
            f"{most}; choose a shorter name, or a destination nearer to the root"
        )
        raise RejectedError("rename", path, text)

"""Task commit of FileOutputCommitter, version 2: files become visible as they are moved.

Nothing of this can be taken back, and a job that fails leaves it there.
"""

from __future__ import annotations

from asynccommit.commit.by_rename.directories import make_all
from asynccommit.commit.by_rename.plan import leaves
from asynccommit.commit.by_rename.rename_versions import move_source
from asynccommit.commit.by_rename.scan_task import TaskFiles
from asynccommit.commit.context import CommitContext
from asynccommit.commit.spill import Entry
from asynccommit.runtime.concurrency import for_each


async def publish(run: CommitContext, found: TaskFiles) -> None:
    """Move every file of a task attempt to its destination, over a file that is there.

    A file where a directory is needed, or the other way round, is an error: Hadoop deletes it, with
    all it holds. What was moved before stays; called again with what is left, this does the rest.

    Raises ``PreconditionError`` for what stands in the way, ``StoreError``.
    """
    await make_all(run, leaves(list(found.directories)))

    async def move(entry: Entry) -> None:
        await move_source(run, entry, entry.dest, replace=True)
        run.renamed_one()

    await for_each(found.files, move, workers=run.workers)

"""Task commit of FileOutputCommitter 2: publish files by moving them.

None of this can be undone, and a failed job leaves it there.
"""

from __future__ import annotations

from asynccommit.commit.context import CommitContext
from asynccommit.commit.paths import leaves
from asynccommit.commit.spill import Entry
from asynccommit.commit.steps.identity import identity_of
from asynccommit.commit.tasks.scan_task import TaskFiles
from asynccommit.commit.trees import make_all
from asynccommit.runtime.concurrency import for_each


async def publish(run: CommitContext, found: TaskFiles) -> None:
    """Move a task attempt's files to their destinations, replacing files.

    A file where a directory is needed, or the other way round, is an error: Hadoop deletes it, with
    all it holds. Files moved earlier remain; a repeated call moves the remaining ones.

    Raises ``PreconditionError`` for what stands in the way, ``StoreError``.
    """
    await make_all(run, leaves(list(found.directories)))
    identity = identity_of(run)

    async def move(entry: Entry) -> None:
        await identity.move(entry, entry.dest, replace=True)
        run.renamed_one()

    await for_each(found.files, move, workers=run.workers)

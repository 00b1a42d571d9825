"""What must outlive a power cut before the next step is taken."""

from __future__ import annotations

from asynccommit.commit.context import CommitContext


async def make_durable(run: CommitContext, *paths: str) -> None:
    """Have files and directories outlive a power cut, where the store does not see to it."""
    if not run.store.traits.durable:
        for path in paths:
            await run.store.sync(path)

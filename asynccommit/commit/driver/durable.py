"""Durability: make files and directories survive a power cut."""

from __future__ import annotations

from asynccommit.commit.context import CommitContext


async def make_durable(run: CommitContext, *paths: str) -> None:
    """Make files and directories survive a power cut, if the store does not."""
    if not run.store.traits.durable:
        for path in paths:
            await run.store.sync(path)

"""A commit's own directories, pinned against those of a later run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from asynccommit.commit.context import CommitContext
from asynccommit.commit.ownership.directory_owner import find_layout
from asynccommit.stores.grant import granting
from asynccommit.stores.pinning import PinningStore


@asynccontextmanager
async def pinned(run: CommitContext) -> AsyncIterator[CommitContext]:
    """Find the job's layout, and pin the directories that exist now.

    Yields the context with that layout.

    A job id may be used again. Whatever this process still does when the job has ended and another
    has its id, because it stood still meanwhile, then leads nowhere.
    """
    run = await find_layout(run)
    if not run.store.traits.pins:
        yield run
        return
    layout = run.layout
    store = cast(PinningStore, run.store)
    pins = await store.pin([layout.job_dir, layout.attempt_dir], layout.roots)
    try:
        with granting(pins=pins):
            yield run
    finally:
        await pins.aclose()

"""Check that files can be renamed to places outside of the destination."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import cast

from asynccommit.commit.context import CommitContext
from asynccommit.errors import NotFoundError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import ProbingStore


async def refuse_zones(run: CommitContext, places: Iterable[str]) -> None:
    """Refuse places that are of another zone.

    Below the destination no check is needed: the job's own directory is there as well. Raises
    ``RejectedError`` or ``DeniedError`` with the reason.
    """
    if run.store.traits.zones:
        await for_each(sorted(set(places)), lambda place: _probe(run, place), workers=run.workers)


async def _probe(run: CommitContext, place: str) -> None:
    with suppress(NotFoundError):  # somebody removed it; it is made again
        await cast(ProbingStore, run.store).probe(run.layout.sources_dir, place)

"""Check that files can be renamed to the directories that they go to."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import cast

from asynccommit.commit.context import CommitContext
from asynccommit.commit.planning.plan import Plan
from asynccommit.errors import NotFoundError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Kind, ProbingStore

MOST = 1000
"""Number of directories below the destination that are asked for."""


async def refuse_zones(
    run: CommitContext, plan: Plan, outside: Iterable[str], inside: Iterable[str]
) -> None:
    """Refuse directories that are of another zone than the job's own.

    The job's own directory is below the destination, which is of the same zone; a zone may begin
    at a directory below it. Raises ``RejectedError`` or ``DeniedError`` with the reason.

    Args:
        run: the commit.
        plan: what will be moved; a directory that is replaced would lose its zone.
        outside: existing directories elsewhere that files go to, or below which they go.
        inside: existing directories of the destination, likewise.
    """
    traits = run.store.traits
    if not traits.zones:
        return
    places = set(outside)
    if traits.nested_zones:
        replaced = {aside.path for aside in plan.replaced if aside.kind is Kind.DIRECTORY}
        below = {*inside, *replaced} - {run.layout.dest.path, run.layout.root}
        places.update(sorted(below)[:MOST])
    await for_each(sorted(places), lambda place: _probe(run, place), workers=run.workers)


async def _probe(run: CommitContext, place: str) -> None:
    with suppress(NotFoundError):  # somebody removed it; it is made again
        await cast(ProbingStore, run.store).probe(run.layout.sources_dir, place)

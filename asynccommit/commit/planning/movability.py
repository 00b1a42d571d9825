"""Check that everything to move aside can be moved and restored."""

from __future__ import annotations

from contextlib import suppress
from typing import cast

from asynccommit.commit.context import CommitContext
from asynccommit.commit.object_holds import refuse_held
from asynccommit.commit.planning.plan import Aside, Plan, aside_path, undone_path
from asynccommit.commit.planning.uncommittable import LETTER, refuse_long_entry, refuse_over
from asynccommit.errors import DeniedError, NotFoundError, RejectedError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind, ProbingStore
from asynccommit.stores.tree import walk


async def refuse_unmovable(run: CommitContext, plan: Plan) -> None:
    """Refuse a plan that moves aside what the store cannot move.

    The marker is left out: its facts, including holds, were read by name.

    Raises ``RejectedError`` or ``DeniedError`` that names the thing and the remedy.
    """
    if run.store.traits.probes:
        asides = [aside for aside in plan.aside if aside.path != run.layout.success]
        await for_each(
            [*asides, *plan.replaced], lambda aside: _probe(run, aside), workers=run.workers
        )
        await for_each(asides, lambda aside: _look_below(run, aside), workers=run.workers)
    if run.store.traits.longest_path:
        await _refuse_long(run, plan)


async def _probe(run: CommitContext, aside: Aside) -> None:
    with suppress(NotFoundError):  # whoever moves it aside finds that it is gone
        await cast(ProbingStore, run.store).probe(aside.path, run.layout.sources_dir)


async def _look_below(run: CommitContext, aside: Aside) -> None:
    if aside.kind is Kind.DIRECTORY:
        with suppress(NotFoundError):
            async for info in walk(run.store, aside.path):
                refuse_fixed(run, info)


def refuse_fixed(run: CommitContext, info: Info) -> None:
    """Refuse an unmovable entry below a directory to move aside.

    Its path may also be too long.

    A mount point could be moved with the directory, but its content would be deleted in the end.
    """
    refuse_held(run, [info] if run.store.traits.probes else [])
    most = run.store.traits.longest_path
    if most and (len(info.path) + len(run.layout.epoch_dir(1))) * LETTER > most:
        refuse_over(info.path, aside_path(run.layout, 1, info.path), most)


def refuse_unfit(info: Info, volume: int, sources: str) -> None:
    """Refuse a directory that this job cannot rename files into or out of.

    Args:
        info: the directory.
        volume: of the job's own directory.
        sources: the job's own directory, for the message.
    """
    if info.volume != volume:
        text = f"on a different filesystem or mount from {sources}: files cannot be renamed there"
        raise RejectedError("rename", info.path, text)
    if not info.writable:
        text = (
            "no permission to create and remove files in this directory (see its mode, and "
            "lsattr -d)"
        )
        raise DeniedError("rename", info.path, text)


async def _refuse_long(run: CommitContext, plan: Plan) -> None:
    """Refuse paths that are too long to be moved aside or restored.

    If found later, neither the commit nor a rollback could be finished.
    """
    layout, most = run.layout, run.store.traits.longest_path
    for aside in (*plan.replaced, *plan.aside):
        refuse_over(aside.path, aside_path(layout, 1, aside.path), most)
    longer = len(undone_path(layout, 1, layout.root + "/").encode())
    if plan.loaded.longest * LETTER + longer > most:
        async for entry in plan.loaded.spill.each():
            refuse_long_entry(layout, entry, most)

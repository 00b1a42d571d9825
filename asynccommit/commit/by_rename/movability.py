"""Check that everything to move aside can be moved there and back, before anything is moved."""

from __future__ import annotations

from contextlib import suppress
from typing import cast

from asynccommit.commit.by_rename.plan import Aside, Plan, aside_path, undone_path
from asynccommit.commit.by_rename.uncommittable import LETTER, refuse_long_entry, refuse_over
from asynccommit.commit.context import CommitContext
from asynccommit.commit.object_holds import refuse_held
from asynccommit.errors import DeniedError, NotFoundError, RejectedError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind, ProbingStore
from asynccommit.stores.tree import walk


async def refuse_unmovable(run: CommitContext, plan: Plan) -> None:
    """Refuse a plan that moves aside what the store would not move, or not delete in the end.

    The marker is left out: its size and etag were asked for by name, and what holds it was told.

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
    """Refuse something below a directory that is moved aside, for what it is or its path's length.

    A mount point could be moved with the directory, but its content would be deleted in the end.
    """
    refuse_held(run, [info] if run.store.traits.probes else [])
    most = run.store.traits.longest_path
    if most and (len(info.path) + len(run.layout.epoch_dir(1))) * LETTER > most:
        refuse_over(info.path, aside_path(run.layout, 1, info.path), most)


def refuse_unfit(info: Info, volume: int, sources: str) -> None:
    """Refuse a directory that files of this job cannot be renamed into, or out of.

    Args:
        info: the directory.
        volume: of the job's own directory.
        sources: the job's own directory, for the message.
    """
    if info.volume != volume:
        text = f"on another filesystem or mount than {sources}: files cannot be renamed there"
        raise RejectedError("rename", info.path, text)
    if not info.writable:
        text = (
            "no permission to make files in this directory and to take them out of it (see its "
            "mode, and lsattr -d)"
        )
        raise DeniedError("rename", info.path, text)


async def _refuse_long(run: CommitContext, plan: Plan) -> None:
    """Refuse paths that leave no room for the place where they are moved aside, or taken back.

    Found out later, neither the commit nor a rollback could come to an end.
    """
    layout, most = run.layout, run.store.traits.longest_path
    for aside in (*plan.replaced, *plan.aside):
        refuse_over(aside.path, aside_path(layout, 1, aside.path), most)
    longer = len(undone_path(layout, 1, layout.root + "/").encode())
    if plan.loaded.longest * LETTER + longer > most:
        async for entry in plan.loaded.spill.each():
            refuse_long_entry(layout, entry, most)

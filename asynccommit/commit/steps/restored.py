"""Comparison of the table with its former state, after a rollback.

The paths of the plan are listed again and compared with their former state.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.full_etags import with_etags
from asynccommit.commit.paths import above
from asynccommit.commit.planning.plan import Aside, Plan, aside_path
from asynccommit.commit.steps.identity import (
    Before,
    at_destinations,
    identity_of,
    source_print,
    sources_there,
)
from asynccommit.commit.steps.step import RollbackResult
from asynccommit.errors import NotFoundError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import list_all, pages, walk


async def verify(run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
    """Compare the table with its former state; note differences.

    One listing of each directory that the commit had to do with. Raises ``PreconditionError`` if
    something is still moved aside and not in its place: then nothing may be deleted.
    """
    before = await Before.of(run, plan)
    with run.meter.timed("op_verify_rollback"):
        await _look_for_files(run, plan, before, undone)
        await _look_for_old(run, plan, before, undone)
        if run.store.traits.directories:
            await for_each(
                plan.missing, lambda path: _look_for_empty(run, path, undone), workers=run.workers
            )


async def _look_for_files(
    run: CommitContext, plan: Plan, before: Before, undone: RollbackResult
) -> None:
    """Note files of the job that are at their destinations."""
    loaded, since = plan.loaded, await identity_of(run).begun_at()
    there = await at_destinations(run, plan, since)
    if not there:
        return
    contents = run.store.traits.content_etags  # others may write the same
    base = None if run.layout.outside else run.epoch_dir
    never = await sources_there(run, plan, base) if contents else set[int]()
    async for entry in loaded.spill.each():
        if fingerprint(loaded.expected(entry)) not in there or before.may_be(entry):
            continue
        if source_print(entry.source, None) not in never:
            undone.leave(entry.dest, "remains: it seems to be a file of the job")


async def _look_for_old(
    run: CommitContext, plan: Plan, before: Before, undone: RollbackResult
) -> None:
    """Note replaced files that were not restored."""
    with (
        Fingerprints(run.options.spill_directory) as wanted,
        Fingerprints(run.options.spill_directory) as found,
    ):

        async def look(path: str) -> None:
            with suppress(NotFoundError, PreconditionError):
                async for page in pages(run.store, path):
                    add(await with_etags(run, page))

        async def look_below(aside: Aside) -> None:
            with suppress(NotFoundError, PreconditionError):
                async for info in walk(run.store, aside.path):
                    add([info])

        def add(infos: Iterable[Info]) -> None:
            found.add([(info.path, before.identity(info.kind, info.etag)) for info in infos])

        async for old in before.each():
            wanted.add([old])
        above = {aside.path.rpartition("/")[0] or "/" for aside in before.asides}
        whole = [aside for aside in before.asides if aside.kind is Kind.DIRECTORY]
        await for_each(sorted(above), look, workers=run.workers)
        await for_each(whole, look_below, workers=run.workers)
        lost = wanted.missing(found)
    if lost:
        async for old in before.each():
            if fingerprint(old) in lost:
                await _note_lost(run, before, old, undone)


async def _note_lost(
    run: CommitContext, before: Before, old: tuple[str, str | None], undone: RollbackResult
) -> None:
    """Note paths that listings show as changed, after reading each by name."""
    path, etag = old
    if any(parent in undone.left for parent in above(path)):
        return  # it is kept with the directory that it was in
    there = False
    with suppress(NotFoundError):
        info = await run.store.head(path)
        there = True
        if path == run.layout.success or before.identity(info.kind, info.etag) == etag:
            return  # another job's marker has its place; or listings leave it out
    place = aside_path(run.layout, run.place, path)
    if await before.is_aside(path) and await _holds_files(run, place):
        raise PreconditionError(
            "rename", path, f"differs from its state before the commit, which is at {place}"
        )
    did = "replaced" if there else "deleted or moved"
    undone.leave(path, f"differs from its state before the commit: another writer {did} it")


async def _holds_files(run: CommitContext, place: str) -> bool:
    """Return whether ``place`` is a file or has files below it.

    The files of a directory that could not come back as a whole were moved one by one.
    """
    if not (await run.store.head(place)).is_dir:
        return True
    async for info in walk(run.store, place):
        if not info.is_dir:
            return True
    return False


async def _look_for_empty(run: CommitContext, path: str, undone: RollbackResult) -> None:
    """Note an empty directory that the commit made."""
    try:
        holds = await list_all(run.store, path)
    except (NotFoundError, PreconditionError):
        return
    if holds:
        run.warn(f"{path}, made by the commit, remains: it is not empty")
    else:
        undone.leave(path, "remains: the commit made it, and it could not be removed")

"""Undo by version, file by file, where directories fence nothing.

Unmoved files are moved to the owner's place first, which shows that a file at their destination is
not theirs. Only versions that were listed before the owner confirmed its ownership are undone: a
newer version belongs to another writer.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.fingerprints import fingerprint
from asynccommit.commit.full_etags import with_etags
from asynccommit.commit.ownership.lease import require_place
from asynccommit.commit.paths import within
from asynccommit.commit.planning.plan import Plan, undone_path
from asynccommit.commit.spill import Entry
from asynccommit.commit.steps.identity import identity_of, source_print
from asynccommit.commit.steps.reconcile import at_destinations, sources_there
from asynccommit.commit.steps.rollback_result import REFUSED, RollbackResult
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import pages, remove_files


async def take_sources(run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
    """Move every unmoved file to the owner's place, by version."""
    present, cut = await sources_there(run, plan), len(run.layout.attempt_dir)

    async def take(entry: Entry) -> None:
        if source_print(entry.source, None) not in present:
            return
        run.check_lease()
        place = run.epoch_dir + entry.source[cut:]
        try:
            if source_print(entry.source, entry.etag) not in present:
                await _delete_twin(run, entry)
                return
            with suppress(NotFoundError, PreconditionError, ExistsError):  # it was moved meanwhile
                await run.store.rename(entry.source, place, etag=entry.etag)
        except REFUSED as error:
            undone.refused.append(error)

    if present:
        await for_each(plan.loaded.spill.entries(), take, workers=run.workers)


async def _delete_twin(run: CommitContext, entry: Entry) -> None:
    """Delete another version that a replaced owner may still move.

    It goes nowhere else: it does not say whether the version of the plan was moved.
    """
    found = await identity_of(run).find_twin(entry)
    if found is not None:
        await remove_files(run.store, [found])


async def take_versions(run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
    """Undo every moved file, known by size and content."""
    since = await identity_of(run).begun_at()
    there = await at_destinations(run, plan, since)
    if not there:
        return
    kept = await _kept(run, plan)
    lasting = run.store.traits.lasting

    def is_alike(info: Info) -> bool:
        if info.kind is not Kind.FILE:
            return False
        whole = (info.path, info.size, lasting(info.etag))
        return fingerprint(whole) in there or fingerprint(whole[:2]) in there

    async def take_from(path: str) -> None:
        with suppress(NotFoundError):
            async for page in pages(run.store, path):
                recent = [info for info in page if info.modified >= since]
                alike = [info for info in await with_etags(run, recent) if is_alike(info)]
                doubtful = [info for info in alike if fingerprint(info.path) in kept]
                others = [info for info in doubtful if not await _is_copy(run, info)]
                await _take_all(run, [info for info in alike if info not in others], undone)

    await for_each(sorted(plan.loaded.parents), take_from, workers=run.workers)


async def _take_all(run: CommitContext, infos: Sequence[Info], undone: RollbackResult) -> None:
    """Undo listed files, if this owner still holds the commit."""
    if not infos:
        return
    await require_place(run)

    async def take(info: Info) -> None:
        run.check_lease()
        place = undone_path(run.layout, run.place, info.path)
        try:
            await run.store.rename(info.path, place, etag=info.etag)
        except (NotFoundError, PreconditionError, ExistsError):
            return  # another's by now; or one was taken back before, and this one is another's
        except REFUSED as error:
            undone.refused.append(error)
            return
        undone.files += 1
        run.meter.step()

    await for_each(infos, take, workers=run.workers)


async def _kept(run: CommitContext, plan: Plan) -> set[int]:
    """Return destinations where another's file equals the job's.

    The job's own file is still in the owner's place, except where a rename is a copy and a delete,
    and the copy names its source.
    """
    never = await sources_there(run, plan, run.epoch_dir)
    kept: set[int] = set()
    async for entry in plan.loaded.spill.each():
        if source_print(entry.source, None) in never:
            kept.add(fingerprint(entry.dest))
    return kept


async def _is_copy(run: CommitContext, info: Info) -> bool:
    """Return whether a file is a copy of one that this attempt's task wrote."""
    with suppress(NotFoundError):
        mark = (await run.store.head(info.path)).token or ""
        return within(mark, (run.layout.tasks_dir, run.layout.absolute_dir))
    return False

"""Undo renames, so that none can come late.

It may be repeated: each file's present state is checked. First the tasks' directories are moved
away, or the files in them, so that a late rename finds no source. Undone files go to a separate
place, never back to their sources, because a late rename would publish them again; only those of a
move of existing files do, see ``refuse_in_flight``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from asynccommit.commit.context import CommitContext
from asynccommit.commit.fingerprints import fingerprint
from asynccommit.commit.full_etags import with_etags
from asynccommit.commit.ownership.lease import require_place
from asynccommit.commit.paths import ancestors, leaves, within
from asynccommit.commit.planning.plan import Plan, staged_path, undone_path
from asynccommit.commit.spill import Entry
from asynccommit.commit.steps.identity import (
    Before,
    FileIdentity,
    at_destinations,
    identity_of,
    source_print,
    sources_there,
)
from asynccommit.commit.steps.step import REFUSED, RollbackResult
from asynccommit.commit.trees import make_all, merge
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import is_there, pages, remove_files

_LINKED = (
    "was kept: it is the same file as a source that the job has not moved; check its owner, and "
    "delete it if it is the job's"
)


async def fence(run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
    """Ensure that a late rename of a task's file finds no source.

    The tasks' directories are moved away; where that keeps nothing out, every file in them that was
    never moved. What is then in the owner's place is known not to be at its destination.
    """
    if run.layout.outside:
        return  # such files stay; who undoes a move waits until no rename can be late
    if not run.store.traits.fences:
        await take_sources(run, plan, undone)
        return
    for source in run.layout.fenced(plan.loaded.tasks):
        run.check_lease()
        place = run.epoch_dir + source[len(run.layout.sources_dir) :]
        with suppress(NotFoundError, ExistsError):  # gone before; or made again by a straggler
            await run.store.rename(source, place)
        if run.store.traits.pins and (run.layout.shared or run.identity.epoch > 1):
            await _take_out(run, place)


async def _take_out(run: CommitContext, place: str) -> None:
    """Move the content of a task's directory to a sibling directory.

    An earlier owner may have it, or one in it, open, see ``asynccommit.stores.pinning``: a late
    rename searches that directory wherever it was moved. Repeatable.
    """
    opened = f"{run.epoch_dir}/opened"
    left = f"{opened}/{place.rpartition('/')[2]}"
    await run.store.mkdir(opened)
    with suppress(NotFoundError, ExistsError):  # done before, if not to its end
        await run.store.rename(place, left)
    await merge(run, left, place, keep=_leave)


async def _leave(_: CommitContext, path: str, place: str) -> None:
    """Leave a straggler's file where it is.

    The task's was there before, and is at ``place`` by now.
    """


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


async def take_back(run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
    """Take every moved file out of its destination."""
    if run.layout.outside:
        await return_files(run, plan, undone)
    elif run.store.traits.content_etags:
        await take_versions(run, plan, undone)
    else:
        await take_files(run, plan, undone)


async def take_files(run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
    """Undo every moved file, and note remaining ones in ``undone``."""
    loaded, there = plan.loaded, await at_destinations(run, plan)
    before = await Before.of(run, plan)
    kept = await before.still_there(there)
    if run.store.traits.fences:
        places = {undone_path(run.layout, run.place, path) for path in loaded.parents}
        await make_all(run, leaves(ancestors(run.epoch_dir, places)))
    await require_place(run)  # not only made again
    sure = run.store.traits.conditional_rename and len(there) == loaded.files and not kept
    never = set[int]() if sure else await sources_there(run, plan, run.epoch_dir)
    made = (await run.store.head(run.layout.record)).made
    taking = _IdentityRollback(run, plan, undone, before, there, kept, never, made)
    await for_each(loaded.spill.entries(), taking.take, workers=run.workers)


@dataclass(slots=True)
class _IdentityRollback:
    """Takes back one file after the other.

    Attributes:
        run: the rollback under way.
        plan: what the commit was to do.
        undone: the result, filled in here.
        before: what the table held before.
        there: fingerprints of files that are at their destinations and match their manifests.
        kept: those of them that the table held before.
        never: fingerprints of the sources that were never moved.
        made: when the commit record was made, in nanoseconds; 0 if unknown.
        identity: how files are identified.
    """

    run: CommitContext
    plan: Plan
    undone: RollbackResult
    before: Before
    there: set[int]
    kept: set[int]
    never: set[int]
    made: int
    identity: FileIdentity = field(init=False)

    def __post_init__(self) -> None:
        self.identity = identity_of(self.run)

    async def take(self, entry: Entry) -> None:
        """Take back one file, if it was moved and is at its destination."""
        self.run.check_lease()
        known = fingerprint(self.plan.loaded.expected(entry))
        if known in self.kept:
            return
        if known not in self.there:
            await self._take_altered(entry)
        elif entry.etag is None:
            await self._take_untagged(entry)
        elif self.run.store.traits.file_etags and self._is_linked(entry):
            self.undone.leave(entry.dest, _LINKED)
        else:
            await self._take_known(entry.dest, entry.etag)
        self.run.meter.step()

    def _is_linked(self, entry: Entry) -> bool:
        """Return whether the job's file is at its source too.

        A file that a straggler has written there is another.
        """
        return source_print(entry.source, entry.etag) in self.never

    async def _take_untagged(self, entry: Entry) -> None:
        """Undo a file known only by size, unless it is newer."""
        if not await _was_moved(self.run, entry):
            return
        with suppress(NotFoundError):
            info = await self.run.store.head(entry.dest)
            if info.made and self.made and info.made > self.made:
                self.undone.leave(entry.dest, "was kept: it is newer than the commit of the job")
            else:
                await self._take_known(entry.dest, info.etag)

    async def _take_altered(self, entry: Entry) -> None:
        """Undo moved files that do not match their manifest."""
        if source_print(entry.source, None) in self.never:
            return
        try:
            info = await self.run.store.head(entry.dest)
        except NotFoundError:
            return  # taken back before, or never there
        over = self.before.over(entry.dest)
        if self.before.has(info) or (over is not None and not await self.before.is_aside(over)):
            return  # what was there before, or came to it
        if info.kind is not Kind.FILE:
            text = f"is a {info.kind.value} in the place of a file of the job, and was kept"
            self.undone.leave(entry.dest, text)
        elif not self._is_of(entry, info):
            text = "was kept: it does not seem to be the file of the job"
            self.undone.leave(entry.dest, text)
        else:
            self.run.warn(f"{entry.dest} did not match its manifest and was rolled back")
            await self._take_known(entry.dest, info.etag)

    def _is_of(self, entry: Entry, info: Info) -> bool:
        """Return whether a file is that of a manifest, possibly modified."""
        if entry.etag is not None and entry.etag == info.etag:
            return True
        return self.identity.is_changed(entry, info, self.made)

    async def _take_known(self, path: str, etag: str | None) -> None:
        run, place = self.run, undone_path(self.run.layout, self.run.place, path)
        try:
            await run.store.rename(path, place, etag=etag)
        except (PreconditionError, ExistsError):
            return  # another's by now; or taken back before, and what is there now is another's
        except NotFoundError:
            if await is_there(run.store, path):
                raise  # not for want of the file
            return
        if await self.identity.is_intact(place, etag):
            self.undone.files += 1
        else:
            await self._give_back(path, place)

    async def _give_back(self, path: str, place: str) -> None:
        """Put back another writer's file that was moved by mistake."""
        await self.run.store.rename(place, path)


async def _was_moved(run: CommitContext, entry: Entry) -> bool:
    """Return whether a file has left the places where it was before."""
    fenced = run.epoch_dir + entry.source[len(run.layout.sources_dir) :]
    for path in (fenced, entry.source, staged_path(run.layout, run.place, entry.dest)):
        with suppress(NotFoundError):
            await run.store.head(path)
            return False
    return True


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


async def return_files(run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
    """Bring every moved file back; note in ``undone`` what cannot be."""
    if run.store.traits.directories:
        await make_all(run, leaves(set(plan.loaded.sources)))
    await require_place(run)
    returning = _Return(run, undone, await sources_there(run, plan))
    await for_each(plan.loaded.spill.entries(), returning.take, workers=run.workers)


@dataclass(slots=True)
class _Return:
    """Brings one file back after the other.

    Attributes:
        run: the rollback under way.
        undone: the result, filled in here.
        there: fingerprints of what is at the sources.
    """

    run: CommitContext
    undone: RollbackResult
    there: set[int]

    async def take(self, entry: Entry) -> None:
        """Bring back one file, if it was moved and is at its destination."""
        self.run.check_lease()
        found = await self._find(entry)
        try:
            if source_print(entry.source, None) in self.there:
                await self._keep_source(entry, found)
            elif found is None:
                self.undone.leave(entry.source, "is gone: another writer moved or deleted it")
            elif not self._is_same(entry, found):
                self._leave(entry, "another writer changed it")
            else:
                await self._return(entry, found)
        except REFUSED as error:
            self.undone.refused.append(error)
        self.run.meter.step()

    async def _find(self, entry: Entry) -> Info | None:
        try:
            return await self.run.store.head(entry.dest)
        except NotFoundError:
            return None

    def _is_same(self, entry: Entry, info: Info) -> bool:
        lasting = self.run.store.traits.lasting
        wanted, found = lasting(entry.etag), lasting(info.etag)
        same = wanted is None or found is None or wanted == found
        return same and info.kind is Kind.FILE and info.size == entry.size

    async def _keep_source(self, entry: Entry, found: Info | None) -> None:
        """Leave the file at its source.

        Where a move is a copy and a delete, the copy goes.
        """
        if found is None or not self._is_same(entry, found):
            return
        if await self._is_copied(entry, found):
            await remove_files(self.run.store, [found])
            self.undone.files += 1
        elif source_print(entry.source, entry.etag) not in self.there:
            self._leave(entry, f"another file is at {entry.source}")

    async def _is_copied(self, entry: Entry, found: Info) -> bool:
        """Return whether one of both files is a copy of the other, and names it."""
        if not self.run.store.traits.content_etags:
            return False
        if source_print(entry.source, entry.etag) in self.there:
            return (found.token or "").startswith(f"{entry.source}#")
        source = await self.run.store.head(entry.source)
        return (source.token or "").startswith(f"{entry.dest}#")

    def _leave(self, entry: Entry, why: str) -> None:
        self.undone.leave(entry.dest, f"was kept and not moved back to {entry.source}: {why}")

    async def _return(self, entry: Entry, found: Info) -> None:
        store = self.run.store
        try:
            await store.rename(entry.dest, entry.source, etag=found.etag)
        except ExistsError:
            self._leave(entry, f"another file is at {entry.source}")
        except (PreconditionError, NotFoundError):
            self._leave(entry, "another writer changed or moved it")
        else:
            self.undone.files += 1
            if store.traits.file_etags and not self._is_same(
                entry, await store.head(entry.source)
            ):  # the rename itself cannot check this here
                await store.rename(entry.source, entry.dest)
                self.undone.files -= 1
                self._leave(entry, "another writer changed it")

"""Undo by identity, where no rename can come late any more.

A file whose source is where it was has not been moved. Earlier files of the table, files that
others wrote since, and files that cannot be distinguished from these are kept and reported.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from asynccommit.commit.context import CommitContext
from asynccommit.commit.fingerprints import fingerprint
from asynccommit.commit.ownership.lease import require_place
from asynccommit.commit.paths import ancestors, leaves
from asynccommit.commit.planning.plan import Plan, staged_path, undone_path
from asynccommit.commit.spill import Entry
from asynccommit.commit.steps.identity import FileIdentity, identity_of, source_print
from asynccommit.commit.steps.prior_state import Before
from asynccommit.commit.steps.reconcile import at_destinations, sources_there
from asynccommit.commit.steps.rollback_result import RollbackResult
from asynccommit.commit.trees import make_all
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import is_there

_LINKED = (
    "was kept: it is the same file as a source that the job has not moved; check its owner, and "
    "delete it if it is the job's"
)


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

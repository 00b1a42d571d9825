"""Undo a move of existing files: bring each back to where it was.

It may be repeated. A file whose source is there was not moved, or is back already. Nothing is
replaced at a source, and a file that another writer has changed since stays at its destination.
"""

from __future__ import annotations

from dataclasses import dataclass

from asynccommit.commit.context import CommitContext
from asynccommit.commit.ownership.lease import require_place
from asynccommit.commit.paths import leaves
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.spill import Entry
from asynccommit.commit.steps.identity import source_print
from asynccommit.commit.steps.reconcile import sources_there
from asynccommit.commit.steps.rollback_result import REFUSED, RollbackResult
from asynccommit.commit.trees import make_all
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import remove_files


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

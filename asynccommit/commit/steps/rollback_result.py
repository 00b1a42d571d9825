"""The result of a rollback, including what it could not restore.

The result is verified: after the rollback, the paths of the plan are listed again and compared with
their former state.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from asynccommit.commit.context import CommitContext
from asynccommit.commit.errors import NAMED
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.full_etags import with_etags
from asynccommit.commit.paths import above
from asynccommit.commit.planning.plan import Aside, Plan, aside_path
from asynccommit.commit.steps.identity import identity_of, source_print
from asynccommit.commit.steps.prior_state import Before
from asynccommit.commit.steps.reconcile import at_destinations, sources_there
from asynccommit.errors import (
    DeniedError,
    NotFoundError,
    PreconditionError,
    RejectedError,
    StoreError,
)
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import list_all, pages, walk

REFUSED = (RejectedError, DeniedError)
"""The errors for a held file or a missing permission; other files are still processed."""

_MOST = 1_000
"""Maximum number of recorded paths that differ from before."""


@dataclass(slots=True)
class RollbackResult:
    """The result of a rollback.

    Attributes:
        files: number of undone files.
        restored: how many things were put back in their place.
        refused: what the store has refused.
        left: path -> reason why it differs from before; only the first ones.
        more: how many there are beyond these.
    """

    files: int = 0
    restored: int = 0
    refused: list[StoreError] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    more: int = 0

    def leave(self, path: str, why: str) -> None:
        """Note that ``path`` differs from before; keep the first reason."""
        if path in self.left:
            return
        if len(self.left) < _MOST:
            self.left[path] = why
        else:
            self.more += 1

    def end(self) -> None:
        """Raise the first refusal, with the names of all refused paths."""
        if self.refused:
            first, *more = self.refused
            for error in more[:20]:
                first.add_note(f"also: {error}")
            raise first

    def warn(self, run: CommitContext) -> None:
        """Warn of paths that differ from before."""
        for path, why in list(self.left.items())[:NAMED]:
            run.warn(f"{path} {why}")
        more = len(self.left) + self.more - NAMED
        if more > 0:
            run.warn(f"{more} more paths differ from their state before the commit")


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

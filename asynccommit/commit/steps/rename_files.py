"""Rename every file, replacing nothing.

A file that an earlier owner has moved is known by its etag, or by what of it survives a rename.
Where the etag is incomplete, or missing in a manifest, a file of the right size counts if its
source is gone.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from hashlib import blake2b
from typing import cast

from asynccommit.commit.context import CommitContext
from asynccommit.commit.fingerprints import Fingerprints
from asynccommit.commit.ownership.lease import require_place
from asynccommit.commit.paths import leaves, within
from asynccommit.commit.planning.plan import Plan, staged_path, untagged
from asynccommit.commit.planning.sources import gather
from asynccommit.commit.spill import Entry, in_batches
from asynccommit.commit.steps.identity import (
    Settled,
    at_destinations,
    identity_of,
    sources_there,
    without_old,
)
from asynccommit.commit.steps.step import CommitStep, RollbackResult
from asynccommit.commit.steps.undo_renames import fence, take_back
from asynccommit.commit.steps.validate import validates
from asynccommit.commit.tasks.scan_task import TaskFiles
from asynccommit.commit.trees import make_all
from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.runtime.concurrency import ChunkedItems, for_each
from asynccommit.stores.base import BatchStore

_OFTEN = 32  # renames from one look at the lease to the next

# What is waited for and settled where a file is asked for alone.
_ALONE = (ExistsError, NotFoundError, ThrottledError, UnavailableError)

Place = Callable[[str], str]


class StageFiles(CommitStep):
    """Renames files of units to where their unit is put together."""

    stage = "job_stage_rename_files"

    def count(self, run: CommitContext, plan: Plan) -> int | None:
        """See ``CommitStep.count``.

        ``RenameFiles`` counts all files.
        """
        return 0 if plan.units else None

    async def do(self, run: CommitContext, plan: Plan, settled: Settled) -> None:
        """See ``CommitStep.do``."""
        plan.held.clear()
        mover = FileMover(run, plan, settled, _stager(run, plan))
        await mover.move(ChunkedItems(_each(plan, staged=True)))

    async def undo(self, run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
        """See ``CommitStep.undo``.

        Such files go with the owner's directory, where they are.
        """


class RenameFiles(CommitStep):
    """Renames every file to its destination, but those that come with a unit.

    The first failure stops new renames and is raised once those under way have ended; files that
    were renamed stay where they are.
    """

    stage = "job_stage_rename_files"

    def count(self, run: CommitContext, plan: Plan) -> int | None:
        """See ``CommitStep.count``."""
        return plan.loaded.files

    async def settle(self, run: CommitContext, plan: Plan, settled: Settled) -> Settled:
        """See ``CommitStep.settle``.

        Files of units are settled with the others.
        """
        return await reconcile(run, plan)

    async def do(self, run: CommitContext, plan: Plan, settled: Settled) -> None:
        """See ``CommitStep.do``.

        A sample of the names is kept in the plan.
        """
        loaded, mover = plan.loaded, FileMover(run, plan, settled)
        await plan.take_sample()
        if plan.units:
            await mover.move(ChunkedItems(_each(plan, staged=False)))
        elif sum(map(loaded.sources.__getitem__, plan.carried)) == loaded.files:
            run.meter.step(loaded.files)  # each has come with its directory
        elif run.slicer is not None and not (plan.replaced or settled or run.identity.epoch > 1):
            await run.slicer.move(run, plan.carried)
        else:
            await mover.move(loaded.spill.entries())
        run.meter.statistics.count("committer_files_committed", loaded.files)
        run.meter.statistics.count("committer_bytes_committed", loaded.bytes)

    async def fence(self, run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
        """See ``CommitStep.fence``."""
        await fence(run, plan, undone)

    async def undo(self, run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
        """See ``CommitStep.undo``."""
        await take_back(run, plan, undone)


async def reconcile(run: CommitContext, plan: Plan, *, adopt: bool = False) -> Settled:
    """Find which files of ``plan`` are at their destination or unit.

    One listing of each directory; nothing is changed. Files from before the commit began count only
    if ``adopt`` is set.
    """
    identity, loaded = identity_of(run), plan.loaded
    with run.meter.timed("job_stage_settle", len(loaded.parents)):
        since = 0.0 if adopt else await identity.begun_at()

        async def look_at_staged(path: str, found: Fingerprints) -> None:
            if plan.unit_of(path) is not None:
                place = staged_path(run.layout, run.place, path)
                await gather(run, place, found, loaded.etags, shown_in=path)
            run.meter.step()

        there = await at_destinations(run, plan, since, also=look_at_staged)
        there = await without_old(run, plan, there)
        sure = identity.tells_alone and not untagged(plan)
        sources = None if sure or not there else await sources_there(run, plan)
    plan.settled = len(there)
    return Settled(run, plan, there, sources)


async def _each(plan: Plan, *, staged: bool) -> AsyncIterator[Sequence[Entry]]:
    """Yield and count the files of units, or the files in none, in chunks."""
    known: dict[str, str | None] = {}
    async for chunk in plan.loaded.spill.chunks():
        found: list[Entry] = []
        for entry in chunk:
            parent = entry.dest.rpartition("/")[0]
            if parent not in known:
                known[parent] = plan.unit_of(parent)
            unit = known[parent]
            if (unit is not None) is staged:
                if unit is not None:
                    plan.held[unit] += 1
                found.append(entry)
        yield found


def _stager(run: CommitContext, plan: Plan) -> Place:
    layout, place = run.layout, run.place
    return lambda dest: staged_path(layout, place, dest)


class FileMover:
    """Renames files of a plan to their destinations or units."""

    def __init__(
        self, run: CommitContext, plan: Plan, settled: Settled, place: Place | None = None
    ) -> None:
        self._run = run
        self._store = run.store
        self._identity = identity_of(run)
        self._place = place
        self._moved = _moved_before(plan, settled)
        self._carried = plan.carried
        self._step = run.count_renamed if place is None else run.meter.step
        self._commit = run.identity.commit_id.encode() if run.store.traits.tokens else None
        # Fewer in a request where that keeps more workers busy.
        self._together = min(run.store.traits.bulk_rename, -(-plan.loaded.files // run.workers))
        self._count = 0
        each = run.options.validate_sample is None and validates(run)
        self._looks = each and run.identity.epoch <= 1

    async def move(self, entries: Iterable[Entry] | AsyncIterable[Entry]) -> None:
        """Rename files, one by one or in batches if the store supports it."""
        workers = self._run.workers
        if self._together > 1:
            await for_each(in_batches(entries, self._together), self._some, workers=workers)
        else:
            await for_each(entries, self._one, workers=workers)

    async def _one(self, entry: Entry) -> None:
        if self._is_to_move(entry):
            await self._alone(entry)

    async def _alone(self, entry: Entry) -> None:
        if self._count % _OFTEN == 0:
            self._run.check_lease()
        self._count += 1
        commit, dest = self._commit, self._dest(entry)
        token = None if commit is None else token_of(commit, entry.source, entry.dest)
        try:
            await self._identity.move(entry, dest, token=token)
        except NotFoundError:
            await self._again(entry, dest, token)
        self._step()

    async def _some(self, entries: Sequence[Entry]) -> None:
        self._run.check_lease()
        entries = [entry for entry in entries if self._is_to_move(entry)]
        if not entries:
            return
        moves = [(entry.source, self._dest(entry), self._guarded(entry)) for entry in entries]
        done, error = await cast(BatchStore, self._store).rename_many(moves)
        for _ in range(done):
            self._step()
        if isinstance(error, OutcomeUnknownError):
            await self._find_out(entries[done], error)
            done += 1
        elif error is not None and not isinstance(error, _ALONE):
            raise error
        for entry in entries[done:]:
            await self._alone(entry)

    def _guarded(self, entry: Entry) -> str | None:
        """Return the etag that a source must have, if it must have any.

        Without one it must be no link, unless validation looks for links afterwards.
        """
        return entry.etag if self._looks else self._store.traits.guarded(entry.etag)

    def _is_to_move(self, entry: Entry) -> bool:
        """Return whether a file still has to be moved."""
        if self._moved is None or not self._moved(entry):
            return True
        if entry.source.rpartition("/")[0] in self._carried:
            self._run.meter.step()  # counted when its directory came
        else:
            self._step()
        return False

    def _dest(self, entry: Entry) -> str:
        return entry.dest if self._place is None else self._place(entry.dest)

    async def _find_out(self, entry: Entry, error: OutcomeUnknownError) -> None:
        """Check whether a file was moved by an unanswered request.

        While its source is there it is asked for alone, which settles what comes late. Raises
        ``error`` if nothing shows that it was moved.
        """
        try:
            await self._store.head(entry.source)
        except NotFoundError:
            if not await self._identity.is_at(entry, self._dest(entry)):
                raise error from None
            self._step()
            return
        await self._alone(entry)

    async def _again(self, entry: Entry, dest: str, token: str | None) -> None:
        """Rename again after another job removed the empty directory.

        Raises ``NotFoundError`` if the file itself is gone, unless it is at its destination.
        """
        run, store = self._run, self._store
        try:
            await store.head(entry.source)
        except NotFoundError:
            if await self._identity.is_at(entry, dest):
                return
            raise
        run.check_lease()
        await require_place(run)
        if within(dest, [run.epoch_dir]):
            raise NotFoundError("rename", dest, "its directory is gone")
        if store.traits.directories:
            await store.mkdir(dest.rpartition("/")[0])
        await self._identity.move(entry, dest, token=token)


def _moved_before(plan: Plan, settled: Settled) -> Callable[[Entry], bool] | None:
    """Return the fingerprints of moved files; ``None`` if there are none."""
    carried = plan.carried
    if not carried:
        return settled.has if settled else None
    return lambda entry: entry.source.rpartition("/")[0] in carried or settled.has(entry)


def token_of(commit: bytes, source: str, dest: str) -> str:
    """Return the reproducible UUID of one rename of one job commit."""
    text = f"{source}\0{dest}".encode("utf-8", "surrogatepass")
    hexa = blake2b(text, digest_size=16, key=commit).hexdigest()
    return f"{hexa[:8]}-{hexa[8:12]}-{hexa[12:16]}-{hexa[16:20]}-{hexa[20:]}"


async def publish(run: CommitContext, found: TaskFiles) -> None:
    """Move a task attempt's files to their destinations, replacing files.

    A file where a directory is needed, or the other way round, is an error: Hadoop deletes it, with
    all it holds. Files moved earlier remain; a repeated call moves the remaining ones.

    Raises ``PreconditionError`` for what stands in the way, ``StoreError``.
    """
    await make_all(run, leaves(list(found.directories)))
    identity = identity_of(run)

    async def move(entry: Entry) -> None:
        await identity.move(entry, entry.dest, replace=True)
        run.count_renamed()

    await for_each(found.files, move, workers=run.workers)

"""Job commit, fifth step: every file to its destination, never over anything."""

from __future__ import annotations

from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Sequence,
)
from hashlib import blake2b
from itertools import islice
from typing import cast

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.parallel import for_each
from asynccommit.stages.lease import require_place
from asynccommit.stages.plan import SAMPLE, Plan, staged_path, within
from asynccommit.stages.run import Run
from asynccommit.stages.settle import Settled
from asynccommit.stages.spill import Entry
from asynccommit.stages.swap import swap_in
from asynccommit.store import BatchStore

_OFTEN = 32  # renames from one look at the lease to the next

# What is waited for and settled where a file is asked for alone.
_ALONE = (ExistsError, NotFoundError, ThrottledError, UnavailableError)

Place = Callable[[str], str]
Renamer = Callable[[Entry], Awaitable[None]]


async def rename_files(run: Run, plan: Plan, settled: Settled) -> None:
    """Rename every file of the plan, and keep a sample of what was renamed.

    Files of units go to where their unit is put together; then the units take the place of what
    they replace; then the other files go to theirs. The first failure stops new renames and is
    raised once those under way have ended; files that were renamed stay where they are.
    """
    loaded = plan.loaded
    with run.timed("job_stage_rename_files", loaded.files):
        if plan.units or plan.replaced:
            place = _stager(run, plan)
            await _rename(run, plan, settled, _each(plan, staged=True), place)
            staged_files = run.done
            await swap_in(run, plan)
            run.renamed = staged_files
            await _rename(run, plan, settled, _each(plan, staged=False))
        else:
            await _rename(run, plan, settled, loaded.spill.entries())
    run.statistics.count("committer_files_committed", loaded.files)
    run.statistics.count("committer_bytes_committed", loaded.bytes)


async def _each(plan: Plan, *, staged: bool) -> AsyncIterator[Entry]:
    """Yield the files that are in a unit, or those that are in none."""
    known: dict[str, bool] = {}
    async for entry in plan.loaded.spill.each():
        parent = entry.dest.rpartition("/")[0]
        if parent not in known:
            known[parent] = plan.unit_of(parent) is not None
        if known[parent] is staged:
            yield entry


def _stager(run: Run, plan: Plan) -> Place:
    layout, place = run.layout, run.place
    return lambda dest: staged_path(layout, place, dest)


async def _rename(
    run: Run,
    plan: Plan,
    settled: Settled,
    entries: Iterable[Entry] | AsyncIterable[Entry],
    place: Place | None = None,
) -> None:
    """Rename ``entries``: one by one, or some in one request where the store takes that."""
    one = _renamer(run, plan, settled, place)
    size = _together(run, plan)
    if size < 2:
        await for_each(entries, one, workers=run.workers)
        return
    some = _batch_renamer(run, plan, settled, place, one)
    await for_each(_batches(entries, size), some, workers=run.workers)


def _together(run: Run, plan: Plan) -> int:
    """Return how many files go in one request: fewer where that keeps more workers busy."""
    return min(run.store.traits.bulk_rename, -(-plan.loaded.files // run.workers))


def _moved_before(plan: Plan, settled: Settled) -> Callable[[Entry], bool] | None:
    """Return what tells the files that have been moved; ``None`` if there are none."""
    carried = plan.carried
    if not carried:
        return settled.has if settled else None
    return lambda entry: entry.source.rpartition("/")[0] in carried or settled.has(entry)


def _renamer(run: Run, plan: Plan, settled: Settled, place: Place | None = None) -> Renamer:
    rename, check = run.store.rename, run.check_lease
    moved, sample = _moved_before(plan, settled), plan.sample
    step = run.renamed_one if place is None else run.step
    commit = run.commit_id.encode() if run.store.traits.tokens else None
    count = 0

    async def rename_one(entry: Entry) -> None:
        nonlocal count
        if count % _OFTEN == 0:
            check()
        count += 1
        if len(sample) < SAMPLE:
            sample.append(entry.dest)
        if moved is not None and moved(entry):
            step()
            return
        dest = entry.dest if place is None else place(entry.dest)
        token = None if commit is None else token_of(commit, entry.source, entry.dest)
        try:
            await rename(entry.source, dest, etag=entry.etag, token=token)
        except NotFoundError:
            await _again(run, settled, entry, dest, token)
        step()

    return rename_one


def _batch_renamer(
    run: Run, plan: Plan, settled: Settled, place: Place | None, one: Renamer
) -> Callable[[Sequence[Entry]], Awaitable[None]]:
    store, sample = cast(BatchStore, run.store), plan.sample
    moved = _moved_before(plan, settled)
    step = run.renamed_one if place is None else run.step

    async def rename_some(entries: Sequence[Entry]) -> None:
        run.check_lease()
        if len(sample) < SAMPLE:
            sample.extend([entry.dest for entry in entries][: SAMPLE - len(sample)])
        if moved is not None:
            told = len(entries)
            entries = [entry for entry in entries if not moved(entry)]
            for _ in range(told - len(entries)):
                step()
            if not entries:
                return
        dests = [entry.dest if place is None else place(entry.dest) for entry in entries]
        moves = [(entry.source, dest) for entry, dest in zip(entries, dests, strict=True)]
        done, error = await store.rename_many(moves)
        for _ in range(done):
            step()
        if isinstance(error, OutcomeUnknownError):
            await _find_out(run, settled, entries[done], dests[done], error)
            step()
            done += 1
        elif error is not None and not isinstance(error, _ALONE):
            raise error
        for entry in entries[done:]:
            await one(entry)

    return rename_some


def _batches(
    entries: Iterable[Entry] | AsyncIterable[Entry], size: int
) -> Iterable[Sequence[Entry]] | AsyncIterable[Sequence[Entry]]:
    """Return ``entries`` in their order, ``size`` at a time; read lazily."""
    if isinstance(entries, AsyncIterable):
        return _batches_of(entries, size)
    rest = iter(entries)
    return iter(lambda: tuple(islice(rest, size)), ())


async def _batches_of(entries: AsyncIterable[Entry], size: int) -> AsyncIterator[Sequence[Entry]]:
    batch: list[Entry] = []
    async for entry in entries:
        batch.append(entry)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


async def _find_out(
    run: Run, settled: Settled, entry: Entry, dest: str, error: OutcomeUnknownError
) -> None:
    """See whether a file was moved of which nobody said so. Raises ``error`` if none can tell."""
    try:
        await _again(run, settled, entry, dest, None)
    except NotFoundError:
        raise error from None


async def _again(run: Run, settled: Settled, entry: Entry, dest: str, token: str | None) -> None:
    """Rename once more after another job has removed the directory, which was empty.

    Raises ``NotFoundError`` if the file itself is gone, unless it has come to its destination.
    """
    try:
        await run.store.head(entry.source)
    except NotFoundError:
        if await settled.is_at(entry, dest):
            return
        raise
    run.check_lease()
    await require_place(run)
    if within(dest, [run.epoch_dir]):
        raise NotFoundError("rename", dest, "its directory is gone")
    if run.store.traits.directories:
        await run.store.mkdir(dest.rpartition("/")[0])
    await run.store.rename(entry.source, dest, etag=entry.etag, token=token)


def token_of(commit: bytes, source: str, dest: str) -> str:
    """Return the UUID that marks one rename of one job commit, the same whoever computes it."""
    text = f"{source}\0{dest}".encode("utf-8", "surrogatepass")
    hexa = blake2b(text, digest_size=16, key=commit).hexdigest()
    return f"{hexa[:8]}-{hexa[8:12]}-{hexa[12:16]}-{hexa[16:20]}-{hexa[20:]}"

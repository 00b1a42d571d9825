"""Job commit, sixth step: compare the destination with the plan."""

from __future__ import annotations

from asynccommit.commit.context import CommitContext
from asynccommit.commit.errors import NAMED
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.listed_names import CHANGED, is_odd, unlisted
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.planning.sources import gather
from asynccommit.commit.spill import Entry
from asynccommit.commit.steps.identity import identity_of
from asynccommit.errors import NotFoundError, PreconditionError, StoreError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Kind
from asynccommit.stores.tree import Ask, for_each_directory


def validates(run: CommitContext) -> bool:
    """Return whether files are compared after the renames."""
    wanted = run.options.validate
    return run.store.traits.consistent_listing if wanted is None else wanted


async def validate_output(run: CommitContext, plan: Plan) -> None:
    """Compare kind, length and etag of all files, by listings.

    On by default where a listing shows every acknowledged change; ``validate=False`` leaves it
    out, and ``validate_sample`` asks for so many files by name instead. Raises ``NotFoundError``
    or ``PreconditionError`` for the first file that differs; its text names up to twenty.
    """
    if not validates(run):
        return
    if run.options.validate_sample is not None:
        await _validate_sample(run, plan, run.options.validate_sample)
        return
    loaded = plan.loaded
    found = Fingerprints(run.options.spill_directory)
    with run.meter.timed("job_stage_optional_validate_output", len(loaded.parents)):
        # Where each etag is one more request, those of files that were there before are not asked.
        since = 0.0 if run.store.traits.whole_listings else await identity_of(run).begun_at()

        async def look(path: str, ask: Ask) -> None:
            await gather(run, path, found, loaded.etags, since=since, ask=ask)
            run.meter.step()

        try:
            places = sorted(loaded.parents)
            await for_each_directory(run.store, places, look, workers=run.workers)
            lost = loaded.outcome.missing(found)
        finally:
            found.close()
        if lost:
            await _report(run, plan, lost)


async def _validate_sample(run: CommitContext, plan: Plan, size: int) -> None:
    """Ask for some of the files by name, each of them with the same chance."""
    chosen: list[Entry] = []
    problems: list[StoreError] = []
    seen = 0
    async for entry in plan.loaded.spill.each():
        seen += 1
        place = len(chosen) if len(chosen) < size else run.host.rng.randrange(seen)
        if place < size:
            chosen[place : place + 1] = [entry]

    async def ask(entry: Entry) -> None:
        if problem := await difference(run, entry):
            problems.append(problem)
        run.meter.step()

    with run.meter.timed("job_stage_optional_validate_output", len(chosen)):
        await for_each(chosen, ask, workers=run.workers)
        _raise(problems[:NAMED], more=len(problems[NAMED:]))
        await _refuse_unlisted(run, [entry.dest for entry in chosen if is_odd(entry.dest)])


async def _report(run: CommitContext, plan: Plan, lost: set[int]) -> None:
    """Ask for each suspect by name, and raise if any is not as it should be."""
    problems: list[StoreError] = []
    more, suspects = 0, list[str]()
    async for entry in plan.loaded.spill.each():
        if fingerprint(plan.loaded.expected(entry)) not in lost:
            continue
        suspects.append(entry.dest)
        if len(problems) >= NAMED:
            more += 1
        elif problem := await difference(run, entry):
            problems.append(problem)
    _raise(problems, more)
    await _refuse_unlisted(run, suspects)


async def _refuse_unlisted(run: CommitContext, paths: list[str]) -> None:
    """Raise ``PreconditionError`` for names the server changed."""
    changed = await unlisted(run.store, paths)
    named: list[StoreError] = [PreconditionError("validate", path, CHANGED) for path in changed]
    _raise(named[:NAMED], more=len(named[NAMED:]))


def _raise(problems: list[StoreError], more: int) -> None:
    if problems:
        text = ", ".join(f"{problem.path} {problem.detail}" for problem in problems)
        first = problems[0]
        first.detail = text + (f" and {more} more" if more else "")
        raise first


async def difference(run: CommitContext, entry: Entry) -> StoreError | None:
    """Return how the destination of ``entry`` differs from what was committed."""
    try:
        info = await run.store.head(entry.dest)
    except NotFoundError:
        return NotFoundError("validate", entry.dest, "is not there")
    if info.kind is not Kind.FILE:
        return PreconditionError("validate", entry.dest, f"is a {info.kind.value}, not a file")
    if info.size != entry.size:
        text = f"has {info.size} bytes, but its manifest has {entry.size}"
        return PreconditionError("validate", entry.dest, text)
    lasting = run.store.traits.lasting
    wanted, found = lasting(entry.etag), lasting(info.etag)
    if wanted is not None and found is not None and wanted != found:
        text = f"has etag {info.etag}, but its manifest has {entry.etag}"
        return PreconditionError("validate", entry.dest, text)
    return None

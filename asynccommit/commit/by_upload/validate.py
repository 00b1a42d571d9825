"""Job commit, sixth step: compare the destination with the plan."""

from __future__ import annotations

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.plan import UploadPlan
from asynccommit.commit.errors import NAMED
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.listed_names import CHANGED, is_odd, unlisted
from asynccommit.commit.spill import Entry, Spill
from asynccommit.errors import NotFoundError, PreconditionError, StoreError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Kind
from asynccommit.stores.tree import pages

_BATCH = 4_096


async def validate_uploads(run: UploadContext, plan: UploadPlan) -> None:
    """Compare length and etag of all files, by listings.

    On by default where a listing shows every acknowledged change; ``validate=False`` leaves it
    out, and ``validate_sample`` asks for so many files by name instead. Raises ``NotFoundError``
    or ``PreconditionError`` for the first file that differs; its text names up to twenty.
    """
    wanted = run.options.validate
    if wanted is False or (wanted is None and not run.store.traits.consistent_listing):
        return
    sample = run.options.validate_sample
    total = len(plan.loaded.parents) if sample is None else min(sample, plan.made.count)
    with run.meter.timed("job_stage_optional_validate_output", total):
        if sample is not None:
            chosen = await _choose(run, plan.made, sample)
            await _ask(run, chosen, [entry.dest for entry in chosen if is_odd(entry.dest)])
        else:
            suspects = await _suspects(run, plan)
            await _ask(run, suspects, [entry.dest for entry in suspects])


async def _suspects(run: UploadContext, plan: UploadPlan) -> list[Entry]:
    directory = run.options.spill_directory
    with Fingerprints(directory) as found, Fingerprints(directory) as made:
        await for_each(
            sorted(plan.loaded.parents), lambda path: gather(run, path, found), workers=run.workers
        )
        batch: list[tuple[str, int, str | None]] = []
        async for entry in plan.made.each():
            batch.append((entry.dest, entry.size, entry.etag))
            if len(batch) == _BATCH:
                made.add(batch)
                batch = []
        made.add(batch)
        lost = made.missing(found)
    if not lost:
        return []
    return [
        entry
        async for entry in plan.made.each()
        if fingerprint((entry.dest, entry.size, entry.etag)) in lost
    ]


async def gather(run: UploadContext, path: str, found: Fingerprints, *, whole: bool = True) -> None:
    """Add the files of a directory to ``found``; etags if ``whole``."""
    try:
        async for page in pages(run.store, path or "/"):
            files = [info for info in page if not info.is_dir]
            if whole:
                found.add([(info.path, info.size, info.etag) for info in files])
            else:
                found.add([(info.path, info.size) for info in files])
    except NotFoundError:
        pass
    run.meter.step()


async def _choose(run: UploadContext, made: Spill, size: int) -> list[Entry]:
    """Return some files, each of them with the same chance."""
    chosen: list[Entry] = []
    seen = 0
    async for entry in made.each():
        seen += 1
        place = len(chosen) if len(chosen) < size else run.host.rng.randrange(seen)
        if place < size:
            chosen[place : place + 1] = [entry]
    return chosen


async def _ask(run: UploadContext, entries: list[Entry], listed: list[str]) -> None:
    """Check files by name; raise if one differs or is not ``listed``."""
    problems: list[StoreError] = []

    async def ask(entry: Entry) -> None:
        if len(problems) < NAMED and (problem := await _difference(run, entry)):
            problems.append(problem)
        run.meter.step()

    await for_each(entries, ask, workers=run.workers)
    if not problems and (changed := (await unlisted(run.store, listed))[:NAMED]):
        problems = [PreconditionError("validate", path, CHANGED) for path in changed]
    if problems:
        problems.sort(key=lambda problem: problem.path)
        first = problems[0]
        first.detail = ", ".join(f"{problem.path} {problem.detail}" for problem in problems)
        raise first


async def _difference(run: UploadContext, entry: Entry) -> StoreError | None:
    try:
        info = await run.store.head(entry.dest)
    except NotFoundError:
        return NotFoundError("validate", entry.dest, "is not there")
    if info.kind is not Kind.FILE:
        return PreconditionError("validate", entry.dest, f"is a {info.kind.value}, not a file")
    if info.size != entry.size:
        text = f"has {info.size} bytes, but its pending set has {entry.size}"
        return PreconditionError("validate", entry.dest, text)
    if None not in (info.etag, entry.etag) and info.etag != entry.etag:
        text = f"has etag {info.etag}, but was completed with {entry.etag}"
        return PreconditionError("validate", entry.dest, text)
    return None

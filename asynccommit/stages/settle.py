"""Which files an earlier owner of a commit has moved: told by what is at their destinations.

A file is known by its etag, which survives a rename. Where a manifest has none, what is there with
the right size is the file if its source is gone.
"""

from __future__ import annotations

from asynccommit.errors import NotFoundError
from asynccommit.parallel import for_each, is_there
from asynccommit.stages.fingerprints import Fingerprints, fingerprint
from asynccommit.stages.load import identity
from asynccommit.stages.plan import Plan, staged_path, untagged
from asynccommit.stages.preflight import gather
from asynccommit.stages.run import Run
from asynccommit.stages.spill import Entry
from asynccommit.store import Kind


class Settled:
    """The files that are where they belong already.

    Args:
        run: the commit under way.
        there: fingerprints of what is known to be at its destination; ``None`` for nothing.
        sure: whether a fingerprint says it all; else the source must be gone, too.
    """

    def __init__(self, run: Run, there: set[int] | None = None, *, sure: bool = True) -> None:
        self._run = run
        self._there = there or set()
        self._sure = sure

    def __bool__(self) -> bool:
        return bool(self._there)

    async def has(self, entry: Entry) -> bool:
        """Whether ``entry`` is at its destination, or where its unit is put together."""
        if fingerprint(identity(entry)) not in self._there:
            return False
        if self._sure or entry.etag is not None:
            return True
        return not await is_there(self._run.store, entry.source)

    async def is_at(self, entry: Entry, place: str) -> bool:
        """Whether what is at ``place`` is the file that ``entry`` is of."""
        try:
            info = await self._run.store.head(place)
        except NotFoundError:
            return False
        if entry.etag is None or info.etag is None:
            return info.kind is Kind.FILE and info.size == entry.size and self._run.epoch > 1
        return info.kind is Kind.FILE and info.etag == entry.etag


async def settle(run: Run, plan: Plan) -> Settled:
    """Look which files of ``plan`` are at their destinations, or where units are put together.

    One listing of each directory; nothing is changed.
    """
    found = Fingerprints(run.options.spill_directory)
    loaded = plan.loaded
    with run.timed("job_stage_settle", len(loaded.parents)):

        async def look(path: str) -> None:
            await gather(run, path, found, loaded.etags)
            if plan.unit_of(path) is not None:
                await gather_staged(run, path, found, loaded.etags)
            run.step()

        try:
            await for_each(sorted(loaded.parents), look, workers=run.workers)
            there = loaded.outcome.common(found)
        finally:
            found.close()
    plan.settled = len(there)
    return Settled(run, there, sure=not untagged(plan))


async def gather_staged(run: Run, path: str, found: Fingerprints, etags: bool | None) -> None:
    """Add what is staged for the directory ``path`` to ``found``, as if it were there."""
    place = staged_path(run.layout, run.epoch, path)
    await gather(run, place, found, etags, shown_in=path)

"""Find the files that an earlier owner of a commit has moved.

A file is known by its etag, or by what of it survives a rename. Where the etag is incomplete, or
missing in a manifest, a file of the right size counts if its source is gone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.full_etags import with_etags
from asynccommit.commit.planning.plan import Plan, staged_path, untagged
from asynccommit.commit.planning.sources import gather
from asynccommit.commit.spill import Entry
from asynccommit.commit.steps.identity import identity_of, source_print
from asynccommit.commit.steps.prior_state import without_old
from asynccommit.errors import NotFoundError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.tree import pages

Look = Callable[[str, Fingerprints], Awaitable[None]]


class Settled:
    """The files that are where they belong already.

    Args:
        run: the commit under way.
        plan: the planned changes.
        there: fingerprints of files known to be at their destinations; ``None`` for nothing.
        sources: fingerprints of existing sources; ``None`` if the first ones say it all.
    """

    def __init__(
        self,
        run: CommitContext,
        plan: Plan,
        there: set[int] | None = None,
        sources: set[int] | None = None,
    ) -> None:
        self._identity = identity_of(run)
        self._expected = plan.loaded.expected
        self._there = there or set()
        self._sources = sources

    def __bool__(self) -> bool:
        return bool(self._there)

    def has(self, entry: Entry) -> bool:
        """Return whether ``entry`` is at its destination, or in its unit's place.

        The unit's place is the directory where it is put together.
        """
        if fingerprint(self._expected(entry)) not in self._there:
            return False
        if self._sources is None or (self._identity.tells_alone and entry.etag is not None):
            return True
        return source_print(entry.source, entry.etag) not in self._sources


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


async def at_destinations(
    run: CommitContext, plan: Plan, since: float = 0.0, *, also: Look | None = None
) -> set[int]:
    """Return the fingerprints of planned files that are at their destinations.

    Args:
        run: the commit under way.
        plan: the planned changes.
        since: files that have not changed since then do not count.
        also: looks at more, for each directory that files go to.
    """
    with Fingerprints(run.options.spill_directory) as found:

        async def look(path: str) -> None:
            await gather(run, path, found, plan.loaded.etags, since=since)
            if also is not None:
                await also(path, found)

        await for_each(sorted(plan.loaded.parents), look, workers=run.workers)
        return plan.loaded.outcome.common(found)


async def sources_there(
    run: CommitContext, plan: Plan, base: str | None = None, *, contents: bool = False
) -> set[int]:
    """Return the fingerprints of unmoved sources, by listings.

    Args:
        run: the commit under way.
        plan: the planned changes.
        base: where the tasks' directories are now, if they were moved.
        contents: also return what ``content_print`` gives, where etags tell contents.
    """
    cut, lasting = len(run.layout.sources_dir), run.store.traits.lasting
    with Fingerprints(run.options.spill_directory) as found:

        async def look(path: str) -> None:
            place = path if base is None else base + path[cut:]
            with suppress(NotFoundError, PreconditionError):  # nothing, or no directory
                async for page in pages(run.store, place):
                    for info in await with_etags(run, page):
                        source = path + info.path[len(place) :]
                        found.add([(source,), (source, info.etag)])
                        if contents and (content := lasting(info.etag)):
                            found.add([(source, info.size, content)])

        await for_each(sorted(plan.loaded.sources), look, workers=run.workers)
        return found.common(found)

"""Taking back what a commit has moved, exactly that, and putting back what it had moved aside.

Repeatable: every step looks at what is there. First the tasks' directories are moved away, so that
a rename which comes late finds no source; what is taken back goes to a place of this owner, never
to where it came from, because a late rename would find it there and publish it again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    PreconditionError,
)
from asynccommit.parallel import for_each
from asynccommit.stages.directories import make_all
from asynccommit.stages.fingerprints import Fingerprints, fingerprint
from asynccommit.stages.load import identity
from asynccommit.stages.plan import (
    Aside,
    Plan,
    ancestors,
    aside_path,
    leaves,
    staged_path,
    undone_path,
    untagged,
)
from asynccommit.stages.preflight import gather
from asynccommit.stages.run import Run
from asynccommit.stages.spill import Entry
from asynccommit.stages.swap import merge
from asynccommit.store import Kind


@dataclass(slots=True)
class Undone:
    """What a rollback has done: files taken back, and things put back in their place."""

    files: int = 0
    restored: int = 0


async def fence(run: Run) -> None:
    """Move the tasks' directories away, so that no rename of them can come late."""
    for source in (run.layout.tasks_dir, run.layout.absolute_dir):
        run.check_lease()
        with suppress(NotFoundError, ExistsError):  # gone before; or made again by a straggler
            await run.store.rename(source, run.epoch_dir + source[len(run.layout.attempt_dir) :])


async def roll_back(run: Run, plan: Plan) -> Undone:
    """Undo what the commit of ``plan`` has changed under the destination."""
    undone = Undone()
    await fence(run)
    with run.timed("job_stage_roll_back", plan.loaded.files):
        await _take_back(run, plan, undone)
        await _remove_units(run, plan)
        await _remove_empty(run, plan.missing)
        asides = [*plan.replaced, *plan.aside]
        await for_each(asides, _restorer(run, undone), workers=run.workers)
    return undone


async def _take_back(run: Run, plan: Plan, undone: Undone) -> None:
    loaded, found = plan.loaded, Fingerprints(run.options.spill_directory)
    parents = sorted(loaded.parents)

    async def look(path: str) -> None:
        await gather(run, path, found, loaded.etags)

    try:
        await for_each(parents, look, workers=run.workers)
        there = loaded.outcome.common(found)
    finally:
        found.close()
    if not there:
        return
    places = {undone_path(run.layout, run.epoch, path) for path in parents}
    await make_all(run, leaves(ancestors(run.epoch_dir, places)))
    doubtful = untagged(plan)

    async def take(entry: Entry) -> None:
        run.check_lease()
        if fingerprint(identity(entry)) not in there:
            return
        if doubtful and entry.etag is None and not await _was_moved(run, entry):
            return
        place = undone_path(run.layout, run.epoch, entry.dest)
        with suppress(NotFoundError, PreconditionError):  # not ours any more
            await run.store.rename(entry.dest, place, etag=entry.etag)
            undone.files += 1
        run.step()

    await for_each(loaded.spill.entries(), take, workers=run.workers)


async def _was_moved(run: Run, entry: Entry) -> bool:
    """Whether a file that only its size tells has left the places where it was before."""
    fenced = run.epoch_dir + entry.source[len(run.layout.attempt_dir) :]
    for path in (fenced, entry.source, staged_path(run.layout, run.epoch, entry.dest)):
        with suppress(NotFoundError):
            await run.store.head(path)
            return False
    return True


async def _remove_units(run: Run, plan: Plan) -> None:
    """Remove the emptied directories of units, where what they replaced is to come back."""
    replaced = {aside.path for aside in plan.replaced}
    directories: list[str] = []
    for unit in sorted(plan.units & replaced):
        with suppress(NotFoundError):
            await run.store.head(aside_path(run.layout, run.epoch, unit))
            directories += [
                path for path in plan.unit_directories() if f"{path}/".startswith(f"{unit}/")
            ]
    await _remove_empty(run, directories)


async def _remove_empty(run: Run, directories: list[str]) -> None:
    """Remove directories that are empty, the innermost first."""
    depths: dict[int, list[str]] = {}
    for path in directories:
        depths.setdefault(path.count("/"), []).append(path)

    async def remove(path: str) -> None:
        run.check_lease()
        with suppress(NotFoundError, ExistsError, PreconditionError):
            if (await run.store.head(path)).is_dir:  # not a file, whose place it was to take
                await run.store.delete(path)

    for depth in sorted(depths, reverse=True):
        await for_each(depths[depth], remove, workers=run.workers)


def _restorer(run: Run, undone: Undone) -> Callable[[Aside], Awaitable[None]]:
    async def restore(aside: Aside) -> None:
        run.check_lease()
        place = aside_path(run.layout, run.epoch, aside.path)
        try:
            await _bring_back(run, place, aside)
            undone.restored += 1
        except NotFoundError:
            return  # it was never moved, or is back already
        run.step()

    return restore


async def _bring_back(run: Run, place: str, aside: Aside) -> None:
    """Rename what was moved aside to where it was. Raises ``NotFoundError`` if it is not aside."""
    try:
        await run.store.rename(place, aside.path, etag=aside.etag)
    except NotFoundError:
        await run.store.head(place)
        await run.store.mkdir(aside.path.rpartition("/")[0] or "/")
        await run.store.rename(place, aside.path, etag=aside.etag)
    except ExistsError:
        await run.store.head(place)
        if aside.kind is Kind.DIRECTORY:
            await merge(run, place, aside.path)
        elif aside.path != run.layout.success:  # another job's marker has its place
            raise

"""Taking back what a commit has moved, exactly that, and putting back what it had moved aside.

Repeatable: every step looks at what is there. First the tasks' directories are moved away, or the
files in them, so that a rename which comes late finds no source; what is taken back goes to a place
of its own, never to where it came from, because a late rename would find it there and publish it
again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    PreconditionError,
)
from asynccommit.parallel import for_each, is_there, list_all, remove_directory
from asynccommit.stages.checksums import restore_checksum
from asynccommit.stages.before import without_old
from asynccommit.stages.directories import make_all
from asynccommit.stages.fingerprints import Fingerprints, fingerprint
from asynccommit.stages.lease import require_place
from asynccommit.stages.plan import (
    Aside,
    Plan,
    ancestors,
    aside_path,
    displaced_path,
    leaves,
    staged_path,
    undone_path,
    untagged,
    within,
)
from asynccommit.stages.run import Run
from asynccommit.stages.settle import source_print, sources_there
from asynccommit.stages.sources import gather
from asynccommit.stages.spill import Entry
from asynccommit.stages.swap import merge
from asynccommit.stages.take_back import REFUSED, Undone, take_sources, take_versions
from asynccommit.store import Kind


async def fence(run: Run, plan: Plan, undone: Undone) -> None:
    """See that no rename of a task's file can come late: it shall find no source.

    The tasks' directories are moved away; where that keeps nothing out, every file in them that was
    never moved. What is then in the owner's place is known not to be at its destination.
    """
    if not run.store.traits.fences:
        await take_sources(run, plan, undone)
        return
    for source in run.layout.fenced(plan.loaded.tasks):
        run.check_lease()
        with suppress(NotFoundError, ExistsError):  # gone before; or made again by a straggler
            await run.store.rename(source, run.epoch_dir + source[len(run.layout.sources_dir) :])


async def roll_back(run: Run, plan: Plan) -> Undone:
    """Undo what the commit of ``plan`` has changed under the destination."""
    undone = Undone()
    await fence(run, plan, undone)
    with run.timed("job_stage_roll_back", plan.loaded.files):
        take_back = take_versions if run.store.traits.content_etags else _take_back
        await take_back(run, plan, undone)
        await _remove_units(run, plan)
        await _remove_empty(run, plan, plan.missing)
        asides = [*plan.replaced, *plan.aside]
        await for_each(asides, _restorer(run, undone), workers=run.workers)
        undone.end()
    return undone


async def _take_back(run: Run, plan: Plan, undone: Undone) -> None:
    loaded, found = plan.loaded, Fingerprints(run.options.spill_directory)
    parents = sorted(loaded.parents)

    async def look(path: str) -> None:
        await gather(run, path, found, loaded.etags)

    try:
        await for_each(parents, look, workers=run.workers)
        there = await without_old(run, plan, loaded.outcome.common(found))
    finally:
        found.close()
    if run.store.traits.fences:
        places = {undone_path(run.layout, run.place, path) for path in parents}
        await make_all(run, leaves(ancestors(run.epoch_dir, places)))
    await require_place(run)  # not only made again
    doubtful = untagged(plan)

    async def take(entry: Entry) -> None:
        run.check_lease()
        if fingerprint(loaded.expected(entry)) not in there:
            return
        if doubtful and entry.etag is None and not await _was_moved(run, entry):
            return
        await _take_known(run, entry, undone)
        run.step()

    if there:
        await for_each(loaded.spill.entries(), take, workers=run.workers)
    if len(there) < loaded.files:
        await _take_altered(run, plan, there, undone)


async def _take_known(run: Run, entry: Entry, undone: Undone) -> None:
    try:
        await _take(run, entry.dest, entry.etag, undone)
    except PreconditionError:
        return  # another's by now
    except NotFoundError:
        if await is_there(run.store, entry.dest):
            raise  # not for want of the file


async def _take(run: Run, path: str, etag: str | None, undone: Undone) -> None:
    try:
        await run.store.rename(path, undone_path(run.layout, run.place, path), etag=etag)
    except ExistsError:
        return  # taken back before: what is there now is another's
    undone.files += 1


async def _take_altered(run: Run, plan: Plan, there: set[int], undone: Undone) -> None:
    """Take back what was moved though it is not what its manifest says.

    Its source is gone, and at its destination, where nothing was before, is the same file with
    another content or size. Another file there is another's, and stays.
    """
    present = await sources_there(run, plan, run.epoch_dir)
    before = {aside.path for aside in (*plan.aside, *plan.replaced)}

    async def look(entry: Entry) -> None:
        run.check_lease()
        if fingerprint(plan.loaded.expected(entry)) in there:
            return
        if source_print(entry.source, None) in present:
            return
        try:
            info = await run.store.head(entry.dest)
        except NotFoundError:
            return  # taken back before
        if info.kind is not Kind.FILE or within(entry.dest, before):
            return
        if not _is_same(run, entry.etag, info.etag):
            run.warn(f"{entry.dest} is not what the job has moved there, and was left where it is")
            return
        run.warn(f"{entry.dest} was not what its manifest says, and was taken back")
        await _take(run, entry.dest, info.etag, undone)

    await for_each(plan.loaded.spill.entries(), look, workers=run.workers)


def _is_same(run: Run, planned: str | None, found: str | None) -> bool:
    """Whether two etags are of one file; a rename on a disk moves what was changed since, too.

    There an etag begins with the number of the file, which a change leaves as it is.
    """
    if planned is None or found is None:
        return False
    if run.store.traits.conditional_rename:
        return planned == found
    return planned.partition("-")[0] == found.partition("-")[0]


async def _was_moved(run: Run, entry: Entry) -> bool:
    """Whether a file that only its size tells has left the places where it was before."""
    fenced = run.epoch_dir + entry.source[len(run.layout.sources_dir) :]
    for path in (fenced, entry.source, staged_path(run.layout, run.place, entry.dest)):
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
            await run.store.head(aside_path(run.layout, run.place, unit))
            directories += [
                path
                for path in sorted(plan.unit_directories())
                if f"{path}/".startswith(f"{unit}/")
            ]
    await _remove_empty(run, plan, directories)


async def _remove_empty(run: Run, plan: Plan, directories: list[str]) -> None:
    """Remove directories that are empty, the innermost first.

    Where a file is to come back, the directory is moved away: a delete that comes late would take
    the file.
    """
    files = {a.path for a in (*plan.aside, *plan.replaced) if a.kind is not Kind.DIRECTORY}
    depths: dict[int, list[str]] = {}
    for path in directories:
        depths.setdefault(path.count("/"), []).append(path)

    async def remove(path: str) -> None:
        run.check_lease()
        with suppress(NotFoundError, ExistsError, PreconditionError):
            if not (await run.store.head(path)).is_dir:
                return  # a file, whose place it was to take
            if path not in files:
                await remove_directory(run.store, path)
            elif run.store.traits.fences and not await list_all(run.store, path):
                place = undone_path(run.layout, run.place, path)
                await make_all(run, [place.rpartition("/")[0]])
                await require_place(run)
                await run.store.rename(path, f"{place}.emptied")

    for depth in sorted(depths, reverse=True):
        await for_each(depths[depth], remove, workers=run.workers)


def _restorer(run: Run, undone: Undone) -> Callable[[Aside], Awaitable[None]]:
    async def restore(aside: Aside) -> None:
        run.check_lease()
        place = aside_path(run.layout, run.place, aside.path)
        if not run.store.traits.fences:
            await _take_version(run, aside, place)
        try:
            await _bring_back(run, place, aside)
            await restore_checksum(run, aside, place)
            undone.restored += 1
        except REFUSED as error:
            error.add_note(f"what belongs at {aside.path} is at {place}")
            undone.refused.append(error)
            return
        except ExistsError:
            await _keep(run, place, aside.path)
            return
        except NotFoundError:
            await require_place(run)
            await restore_checksum(run, aside, place)
            return  # it was never moved, or is back already
        run.step()

    return restore


async def _take_version(run: Run, aside: Aside, place: str) -> None:
    """Move aside what was not yet, so that it comes back as another version.

    A move of the present one, which an earlier owner has sent, could still come late. What cannot
    be moved at all, nobody moves late either.
    """
    with suppress(NotFoundError, PreconditionError, ExistsError, *REFUSED):
        await run.store.rename(aside.path, place, etag=aside.etag)


async def _bring_back(run: Run, place: str, aside: Aside) -> None:
    """Rename what was moved aside to where it was. Raises ``NotFoundError`` if it is not aside."""
    etag = aside.etag
    if run.store.traits.content_etags:
        etag = (await run.store.head(place)).etag
    try:
        await run.store.rename(place, aside.path, etag=etag)
    except NotFoundError:
        await run.store.head(place)
        await run.store.mkdir(aside.path.rpartition("/")[0] or "/")
        await run.store.rename(place, aside.path, etag=etag)
    except ExistsError:
        await run.store.head(place)
        if aside.kind is Kind.DIRECTORY:
            await merge(run, place, aside.path, keep=_keep)
        elif aside.path != run.layout.success:  # another job's marker has its place
            raise


async def _keep(run: Run, place: str, path: str) -> None:
    """Move what belongs at ``path`` to where no clean-up deletes it: something else is there now.

    Without this, neither a resume nor a rollback could end the commit before somebody had removed
    what took the place, and every later job would be refused.
    """
    kept = displaced_path(run.layout, run.commit_id, path)
    await make_all(run, [kept.rpartition("/")[0]] if run.store.traits.directories else [])
    await run.store.rename(place, kept)
    run.warn(f"{path} was written by somebody else meanwhile and stays; what it was is at {kept}")

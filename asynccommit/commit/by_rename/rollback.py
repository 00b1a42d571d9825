"""Taking back what a commit has moved, exactly that, and putting back what it had moved aside.

Repeatable: every step looks at what is there. First the tasks' directories are moved away, or the
files in them, so that a rename which comes late finds no source; what is taken back goes to a place
of its own, never to where it came from, because a late rename would find it there and publish it
again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from asynccommit.commit.by_rename.checksum_files import restore_checksum
from asynccommit.commit.by_rename.directories import make_all
from asynccommit.commit.by_rename.lease import require_place
from asynccommit.commit.by_rename.plan import (
    DISPLACED,
    Aside,
    Plan,
    aside_path,
    displaced_path,
    emptied_path,
)
from asynccommit.commit.by_rename.rollback_by_identity import take_files
from asynccommit.commit.by_rename.rollback_by_version import take_sources, take_versions
from asynccommit.commit.by_rename.rollback_result import REFUSED, RollbackResult, verify
from asynccommit.commit.by_rename.swap import Keep, merge
from asynccommit.commit.context import CommitContext
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError, StoreError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Kind
from asynccommit.stores.tree import list_all, list_if_there, remove_directory


async def fence(run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
    """See that no rename of a task's file can come late: it shall find no source.

    The tasks' directories are moved away; where that keeps nothing out, every file in them that was
    never moved. What is then in the owner's place is known not to be at its destination.
    """
    if not run.store.traits.fences:
        await take_sources(run, plan, undone)
        return
    for source in run.layout.fenced(plan.loaded.tasks):
        run.check_lease()
        place = run.epoch_dir + source[len(run.layout.sources_dir) :]
        with suppress(NotFoundError, ExistsError):  # gone before; or made again by a straggler
            await run.store.rename(source, place)
        if run.layout.shared and run.store.traits.pins:
            await _take_out(run, place)


async def _take_out(run: CommitContext, place: str) -> None:
    """Move what is in a task's directory to another one in the same place.

    An earlier owner may have the directory open, see ``asynccommit.stores.pinning``: it is looked
    in for     the rename that comes late, wherever it was moved. Repeatable.
    """
    opened = f"{run.epoch_dir}/opened"
    left = f"{opened}/{place.rpartition('/')[2]}"
    await run.store.mkdir(opened)
    with suppress(NotFoundError, ExistsError):  # done before, if not to its end
        await run.store.rename(place, left)
    for child in await list_if_there(run.store, left):
        run.check_lease()
        await run.store.mkdir(place)
        await run.store.rename(child.path, place + child.path[len(left) :])


async def roll_back(run: CommitContext, plan: Plan) -> RollbackResult:
    """Undo what the commit of ``plan`` has changed under the destination."""
    undone = RollbackResult()
    await fence(run, plan, undone)
    with run.timed("job_stage_roll_back", plan.loaded.files):
        take_back = take_versions if run.store.traits.content_etags else take_files
        await take_back(run, plan, undone)
        await _remove_units(run, plan)
        await _remove_empty(run, plan, plan.missing)
        asides = [*plan.replaced, *plan.aside]
        await for_each(asides, _restorer(run, undone), workers=run.workers)
        undone.end()
        await verify(run, plan, undone)
    return undone


async def _remove_units(run: CommitContext, plan: Plan) -> None:
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


async def _remove_empty(run: CommitContext, plan: Plan, directories: list[str]) -> None:
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
                place = emptied_path(run.layout, run.place, path)
                await make_all(run, [place.rpartition("/")[0]])
                await require_place(run)
                await run.store.rename(path, place)

    for depth in sorted(depths, reverse=True):
        await for_each(depths[depth], remove, workers=run.workers)


def _restorer(run: CommitContext, undone: RollbackResult) -> Callable[[Aside], Awaitable[None]]:
    async def keep(_: CommitContext, place: str, path: str) -> None:
        await _keep(run, undone, place, path)

    async def restore(aside: Aside) -> None:
        run.check_lease()
        place = aside_path(run.layout, run.place, aside.path)
        half: StoreError | None = None
        if not (run.store.traits.fences or run.withdrawn):
            half = await _take_version(run, aside, place)
        try:
            await _bring_back(run, place, aside, keep)
            await restore_checksum(run, aside, place)
            undone.restored += 1
        except REFUSED as error:
            error.add_note(f"what belongs at {aside.path} is at {place}")
            undone.refused.append(error)
            return
        except (ExistsError, PreconditionError):
            if half is None:
                await _keep(run, undone, place, aside.path)
            else:  # a move in two steps: it is copied, and may not be deleted from where it belongs
                undone.refused.append(half)
            return
        except NotFoundError:
            await require_place(run)
            await restore_checksum(run, aside, place)
            return  # it was never moved, or is back already
        run.step()

    return restore


async def _take_version(run: CommitContext, aside: Aside, place: str) -> StoreError | None:
    """Move aside what was not yet, so that it comes back as another version; return a refusal.

    A move of the present one, which an earlier owner has sent, could still come late. What cannot
    be moved at all, nobody moves late either. A commit that is withdrawn has sent none, and the job
    for which it gave way may be about to replace just this version.
    """
    try:
        with suppress(NotFoundError, PreconditionError, ExistsError):
            await run.store.rename(aside.path, place, etag=aside.etag)
    except REFUSED as error:
        return error
    return None


async def _bring_back(run: CommitContext, place: str, aside: Aside, keep: Keep) -> None:
    """Rename what was moved aside to where it was. Raises ``NotFoundError`` if it is not aside."""
    etag = aside.etag
    if run.store.traits.content_etags or run.store.traits.file_etags:
        # It has another by now: for the rename, or because whoever has it open writes to it.
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
            await merge(run, place, aside.path, keep=keep)
        elif aside.path != run.layout.success:  # another job's marker has its place
            raise


async def _keep(run: CommitContext, undone: RollbackResult, place: str, path: str) -> None:
    """Move what belongs at ``path`` to where no clean-up deletes it: something else is there now.

    Without this, neither a resume nor a rollback could end the commit before somebody had removed
    what took the place, and every later job would be refused.
    """
    kept = displaced_path(run.layout, run.commit_id, path, await _displaced(run))
    await make_all(run, [kept.rpartition("/")[0]] if run.store.traits.directories else [])
    await run.store.rename(place, kept)
    why = (
        "could not be put back: another has changed it, or has put something in its place or in "
        f"that of a directory above it. What it was is at {kept}"
    )
    undone.left.pop(path, None)  # this says more than that another's file is there
    undone.leave(path, why)


async def _displaced(run: CommitContext) -> str:
    """Return the name of the directory for such files; others may have the usual one."""
    with suppress(NotFoundError):
        if not (await run.store.head(f"{run.layout.root}/{DISPLACED}")).is_dir:
            return f"{DISPLACED}-{run.commit_id[:12]}"
    return DISPLACED

"""Undo the moves of a commit, and restore what it moved aside.

It may be repeated: every step checks the present state. First the tasks' directories are moved
away, or the files in them, so that a late rename finds no source. Undone files go to a separate
place, never back to their sources, because a late rename would publish them again; only those of a
move of existing files do, see ``refuse_in_flight``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.ownership.lease import require_place
from asynccommit.commit.planning.plan import (
    DISPLACED,
    Aside,
    Plan,
    aside_path,
    displaced_path,
    emptied_path,
)
from asynccommit.commit.steps.checksum_files import restore_checksum
from asynccommit.commit.steps.directories import is_barred
from asynccommit.commit.steps.rollback_by_identity import take_files
from asynccommit.commit.steps.rollback_by_version import take_sources, take_versions
from asynccommit.commit.steps.rollback_result import REFUSED, RollbackResult, verify
from asynccommit.commit.steps.rollback_to_sources import return_files
from asynccommit.commit.steps.swap import rename_to_free
from asynccommit.commit.trees import Keep, make_all, merge
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError, StoreError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Kind
from asynccommit.stores.tree import list_all, remove_directory


async def fence(run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
    """Ensure that a late rename of a task's file finds no source.

    The tasks' directories are moved away; where that keeps nothing out, every file in them that was
    never moved. What is then in the owner's place is known not to be at its destination.
    """
    if run.layout.outside:
        return  # such files stay; who undoes a move waits until no rename can be late
    if not run.store.traits.fences:
        await take_sources(run, plan, undone)
        return
    for source in run.layout.fenced(plan.loaded.tasks):
        run.check_lease()
        place = run.epoch_dir + source[len(run.layout.sources_dir) :]
        with suppress(NotFoundError, ExistsError):  # gone before; or made again by a straggler
            await run.store.rename(source, place)
        if run.store.traits.pins and (run.layout.shared or run.identity.epoch > 1):
            await _take_out(run, place)


async def _take_out(run: CommitContext, place: str) -> None:
    """Move the content of a task's directory to a sibling directory.

    An earlier owner may have it, or one in it, open, see ``asynccommit.stores.pinning``: a late
    rename searches that directory wherever it was moved. Repeatable.
    """
    opened = f"{run.epoch_dir}/opened"
    left = f"{opened}/{place.rpartition('/')[2]}"
    await run.store.mkdir(opened)
    with suppress(NotFoundError, ExistsError):  # done before, if not to its end
        await run.store.rename(place, left)
    await merge(run, left, place, keep=_leave)


async def _leave(_: CommitContext, path: str, place: str) -> None:
    """Leave a straggler's file where it is.

    The task's was there before, and is at ``place`` by now.
    """


async def roll_back(run: CommitContext, plan: Plan) -> RollbackResult:
    """Undo what the commit of ``plan`` has changed under the destination."""
    undone = RollbackResult()
    await fence(run, plan, undone)
    with run.meter.timed("job_stage_roll_back", plan.loaded.files):
        await _take_back(run, plan, undone)
        await _remove_units(run, plan)
        await _remove_empty(run, plan, plan.missing)
        asides = [*plan.replaced, *plan.aside]
        await for_each(asides, _restorer(run, undone), workers=run.workers)
        undone.end()
        await verify(run, plan, undone)
        await _bring_late(run, plan, undone)
        undone.warn(run)
    return undone


async def _take_back(run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
    """Take every moved file out of its destination."""
    if run.layout.outside:
        await return_files(run, plan, undone)
    elif run.store.traits.content_etags:
        await take_versions(run, plan, undone)
    else:
        await take_files(run, plan, undone)


async def _remove_units(run: CommitContext, plan: Plan) -> None:
    """Remove emptied unit directories, to restore what they replaced."""
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

    If a file must be restored, the directory is moved away: a late delete would remove the file.
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


def _keeper(run: CommitContext, undone: RollbackResult) -> Keep:
    async def keep(_: CommitContext, place: str, path: str) -> None:
        await _keep(run, undone, place, path)

    return keep


def _restorer(run: CommitContext, undone: RollbackResult) -> Callable[[Aside], Awaitable[None]]:
    keep = _keeper(run, undone)

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
            error.add_note(f"the content of {aside.path} is at {place}")
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
        run.meter.step()

    return restore


async def _bring_late(run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
    """Bring back what others wrote to a directory that came back before.

    One whose place was taken came back file by file, and who has it open still writes there.
    """
    if not run.store.traits.pins:
        return
    for aside in plan.replaced:
        if aside.kind is Kind.DIRECTORY:
            place = aside_path(run.layout, run.place, aside.path)
            await merge(run, place, aside.path, keep=_keeper(run, undone))


async def _take_version(run: CommitContext, aside: Aside, place: str) -> StoreError | None:
    """Move a replaced file aside, to restore it as a new version.

    Return a refusal, if any.

    A late move by an earlier owner could still affect the present version. A file that cannot be
    moved cannot be moved late either. A commit that is withdrawn has sent none, and the job for
    which it gave way may be about to replace just this version.
    """
    try:
        with suppress(NotFoundError, PreconditionError, ExistsError):
            await run.store.rename(aside.path, place, etag=aside.etag)
    except REFUSED as error:
        return error
    return None


async def _bring_back(run: CommitContext, place: str, aside: Aside, keep: Keep) -> None:
    """Rename a file back to its place.

    Raises ``NotFoundError`` if it was not moved aside.
    """
    etag = aside.etag
    if await is_barred(run, aside, place):
        raise NotFoundError("rename", place, "was never moved aside")
    if run.store.traits.content_etags or run.store.traits.file_etags:
        # It has another by now: for the rename, or because whoever has it open writes to it.
        etag = (await run.store.head(place)).etag
    if aside.kind is not Kind.OTHER:
        etag = run.store.traits.guarded(etag)
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
    """Move the old content of an occupied ``path`` to a permanent place.

    Otherwise neither a resume nor a rollback could end the commit until the new content was removed
    by hand, and every later job would be refused.
    """
    kept = displaced_path(run.layout, run.identity.commit_id, path, await _displaced(run))
    await make_all(run, [kept.rpartition("/")[0]] if run.store.traits.directories else [])
    kept = await rename_to_free(run, place, kept)
    why = (
        "could not be put back: another writer changed it, or wrote to its place or to that of "
        f"a directory above it. Its former content is at {kept}"
    )
    undone.left.pop(path, None)  # this says more than that another's file is there
    undone.leave(path, why)


async def _displaced(run: CommitContext) -> str:
    """Return a free directory name for displaced files."""
    with suppress(NotFoundError):
        if not (await run.store.head(f"{run.layout.root}/{DISPLACED}")).is_dir:
            return f"{DISPLACED}-{run.identity.commit_id[:12]}"
    return DISPLACED

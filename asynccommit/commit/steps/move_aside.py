"""Move obstacles and replaced data aside, and bring them back.

The checksum file of Hadoop is moved first and restored last, so that no file is ever beside
another's checksum.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.ownership.lease import require_place
from asynccommit.commit.planning.plan import DISPLACED, Aside, Plan, aside_path, displaced_path
from asynccommit.commit.steps.identity import Settled
from asynccommit.commit.steps.renamed_anew import rename_anew
from asynccommit.commit.steps.step import REFUSED, CommitStep, RollbackResult
from asynccommit.commit.trees import Keep, make_all, merge, rename_to_free
from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
)
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Kind
from asynccommit.stores.filesystem_names import checksum_of, is_checksum_data, temporary_name
from asynccommit.stores.tree import is_there

_TRIES = 5

_REPLACED = (ExistsError, PreconditionError)
"""Errors of moving a marker that another job has replaced; at the end ours replaces that one."""

_MOST = 64 * 1024 * 1024


class MoveAside(CommitStep):
    """Moves what is in the way into the job's own directory.

    Cleanup deletes it there; until then nothing is lost. Each thing is settled by itself: what an
    earlier owner has moved stays where it is.
    """

    stage = "op_rename"

    def count(self, run: CommitContext, plan: Plan) -> int | None:
        """See ``CommitStep.count``."""
        return len(plan.aside) or None

    async def do(self, run: CommitContext, plan: Plan, settled: Settled) -> None:
        """See ``CommitStep.do``."""
        await move_aside(run, plan.aside)

    async def undo(self, run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
        """See ``CommitStep.undo``.

        What ``SwapUnits`` has moved aside comes back here too, now that the directories in its
        place are gone.
        """
        asides = [*plan.replaced, *plan.aside]
        await for_each(asides, restorer(run, undone), workers=run.workers)


async def move_aside(run: CommitContext, asides: Sequence[Aside]) -> None:
    """Move obstacles and replaced data into the job's own directory."""

    async def move(aside: Aside) -> None:
        await move_one_aside(run, aside)
        run.meter.step()

    await for_each(asides, move, workers=run.workers)


async def move_one_aside(run: CommitContext, aside: Aside) -> None:
    """Move one thing aside, if it is unchanged since the commit was planned.

    Raises ``PreconditionError`` if something else has taken its place since.
    """
    run.check_lease()
    place = aside_path(run.layout, run.place, aside.path)
    if run.identity.epoch > 1 and not await _is_to_move(run, aside, place):
        return
    async with checksum_aside(run, aside, place) as moved:
        if await _move_aside(run, aside, place):
            moved.append(aside.path)


async def _move_aside(run: CommitContext, aside: Aside, place: str) -> bool:
    """Move one thing aside; return whether this request moved it.

    Also return true if nothing was left to move.
    """
    try:
        await run.store.rename(aside.path, place, etag=aside.etag)
    except NotFoundError:
        await require_place(run)
        if aside.path == run.layout.success:
            return False  # another job has taken it, and may have put its own there meanwhile
        if await is_there(run.store, aside.path):
            raise
        run.warn(f"{aside.path} should be replaced, but is gone")
        return True
    except ExistsError:
        return False  # moved before: what is there now has come since
    except PreconditionError:
        if aside.path != run.layout.success:  # another job's marker: ours replaces it at the end
            raise
    except OutcomeUnknownError:
        if not await _is_anothers(run, aside):
            raise
        return not run.store.traits.conditional_rename and await _settle(run, aside, place)
    else:
        with suppress(*_REPLACED if aside.path == run.layout.success else ()):
            await _check_moved(run, aside, place)
            return True
    return False


async def _is_anothers(run: CommitContext, aside: Aside) -> bool:
    """Return whether the marker to move is gone or replaced.

    This job or another may have moved it: either is fine.
    """
    if aside.path != run.layout.success:
        return False
    try:
        there = (await run.store.head(aside.path)).etag
        return not run.store.traits.same(there, aside.etag)
    except NotFoundError:
        return True


async def _settle(run: CommitContext, aside: Aside, place: str) -> bool:
    """Keep a request that may yet be executed from moving a later marker.

    No etag guards the marker that this job will write. So a directory takes the place to which the
    request would move it. Return whether the request was executed before, and moved what it should.
    """
    bar = f"{run.layout.job_dir}/{temporary_name(run.host.new_id())}"
    await run.store.mkdir(bar)
    try:
        for _ in range(_TRIES):
            run.check_lease()
            try:
                await run.store.rename(bar, place)
                return False
            except NotFoundError:
                await require_place(run)
                raise
            except ExistsError:
                with suppress(*_REPLACED):
                    await _check_moved(run, aside, place)
                    return True
    finally:
        with suppress(StoreError):
            await run.store.delete(bar)
    raise OutcomeUnknownError("rename", aside.path, "other jobs keep replacing it")


async def is_barred(run: CommitContext, aside: Aside, place: str) -> bool:
    """Return whether ``place`` holds the directory that ``_settle`` made.

    Raises ``NotFoundError`` if it holds nothing.
    """
    if aside.path != run.layout.success or run.store.traits.conditional_rename:
        return False
    return (await run.store.head(place)).is_dir


async def _check_moved(run: CommitContext, aside: Aside, place: str) -> None:
    """Check that the intended content was moved.

    The rename itself cannot check this on some stores.

    Raises ``PreconditionError`` after it has been put back.
    """
    if run.store.traits.conditional_rename or aside.kind is Kind.DIRECTORY:
        return
    if (await run.store.head(place)).etag != aside.etag:
        await run.store.rename(place, aside.path)
        raise PreconditionError("rename", aside.path, "has changed since the commit was planned")


async def _is_to_move(run: CommitContext, aside: Aside, place: str) -> bool:
    """Return whether something remains to be moved aside.

    An earlier owner may not have moved it, or only partly if the move takes two steps.
    """
    moved = await is_there(run.store, place)
    if moved and await is_barred(run, aside, place):
        return False
    if moved and run.store.traits.fences:
        await _check_moved(run, aside, place)
        return False
    try:
        info = await run.store.head(aside.path)
    except NotFoundError:
        return not moved  # the rename says so once more, and what it means
    same = run.store.traits.same(info.etag, aside.etag)
    if moved:
        return same
    if not (info.kind is aside.kind and same) and aside.kind is not Kind.DIRECTORY:
        if aside.path == run.layout.success:
            return False
        raise PreconditionError("rename", aside.path, "has changed since the commit was planned")
    return True


def keeper(run: CommitContext, undone: RollbackResult) -> Keep:
    """Return what keeps old content whose place is taken."""

    async def keep(_: CommitContext, place: str, path: str) -> None:
        await _keep(run, undone, place, path)

    return keep


def restorer(run: CommitContext, undone: RollbackResult) -> Callable[[Aside], Awaitable[None]]:
    """Return what brings back a thing that was moved aside."""
    keep = keeper(run, undone)

    async def restore(aside: Aside) -> None:
        run.check_lease()
        place = aside_path(run.layout, run.place, aside.path)
        half: StoreError | None = None
        if not (run.store.traits.fences or run.promise.withdrawn):
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
    if run.store.traits.rename_keeps_version and aside.kind is Kind.FILE:
        await rename_anew(run.store, place, aside.path, etag)
        return
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


@asynccontextmanager
async def checksum_aside(run: CommitContext, aside: Aside, place: str) -> AsyncIterator[list[str]]:
    """Move a file's checksum aside; restore it if the file is not moved.

    Args:
        run: the commit under way.
        aside: the file that the block moves aside.
        place: the place that it is moved to.

    Yields a list; the block appends to it once the file has been moved.
    """
    moved: list[str] = []
    if not _has_one(run, aside):
        yield moved
        return
    taken = await _move(run, aside.path, place)
    try:
        yield moved
    finally:
        if taken and not moved:
            await _move(run, place, aside.path)


async def restore_checksum(run: CommitContext, aside: Aside, place: str) -> None:
    """Put back the checksum of a file that was moved aside with it."""
    if _has_one(run, aside):
        await _move(run, place, aside.path)


def _has_one(run: CommitContext, aside: Aside) -> bool:
    """Return whether a checksum may be beside a file; never for the marker.

    The marker's checksum is deleted when the marker is replaced.
    """
    known = run.store.traits.checksums and aside.kind is Kind.FILE
    return known and aside.path != run.layout.success


async def _move(run: CommitContext, path: str, place: str) -> bool:
    """Move the checksum of ``path`` beside ``place``; false if there is none."""
    with suppress(NotFoundError, ExistsError):
        if await _is_checksum(run, checksum_of(path)):
            await run.store.rename(checksum_of(path), checksum_of(place))
            return True
    return False


async def _is_checksum(run: CommitContext, path: str) -> bool:
    """Return whether a file is a checksum by its content, too."""
    try:
        data = await run.store.get(path, _MOST)
    except RejectedError:  # that of a file of gigabytes, and too long to look at
        return True
    except (PreconditionError, DeniedError):  # a directory or link; a file of somebody else
        return False
    return is_checksum_data(data[:8], len(data))

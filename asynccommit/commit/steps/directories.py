"""Job commit, fourth step: move obstacles aside, create directories."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.ownership.lease import require_place
from asynccommit.commit.paths import ancestors
from asynccommit.commit.planning.plan import Aside, Plan, aside_path
from asynccommit.commit.steps.checksum_files import checksum_aside
from asynccommit.commit.trees import make_all
from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StoreError,
)
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Kind
from asynccommit.stores.filesystem_names import temporary_name
from asynccommit.stores.tree import is_there, remove_directory

_TRIES = 5
_REPLACED = (ExistsError, PreconditionError)
"""Errors of moving a marker that another job has replaced; at the end ours replaces that one."""


async def move_aside(run: CommitContext, asides: Sequence[Aside]) -> None:
    """Move obstacles and replaced data into the job's own directory.

    Cleanup deletes them there; until then nothing is lost. Things that were moved before stay where
    they are.
    """
    if not asides:
        return
    with run.meter.timed("op_rename", len(asides)):

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


async def make_directories(run: CommitContext, plan: Plan) -> None:
    """Create every missing directory, in parallel; parents with their leaves."""
    with run.meter.timed("job_stage_create_target_dirs", len(plan.make)):
        await make_all(run, plan.make)


async def make_early(run: CommitContext, plan: Plan) -> None:
    """Create the missing directories early, beside other requests.

    Errors are left to ``make_directories``, which then makes them.
    """
    with suppress(StoreError):
        await make_directories(run, plan)
        plan.made = True


async def remove_early(run: CommitContext, plan: Plan) -> None:
    """Remove empty directories that ``make_early`` has made."""
    depths: dict[int, list[str]] = {}
    for path in plan.missing if plan.made else ():
        depths.setdefault(path.count("/"), []).append(path)

    async def remove(path: str) -> None:
        with suppress(StoreError):
            await remove_directory(run.store, path)

    for depth in sorted(depths, reverse=True):
        await for_each(depths[depth], remove, workers=run.workers)


async def remove_emptied(run: CommitContext, plan: Plan) -> None:
    """Remove directories that held only replaced files, innermost first.

    Where directories are moved aside whole, they are gone with what they held. The job is
    committed: that one of them stays is worth a warning and no more.
    """
    depths: dict[int, list[str]] = {}
    for path in sorted(_emptied(run, plan)):
        depths.setdefault(path.count("/"), []).append(path)

    async def remove(path: str) -> None:
        run.check_lease()
        with suppress(NotFoundError, ExistsError):
            await remove_directory(run.store, path)

    try:
        for depth in sorted(depths, reverse=True):
            await for_each(depths[depth], remove, workers=run.workers)
    except StoreError as error:
        run.warn(f"an empty directory of the replaced output remains: {error}")


def _emptied(run: CommitContext, plan: Plan) -> set[str]:
    if run.store.traits.fences:
        return set()
    root, loaded = run.layout.root, plan.loaded
    held = {aside.path.rpartition("/")[0] for aside in plan.replaced}
    inside = {path for path in held if path.startswith(f"{root}/")}
    needed = ancestors("", loaded.parents | loaded.directories) | {root, run.layout.dest.path}
    return (ancestors(root, inside) | held) - needed - {""}

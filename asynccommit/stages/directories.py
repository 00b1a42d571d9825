"""Job commit, fourth step: move aside what is in the way, and make the directories."""

from __future__ import annotations

from collections.abc import Sequence

from asynccommit.errors import ExistsError, NotFoundError, PreconditionError
from asynccommit.parallel import for_each
from asynccommit.stages.plan import (
    Aside,
    Plan,
    ancestors,
    aside_path,
    leaves,
    staged_path,
)
from asynccommit.stages.run import Run
from asynccommit.store import Kind


async def move_aside(run: Run, asides: Sequence[Aside]) -> None:
    """Move what is in the way or replaced below the job's own directory, where cleanup deletes it.

    Until then nothing of it is lost, whatever happens. What was moved before stays where it is.
    """
    if not asides:
        return
    with run.timed("op_rename", len(asides)):
        places = [aside_path(run.layout, run.epoch, aside.path) for aside in asides]
        parents = {place.rpartition("/")[0] for place in places}
        await make_all(run, leaves(ancestors(run.epoch_dir, parents)))

        async def move(aside: Aside) -> None:
            await move_one_aside(run, aside)
            run.step()

        await for_each(asides, move, workers=run.workers)


async def move_one_aside(run: Run, aside: Aside) -> None:
    """Move one thing aside, if it is what it was when the commit was planned.

    Raises ``PreconditionError`` if something else has taken its place since.
    """
    run.check_lease()
    place = aside_path(run.layout, run.epoch, aside.path)
    if run.epoch > 1 and not await _is_to_move(run, aside, place):
        return
    try:
        await run.store.rename(aside.path, place, etag=aside.etag)
    except NotFoundError:
        if aside.path != run.layout.success:
            run.warn(f"{aside.path} was to be replaced and is gone")
    except ExistsError:
        return  # moved before: what is there now has come since
    except PreconditionError:
        if aside.path != run.layout.success:  # another job's marker: ours replaces it at the end
            raise


async def _is_to_move(run: Run, aside: Aside, place: str) -> bool:
    """Whether an earlier owner has not moved it yet."""
    try:
        await run.store.head(place)
    except NotFoundError:
        pass
    else:
        return False
    try:
        info = await run.store.head(aside.path)
    except NotFoundError:
        return True  # the rename says so once more, and what it means
    if (info.kind, info.etag) != (aside.kind, aside.etag) and aside.kind is not Kind.DIRECTORY:
        if aside.path == run.layout.success:
            return False
        raise PreconditionError("rename", aside.path, "is not what was to be replaced any more")
    return True


async def make_directories(run: Run, plan: Plan) -> None:
    """Make every directory that is missing, in parallel; parents come with their leaves.

    So are the directories in which new units are put together.
    """
    staged = [staged_path(run.layout, run.epoch, path) for path in plan.unit_directories()]
    wanted = [*plan.make, *leaves(staged)]
    with run.timed("job_stage_create_target_dirs", len(wanted)):
        await make_all(run, wanted)


async def make_all(run: Run, paths: Sequence[str]) -> None:
    """Make directories, in parallel."""

    async def make(path: str) -> None:
        run.check_lease()
        await run.store.mkdir(path)
        run.step()

    await for_each(paths, make, workers=run.workers)

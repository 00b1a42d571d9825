"""Job commit, fourth step: move aside what is replaced, and make the directories."""

from __future__ import annotations

from asynccommit.errors import NotFoundError
from asynccommit.parallel import for_each
from asynccommit.stages.preflight import Plan, ancestors, leaves
from asynccommit.stages.run import Run


async def move_aside(run: Run, plan: Plan) -> None:
    """Move what is to be replaced below the job's own directory, where cleanup deletes it.

    Until then nothing of it is lost, whatever happens.
    """
    if not plan.aside:
        return
    with run.timed("op_rename", len(plan.aside)):
        places = {path: aside_path(run, path) for path in plan.aside}
        parents = {place.rpartition("/")[0] for place in places.values()}
        await for_each(
            leaves(ancestors(run.layout.attempt_dir, parents)), run.store.mkdir, workers=run.workers
        )

        async def move(path: str) -> None:
            try:
                await run.store.rename(path, places[path])
            except NotFoundError:
                run.warn(f"{path} was to be replaced and is gone")
            run.step()

        await for_each(plan.aside, move, workers=run.workers)


def aside_path(run: Run, path: str) -> str:
    """Return where ``path`` is moved to; what is not below the destination has its own place."""
    root = run.layout.root
    if path.startswith(root + "/"):
        return f"{run.layout.replaced}/in{path[len(root) :]}"
    return f"{run.layout.replaced}/out{path}"


async def make_directories(run: Run, plan: Plan) -> None:
    """Make every directory that is missing, in parallel; parents come with their leaves."""
    with run.timed("job_stage_create_target_dirs", len(plan.make)):

        async def make(path: str) -> None:
            await run.store.mkdir(path)
            run.step()

        await for_each(plan.make, make, workers=run.workers)

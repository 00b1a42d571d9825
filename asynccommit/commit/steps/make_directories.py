"""Make the missing directories, and remove those that nothing is in."""

from __future__ import annotations

from contextlib import suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.ownership.lease import require_place
from asynccommit.commit.paths import ancestors
from asynccommit.commit.planning.plan import Plan, emptied_path
from asynccommit.commit.steps.identity import Settled
from asynccommit.commit.steps.step import CommitStep, RollbackResult
from asynccommit.commit.trees import make_all
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError, StoreError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Kind
from asynccommit.stores.tree import list_all, remove_directory


class MakeDirectories(CommitStep):
    """Makes every missing directory, in parallel; parents with their leaves.

    Nothing is settled: a directory that exists is made again without harm.
    """

    stage = "job_stage_create_target_dirs"

    def count(self, run: CommitContext, plan: Plan) -> int | None:
        """See ``CommitStep.count``."""
        return None if plan.made else len(plan.make)

    async def do(self, run: CommitContext, plan: Plan, settled: Settled) -> None:
        """See ``CommitStep.do``."""
        await make_all(run, plan.make)

    async def undo(self, run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
        """See ``CommitStep.undo``.

        A directory that is not empty stays.
        """
        await remove_empty(run, plan, plan.missing)


async def make_early(run: CommitContext, plan: Plan) -> None:
    """Create the missing directories early, beside other requests.

    Errors are left to ``MakeDirectories``, which then makes them.
    """
    with suppress(StoreError):
        with run.meter.timed(MakeDirectories.stage, len(plan.make)):
            await make_all(run, plan.make)
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


async def remove_empty(run: CommitContext, plan: Plan, directories: list[str]) -> None:
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

"""Job commit: move whole directories where nothing exists.

A directory that is missing at the destination need not be created and filled: one task's directory
is moved there, and files of other tasks follow one by one. Before a directory is published, it is
moved to the owner's directory and listed there, where no task writes. So a file that a task has
added or replaced since its commit is never published with it.

Jobs of FileOutputCommitter list the directory where it is: Hadoop's class must find what it has not
published.

Where a process can have a directory open (``Traits.handles``) none is moved: it could go on writing
there, in the table.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from hashlib import blake2b

from asynccommit.commit.context import CommitContext
from asynccommit.commit.ownership.lease import require_place
from asynccommit.commit.paths import above, leaves
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.planning.whole_directories import (
    CarriedTree,
    base_of,
    choose,
    print_of,
    with_prints,
)
from asynccommit.commit.steps.identity import Settled
from asynccommit.commit.steps.step import CommitStep, RollbackResult
from asynccommit.errors import ExistsError, NotFoundError, RejectedError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import list_all, list_if_there, walk

_HELD = "held-"
_REFUSED = (ExistsError, NotFoundError, RejectedError)  # an overlay renames files alone


class RenameDirectories(CommitStep):
    """Moves whole directories, and marks their files in the plan.

    Directories that were created meanwhile, or hold unplanned files, are merged file by file.
    """

    stage = "job_stage_rename_directories"

    def count(self, run: CommitContext, plan: Plan) -> int | None:
        """See ``CommitStep.count``."""
        return None if plan.made else len(choose(run, plan)) or None

    async def settle(self, run: CommitContext, plan: Plan, settled: Settled) -> Settled:
        """See ``CommitStep.settle``.

        The files of a published directory are settled one by one.
        """
        await put_back(run, plan)
        return settled

    async def do(self, run: CommitContext, plan: Plan, settled: Settled) -> None:
        """See ``CommitStep.do``."""

        async def move(tree: CarriedTree) -> None:
            await _move(run, plan, tree)
            run.meter.step()

        chosen = await with_prints(run, plan, choose(run, plan))
        await for_each(chosen, move, workers=run.workers)
        plan.make = _still_to_make(plan)

    async def fence(self, run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
        """See ``CommitStep.fence``.

        A directory that is held goes back, to be fenced with its task.
        """
        await put_back(run, plan)

    async def undo(self, run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
        """See ``CommitStep.undo``.

        ``RenameFiles`` undoes the files, whichever way they came.
        """


async def put_back(run: CommitContext, plan: Plan) -> None:
    """Return the directories that an earlier owner took and did not publish.

    What a task has written to the place of one since is moved away.
    """
    held = [info for info in await list_if_there(run.store, run.epoch_dir) if _is_held(info)]
    if not held:
        return
    base = len(base_of(run))
    sources = {path for path in plan.loaded.sources if path.startswith(f"{base_of(run)}/")}
    inside = sources | {parent for path in sources for parent in above(path) if len(parent) > base}
    places = {_place(run, path): path for path in inside}
    for info in held:
        if info.path in places:
            await _give_back(run, info.path, places[info.path])


def _is_held(info: Info) -> bool:
    return info.is_dir and info.path.rpartition("/")[2].startswith(_HELD)


def _still_to_make(plan: Plan) -> list[str]:
    """Return the missing directories that were not moved."""
    there = plan.came | {parent for path in plan.came for parent in above(path)}
    return leaves([path for path in plan.missing if path not in there])


async def _move(run: CommitContext, plan: Plan, tree: CarriedTree) -> None:
    """Move a directory of a task to its destination.

    One that is not as planned, or whose destination exists, stays with its task.
    """
    place = tree.source
    if not run.layout.shared:
        place = _place(run, tree.source)
        if not await _rename(run, tree.source, place):
            return
    if await _is_as_planned(run, plan, tree, place) and await _rename(run, place, tree.dest):
        plan.carried.update(tree.sources)
        run.count_renamed(tree.files, 0)
        cut = len(tree.source)
        plan.came.update({tree.dest + path[cut:] for path in tree.sources})
    elif place != tree.source:
        await _give_back(run, place, tree.source)


async def _rename(run: CommitContext, source: str, dest: str) -> bool:
    run.check_lease()
    try:
        await run.store.rename(source, dest)
    except _REFUSED:
        return False
    return True


def _place(run: CommitContext, source: str) -> str:
    """Return where the owner holds a task's directory."""
    name = blake2b(source.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{run.epoch_dir}/{_HELD}{name}"


async def _give_back(run: CommitContext, place: str, source: str) -> None:
    """Rename a directory to where its task has left it."""
    run.check_lease()
    try:
        await run.store.rename(place, source)
    except ExistsError:  # its task still writes
        with suppress(NotFoundError):
            await run.store.rename(source, f"{run.epoch_dir}/late-{run.host.new_id()}")
        await run.store.rename(place, source)
    except NotFoundError:
        await require_place(run)
        raise


async def _is_as_planned(run: CommitContext, plan: Plan, tree: CarriedTree, place: str) -> bool:
    """Return whether a task's directory has exactly the files that were read."""
    counts, prints, cut = defaultdict[str, int](int), defaultdict[str, int](int), len(place)
    inner: list[str] = []

    def is_fit(info: Info) -> bool:
        if info.is_dir and tree.dest + info.path[cut:] in tree.wanted:
            return True
        if info.kind is not Kind.FILE:
            return False
        source = tree.source + info.path[cut:]
        parent = source.rpartition("/")[0]
        counts[parent] += 1
        prints[parent] ^= print_of(plan, source, info.size, info.etag)
        return True

    with suppress(NotFoundError):
        for info in await list_all(run.store, place):
            if not is_fit(info):
                return False
            if info.is_dir:
                inner.append(info.path)
        async for info in walk(run.store, *inner):
            if not is_fit(info):
                return False
    return (counts, prints) == (tree.sources, tree.prints)

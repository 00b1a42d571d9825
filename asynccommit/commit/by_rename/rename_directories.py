"""Job commit: move whole directories where nothing exists.

A directory that is missing at the destination need not be created and filled: one task's directory
is moved there, and files of other tasks follow one by one. This requires that everything in the
task's directory is known to belong to the job, which is checked again just before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from operator import xor

from asynccommit.commit.by_rename.plan import Plan
from asynccommit.commit.context import CommitContext
from asynccommit.commit.fingerprints import fingerprint
from asynccommit.commit.full_etags import with_etags
from asynccommit.commit.job.paths import above, leaves
from asynccommit.errors import ExistsError, NotFoundError, RejectedError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info
from asynccommit.stores.tree import list_if_there

_WORTH = 2
"""Files for each directory below which moving a directory saves nothing: it is listed again."""


@dataclass(slots=True)
class _Tree:
    """One task's output for a missing directory."""

    source: str
    sources: dict[str, int] = field(default_factory=dict)

    @property
    def files(self) -> int:
        """Return the number of files in the tree."""
        return sum(self.sources.values())


async def carry(run: CommitContext, plan: Plan) -> None:
    """Move whole directories, and mark their files in ``plan``.

    Directories that were created meanwhile, or hold unplanned files, are merged file by file.
    """
    if plan.made or not (chosen := _choose(run, plan)):
        return
    with run.meter.timed("job_stage_rename_directories", len(chosen)):

        async def move(item: tuple[str, _Tree]) -> None:
            dest, tree = item
            if await _move(run, plan, tree, dest):
                plan.carried.update(tree.sources)
                run.renamed += tree.files
                cut = len(tree.source)
                plan.came.update({dest + path[cut:] for path in tree.sources})
            run.meter.step()

        await for_each(sorted(chosen.items()), move, workers=run.workers)
    plan.make = _still_to_make(plan)


def carries(run: CommitContext, plan: Plan) -> bool:
    """Return whether whole directories are to be moved."""
    return bool(_choose(run, plan))


def _still_to_make(plan: Plan) -> list[str]:
    """Return the missing directories that were not moved."""
    there = plan.came | {parent for path in plan.came for parent in above(path)}
    return leaves([path for path in plan.missing if path not in there])


def _choose(run: CommitContext, plan: Plan) -> dict[str, _Tree]:
    """Return the task directory with most files, by missing directory."""
    if plan.units or plan.replaced or not run.store.traits.atomic_directory_rename:
        return {}
    missing = set(plan.missing)
    found: dict[tuple[str, str], _Tree] = {}
    base, root = len(run.layout.sources_dir) + 1, run.layout.root
    for source, files in plan.loaded.counts.items():
        task, _, name = source[base:].partition("/")
        if name and (top := _top(f"{root}/{name}", missing)) is not None:
            start = f"{run.layout.sources_dir}/{task}{top[len(root) :]}"
            found.setdefault((top, start), _Tree(start)).sources[source] = files
    best: dict[str, _Tree] = {}
    for (top, _), tree in sorted(found.items()):
        worth = tree.files > _WORTH * len(tree.sources)
        if worth and (top not in best or tree.files > best[top].files):
            best[top] = tree
    return best


def _top(path: str, missing: set[str]) -> str | None:
    """Return the outermost missing directory of ``path`` and its parents."""
    top = None
    while path in missing:
        top, path = path, path.rpartition("/")[0]
    return top


async def _move(run: CommitContext, plan: Plan, tree: _Tree, dest: str) -> bool:
    if not await _is_as_planned(run, plan, tree):
        return False
    run.check_lease()
    try:
        await run.store.rename(tree.source, dest)
    except (ExistsError, NotFoundError, RejectedError):  # an overlay renames files alone
        return False
    return True


async def _is_as_planned(run: CommitContext, plan: Plan, tree: _Tree) -> bool:
    """Return whether a task's directory has exactly the files that were read."""
    pending, seen = [tree.source], 0
    while pending:
        path = pending.pop()
        listing = await list_if_there(run.store, path)
        inside = [info.path for info in listing if info.is_dir]
        files = await with_etags(run, [info for info in listing if not info.is_dir])
        if len(files) != tree.sources.get(path, 0):
            return False
        if _print_of(files) != plan.loaded.contents.get(path, 0):
            return False
        seen += path in tree.sources
        pending += inside
    return seen == len(tree.sources)


def _print_of(files: Iterable[Info]) -> int:
    """Return one fingerprint of files in any order.

    ``Loaded.contents`` has the same form.
    """
    return reduce(xor, (fingerprint((info.path, info.size, info.etag)) for info in files), 0)

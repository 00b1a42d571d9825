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
from collections.abc import Iterable, Set
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b

from asynccommit.commit.by_rename.lease import require_place
from asynccommit.commit.by_rename.plan import Plan
from asynccommit.commit.context import CommitContext
from asynccommit.commit.fingerprints import fingerprint
from asynccommit.commit.job.paths import above, leaves
from asynccommit.errors import ExistsError, NotFoundError, RejectedError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import list_all, list_if_there, walk

WORTH = 2
"""Requests for each directory below which moving it saves nothing: it is listed again."""
_REQUESTS = 3
"""Number of requests for a directory: to the owner, a listing, to its destination."""
LEAST = 100
"""Number of requests to save. Fewer renames, sent together, end before three requests in a row."""
_HELD = "held-"
_REFUSED = (ExistsError, NotFoundError, RejectedError)  # an overlay renames files alone


@dataclass(slots=True, eq=False)
class _Tree:
    """One task's output for a missing directory.

    Attributes:
        source: the task's directory.
        dest: the missing directory.
        wanted: every directory that the job makes.
        sources: number of files by directory in ``source``.
        prints: one fingerprint of these files by directory.
    """

    source: str
    dest: str
    wanted: Set[str]
    sources: dict[str, int] = field(default_factory=dict)
    prints: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def files(self) -> int:
        """Return the number of files in the tree."""
        return sum(self.sources.values())

    @property
    def saves(self) -> int:
        """Return the number of requests that moving it saves."""
        return self.files - len(self.sources) - _REQUESTS


async def carry(run: CommitContext, plan: Plan) -> None:
    """Move whole directories, and mark their files in ``plan``.

    Directories that were created meanwhile, or hold unplanned files, are merged file by file.
    """
    if plan.made or not (chosen := await _with_prints(run, plan, _choose(run, plan))):
        return

    async def move(tree: _Tree) -> None:
        await _move(run, plan, tree)
        run.meter.step()

    with run.meter.timed("job_stage_rename_directories", len(chosen)):
        await for_each(chosen, move, workers=run.workers)
    plan.make = _still_to_make(plan)


def carries(run: CommitContext, plan: Plan) -> bool:
    """Return whether whole directories are to be moved."""
    return bool(_choose(run, plan))


def count_new(run: CommitContext, plan: Plan) -> int:
    """Return the number of directories that are made, not moved."""
    came = {
        tree.dest + source[len(tree.source) :]
        for tree in _choose(run, plan)
        for source in tree.sources
    }
    there = came | {parent for path in came for parent in above(path)}
    return sum(path not in there and plan.unit_of(path) is None for path in plan.missing)


async def put_back(run: CommitContext, plan: Plan) -> None:
    """Return the directories that an earlier owner took and did not publish.

    What a task has written to the place of one since is moved away.
    """
    held = [info for info in await list_if_there(run.store, run.epoch_dir) if _is_held(info)]
    if not held:
        return
    base = len(_base(run))
    sources = {path for path in plan.loaded.sources if path.startswith(f"{_base(run)}/")}
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


def _base(run: CommitContext) -> str:
    """Return the parent of the directories with the tasks' output."""
    return run.layout.sources_dir if run.layout.shared else run.layout.tasks_dir


def _choose(run: CommitContext, plan: Plan) -> list[_Tree]:
    """Return the task directory with most files of each missing directory.

    The list is empty if that saves too few requests, or if only some files have etags.
    """
    if plan.units or plan.replaced or not plan.missing or not _can(run, plan):
        return []
    most = max(plan.loaded.sources.values(), default=0)
    if not run.layout.shared and len(plan.missing) * (most - 1) < LEAST:
        return []  # found without a look at each directory
    best: dict[str, _Tree] = {}
    for tree in _trees(run, plan):
        worth = tree.files > WORTH * len(tree.sources)
        if worth and (tree.dest not in best or tree.files > best[tree.dest].files):
            best[tree.dest] = tree
    chosen = [best[dest] for dest in sorted(best)]
    return chosen if run.layout.shared or sum(tree.saves for tree in chosen) >= LEAST else []


def _can(run: CommitContext, plan: Plan) -> bool:
    traits = run.store.traits
    first = run.identity.epoch <= 1  # later owners find directories that are moved in part
    names = traits.fences and traits.whole_listings and not traits.handles
    return names and first and plan.loaded.etags is not None


def _trees(run: CommitContext, plan: Plan) -> Iterable[_Tree]:
    missing, found = set(plan.missing), dict[tuple[str, str], _Tree]()
    start, root = _base(run), run.layout.root
    inside, cut = f"{start}/", len(start) + 1
    for source, files in plan.loaded.sources.items():
        if not source.startswith(inside):
            continue
        task, _, name = source[cut:].partition("/")
        if name and (top := _top(f"{root}/{name}", missing)) is not None:
            place = f"{start}/{task}{top[len(root) :]}"
            found.setdefault((top, place), _Tree(place, top, missing)).sources[source] = files
    return [tree for _, tree in sorted(found.items())]


def _top(path: str, missing: set[str]) -> str | None:
    """Return the outermost missing directory of ``path`` and its parents."""
    top = None
    while path in missing:
        top, path = path, path.rpartition("/")[0]
    return top


async def _with_prints(run: CommitContext, plan: Plan, trees: list[_Tree]) -> list[_Tree]:
    """Return the trees, fingerprints added, whose files keep their names."""
    trees_of = {source: tree for tree in trees for source in tree.sources}
    other = set[str]()
    if trees:
        async for entry in plan.loaded.spill.each():
            parent = entry.source.rpartition("/")[0]
            if (tree := trees_of.get(parent)) is None:
                continue
            if entry.dest != tree.dest + entry.source[len(tree.source) :]:
                other.add(tree.source)
            tree.prints[parent] ^= _print(plan, entry.source, entry.size, entry.etag)
    return [tree for tree in trees if tree.source not in other]


def _print(plan: Plan, path: str, size: int, etag: str | None) -> int:
    return fingerprint((path, size, etag if plan.loaded.etags else None))


async def _move(run: CommitContext, plan: Plan, tree: _Tree) -> None:
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
        run.renamed += tree.files
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


async def _is_as_planned(run: CommitContext, plan: Plan, tree: _Tree, place: str) -> bool:
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
        prints[parent] ^= _print(plan, source, info.size, info.etag)
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

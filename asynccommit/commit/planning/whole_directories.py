"""Choose the directories that are moved as a whole.

A directory that is missing at the destination need not be created and filled: one task's directory
is moved there, and files of other tasks follow one by one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field

from asynccommit.commit.context import CommitContext
from asynccommit.commit.fingerprints import fingerprint
from asynccommit.commit.paths import above
from asynccommit.commit.planning.plan import Plan
from asynccommit.options.job import Prefer
from asynccommit.stores.prices import Prices, prices_of

WORTH = 2
"""Requests for each directory below which moving it saves nothing: it is listed again."""
_REQUESTS = 3
"""Number of requests for a directory: to the owner, a listing, to its destination."""
_RENAMES = 2
"""Number of those that rename it: an owner of a job that shares its directory needs one."""
LEAST = 100
"""Number of requests to save. Fewer renames, sent together, end before three requests in a row."""


@dataclass(slots=True, eq=False)
class CarriedTree:
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

    def is_cheap(self, prices: Prices, renames: int) -> bool:
        """Return whether moving it by so many renames costs less than its files."""
        whole = renames * prices.rename_directory + prices.list
        return whole < self.files * prices.rename + len(self.sources) * prices.write

    @property
    def saves(self) -> int:
        """Return the number of requests that moving it saves."""
        return self.files - len(self.sources) - _REQUESTS


def carries(run: CommitContext, plan: Plan) -> bool:
    """Return whether whole directories are to be moved."""
    return bool(choose(run, plan))


def count_new(run: CommitContext, plan: Plan) -> int:
    """Return the number of directories that are made, not moved."""
    came = {
        tree.dest + source[len(tree.source) :]
        for tree in choose(run, plan)
        for source in tree.sources
    }
    there = came | {parent for path in came for parent in above(path)}
    return sum(path not in there and plan.unit_of(path) is None for path in plan.missing)


def base_of(run: CommitContext) -> str:
    """Return the parent of the directories with the tasks' output."""
    return run.layout.sources_dir if run.layout.shared else run.layout.tasks_dir


def choose(run: CommitContext, plan: Plan) -> list[CarriedTree]:
    """Return the task directory with most files of each missing directory.

    The list is empty if that saves too few requests, or if only some files have etags.
    """
    if plan.units or plan.replaced or not plan.missing or not _can(run, plan):
        return []
    most = max(plan.loaded.sources.values(), default=0)
    if not run.layout.shared and len(plan.missing) * (most - 1) < LEAST:
        return []  # found without a look at each directory
    best: dict[str, CarriedTree] = {}
    is_cheap = _cheapness(run)
    for tree in _trees(run, plan):
        worth = tree.files > WORTH * len(tree.sources) and is_cheap(tree)
        if worth and (tree.dest not in best or tree.files > best[tree.dest].files):
            best[tree.dest] = tree
    chosen = [best[dest] for dest in sorted(best)]
    return chosen if run.layout.shared or sum(tree.saves for tree in chosen) >= LEAST else []


def _cheapness(run: CommitContext) -> Callable[[CarriedTree], bool]:
    """Return whether a tree may be moved whole by its price, if that counts."""
    prices = prices_of(run.layout.dest.scheme) if run.options.prefer is Prefer.CHEAP else None
    if prices is None:
        return lambda tree: True
    renames = 1 if run.layout.shared else _RENAMES
    return lambda tree: tree.is_cheap(prices, renames)


def _can(run: CommitContext, plan: Plan) -> bool:
    traits = run.store.traits
    first = run.identity.epoch <= 1  # later owners find directories that are moved in part
    names = traits.fences and traits.whole_listings and not traits.handles
    return names and first and plan.loaded.etags is not None


def _trees(run: CommitContext, plan: Plan) -> Iterable[CarriedTree]:
    missing, found = set(plan.missing), dict[tuple[str, str], CarriedTree]()
    start, root = base_of(run), run.layout.root
    inside, cut = f"{start}/", len(start) + 1
    for source, files in plan.loaded.sources.items():
        if not source.startswith(inside):
            continue
        task, _, name = source[cut:].partition("/")
        if name and (top := _top(f"{root}/{name}", missing)) is not None:
            place = f"{start}/{task}{top[len(root) :]}"
            found.setdefault((top, place), CarriedTree(place, top, missing)).sources[source] = files
    return [tree for _, tree in sorted(found.items())]


def _top(path: str, missing: set[str]) -> str | None:
    """Return the outermost missing directory of ``path`` and its parents."""
    top = None
    while path in missing:
        top, path = path, path.rpartition("/")[0]
    return top


async def with_prints(
    run: CommitContext, plan: Plan, trees: list[CarriedTree]
) -> list[CarriedTree]:
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
            tree.prints[parent] ^= print_of(plan, entry.source, entry.size, entry.etag)
    return [tree for tree in trees if tree.source not in other]


def print_of(plan: Plan, path: str, size: int, etag: str | None) -> int:
    """Return the fingerprint of a file in a directory that is moved."""
    return fingerprint((path, size, etag if plan.loaded.etags else None))

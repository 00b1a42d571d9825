"""Refuse files that would exceed the quota of a directory.

Only a rename from outside of the directory uses its quotas. The job's own directory is below the
destination, so of the quotas of the destination and above it only names are needed: for the
directories that the job makes, and a few files of the commit. These quotas are not asked for,
because the service would count all files of the table: as many directories are made in the job's
own directory, and deleted again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast

from asynccommit.commit.context import CommitContext
from asynccommit.commit.paths import above, within
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.planning.whole_directories import count_new
from asynccommit.commit.spill import Entry
from asynccommit.errors import DeniedError, NotFoundError, RejectedError, StoreError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import QuotaStore, QuotaUse
from asynccommit.stores.filesystem_names import temporary_name

MOST = 1000
"""Number of directories whose quotas are asked for; the service counts what is below each."""


_OWN = 12
"""Number of files and directories that a commit makes after its record, with some to spare."""
_MADE = 10_000  # directories at most that are made to see whether there is room for them
_DEEP = 400  # directories of one request, each in the one before
_ABOUT_NAMES = "quota of names"


@dataclass(slots=True)
class _Needs:
    """The names and bytes that the commit adds to directories.

    Attributes:
        names: of files and directories, less those that are moved out before.
        size: bytes of the files, one replica of each.
        freed: bytes that are moved out before, of all replicas.
        sample: one of the files.
    """

    names: Counter[str] = field(default_factory=Counter)
    size: Counter[str] = field(default_factory=Counter)
    freed: Counter[str] = field(default_factory=Counter)
    sample: Entry | None = None


async def refuse_over_quota(run: CommitContext, plan: Plan, places: Iterable[str]) -> None:
    """Refuse a plan that adds more to a directory than its quotas allow.

    Args:
        run: the commit.
        plan: what will be moved.
        places: the existing directories that files go to, or below which they go.

    Raises ``RejectedError`` that names the directory, its quota, its use and the need.
    """
    if not run.store.traits.zones:
        return
    asked = {path for place in places for path in _not_above(run.layout.sources_dir, place)}
    replaced = [aside.path for aside in (*plan.replaced, *plan.aside)]
    limited = await _limited(run, [path for path in asked if not within(path, replaced)])
    if not limited:
        return
    needs = await _needs(plan, limited)
    await _count_freed(run, limited, replaced, needs)
    replicas = await _replicas(run, needs.sample)
    for path, use in sorted(limited.items()):
        _refuse(path, "names", (use.names, use.named, needs.names[path]), "-setQuota")
        added = int(needs.size[path] * replicas) - needs.freed[path]
        _refuse(path, "bytes of all replicas", (use.space, use.spent, added), "-setSpaceQuota")


async def refuse_without_names(run: CommitContext, plan: Plan) -> None:
    """Refuse a plan for whose names the table's quotas have no room.

    Raises ``RejectedError``, for ``about_names``. Requests that follow raise any other error.
    """
    if not run.store.traits.nested_zones:
        return
    names = _names_of(run, plan)
    # Not in the attempt's directory: an abort may have moved it, and it would be made again.
    place = f"{run.layout.job_dir}/{temporary_name(run.host.new_id())}"
    chains = range(0, min(names, _MADE), _DEEP)

    async def make(start: int) -> None:
        run.check_lease()
        await run.store.mkdir(f"{place}/{start}" + "/d" * (min(_DEEP, names - start) - 1))

    try:
        await for_each(chains, make, workers=run.workers)
    except StoreError as error:
        if is_about_names(error):
            raise
    finally:
        with suppress(StoreError):
            await run.store.delete_tree(place)


def _names_of(run: CommitContext, plan: Plan) -> int:
    return count_new(run, plan) + _OWN


def is_about_names(error: StoreError) -> bool:
    """Return whether a quota of names is used up."""
    return isinstance(error, RejectedError) and _ABOUT_NAMES in error.detail


def about_names(run: CommitContext, plan: Plan, error: StoreError) -> RejectedError:
    """Return the error for a plan whose names find no room."""
    return RejectedError(
        "mkdir",
        run.layout.dest.path,
        "the quota of names of this directory, or of one above it, leaves no room for the "
        f"{_names_of(run, plan)} directories and files that the commit makes: delete files, or "
        f"raise it with hdfs dfsadmin -setQuota ({error.detail.partition(': the quota')[0]})",
    )


def _not_above(inside: str, place: str) -> Iterator[str]:
    """Yield ``place`` and what is above it, but not above ``inside``."""
    for path in (place, *above(place)):
        if path in ("", "/") or within(inside, [path]):
            return
        yield path


async def _limited(run: CommitContext, paths: Iterable[str]) -> dict[str, QuotaUse]:
    """Return the directories that have a quota."""
    found: dict[str, QuotaUse] = {}

    async def look(path: str) -> None:
        # Without the right to read all that is below, nobody is told; the renames are tried.
        with suppress(NotFoundError, DeniedError):
            use = await cast(QuotaStore, run.store).quotas(path)
            if use.names is not None or use.space is not None:
                found[path] = use

    await for_each(sorted(paths)[:MOST], look, workers=run.workers)
    return found


async def _needs(plan: Plan, limited: Collection[str]) -> _Needs:
    needs, known = _Needs(), dict[str, list[str]]()
    async for entry in plan.loaded.spill.each():
        parent = entry.dest.rpartition("/")[0]
        if parent not in known:
            known[parent] = [path for path in limited if within(parent, [path])]
        for path in known[parent]:
            if not within(entry.source, [path]):
                needs.names[path] += 1
                needs.size[path] += entry.size
                needs.sample = entry if entry.size else needs.sample
    for made in {*plan.missing, *plan.unit_directories()}:
        needs.names.update(path for path in limited if within(made, [path]))
    return needs


async def _count_freed(
    run: CommitContext, limited: Collection[str], replaced: Iterable[str], needs: _Needs
) -> None:
    """Count what is moved out of the directories before files are moved in."""

    async def count(gone: str) -> None:
        with suppress(NotFoundError, DeniedError):
            use = await cast(QuotaStore, run.store).quotas(gone)
            for path in limited:
                if within(gone, [path]):
                    needs.names[path] -= use.named
                    needs.freed[path] += use.spent

    inside = [path for path in replaced if within(path, limited)]
    await for_each(inside, count, workers=run.workers)


async def _replicas(run: CommitContext, sample: Entry | None) -> float:
    """Return the bytes that one byte of a file takes, by one of the files."""
    if sample is not None:
        with suppress(NotFoundError, DeniedError):
            return (await cast(QuotaStore, run.store).quotas(sample.source)).spent / sample.size
    return 1.0


def _refuse(path: str, what: str, figures: tuple[int | None, int, int], flag: str) -> None:
    """Refuse a directory whose quota is too small.

    ``figures`` are the quota, what is used, and what would be added.
    """
    quota, used, added = figures
    if quota is not None and added > 0 and used + added > quota:
        raise RejectedError(
            "rename",
            path,
            f"its quota is {quota} {what}, {used} are used, and the job adds {added}: delete "
            f"files, or raise it with hdfs dfsadmin {flag}",
        )

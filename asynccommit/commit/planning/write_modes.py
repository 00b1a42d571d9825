"""Write modes: refuse or replace existing content.

What is replaced is never deleted before the job is committed: it is moved aside. Where directories
can be renamed, the new content of each is put together beside it and moved in as one (a unit), so
that readers see a mixture for two renames and not for all of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.full_etags import with_etags
from asynccommit.commit.job.modes import OTHERS_BELOW, SINK_LOG, STAGING, is_output
from asynccommit.commit.layouts.layout import TEMPORARY, Layout
from asynccommit.commit.object_holds import refuse_held
from asynccommit.commit.paths import outermost, stays, within
from asynccommit.commit.planning.load_manifests import LoadedManifests
from asynccommit.commit.planning.movability import refuse_fixed
from asynccommit.commit.planning.plan import Aside, Plan, old_entry
from asynccommit.commit.spill import Entry
from asynccommit.errors import NotFoundError, PreconditionError, UnsupportedError
from asynccommit.options.job import Mode
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.grant import unpinned
from asynccommit.stores.tree import list_if_there, tree_pages, walk

_MAX_PLACES = 1_000
_BATCH = 4_096


async def plan_replacement(run: CommitContext, plan: Plan) -> None:
    """Plan which targets are moved aside, and which units moved in."""
    targets = plan.targets
    if not targets:
        await _move_marker(run, plan)
        return
    plan.replaced = await _all_replaced(run, targets)
    if run.store.traits.fences:
        plan.units = _units(run.layout, plan.loaded, targets)
    await _remember_all(run, plan)
    await _move_marker(run, plan, always=run.layout.dest.path in targets)


async def _all_replaced(run: CommitContext, targets: Sequence[str]) -> list[Aside]:
    replaced = [aside for path in targets for aside in await _replaced(run, path)]
    return replaced if run.store.traits.fences else await as_files(run, replaced)


async def list_replaced(run: CommitContext, targets: Sequence[str]) -> AsyncIterator[list[Entry]]:
    """Yield the files of replaced directories in batches."""
    for aside in await _all_replaced(run, targets):
        async for batch in _files_of(run, aside):
            yield batch


def find_targets(
    run: CommitContext, loaded: LoadedManifests, overwrite: Sequence[str], mode: Mode
) -> list[str]:
    """Return the directories whose content is replaced, the outermost ones.

    Args:
        run: the commit under way.
        loaded: the files of the job.
        overwrite: decoded paths of the directories whose content will be replaced.
        mode: the write mode, which may replace further directories.

    Raises ``PreconditionError`` for a directory that cannot be replaced.
    """
    return outermost(_targets(run, loaded, overwrite, mode))


def _targets(
    run: CommitContext, loaded: LoadedManifests, overwrite: Sequence[str], mode: Mode
) -> set[str]:
    targets = {_normal(path) for path in overwrite}
    if mode is Mode.REPLACE_TABLE:
        targets.add(run.layout.dest.path)
    if mode is Mode.REPLACE_PARTITIONS:
        if run.layout.dest.path in loaded.parents or run.layout.root in loaded.parents:
            text = f"files go to the table itself, in no partition: use mode {Mode.REPLACE_TABLE}"
            raise PreconditionError("rename", run.layout.dest.path, text)
        targets |= loaded.parents
    return targets


async def _replaced(run: CommitContext, path: str) -> list[Aside]:
    if path == run.layout.dest.path:
        listing = await list_if_there(run.store, path)
        found = [info for info in listing if _is_replaced(run, info)]
        refuse_held(run, found)
        found = list(await with_etags(run, found))
        return [Aside.of(info) for info in found]
    above = "/" if path == "/" else f"{path}/"
    if run.layout.reserves(path) or run.layout.dest.path.startswith(above):
        raise PreconditionError("rename", path, "contains the job itself and cannot be replaced")
    try:
        info = await run.store.head(path)
    except NotFoundError:
        return []
    refuse_held(run, [info])
    return [Aside.of(info)]


async def as_files(run: CommitContext, asides: Sequence[Aside]) -> list[Aside]:
    """Return the files in and below ``asides``.

    Used where directories are not moved.

    Hidden ones stay. Raises ``PreconditionError`` if another
    job writes there, ``UnsupportedError`` where directories cannot be listed whole.
    """
    traits = run.store.traits
    if not (traits.bulk_delete and traits.content_etags):
        raise UnsupportedError(
            f"{traits.name} can neither rename directories nor identify moved files here, so "
            "replaced files could not be restored"
        )
    found = [aside for aside in asides if aside.kind is not Kind.DIRECTORY]
    _refuse_odd([aside.path for aside in found])

    async def look(aside: Aside) -> None:
        async for page in tree_pages(run.store, aside.path):
            for info in await with_etags(run, page):
                names = info.path[len(aside.path) + 1 :].split("/")
                if info.is_dir:
                    continue
                if TEMPORARY in names:
                    raise PreconditionError("rename", info.path, OTHERS_BELOW)
                if not any(stays(name) for name in names):
                    _refuse_odd([info.path])
                    refuse_held(run, [info])
                    found.append(Aside.of(info))

    await for_each(
        [aside for aside in asides if aside.kind is Kind.DIRECTORY], look, workers=run.workers
    )
    return sorted(found, key=lambda aside: aside.path)


def _refuse_odd(paths: Sequence[str]) -> None:
    """Refuse invalid names, which could not be moved aside."""
    for path in paths:
        if {"", ".", ".."} & set(path.split("/")[1:]):
            text = "is to be replaced, but has an invalid name: delete it first"
            raise PreconditionError("rename", path, text)


def _is_replaced(run: CommitContext, info: Info) -> bool:
    name = info.path.rpartition("/")[2]
    if name == TEMPORARY or name.startswith(STAGING):
        return False
    if info.path == run.layout.success:
        return info.kind is not Kind.FILE  # a file is moved first
    return name == SINK_LOG or is_output(run.layout, info)


def _units(layout: Layout, loaded: LoadedManifests, targets: Sequence[str]) -> set[str]:
    """Return the directories that are moved in as one."""
    inside = layout.root + "/"
    units: set[str] = set()
    for parent in loaded.parents | loaded.directories:
        if layout.dest.path in targets and parent.startswith(inside):
            units.add(inside + parent[len(inside) :].partition("/")[0])
        else:
            units.update(path for path in targets if within(parent, [path]))
    return units - {layout.dest.path, layout.root}


async def _remember_all(run: CommitContext, plan: Plan) -> None:
    """Record the content at new files' places, to detect changes."""

    async def remember(aside: Aside) -> None:
        async for batch in _files_of(run, aside):
            await plan.old.append(batch)

    await for_each(plan.replaced, remember, workers=run.workers)


async def _files_of(run: CommitContext, aside: Aside) -> AsyncIterator[list[Entry]]:
    if aside.kind is not Kind.DIRECTORY:
        yield [old_entry(Info(aside.path, aside.kind, 0, aside.etag))]
        return
    found: list[Entry] = []
    async for info in walk(run.store, aside.path):
        refuse_fixed(run, info)
        if not info.is_dir:
            found.append(old_entry(info))
            if len(found) == _BATCH:
                yield found
                found = []
        if info.path.rpartition("/")[2] == TEMPORARY and await _is_in_use(run, info):
            raise PreconditionError("rename", info.path, OTHERS_BELOW)
    yield found


async def _is_in_use(run: CommitContext, temporary: Info) -> bool:
    """Return whether a job uses a ``_temporary``, which may be a link."""
    if temporary.kind is Kind.FILE:
        return False
    with suppress(PreconditionError), unpinned():  # a link to a file
        return bool(await list_if_there(run.store, temporary.path))
    return False


async def _move_marker(run: CommitContext, plan: Plan, *, always: bool = False) -> None:
    """Plan to move an earlier job's marker aside first."""
    if not (run.options.mark_success or always):
        return
    try:
        info = await run.store.head(run.layout.success)
    except NotFoundError:
        return
    if info.kind is Kind.FILE:
        refuse_held(run, [info])
        plan.aside.append(Aside.of(info))


def _normal(path: str) -> str:
    """Return ``path`` without empty segments.

    Raises ``PreconditionError`` for invalid names.
    """
    names = [name for name in path.split("/") if name]
    if not path.startswith("/") or {".", ".."} & set(names):
        raise PreconditionError("rename", path, "is not an absolute path without '.' and '..'")
    return "/" + "/".join(names)

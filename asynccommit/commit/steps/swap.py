"""Replace directories by two renames, without losing late writes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.ownership.lease import require_place
from asynccommit.commit.paths import above, stays
from asynccommit.commit.planning.plan import Plan, aside_path, displaced_path, staged_path
from asynccommit.commit.steps.identity import Settled
from asynccommit.commit.steps.make_directories import remove_empty
from asynccommit.commit.steps.move_aside import keeper, move_one_aside
from asynccommit.commit.steps.step import CommitStep, RollbackResult
from asynccommit.commit.trees import merge, rename_to_free, to_place
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import is_there, walk


class SwapUnits(CommitStep):
    """Moves what a mode replaces aside, and the units in its place.

    Each unit is settled by itself: one that is in its place stays there.
    """

    stage = "job_stage_rename_files"

    def count(self, run: CommitContext, plan: Plan) -> int | None:
        """See ``CommitStep.count``.

        Files are counted by the steps around this one.
        """
        return 0 if plan.units or plan.replaced else None

    async def do(self, run: CommitContext, plan: Plan, settled: Settled) -> None:
        """See ``CommitStep.do``."""
        await swap_in(run, plan)

    async def undo(self, run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
        """See ``CommitStep.undo``.

        Their files are out by now. ``MoveAside`` brings back what the units have replaced.
        """
        await _remove_units(run, plan)


async def swap_in(run: CommitContext, plan: Plan) -> None:
    """Move old directories aside and units in; restore late files.

    Directories swapped earlier stay unchanged.
    """
    replaced = {aside.path: aside for aside in plan.replaced}
    known = await _known(run, plan) if run.store.traits.fences else set()

    async def swap(path: str) -> None:
        aside = replaced.get(path)
        if aside is not None:
            await move_one_aside(run, aside)
        if path in plan.units:
            await _move_in(run, path)
            run.count_renamed(plan.held[path], 0)
        if aside is not None and aside.kind is Kind.DIRECTORY:
            plan.looked[path] = await _put_back(run, path, known)

    await for_each(sorted(replaced.keys() | plan.units), swap, workers=run.workers)


async def restore_late(run: CommitContext, plan: Plan) -> None:
    """Put back what others wrote to replaced directories after the swap.

    A process that has such a directory open, or works in it, still writes there. This is the last
    look before the clean-up deletes the old content; only local disks have such processes.
    """
    replaced = [aside.path for aside in plan.replaced if aside.kind is Kind.DIRECTORY]
    if not (replaced and run.store.traits.pins):
        return
    known: set[int] | None = None
    for path in replaced:
        base = aside_path(run.layout, run.place, path)
        changed = await _changed(run, plan.looked.get(path, {base: None}))
        if changed and known is None:
            known = await _known(run, plan)
        with suppress(NotFoundError):
            async for info in walk(run.store, *changed):
                place = path + info.path[len(base) :]
                late = _print(run, place, info) not in (known or ())
                if late and not info.is_dir:
                    await _rescue(run, info, place)


async def _changed(run: CommitContext, looked: Mapping[str, float | None]) -> list[str]:
    """Return the outermost directories that have changed since a look."""
    found: set[str] = set()

    async def look(path: str) -> None:
        with suppress(NotFoundError):
            if (await run.store.head(path)).modified != looked[path]:
                found.add(path)

    await for_each(looked, look, workers=run.workers)
    return [path for path in sorted(found) if found.isdisjoint(above(path))]


async def _rescue(run: CommitContext, info: Info, place: str) -> None:
    """Put back a late file, or keep it if its place is taken."""
    why = "was written while this job replaced its directory, and was put back"
    try:
        await to_place(run, info, place)
    except (ExistsError, PreconditionError):
        kept = displaced_path(run.layout, run.identity.commit_id, place)
        await run.store.mkdir(kept.rpartition("/")[0])
        kept = await rename_to_free(run, info.path, kept)
        why = f"was written while this job replaced its directory: it is kept at {kept}"
    run.warn(f"{place} {why}")


async def _known(run: CommitContext, plan: Plan) -> set[int]:
    """Return the fingerprints of the content at planning time."""
    with Fingerprints(run.options.spill_directory) as prints:
        async for old in plan.old.each():
            prints.add([_seen(run, old.dest, old.size, old.etag)])
        return prints.common(prints)


def _seen(
    run: CommitContext, place: str, size: int, etag: str | None
) -> tuple[str, int, str | None]:
    """Return the facts by which a file is recognised after a move.

    The inode number is left out: on another host, or once a server has forgotten it, it may be
    another, and an old file must not come back as if somebody had written it late.
    """
    if etag and run.store.traits.file_etags:
        etag = etag.partition("-")[2]
    return place, size, etag


def _print(run: CommitContext, place: str, info: Info) -> int:
    return fingerprint(_seen(run, place, info.size, info.etag))


async def _move_in(run: CommitContext, unit: str) -> None:
    run.check_lease()
    source, etag = staged_path(run.layout, run.place, unit), run.store.traits.guarded(None)
    try:
        await run.store.rename(source, unit, etag=etag)
    except NotFoundError:
        await require_place(run)
        if not await is_there(run.store, source):
            return  # an earlier owner of the commit has moved it
        await run.store.mkdir(unit.rpartition("/")[0])
        await run.store.rename(source, unit, etag=etag)
    except ExistsError:
        run.miscount()  # until all of them are there
        await merge(run, source, unit)


async def _put_back(run: CommitContext, path: str, known: set[int]) -> dict[str, float | None]:
    """Put back hidden names, and files that others wrote since.

    Returns each directory that was looked at, with its time before.
    """
    base = aside_path(run.layout, run.place, path)
    looked: dict[str, float | None] = {}
    with suppress(NotFoundError):
        looked[base] = (await run.store.head(base)).modified
    hidden: list[Info] = []
    async for info in walk(run.store, *looked):
        if info.is_dir:
            looked[info.path] = info.modified
        name = info.path[len(base) :]
        *above, last = (stays(part) for part in name.split("/")[1:])
        if any(above):
            continue  # comes with the directory, empty ones too: a job may be at work in it
        if last:
            hidden.append(info)
        elif (
            not info.is_dir
            and fingerprint(_seen(run, path + name, info.size, info.etag)) not in known
        ):
            await to_place(run, info, path + name)
    for info in hidden:
        await _put_back_hidden(run, info, path + info.path[len(base) :])
    return looked


async def _put_back_hidden(run: CommitContext, info: Info, place: str) -> None:
    try:
        await to_place(run, info, place)
    except ExistsError:
        if info.is_dir:
            await merge(run, info.path, place, keep=_give_way)
        else:
            await _give_way(run, info.path, place)


async def _give_way(run: CommitContext, _: str, place: str) -> None:
    run.warn(f"{place} was replaced by a task's file")


async def _remove_units(run: CommitContext, plan: Plan) -> None:
    """Remove emptied unit directories, to restore what they replaced."""
    replaced = {aside.path for aside in plan.replaced}
    directories: list[str] = []
    for unit in sorted(plan.units & replaced):
        with suppress(NotFoundError):
            await run.store.head(aside_path(run.layout, run.place, unit))
            directories += [
                path
                for path in sorted(plan.unit_directories())
                if f"{path}/".startswith(f"{unit}/")
            ]
    await remove_empty(run, plan, directories)


async def bring_late(run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
    """Bring back what others wrote to a directory that came back before.

    One whose place was taken came back file by file, and who has it open still writes there.
    """
    if not run.store.traits.pins:
        return
    for aside in plan.replaced:
        if aside.kind is Kind.DIRECTORY:
            place = aside_path(run.layout, run.place, aside.path)
            await merge(run, place, aside.path, keep=keeper(run, undone))

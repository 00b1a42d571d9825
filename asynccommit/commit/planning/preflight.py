"""Job commit, second step: refuse what would fail half-way.

Nothing under the destination has changed when this ends. The checks, in this order: no two tasks
have one destination, and no file has two; no file or symbolic link is in the place of a directory;
nothing is at a file's destination; the sources exist, where checking is cheap.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from asynccommit.commit.context import CommitContext
from asynccommit.commit.errors import NAMED, named
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.full_etags import with_etags
from asynccommit.commit.job.modes import refuse_mode
from asynccommit.commit.object_holds import refuse_held
from asynccommit.commit.paths import ancestors, within
from asynccommit.commit.planning.concurrent_jobs import look_before_listing
from asynccommit.commit.planning.load_manifests import LoadedManifests
from asynccommit.commit.planning.movability import refuse_unfit, refuse_unmovable
from asynccommit.commit.planning.plan import Aside, Plan
from asynccommit.commit.planning.quotas import refuse_over_quota
from asynccommit.commit.planning.sources import check_sources
from asynccommit.commit.planning.unfit_sources import refuse_repeated, refuse_unfit_sources
from asynccommit.commit.planning.write_modes import as_files, find_targets, plan_replacement
from asynccommit.commit.planning.zones import refuse_zones
from asynccommit.commit.spill import Entry
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError
from asynccommit.runtime.concurrency import both, for_each, together
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.filesystem_names import checksum_of, file_of
from asynccommit.stores.tree import each_page


@dataclass(slots=True)
class _DestinationSurvey:
    """The existing content of the destination that the job touches."""

    existing: Fingerprints
    needed: set[str] = field(default_factory=set)
    parents: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    volume: int = 0
    there: set[str] = field(default_factory=set)
    blocked: list[Aside] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    """Existing directories, elsewhere than the table, that files go to or below."""
    stale: set[str] = field(default_factory=set)
    """Missing files that have a checksum."""


async def preflight(
    run: CommitContext,
    plan: Plan,
    overwrite: Sequence[str] = (),
    *,
    adopt: bool = False,
    over: bool = False,
    looking: bool = False,
) -> None:
    """Decide what to change, or refuse.

    Args:
        run: the commit under way.
        plan: the files and the mode of the job; completed.
        overwrite: decoded paths of the directories whose content will be replaced.
        adopt: accept files that are at their destination and whose source is gone.
        over: files may replace existing files, and nothing else.
        looking: write nothing, not even to ask the store for the time.

    Raises ``ExistsError`` for destinations that are taken or wanted twice, ``PreconditionError``
    for a file or link where a directory is needed, ``NotFoundError`` for a missing source.
    """
    loaded = plan.loaded
    with run.meter.timed("op_prepare_dir_ancestors"):
        await _refuse_duplicates(run, loaded)
        await refuse_repeated(loaded)
        plan.targets = find_targets(run, loaded, overwrite, plan.mode)
        with Fingerprints(run.options.spill_directory) as existing:
            survey = _DestinationSurvey(existing)
            if plan.targets:
                await refuse_mode(run, plan.mode, overwrite)
                await look_before_listing(run, plan, looking=looking)
                await plan_replacement(run, plan)
                await _survey(run, plan, survey)
            else:
                await together(
                    lambda: refuse_mode(run, plan.mode, overwrite),
                    lambda: plan_replacement(run, plan),
                    lambda: _survey(run, plan, survey),
                )
            aside = await _in_the_way(run, loaded, survey, adopt=adopt, over=over)
        plan.aside += aside
        plan.missing = _missing(run, plan, survey)
        plan.make = plan.to_make(run.store.traits)
        if run.store.traits.links:
            await refuse_unfit_sources(run, loaded, survey.volume, adopt=adopt)
        await refuse_unmovable(run, plan)
        await together(
            lambda: refuse_zones(run, plan, survey.outside, survey.there),
            lambda: refuse_over_quota(run, plan, {*survey.outside, *survey.there}),
        )
        # What is moved aside is not to be missed for files that are not there.
        replaces = bool(plan.replaced) and not run.store.traits.fences
        if (run.options.check_sources or replaces) and not adopt:
            await check_sources(run, loaded)


def _missing(run: CommitContext, plan: Plan, survey: _DestinationSurvey) -> list[str]:
    """Return the directories that did not exist, except replaced ones."""
    replaced = [aside.path for aside in plan.replaced if aside.kind is Kind.DIRECTORY]
    missing = survey.needed - survey.there - {run.layout.root}
    return sorted(path for path in missing if not within(path, replaced))


async def _refuse_duplicates(run: CommitContext, loaded: LoadedManifests) -> None:
    needed = ancestors(run.layout.root, loaded.parents | loaded.directories)
    with Fingerprints(run.options.spill_directory) as directories:
        directories.add(needed)
        suspects = loaded.dests.repeated() | loaded.dests.common(directories)
    seen: dict[str, str] = {}
    problems: list[str] = []
    async for entry in _with_dest(loaded, suspects):
        if entry.dest in seen:
            problems.append(
                f"{entry.dest} is the destination of both {seen[entry.dest]} and {entry.source}"
            )
        elif entry.dest in needed:
            problems.append(f"{entry.dest} is a file of one task and a directory of another")
        seen[entry.dest] = entry.source
    if problems:
        raise ExistsError("rename", problems[0].split(" ", 1)[0], named(problems))


async def _if_there(run: CommitContext, path: str, *, moving: bool = False) -> list[Aside]:
    try:
        info = await run.store.head(path)
    except NotFoundError:
        return []
    refuse_held(run, [info] if moving else [])
    return [Aside.of(info)]


async def _survey(run: CommitContext, plan: Plan, survey: _DestinationSurvey) -> None:
    """Find what is at the destination, but for what ``plan`` replaces."""
    root, loaded = run.layout.root, plan.loaded
    survey.gone = gone = {aside.path for aside in plan.replaced}
    survey.needed = ancestors(root, loaded.parents | loaded.directories)
    survey.parents = loaded.parents
    inside = root + "/"
    outside = sorted(
        {path for path in loaded.parents if path != root and not path.startswith(inside)}
    )
    survey.below = [path for path in (run.layout.dest.path, *outside) if not within(path, gone)]
    survey.needed -= {path for path in survey.needed if not path.startswith(inside)}
    survey.needed.update(outside)
    above_gone = sorted({path.rpartition("/")[0] for path in gone})
    tops = [run.layout.dest.path, *outside, *above_gone]
    source, nearest = await both(
        lambda: run.store.head(run.layout.sources_dir), lambda: _nearest_of(run, tops)
    )
    survey.volume = source.volume
    for path, info in zip(tops, nearest, strict=True):
        _refuse_unfit(run, info, survey)
        if path in outside:
            survey.needed |= ancestors(info.path, [path])
            survey.outside.append(info.path)
    while survey.below:
        level, survey.below = survey.below, []
        await for_each(level, lambda path: _look(run, path, survey), workers=run.workers)


async def _nearest_of(run: CommitContext, paths: Sequence[str]) -> list[Info]:
    """Return the nearest existing directory above each path.

    If that is a link, return its target.
    """
    return [await _behind(run, await _nearest(run, path or "/")) for path in paths]


async def _nearest(run: CommitContext, path: str) -> Info:
    """Return ``path``, or the nearest directory above it that exists."""
    while True:
        try:
            return await run.store.head(path)
        except NotFoundError:
            if path == "/":
                raise
            path = path.rpartition("/")[0] or "/"


async def _behind(run: CommitContext, info: Info) -> Info:
    """Return the target of a link; the destination may be a link."""
    if info.kind is Kind.OTHER and run.store.traits.links:
        with suppress(NotFoundError):  # behind it is a file, or nothing
            return await run.store.head(f"{info.path}/.")
    return info


async def _look(run: CommitContext, path: str, survey: _DestinationSurvey) -> None:
    """Find needed directories in ``path``, and files if files go there."""
    try:
        async for page in each_page(run.store.list, path):
            survey.there.add(path)
            names = [sidecar.rpartition("/")[2] for sidecar in page.stale]
            survey.stale.update(f"{path}/{file_of(name)}" for name in names)
            infos = [info for info in page.entries if info.path not in survey.gone]
            directories = [info for info in infos if info.path in survey.needed]
            survey.below += [info.path for info in directories if info.is_dir]
            blocked = [info for info in directories if not info.is_dir]
            refuse_held(run, blocked if run.options.delete_target_files else [])
            blocked = list(await with_etags(run, blocked))
            survey.blocked += [Aside.of(info) for info in blocked]
            marker = [info for info in infos if info.path == run.layout.success]
            survey.blocked += [Aside.of(info) for info in marker if info.is_dir]
            for info in directories:
                if info.is_dir:
                    _refuse_unfit(run, info, survey)
            if path in survey.parents or run.layout.root == "":
                survey.existing.add(info.path for info in infos)
    except NotFoundError:
        return


def _refuse_unfit(run: CommitContext, info: Info, survey: _DestinationSurvey) -> None:
    """Refuse a directory into which this job's files cannot be renamed."""
    if info.kind is Kind.FILE:
        raise PreconditionError("mkdir", info.path, "a file is in the place of a directory")
    if info.is_dir:
        refuse_unfit(info, survey.volume, run.layout.sources_dir)


async def _in_the_way(
    run: CommitContext,
    loaded: LoadedManifests,
    survey: _DestinationSurvey,
    *,
    adopt: bool,
    over: bool,
) -> list[Aside]:
    """Return obstacles that the options allow to move aside."""
    allowed = run.options.delete_target_files
    taken: list[Aside] = []

    async def ask(entry: Entry) -> None:
        if adopt and await _was_moved(run, entry):
            return
        if allowed or over or len(taken) <= NAMED:
            taken.extend(await _if_there(run, entry.dest, moving=allowed or over))

    suspects = loaded.dests.common(survey.existing)
    await for_each(_with_dest(loaded, suspects), ask, workers=run.workers)
    stale = await _stale_checksums(run, loaded, survey, allowed=allowed or over)
    if allowed:
        if run.store.traits.bulk_delete:
            taken = await as_files(run, taken)
        return sorted({*survey.blocked, *taken, *stale}, key=lambda aside: aside.path)
    if survey.blocked:
        blocked = [aside.path for aside in survey.blocked]
        text = "a file or link is in the place of a directory"
        if blocked[0] == run.layout.success:
            text = "a directory is in the place of the job's marker"
        raise PreconditionError("mkdir", blocked[0], text + _remedy(run, blocked))
    if paths := sorted(aside.path for aside in taken if not (over and aside.kind is Kind.FILE)):
        raise ExistsError("rename", paths[0], "it exists already" + _remedy(run, paths))
    return sorted({*taken, *stale}, key=lambda aside: aside.path)


async def _stale_checksums(
    run: CommitContext, loaded: LoadedManifests, survey: _DestinationSurvey, *, allowed: bool
) -> list[Aside]:
    """Return checksums of missing files whose names the job's files take.

    With one beside it Hadoop would refuse to read the new file; its own committers delete it.
    Raises ``ExistsError`` if they may not be moved aside.
    """
    if not survey.stale:
        return []
    with Fingerprints(run.options.spill_directory) as prints:
        prints.add(survey.stale)
        suspects = loaded.dests.common(prints)
    found: list[Aside] = []
    async for entry in _with_dest(loaded, suspects):
        found += await _if_there(run, checksum_of(entry.dest))
    if found and not allowed:
        paths = sorted(aside.path for aside in found)
        text = (
            "a Hadoop checksum file without its data file, with which Hadoop could not read the "
            "new file" + _remedy(run, paths)
        )
        raise ExistsError("rename", paths[0], text)
    return found


async def _was_moved(run: CommitContext, entry: Entry) -> bool:
    """Return whether a file may have moved from its source to its destination."""
    try:
        info = await run.store.head(entry.dest)
    except NotFoundError:
        return False
    lasting = run.store.traits.lasting
    known = lasting(entry.etag)
    same = info.size == entry.size and known in (None, lasting(info.etag))
    return same and info.kind is Kind.FILE and not await _if_there(run, entry.source)


def _remedy(run: CommitContext, paths: Sequence[str]) -> str:
    others = f" (as at {named(paths[1:])})" if paths[1:] else ""
    option = "set mapreduce.manifest.committer.delete.target.files"
    return f"{others}: move it, or {'replace it' if run.layout.outside else option}"


async def _with_dest(loaded: LoadedManifests, prints: set[int]) -> AsyncIterator[Entry]:
    """Return the entries whose destination has one of these fingerprints."""
    if not prints:
        return
    async for entry in loaded.spill.each():
        if fingerprint(entry.dest) in prints:
            yield entry

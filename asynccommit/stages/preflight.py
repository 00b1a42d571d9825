"""Job commit, second step: refuse now what would fail, or do harm, half-way through.

Nothing under the destination has changed when this ends. What is checked, in this order: no two
tasks want one destination; no file stands where a directory is needed, and no symbolic link;
nothing is at a file's destination; the sources are there, where looking is cheap.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    PreconditionError,
    RejectedError,
    StoreError,
)
from asynccommit.job import TEMPORARY
from asynccommit.parallel import for_each, list_all, pages
from asynccommit.stages.fingerprints import Fingerprints, fingerprint
from asynccommit.stages.load import Loaded, identity
from asynccommit.stages.run import Run
from asynccommit.stages.spill import Entry
from asynccommit.store import Info, Kind

SAMPLE = 100
"""How many of the files are named in ``_SUCCESS``: the reference's number."""
NAMED = 20
"""How many conflicts an error names; it says how many more there are."""

STAGING = ".spark-staging"


@dataclass(slots=True)
class Plan:
    """What the commit will change under the destination, decided before it changes anything.

    Attributes:
        loaded: the files.
        aside: paths to move aside first, because they are to be replaced.
        make: directories to make, only those whose parents do not tell: the leaves.
        sample: destinations of the first files renamed.
    """

    loaded: Loaded
    aside: list[str] = field(default_factory=list)
    make: list[str] = field(default_factory=list)
    sample: list[str] = field(default_factory=list)

    async def take_sample(self) -> None:
        """Name the first destinations without renaming anything."""
        async for entry in self.loaded.spill.each():
            if len(self.sample) == SAMPLE:
                return
            self.sample.append(entry.dest)


@dataclass(slots=True)
class _Survey:
    """What is under the destination already, as far as the job touches it."""

    existing: Fingerprints
    needed: set[str]
    parents: set[str]
    gone: set[str]
    volume: int
    there: set[str] = field(default_factory=set)
    blocked: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)


async def preflight(run: Run, loaded: Loaded, overwrite: Sequence[str] = ()) -> Plan:
    """Decide what to change, or refuse.

    Args:
        run: the commit under way.
        loaded: what the manifests say.
        overwrite: directories whose content is to be replaced, decoded paths.

    Raises ``ExistsError`` for destinations that are taken or wanted twice, ``PreconditionError``
    for a file or link where a directory is needed, ``NotFoundError`` for a missing source.
    """
    plan = Plan(loaded)
    with run.timed("op_prepare_dir_ancestors"):
        await _refuse_duplicates(run, loaded)
        plan.aside = await _overwritten(run, overwrite)
        survey = await _survey(run, loaded, gone=set(plan.aside))
        try:
            plan.aside += await _in_the_way(run, loaded, survey)
        finally:
            survey.existing.close()
        plan.make = leaves(survey.needed - survey.there - {run.layout.root})
        if run.store.traits.links:
            await _refuse_links(run, loaded)
        if run.options.check_sources:
            await _check_sources(run, loaded)
    return plan


def leaves(directories: Collection[str]) -> list[str]:
    """Return the directories that are no other's parent, in order."""
    parents = {path.rpartition("/")[0] for path in directories}
    return sorted(path for path in directories if path not in parents)


def ancestors(root: str, paths: Iterable[str]) -> set[str]:
    """Return ``paths`` and every directory between them and ``root``."""
    found: set[str] = set()
    for path in paths:
        while path != root and path and path not in found:
            found.add(path)
            path = path.rpartition("/")[0]
    return found


async def _refuse_duplicates(run: Run, loaded: Loaded) -> None:
    needed = ancestors(run.layout.root, loaded.parents | loaded.directories)
    with Fingerprints(run.options.spill_directory) as directories:
        directories.add(needed)
        suspects = loaded.dests.repeated() | loaded.dests.common(directories)
    seen: dict[str, str] = {}
    problems: list[str] = []
    async for entry in _with_dest(loaded, suspects):
        if entry.dest in seen:
            problems.append(f"{entry.dest} is wanted by {seen[entry.dest]} and {entry.source}")
        elif entry.dest in needed:
            problems.append(f"{entry.dest} is a file of one task and a directory of another")
        seen[entry.dest] = entry.source
    if problems:
        raise ExistsError("rename", problems[0].split(" ", 1)[0], _named(problems))


async def _overwritten(run: Run, overwrite: Sequence[str]) -> list[str]:
    """Return what to move aside so that each directory of ``overwrite`` is replaced."""
    aside: list[str] = []
    for path in outermost([_normal(path) for path in overwrite]):
        if path == run.layout.dest.path:
            for info in await list_all(run.store, path):
                name = info.path.rpartition("/")[2]
                if name != TEMPORARY and not name.startswith(STAGING):
                    aside.append(info.path)
        elif run.layout.reserves(path) or run.layout.dest.path.startswith(f"{path}/"):
            raise PreconditionError("rename", path, "holds the job itself: it cannot be replaced")
        else:
            aside += await _if_there(run, path)
    return aside


def _normal(path: str) -> str:
    """Return ``path`` without empty segments. Raises ``PreconditionError`` for others' names."""
    names = [name for name in path.split("/") if name]
    if not path.startswith("/") or {".", ".."} & set(names):
        raise PreconditionError("rename", path, "is not an absolute path without '.' and '..'")
    return "/" + "/".join(names)


def outermost(paths: Collection[str]) -> list[str]:
    """Return the paths that are below no other of them, in order."""
    found: list[str] = []
    for path in sorted(set(paths), key=lambda path: path.split("/")):
        if not found or not _within(path, found[-1:]):
            found.append(path)
    return found


async def _if_there(run: Run, path: str) -> list[str]:
    try:
        await run.store.head(path)
    except NotFoundError:
        return []
    return [path]


async def _survey(run: Run, loaded: Loaded, gone: set[str]) -> _Survey:
    root = run.layout.root
    survey = _Survey(
        existing=Fingerprints(run.options.spill_directory),
        needed=ancestors(root, loaded.parents | loaded.directories),
        parents=loaded.parents,
        gone=gone,
        volume=(await run.store.head(run.layout.attempt_dir)).volume,
    )
    inside = root + "/"
    outside = sorted(
        {path for path in loaded.parents if path != root and not path.startswith(inside)}
    )
    survey.below = [path for path in (run.layout.dest.path, *outside) if not _within(path, gone)]
    survey.needed -= {path for path in survey.needed if not path.startswith(inside)}
    survey.needed.update(outside)
    for path in [run.layout.dest.path, *outside, *(path.rpartition("/")[0] for path in gone)]:
        _refuse_unfit(run, await _nearest(run, path or "/"), survey)
    while survey.below:
        level, survey.below = survey.below, []
        await for_each(level, lambda path: _look(run, path, survey), workers=run.workers)
    return survey


async def _nearest(run: Run, path: str) -> Info:
    """Return ``path``, or the nearest directory above it that exists."""
    while True:
        try:
            return await run.store.head(path)
        except NotFoundError:
            if path == "/":
                raise
            path = path.rpartition("/")[0] or "/"


async def _look(run: Run, path: str, survey: _Survey) -> None:
    """See which needed directories are in ``path``, and which files, if files are to go there."""
    try:
        async for page in pages(run.store, path):
            survey.there.add(path)
            infos = [info for info in page if info.path not in survey.gone]
            directories = [info for info in infos if info.path in survey.needed]
            survey.below += [info.path for info in directories if info.is_dir]
            survey.blocked += [info.path for info in directories if not info.is_dir]
            survey.blocked += [i.path for i in infos if i.is_dir and i.path == run.layout.success]
            for info in directories:
                if info.is_dir:
                    _refuse_unfit(run, info, survey)
            if path in survey.parents or run.layout.root == "":
                survey.existing.add(info.path for info in infos)
    except NotFoundError:
        return


def _within(path: str, directories: Collection[str]) -> bool:
    """Whether ``path`` is one of ``directories`` or below one."""
    return any(path == other or path.startswith(other + "/") for other in directories)


def _refuse_unfit(run: Run, info: Info, survey: _Survey) -> None:
    """Refuse a directory into which this job's files cannot be renamed."""
    if info.kind is Kind.FILE:
        raise PreconditionError("mkdir", info.path, "a file is where a directory is needed")
    if info.is_dir and info.volume != survey.volume:
        text = f"on another filesystem than {run.layout.attempt_dir}: files cannot be renamed there"
        raise RejectedError("rename", info.path, text)
    if info.is_dir and not info.writable:
        raise DeniedError("rename", info.path, "no permission to make files in this directory")


async def _in_the_way(run: Run, loaded: Loaded, survey: _Survey) -> list[str]:
    """Return what stands where something must go, if the options allow to move it aside."""
    allowed = run.options.delete_target_files
    taken: list[str] = []

    async def ask(entry: Entry) -> None:
        if allowed or len(taken) <= NAMED:
            taken.extend(await _if_there(run, entry.dest))

    suspects = loaded.dests.common(survey.existing)
    await for_each(_with_dest(loaded, suspects), ask, workers=run.workers)
    if allowed:
        return sorted({*survey.blocked, *taken})
    if survey.blocked:
        text = "a file or link is where a directory is needed"
        raise PreconditionError("mkdir", survey.blocked[0], text + _remedy(survey.blocked))
    if taken:
        text = "something is there already"
        raise ExistsError("rename", min(taken), text + _remedy(sorted(taken)))
    return []


def _remedy(paths: Sequence[str]) -> str:
    others = f" (as at {_named(paths[1:])})" if paths[1:] else ""
    return f"{others}: move it, or set mapreduce.manifest.committer.delete.target.files"


async def _refuse_links(run: Run, loaded: Loaded) -> None:
    """Refuse a source that is a link, or is behind one.

    A task commit of ours, which its message vouches for, has refused links among the files. Where
    there are no messages, the directories are read to the last.
    """
    top = run.layout.attempt_dir
    needed = ancestors(top, loaded.sources)
    odd: set[str] = set()

    async def look(path: str) -> None:
        try:
            async for page in pages(run.store, path):
                odd.update([info.path for info in page if info.kind is Kind.OTHER])
        except NotFoundError:
            return  # the rename, or the check of the sources, names what is missing

    above = {path.rpartition("/")[0] for path in needed} & (needed | {top})
    unread = set() if loaded.vouched else loaded.sources
    await for_each(sorted(above | unread), look, workers=run.workers)
    if not odd:
        return
    links = odd & needed
    links.update([entry.source async for entry in loaded.spill.each() if entry.source in odd])
    if links:
        raise PreconditionError("rename", min(links), "a link: files behind it are not ours")


async def _check_sources(run: Run, loaded: Loaded) -> None:
    """See that every source is there with its size and etag, one listing a directory."""
    directory = run.options.spill_directory
    with Fingerprints(directory) as found, Fingerprints(directory) as wanted:
        batch: list[object] = []
        async for entry in loaded.spill.each():
            batch.append(identity(entry._replace(dest=entry.source)))
            if len(batch) == 4_096:
                wanted.add(batch)
                batch.clear()
        wanted.add(batch)
        await for_each(
            sorted(loaded.sources), lambda path: gather(run, path, found), workers=run.workers
        )
        lost = wanted.missing(found)
    if lost:
        await _name_lost(loaded, lost)


async def _name_lost(loaded: Loaded, lost: set[int]) -> None:
    problems = [
        entry.source
        async for entry in loaded.spill.each()
        if fingerprint(identity(entry._replace(dest=entry.source))) in lost
    ]
    raise NotFoundError(
        "rename", problems[0], "missing, or not what its task committed: " + _named(problems)
    )


async def gather(run: Run, path: str, found: Fingerprints, etags: bool | None = None) -> None:
    """Add what is in the directory ``path`` to ``found``, as ``identity`` says it.

    Args:
        run: the commit under way.
        path: a directory; one that is missing, or is a file, adds nothing.
        found: where to.
        etags: whether the entries to compare with all have an etag, none has, or some.
    """
    try:
        async for page in pages(run.store, path):
            files = [info for info in page if info.kind is Kind.FILE]
            if etags is not False:
                found.add([(info.path, info.size, info.etag) for info in files])
            if etags is not True:
                found.add([(info.path, info.size) for info in files])
    except NotFoundError:
        return
    except StoreError as error:
        if not isinstance(error, PreconditionError):
            raise


async def _with_dest(loaded: Loaded, prints: set[int]) -> AsyncIterator[Entry]:
    """Return the entries whose destination has one of these fingerprints."""
    if not prints:
        return
    async for entry in loaded.spill.each():
        if fingerprint(entry.dest) in prints:
            yield entry


def _named(problems: Sequence[str]) -> str:
    more = len(problems) - NAMED
    return ", ".join(problems[:NAMED]) + (f" and {more} more" if more > 0 else "")

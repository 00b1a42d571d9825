"""Job commit, second step: refuse what would fail half-way.

Nothing under the destination has changed when this ends. What a mode replaces is listed: it is
deleted, file by file, when the job is committed and not before. What a file of the job overwrites
is found by one listing of each directory that files go to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.jobs import find_others
from asynccommit.commit.by_upload.loaded import LoadedSets
from asynccommit.commit.by_upload.open_uploads import is_completed, refuse_missing
from asynccommit.commit.by_upload.plan import UploadPlan
from asynccommit.commit.errors import named
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.job.modes import OTHERS_BELOW, SINK_LOG, is_output, not_empty, refuse_mode
from asynccommit.commit.job.places import refuse_within, related
from asynccommit.commit.layouts.layout import TEMPORARY
from asynccommit.commit.paths import ancestors, outermost, stays, within
from asynccommit.commit.spill import Entry, Spill
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError, RejectedError
from asynccommit.formats.magic_paths import ANY_MAGIC
from asynccommit.options.job import Mode
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import list_if_there, pages, tree_pages

_BATCH = 4_096
_REMEDY = "move it, or set mapreduce.manifest.committer.delete.target.files"


async def preflight(
    run: UploadContext,
    plan: UploadPlan,
    overwrite: Sequence[str] = (),
    *,
    adopt: bool = False,
) -> None:
    """Decide what to change, or refuse.

    Args:
        run: the commit under way.
        plan: content of the pending sets, and the mode; receives the decisions.
        overwrite: decoded paths of the directories whose content will be replaced.
        adopt: accept existing files that an upload of the job made.

    Raises ``ExistsError`` for destinations that are taken or wanted twice, ``PreconditionError``
    for a file where a directory is needed, ``NotFoundError`` for an upload that is gone.
    """
    with run.meter.timed("op_prepare_dir_ancestors"):
        await _refuse_duplicates(run, plan.loaded)
        await check_mode(run, plan.mode, overwrite, plan.loaded)
        targets = _targets(run, plan, overwrite)
        plan.targets = [run.layout.dest.path] if plan.mode is Mode.FAIL else targets
        await refuse_others(run, plan)
        with Fingerprints(run.options.spill_directory) as existing, _spill(run) as there:
            survey = _UploadSurvey(run, plan, targets, existing, there)
            await survey.look()
            wanted = await _with_dest(plan.loaded, plan.loaded.dests.common(existing))
            await _divide(run, plan, there, wanted)
            kept = {p for p in wanted if not within(p, targets) or _is_kept(run, p)}
            await _in_the_way(run, plan, kept, adopt=adopt)
        await _plan_marker(run, plan, always=run.layout.dest.path in targets)
        _refuse_unfit_asides(run, plan)
        needed = run.options.check_sources or plan.asides or plan.old.count
        if (needed or not run.store.traits.aborts) and not adopt:
            await refuse_missing(run, plan.loaded)


def _spill(run: UploadContext) -> Spill:
    return Spill(run.options.spill_directory)


async def check_mode(
    run: UploadContext, mode: Mode, overwrite: Sequence[str], loaded: LoadedSets | None = None
) -> None:
    """Refuse a destination that ``mode`` cannot be used on.

    The partitioned committer, whose tasks look before they upload, wants only the directories free
    that files go to; a file in the table itself wants its name.

    Raises ``ExistsError``, ``PreconditionError``.
    """
    await refuse_file(run)
    if mode is Mode.FAIL and run.layout.committer == "partitioned":
        places = set() if loaded is None else loaded.parents - {run.layout.dest.path}
        await for_each(sorted(places), lambda path: _refuse_taken(run, path), workers=run.workers)
        mode = Mode.APPEND
    await refuse_mode(run, mode, overwrite)


async def refuse_others(run: UploadContext, plan: UploadPlan) -> None:
    """Refuse to replace what another unfinished commit touches.

    A replacing commit finally deletes old files by etag, and a file with the same content that was
    written meanwhile has the same etag. Raises ``PreconditionError`` that names the job.
    """
    asides = plan.asides.keys() - {run.layout.success}
    over = {path.rpartition("/")[0]: path for path in asides}  # one in each directory is enough
    if not plan.targets and not over:
        return
    needed = [] if plan.mode is Mode.FAIL else [*plan.targets, *over.values()]
    others = await find_others(run, related(run.layout, needed))
    refuse_within(plan.targets, others)
    refuse_within(list(over.values()), others, decided=True)


async def refuse_changes(run: UploadContext, plan: UploadPlan) -> None:
    """Refuse to continue if replaced directories changed meanwhile.

    A job whose whole commit lay between two pages of the listing would be torn: some of its files
    are planned to be deleted, and others were never seen. A commit that ended before the records
    were read has all its files in place for this second listing. Raises ``PreconditionError``.
    """
    if plan.mode is Mode.FAIL:
        await check_mode(run, plan.mode, (), plan.loaded)
        return
    if not plan.targets or not plan.old.count:
        return
    with Fingerprints(run.options.spill_directory) as known:
        async for entry in plan.old.each():
            known.add([(entry.dest, entry.etag)])
        known.add([(path, old.etag) for path, old in plan.asides.items()])
        for target in plan.targets:
            with Fingerprints(run.options.spill_directory) as there:
                async for page in tree_pages(run.store, target):
                    data = [i for i in page if not i.is_dir and _is_replaced(run, target, i.path)]
                    there.add([(info.path, info.etag) for info in data])
                if there.missing(known):
                    text = "another job wrote there during the listing: commit again"
                    raise PreconditionError("delete_many", target, text)


def _is_replaced(run: UploadContext, target: str, path: str) -> bool:
    if target == run.layout.dest.path and run.layout.reserves(path):
        return False
    return _is_data(run, path)


async def refuse_file(run: UploadContext) -> None:
    """Refuse a destination that is a file. Raises ``PreconditionError``."""
    try:
        info = await run.store.head(run.layout.dest.path)
    except NotFoundError:
        return
    if info.kind is Kind.FILE:
        text = "a file is in the place of the output directory"
        raise PreconditionError("mkdir", info.path, text)


async def _refuse_taken(run: UploadContext, path: str) -> None:
    taken = [i.path for i in await list_if_there(run.store, path) if is_output(run.layout, i)]
    if taken:
        raise not_empty("the partition", path, taken)


async def _refuse_duplicates(run: UploadContext, loaded: LoadedSets) -> None:
    needed = ancestors(run.layout.root, loaded.parents)
    with Fingerprints(run.options.spill_directory) as directories:
        directories.add(needed)
        suspects = loaded.dests.repeated() | loaded.dests.common(directories)
    seen: set[str] = set()
    problems: list[str] = []
    if suspects:
        async for pending in loaded.spill.each():
            dest = pending.dest
            if fingerprint(dest) not in suspects:
                continue
            if dest in seen:
                problems.append(f"{dest} is the destination of two uploads")
            elif dest in needed:
                problems.append(f"{dest} is a file of one task and a directory of another")
            seen.add(dest)
    if problems:
        raise ExistsError("complete_upload", problems[0].split(" ", 1)[0], named(problems))


def _targets(run: UploadContext, plan: UploadPlan, overwrite: Sequence[str]) -> list[str]:
    """Return the directories whose content is replaced.

    A file in the table itself makes no partition of it, and replaces nothing but its name.
    """
    dest = run.layout.dest.path
    targets = {_checked_target(run, path) for path in overwrite}
    if plan.mode is Mode.REPLACE_TABLE:
        targets.add(dest)
    if plan.mode is Mode.REPLACE_PARTITIONS:
        targets |= plan.loaded.parents - {dest, run.layout.root}
    return outermost(targets)


def _checked_target(run: UploadContext, path: str) -> str:
    names = [name for name in path.split("/") if name]
    clean = "/" + "/".join(names)
    inside = within(clean, [run.layout.dest.path]) or run.layout.dest.path == "/"
    if {".", ".."} & set(names) or not inside or run.layout.reserves(clean):
        text = "is not a directory in the destination and cannot be replaced"
        raise PreconditionError("delete_many", path, text)
    return clean


@dataclass(slots=True)
class _UploadSurvey:
    """The existing content of the destination that the job touches."""

    run: UploadContext
    plan: UploadPlan
    targets: list[str]
    existing: Fingerprints
    there: Spill
    below: list[str] = field(default_factory=list)
    blocked: list[str] = field(default_factory=list)

    async def look(self) -> None:
        """Survey the destination.

        Raises ``PreconditionError`` for a file in the place of a directory.
        """
        run, parents = self.run, self.plan.loaded.parents
        await for_each(self.targets, self._list_target, workers=run.workers)
        needed = {*ancestors(run.layout.root, parents), run.layout.dest.path}
        self.below = [path for path in (run.layout.dest.path,) if not within(path, self.targets)]
        while self.below:
            level, self.below = self.below, []
            await for_each(level, lambda path: self._list(path, needed), workers=run.workers)
        if self.blocked:
            text = "a file is in the place of a directory: move it"
            raise PreconditionError("complete_upload", min(self.blocked), text)

    async def _list(self, path: str, needed: set[str]) -> None:
        try:
            async for page in pages(self.run.store, path):
                inside = [info for info in page if info.path in needed]
                self.below += [
                    info.path
                    for info in inside
                    if info.is_dir and not within(info.path, self.targets)
                ]
                self.blocked += [info.path for info in inside if not info.is_dir]
                if path in self.plan.loaded.parents:
                    self.existing.add([info.path for info in page])
        except NotFoundError:
            return

    async def _list_target(self, path: str) -> None:
        layout, whole = self.run.layout, path == self.run.layout.dest.path
        async for page in tree_pages(self.run.store, path):
            files = [info for info in page if not info.is_dir]
            for info in files:
                _refuse_nested(info.path, path, own=whole)
            files = [info for info in files if not (whole and layout.reserves(info.path))]
            self.existing.add([info.path for info in files])
            rows = [Entry("", info.path, info.size, info.etag) for info in files]
            for start in range(0, len(rows), _BATCH):
                await self.there.append(rows[start : start + _BATCH])


def _refuse_nested(path: str, target: str, *, own: bool) -> None:
    """Refuse to replace a directory with a nested job's files.

    Jobs directly in ``target`` have this destination, if it is this job's ``own``.
    """
    names = path[len(target) :].split("/")[1:]
    reserved = [name == TEMPORARY or name.startswith(ANY_MAGIC) for name in names]
    if any(reserved) and not (own and reserved[0]):
        raise PreconditionError("delete_many", path, OTHERS_BELOW)


async def _with_dest(loaded: LoadedSets, prints: set[int]) -> set[str]:
    """Return the destinations that have one of these fingerprints."""
    if not prints:
        return set()
    return {p.dest async for p in loaded.spill.each() if fingerprint(p.dest) in prints}


async def _divide(run: UploadContext, plan: UploadPlan, there: Spill, wanted: set[str]) -> None:
    """Divide listed files into overwritten, replaced and kept ones."""
    batch: list[Info] = []
    async for entry in there.each():
        info = Info(entry.dest, Kind.FILE, entry.size, entry.etag)
        if entry.dest in wanted:
            plan.overwrite(info)
        elif _is_data(run, entry.dest):
            batch.append(info)
        if len(batch) == _BATCH:
            await plan.replace(batch)
            batch = []
    await plan.replace(batch)


def _is_data(run: UploadContext, path: str) -> bool:
    """Return whether readers of the table would see a file to be replaced."""
    names = path[len(run.layout.root) + 1 :].split("/")
    if {"", ".", ".."} & set(names):
        text = "is to be replaced, but has an invalid name: delete it first"
        raise PreconditionError("delete_many", path, text)
    return names[0] == SINK_LOG or not any(stays(name) for name in names)


def _is_kept(run: UploadContext, path: str) -> bool:
    """Return whether a hidden file of the table itself is in the way."""
    return path.rpartition("/")[0] == run.layout.root and not _is_data(run, path)


async def _in_the_way(
    run: UploadContext, plan: UploadPlan, wanted: set[str], *, adopt: bool
) -> None:
    """Plan copies of files to overwrite, if the options allow it."""
    if adopt:
        wanted -= await _completed_before(run, plan, wanted)
    taken: list[str] = []

    async def look(path: str) -> None:
        async for page in pages(run.store, path):
            for info in page:
                if info.path not in wanted:
                    continue
                if info.is_dir:
                    text = "a directory is in the place of a file: move it"
                    raise PreconditionError("complete_upload", info.path, text)
                taken.append(info.path)
                plan.overwrite(info)

    parents = {path.rpartition("/")[0] or "/" for path in wanted}
    await for_each(sorted(parents), look, workers=run.workers)
    if taken and not run.options.delete_target_files:
        taken.sort()
        others = f" (as at {named(taken[1:])})" if taken[1:] else ""
        text = f"it exists already{others}: {_REMEDY}"
        raise ExistsError("complete_upload", taken[0], text)


async def _completed_before(run: UploadContext, plan: UploadPlan, wanted: set[str]) -> set[str]:
    """Return destinations with files of the job's own uploads."""
    if not wanted:
        return set()
    suspects = [p async for p in plan.loaded.spill.each() if p.dest in wanted]
    found: set[str] = set()

    async def ask(index: int) -> None:
        if await is_completed(run, suspects[index]):
            found.add(suspects[index].dest)

    await for_each(range(len(suspects)), ask, workers=run.workers)
    return found


async def _plan_marker(run: UploadContext, plan: UploadPlan, *, always: bool) -> None:
    """Plan to move an earlier job's marker aside first."""
    plan.asides.pop(run.layout.success, None)
    if not (run.options.mark_success or always):
        return
    try:
        info = await run.store.head(run.layout.success)
    except NotFoundError:
        return
    if info.kind is Kind.FILE:
        plan.overwrite(info)


def _refuse_unfit_asides(run: UploadContext, plan: UploadPlan) -> None:
    """Refuse files that cannot be copied aside. Raises ``RejectedError``."""
    traits = run.store.traits
    largest = traits.multipart.largest if traits.multipart else 0
    layout = replace(run.layout, commit="0" * 12)  # the id that it will have is as long
    for path, old in plan.asides.items():
        if largest and old.size > largest:
            text = f"has {old.size} bytes, too large to be kept aside while it is replaced: move it"
            raise RejectedError("copy_if", path, text)
        size = len(layout.aside(path).encode("utf-8", "surrogatepass"))
        if traits.longest_path and size > traits.longest_path:
            text = f"its path of {size} bytes is too long to be kept aside: move it"
            raise RejectedError("copy_if", path, text)
        if old.etag is None:
            raise RejectedError("copy_if", path, "the store does not report its etag: move it")

"""Job commit, first step: read and check the manifests of tasks.

Only manifests that the tasks' commit messages name count, where there are messages; one that was
overwritten by a late loser is not used, the authorised attempt's directory is read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.claims import setup_id
from asynccommit.commit.fingerprints import Fingerprints
from asynccommit.commit.job.messages import digest, tell_of_no_file
from asynccommit.commit.layouts.layout import MANIFEST_SUFFIX, Layout, TaskCommit
from asynccommit.commit.object_holds import refuse_held
from asynccommit.commit.output_sizes import OutputSizes
from asynccommit.commit.planning.entries import decode_entries, refuse_long_name
from asynccommit.commit.planning.load_etags import with_listed_etags
from asynccommit.commit.spill import Entry, Spill
from asynccommit.commit.tasks.scan_task import refuse_reserved, scan_task_attempt
from asynccommit.errors import ManifestError, NotFoundError, UrlError
from asynccommit.formats.manifest import TaskManifest, decode_manifest
from asynccommit.options.job import Options
from asynccommit.runtime.concurrency import both, for_each
from asynccommit.stores.base import Info, Kind, Traits
from asynccommit.stores.tree import list_all
from asynccommit.stores.urls import Under, decode_uri


class LoadedManifests:
    """The content of the manifests, in bounded memory.

    Args:
        options: where to spill to.
        traits: of the store: what of an etag a file has after its rename, too.

    Attributes:
        spill: every file to rename.
        old: every file that will be replaced, from preflight or the saved plan.
        directories: every directory that must exist, and their parents.
        parents: the directories that files go to.
        sources: the directories that files come from, with the number of files.
        origins: fingerprints of the sources.
        dests: fingerprints of the destinations.
        outcome: fingerprints of (destination, size) or (destination, size, what lasts of the etag).
        tasks: committed task id -> task attempt id.
        ignored: manifests that no commit message names.
        rescanned: task attempts whose directory was read because their manifest was missing.
        digests: digest of each manifest's bytes by task id, for the commit record.
        vouched: whether the tasks' own messages say what they have committed.
        manifests: path -> etag of those that were read; of tasks' directories, where those count.
        setup_id: the id of the setup of the job whose manifests they are, if it left one.
        longest: letters of the longest path.
    """

    def __init__(self, options: Options, traits: Traits) -> None:
        directory = options.spill_directory
        self.spill = Spill(directory)
        self.old = Spill(directory)
        self.origins = Fingerprints(directory)
        self.dests = Fingerprints(directory)
        self.outcome = Fingerprints(directory)
        self.directories: set[str] = set()
        self.parents: set[str] = set()
        self.sources = Counter[str]()
        self.tasks: dict[str, str] = {}
        self.digests: dict[str, str] = {}
        self.ignored: list[str] = []
        self.rescanned: list[str] = []
        self.bytes = 0
        self.sizes = OutputSizes()
        self.vouched = False
        self.manifests: dict[str, str | None] = {}
        self.setup_id: str | None = None
        self.longest = 0
        self._lasting = traits.lasting
        self._tagged = 0

    @property
    def etags(self) -> bool | None:
        """Return whether all entries have a lasting etag; ``None`` if only some."""
        if self._tagged == self.files:
            return True
        return None if self._tagged else False

    @property
    def files(self) -> int:
        """Return the number of files to rename."""
        return self.spill.count

    def expected(self, entry: Entry) -> tuple[str, int] | tuple[str, int, str]:
        """Return what must be found at the destination of ``entry``."""
        return _identity(entry.dest, entry.size, self._lasting(entry.etag))

    async def add(self, entries: Sequence[Entry], directories: Sequence[str]) -> None:
        """Take in what one task wrote."""
        sources, dests, sizes, etags = zip(*entries, strict=True) if entries else ((),) * 4
        self.bytes += sum(sizes)
        self.sizes.add(zip(dests, sizes, strict=True))
        lasting = [*map(self._lasting, etags)]
        self._tagged += len(etags) - lasting.count(None)
        self.longest = max([self.longest, *map(len, sources), *map(len, dests)])
        self.origins.add(sources)
        self.dests.add(dests)
        self.outcome.add(map(_identity, dests, sizes, lasting))
        self.parents.update({dest.rpartition("/")[0] for dest in dests})
        self.sources.update(source.rpartition("/")[0] for source in sources)
        self.directories.update(directories)
        await self.spill.append(entries)

    def __enter__(self) -> LoadedManifests:
        return self

    def __exit__(self, *_: object) -> None:
        self.spill.close()
        self.old.close()
        self.origins.close()
        self.dests.close()
        self.outcome.close()


def identity(entry: Entry) -> tuple[str, int] | tuple[str, int, str]:
    """Return what tells ``entry`` as long as its etag is the same."""
    return _identity(entry.dest, entry.size, entry.etag)


def _identity(path: str, size: int, etag: str | None) -> tuple[str, int] | tuple[str, int, str]:
    return (path, size) if etag is None else (path, size, etag)


async def load_manifests(
    run: CommitContext,
    loaded: LoadedManifests,
    tasks: Sequence[TaskCommit] | None,
    *,
    strict: bool = False,
) -> None:
    """Read every manifest that counts into ``loaded``.

    Args:
        run: the commit under way.
        loaded: takes what they hold.
        tasks: the commit messages of the tasks; ``None`` if there are none; then every manifest in
            the job attempt's directory counts.
        strict: refuse a job with manifests of tasks without a message.

    Raises ``ManifestError`` for a manifest that cannot be trusted, ``NotFoundError`` if the job
    attempt has no manifests directory.
    """
    loaded.vouched = tasks is not None
    with run.meter.timed("job_stage_load_manifests", None if tasks is None else len(tasks)):
        found, loaded.setup_id = await both(
            lambda: _manifests(run), lambda: setup_id(run.store, run.layout.job_owner)
        )
        if not found:  # it may be the listing of an earlier setup
            found = await _manifests(run)
        if tasks is None:
            await _refuse_staged(run)
            run.meter.total = len(found)
            await for_each(found.values(), _ManifestLoader(run, loaded).trust, workers=_window(run))
            tell_of_no_file(run, len(loaded.tasks), loaded.files)
            return
        messages = by_task(run.layout, tasks)
        named = {run.layout.manifest(task_id) for task_id in messages}
        loaded.ignored = sorted(found.keys() - named)
        if strict and loaded.ignored:
            url = run.layout.url(loaded.ignored[0])
            raise ManifestError(url, "belongs to a task that was not passed to the job commit")
        for path in loaded.ignored:
            run.warn(f"ignored {run.layout.url(path)}: no task commit message names it")
        load = _ManifestLoader(run, loaded, found)
        await for_each(messages.values(), load.verify, workers=_window(run))
        tell_of_no_file(run, len(loaded.tasks), loaded.files)


async def _refuse_staged(run: CommitContext) -> None:
    """Refuse files whose destination only a missing message knows."""
    try:
        staged = await list_all(run.store, run.layout.absolute_dir)
    except NotFoundError:
        return
    if staged:
        raise ManifestError(
            run.layout.url(run.layout.absolute_dir),
            "holds files for places outside the destination, which only the driver of the job "
            "knows: run the job again",
        )


def _window(run: CommitContext) -> int:
    return min(run.workers, run.options.window)


async def _manifests(run: CommitContext) -> dict[str, Info]:
    listing = await list_all(run.store, run.layout.manifests_dir)
    refuse_held(run, listing)  # as these are, so is whatever the tasks have written
    return {info.path: info for info in listing if info.path.endswith(MANIFEST_SUFFIX)}


def by_task(layout: Layout, tasks: Sequence[TaskCommit]) -> dict[str, TaskCommit]:
    """Return commit messages by task.

    Raises ``ManifestError`` for two messages of one task.
    """
    messages: dict[str, TaskCommit] = {}
    for task in tasks:
        if task.task_id in messages and messages[task.task_id] != task:
            raise ManifestError(
                layout.url(layout.committed(task.task_id)),
                f"two attempts claim task {task.task_id}: "
                f"{messages[task.task_id].attempt_id} and {task.attempt_id}",
            )
        messages[task.task_id] = task
    return messages


@dataclass(slots=True)
class _ManifestLoader:
    """Reads one manifest after the other into the same place."""

    run: CommitContext
    loaded: LoadedManifests
    found: dict[str, Info] = field(default_factory=dict)

    async def trust(self, info: Info) -> None:
        """Take a manifest that no message vouches for."""
        url = self.run.layout.url(info.path)
        manifest = self._decode(await self._read(info), url)
        name = info.path.rpartition("/")[2].removesuffix(MANIFEST_SUFFIX)
        if manifest.task_id != name:
            raise ManifestError(url, f"belongs to task {manifest.task_id}, not {name}")
        await self._take(manifest, url)

    async def verify(self, task: TaskCommit) -> None:
        """Return the manifest of ``task``, or one rebuilt from its directory."""
        path = self.run.layout.manifest(task.task_id)
        info = self.found.get(path)
        data = b""
        if info is not None:
            with suppress(ManifestError, NotFoundError):  # then the directory tells
                data = await self._read(info)
        if data and task.digest == digest(data):
            url = self.run.layout.url(path)
            manifest = self._decode(data, url)
            if (manifest.task_id, manifest.task_attempt_id) != (task.task_id, task.attempt_id):
                raise ManifestError(
                    url, f"does not belong to {task.attempt_id}, although its digest matches"
                )
            await self._take(manifest, url)
        else:
            await self._rescan(task, missing=not data)
        self.loaded.digests[task.task_id] = task.digest
        await self._take_absolute(task)

    async def _read(self, info: Info) -> bytes:
        url = self.run.layout.url(info.path)
        if info.is_dir:
            raise ManifestError(url, "is a directory, not a manifest: remove it and commit again")
        if info.size == 0:
            raise ManifestError(url, "is empty: the task's commit was cut short; run it again")
        limit = self.run.options.max_manifest_bytes
        if info.size > limit:
            raise ManifestError(url, _too_large(info.size, limit))
        with self.run.meter.counted_as("op_load_manifest"):
            data = await self.run.store.get(info.path, limit)
        self.loaded.manifests[info.path] = info.etag
        self.run.meter.statistics.sample("committer_task_manifest_file_size", len(data))
        return data

    def _decode(self, data: bytes, url: str) -> TaskManifest:
        manifest = decode_manifest(data, url)
        if manifest.job_id != self.run.layout.job_id:
            raise ManifestError(url, f"belongs to another job, {manifest.job_id!r}")
        if manifest.job_attempt != self.run.layout.attempt:
            raise ManifestError(url, f"belongs to another job attempt, {manifest.job_attempt}")
        if manifest.task_id in self.loaded.tasks:
            raise ManifestError(url, f"task {manifest.task_id} already has a manifest")
        self.loaded.tasks[manifest.task_id] = manifest.task_attempt_id
        return manifest

    async def _take(self, manifest: TaskManifest, url: str) -> None:
        try:
            entries, directories = decode_entries(self.run.layout, manifest)
        except UrlError as error:
            raise ManifestError(url, str(error)) from error
        if manifest.statistics is not None:
            self.run.meter.statistics.merge(manifest.statistics)
        base = self.run.layout.task_attempt_dir(manifest.task_attempt_id)
        await self.loaded.add(await with_listed_etags(self.run, entries, base, url), directories)
        self.run.meter.step()

    async def _rescan(self, task: TaskCommit, *, missing: bool) -> None:
        layout = self.run.layout
        base = layout.task_attempt_dir(task.attempt_id)
        why = "is missing" if missing else "is not the committed one"
        url = layout.url(layout.manifest(task.task_id))
        try:
            found = await scan_task_attempt(self.run, base)
        except NotFoundError as error:
            raise ManifestError(
                url, f"{why}, and the directory of {task.attempt_id} is gone: run the job again"
            ) from error
        if (len(found.files), found.bytes) != (task.files, task.bytes):
            raise ManifestError(
                url,
                f"{why}, and the directory of {task.attempt_id} holds {len(found.files)} files "
                f"of {found.bytes} bytes, but {task.files} of {task.bytes} were committed",
            )
        refuse_reserved(self.run, found, base)
        self.run.warn(f"{url} {why}: the directory of {task.attempt_id} was read instead")
        self.loaded.rescanned.append(task.attempt_id)
        self.loaded.tasks[task.task_id] = task.attempt_id
        await self.loaded.add(found.files, list(found.directories))
        self.run.meter.step()

    async def _take_absolute(self, task: TaskCommit) -> None:
        if not task.absolute:
            return
        layout = self.run.layout
        staged = Under(layout.dest.at(f"{layout.absolute_dir}/{task.attempt_id}"))
        entries = []
        for source_uri, dest_uri in task.absolute.items():
            try:
                source, dest = staged.path(source_uri), decode_uri(dest_uri)
                refuse_long_name(dest.path)
            except UrlError as error:
                raise ManifestError(source_uri, str(error)) from error
            if not dest.same_store(layout.dest):
                raise ManifestError(dest_uri, f"is not on the store of {layout.dest}")
            if layout.reserves(dest.path) or {".", ".."} & set(dest.path.split("/")):
                raise ManifestError(dest_uri, "is not a place that tasks may write to")
            info = await self.run.store.head(source)
            if info.kind is not Kind.FILE:
                raise ManifestError(source_uri, f"is a {info.kind.value}, not a file")
            with suppress(NotFoundError):  # a name that no file can have is refused here
                await self.run.store.head(dest.path)
            entries.append(Entry(source, dest.path, info.size, info.etag))
        await self.loaded.add(entries, [])


def _too_large(size: int, limit: int) -> str:
    return f"has {size} bytes, more than asynccommit.max.manifest.bytes= {limit}"

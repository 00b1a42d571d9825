"""Recognise the files of tasks: at their sources, and after their renames.

What of an etag survives a rename is ``Traits.lasting``; here is what follows from it. An entry
without an etag, as Hadoop's manifests have them, is known by its size alone on every store, and
a size counts only where its source is gone.

A task may publish a file of the table again under its name, as a hard link: old and new file are
then one, with one etag. What the plan is to move aside and has not is the table's.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from asynccommit.commit.context import CommitContext
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.full_etags import with_etags
from asynccommit.commit.ownership.lease import require_place
from asynccommit.commit.paths import above
from asynccommit.commit.planning.plan import Aside, Plan, aside_path
from asynccommit.commit.planning.sources import gather
from asynccommit.commit.spill import Entry
from asynccommit.errors import NotFoundError, OutcomeUnknownError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import is_there, pages

_CLOCK_SKEW_SECONDS = 2.0
"""Maximum rounding error of the store's times in seconds."""

_FILE_NUMBER = re.compile("([0-9a-f]+)-([0-9a-f]+)-[0-9a-f]+").fullmatch

Look = Callable[[str, Fingerprints], Awaitable[None]]


def identity_of(run: CommitContext) -> FileIdentity:
    """Return how files are identified on the store of the destination."""
    traits = run.store.traits
    if traits.content_etags:
        return ByVersion(run)
    return ByFileNumber(run) if traits.file_etags else FileIdentity(run)


class FileIdentity:
    """Identity by the etag, kept by a rename or its condition.

    Where neither is so, only the sources tell what was moved.
    """

    def __init__(self, run: CommitContext) -> None:
        self.run = run
        self.traits = run.store.traits

    @property
    def tells_alone(self) -> bool:
        """Return whether an etag at a destination says that its file was moved.

        Otherwise the source of such a file must be gone.
        """
        return self.traits.etag_survives_rename

    async def begun_at(self) -> float:
        """Return the time before which no file at a destination counts.

        It is the store's time.
        """
        return 0.0

    async def is_at(self, entry: Entry, place: str) -> bool:
        """Return whether the file at ``place`` is the one ``entry`` moved there."""
        try:
            info = await self.run.store.head(place)
        except NotFoundError:
            return False
        wanted, found = self.traits.lasting(entry.etag), self.traits.lasting(info.etag)
        if wanted is None or found is None:
            return (
                info.kind is Kind.FILE and info.size == entry.size and self.run.identity.epoch > 1
            )
        return info.kind is Kind.FILE and found == wanted

    async def move(
        self, entry: Entry, dest: str, *, replace: bool = False, token: str | None = None
    ) -> None:
        """Rename a task's file.

        Raises what ``Store.rename`` raises, ``PreconditionError`` for another file, and
        ``LeaseLostError``.
        """
        etag = self.traits.guarded(entry.etag)
        await self.run.store.rename(entry.source, dest, replace=replace, etag=etag, token=token)

    async def find_twin(self, entry: Entry) -> Info | None:
        """Return another version of a source with its size and content."""
        return None

    async def is_intact(self, place: str, etag: str | None) -> bool:
        """Return whether a rename to ``place`` has moved the file with ``etag``."""
        return True

    def is_changed(self, entry: Entry, info: Info, until: int) -> bool:
        """Return whether ``info`` is surely ``entry``'s file, changed in place.

        ``until`` are nanoseconds since the epoch.
        """
        return False


class ByFileNumber(FileIdentity):
    """Identity by number, time and size: local disks.

    No rename has a condition there.
    """

    async def is_intact(self, place: str, etag: str | None) -> bool:
        """See ``FileIdentity.is_intact``."""
        return (await self.run.store.head(place)).etag == etag

    def is_changed(self, entry: Entry, info: Info, until: int) -> bool:
        """See ``FileIdentity.is_changed``.

        The number of a file is reused once it is deleted. Therefore this file must be as old as the
        etag and no younger than ``until``.
        """
        known = _FILE_NUMBER(entry.etag or "")
        if known is None or not info.made or (info.etag or "").partition("-")[0] != known[1]:
            return False
        return info.made <= min(int(known[2], 16), until)


class ByVersion(FileIdentity):
    """Identity by checksum: Google Cloud Storage.

    Each rename makes a version.

    Where every write makes a version of its own, an upload that was sent again can come once more
    after its task has committed. Size and checksum are those of the manifest, and only the number
    of the version is another. What differs in either is never moved.
    """

    async def begun_at(self) -> float:
        """See ``FileIdentity.begun_at``.

        An older file with the content of one of the job's files is not that file. Where a rename
        keeps the time of a file, only its source tells.
        """
        if self.traits.rename_keeps_version:
            return 0.0
        try:
            made = (await self.run.store.head(self.run.layout.record)).modified
        except NotFoundError:
            return 0.0
        return made - _CLOCK_SKEW_SECONDS

    async def move(
        self, entry: Entry, dest: str, *, replace: bool = False, token: str | None = None
    ) -> None:
        """See ``FileIdentity.move``.

        Another version is moved only after its owner has seen that it still is one, and by the
        number of that version: so a takeover that has looked at the sources since keeps it from
        being moved. A lost response is harmless then: the version that the request named is gone.
        """
        run, etag = self.run, entry.etag
        while True:
            try:
                await run.store.rename(entry.source, dest, replace=replace, etag=etag, token=token)
                return
            except (PreconditionError, OutcomeUnknownError):
                found = await self.find_twin(entry)
                if found is None or self.traits.same(found.etag, etag):
                    raise
            etag = found.etag
            if run.held is not None:
                await require_place(run)
                run.check_lease()

    async def find_twin(self, entry: Entry) -> Info | None:
        """See ``FileIdentity.find_twin``; it may be the very version."""
        content = self.traits.lasting(entry.etag)
        if content is None:
            return None
        try:
            info = await self.run.store.head(entry.source)
        except NotFoundError:
            return None
        same = info.kind is Kind.FILE and info.size == entry.size
        return info if same and self.traits.lasting(info.etag) == content else None


def source_print(source: str, etag: str | None) -> int:
    """Return the fingerprint of an unmoved file; any if without etag."""
    return fingerprint((source,) if etag is None else (source, etag))


def content_print(run: CommitContext, entry: Entry) -> int:
    """Return the fingerprint of a source, by content only."""
    return fingerprint((entry.source, entry.size, run.store.traits.lasting(entry.etag)))


class Settled:
    """The files that are where they belong already.

    Args:
        run: the commit under way.
        plan: the planned changes.
        there: fingerprints of files known to be at their destinations; ``None`` for nothing.
        sources: fingerprints of existing sources; ``None`` if the first ones say it all.
    """

    def __init__(
        self,
        run: CommitContext,
        plan: Plan,
        there: set[int] | None = None,
        sources: set[int] | None = None,
    ) -> None:
        self._identity = identity_of(run)
        self._expected = plan.loaded.expected
        self._there = there or set()
        self._sources = sources

    def __bool__(self) -> bool:
        return bool(self._there)

    def has(self, entry: Entry) -> bool:
        """Return whether ``entry`` is at its destination, or in its unit's place.

        The unit's place is the directory where it is put together.
        """
        if fingerprint(self._expected(entry)) not in self._there:
            return False
        if self._sources is None or (self._identity.tells_alone and entry.etag is not None):
            return True
        return source_print(entry.source, entry.etag) not in self._sources


async def at_destinations(
    run: CommitContext, plan: Plan, since: float = 0.0, *, also: Look | None = None
) -> set[int]:
    """Return the fingerprints of planned files that are at their destinations.

    Args:
        run: the commit under way.
        plan: the planned changes.
        since: files that have not changed since then do not count.
        also: looks at more, for each directory that files go to.
    """
    with Fingerprints(run.options.spill_directory) as found:

        async def look(path: str) -> None:
            await gather(run, path, found, plan.loaded.etags, since=since)
            if also is not None:
                await also(path, found)

        await for_each(sorted(plan.loaded.parents), look, workers=run.workers)
        return plan.loaded.outcome.common(found)


async def sources_there(
    run: CommitContext, plan: Plan, base: str | None = None, *, contents: bool = False
) -> set[int]:
    """Return the fingerprints of unmoved sources, by listings.

    Args:
        run: the commit under way.
        plan: the planned changes.
        base: where the tasks' directories are now, if they were moved.
        contents: also return what ``content_print`` gives, where etags tell contents.
    """
    cut, lasting = len(run.layout.sources_dir), run.store.traits.lasting
    with Fingerprints(run.options.spill_directory) as found:

        async def look(path: str) -> None:
            place = path if base is None else base + path[cut:]
            with suppress(NotFoundError, PreconditionError):  # nothing, or no directory
                async for page in pages(run.store, place):
                    for info in await with_etags(run, page):
                        source = path + info.path[len(place) :]
                        found.add([(source,), (source, info.etag)])
                        if contents and (content := lasting(info.etag)):
                            found.add([(source, info.size, content)])

        await for_each(sorted(plan.loaded.sources), look, workers=run.workers)
        return found.common(found)


@dataclass(slots=True)
class Before:
    """The things that a plan moves aside, by path and identity.

    Attributes:
        run: the commit under way.
        plan: the planned changes.
        asides: everything that the plan moves aside.
        files: files that are moved aside by themselves: path -> etag.
        below: fingerprints of the files in directories that are moved aside: path, size and etag;
            of those that an entry without an etag could be, path and size too.
    """

    run: CommitContext
    plan: Plan
    asides: list[Aside]
    files: dict[str, str | None]
    below: set[int]

    @classmethod
    async def of(cls, run: CommitContext, plan: Plan) -> Before:
        """Read what the plan says of the table before the commit."""
        asides = [*plan.aside, *plan.replaced]
        files = {aside.path: aside.etag for aside in asides if aside.kind is not Kind.DIRECTORY}
        with Fingerprints(run.options.spill_directory) as found:
            async for old in plan.old.each():
                found.add([(old.dest, old.size, old.etag)])
                if plan.loaded.etags is not True:
                    found.add([(old.dest, old.size)])
            below = found.common(found)
        return cls(run, plan, asides, files, below)

    def may_be(self, entry: Entry) -> bool:
        """Return whether the old file of ``entry`` looks like the new one."""
        if entry.dest in self.files:
            etag = self._lasting(entry.etag)
            return etag is None or etag == self._lasting(self.files[entry.dest])
        return fingerprint(self.plan.loaded.expected(entry)) in self.below

    def has(self, info: Info) -> bool:
        """Return whether a file is unchanged since before the commit."""
        if info.path in self.files:
            return self._lasting(info.etag) == self._lasting(self.files[info.path])
        return fingerprint((info.path, info.size, info.etag)) in self.below

    def over(self, path: str) -> str | None:
        """Return what is moved aside for ``path``: it or a parent directory."""
        places = {aside.path for aside in self.asides}
        return next((place for place in (path, *above(path)) if place in places), None)

    async def each(self) -> AsyncIterator[tuple[str, str | None]]:
        """Yield everything that is moved aside, with durable etags."""
        for aside in self.asides:
            yield aside.path, self.identity(aside.kind, aside.etag)
        async for old in self.plan.old.each():
            if old.dest not in self.files:
                yield old.dest, self._lasting(old.etag)

    def identity(self, kind: Kind, etag: str | None) -> str | None:
        """Return the identity of a file, independent of its path.

        Another job may fill a directory meanwhile.
        """
        return None if kind is Kind.DIRECTORY else self._lasting(etag)

    def _lasting(self, etag: str | None) -> str | None:
        return self.run.store.traits.lasting(etag)

    async def is_aside(self, path: str) -> bool:
        """Return whether the old content of ``path`` is in its place aside."""
        return await is_there(self.run.store, aside_path(self.run.layout, self.run.place, path))

    async def still_there(self, prints: set[int]) -> set[int]:
        """Return those of ``prints`` that belong to the table's own files.

        Args:
            prints: fingerprints found at destinations, in the form of ``Loaded.expected``.
        """
        kept: set[int] = set()
        if not prints or not (self.files or self.below):
            return kept

        async def ask(entry: Entry) -> None:
            known = fingerprint(self.plan.loaded.expected(entry))
            if known in prints and self.may_be(entry) and not await self.is_aside(entry.dest):
                kept.add(known)

        await for_each(self.plan.loaded.spill.entries(), ask, workers=self.run.workers)
        return kept


async def without_old(run: CommitContext, plan: Plan, prints: set[int]) -> set[int]:
    """Return ``prints`` without files of the table before the commit.

    Where a move gives a file another etag, that and its source tell, and nothing is asked.
    """
    if not prints or not run.store.traits.etag_survives_rename:
        return prints
    return prints - await (await Before.of(run, plan)).still_there(prints)

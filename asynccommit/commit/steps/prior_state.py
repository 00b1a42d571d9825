"""Earlier content that could be mistaken for the job's files.

A task may publish a file of the table again under its name, as a hard link: old and new file are
then one, with one etag. What the plan is to move aside and has not is the table's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from asynccommit.commit.context import CommitContext
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.paths import above
from asynccommit.commit.planning.plan import Aside, Plan, aside_path
from asynccommit.commit.spill import Entry
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import is_there


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

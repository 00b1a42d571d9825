"""The planned changes of a job commit under the destination."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.paths import SAMPLE, above, ancestors, leaves
from asynccommit.commit.planning.load_manifests import LoadedManifests
from asynccommit.commit.spill import Entry, Spill
from asynccommit.options.job import Mode
from asynccommit.stores.base import Info, Kind, Traits

DISPLACED = "_displaced"
"""The directory in the destination for files that a rollback could not restore."""


class Aside(NamedTuple):
    """Something to move aside, and the identity that it must have."""

    path: str
    kind: Kind
    etag: str | None

    @classmethod
    def of(cls, info: Info) -> Aside:
        """Return what a store says of a path as a thing to move aside."""
        return cls(info.path, info.kind, info.etag)


@dataclass(slots=True)
class Plan:
    """The changes that the commit will make under the destination.

    Attributes:
        loaded: the files.
        mode: the treatment of existing data.
        aside: what stands in the way, moved aside before directories are made.
        replaced: what a mode replaces, moved aside when the new files are at hand.
        units: directories whose new content is put together elsewhere and moved in as one.
        make: directories to make, only those whose parents do not tell: the leaves.
        missing: every directory that the job makes.
        made: whether the directories to make were made as the commit began.
        reserved: the empty file in the owner's directory for the content of ``_SUCCESS``.
        sample: destinations of the first files renamed.
        settled: files that an earlier owner of this commit has moved already.
        carried: directories of tasks whose files were moved with them.
        came: the directories that came so.
        held: how many files each unit holds, once they are put together.
        targets: directories whose content a mode replaces, also those that are not there.
        looked: for each directory that was swapped, the directories moved aside with it, and their
            times when they were looked at.
        undecided: the job attempts that were not committed when the targets were listed.
        workers: the counts of each process that renamed files for the owner.
    """

    loaded: LoadedManifests
    mode: Mode = Mode.APPEND
    aside: list[Aside] = field(default_factory=list)
    replaced: list[Aside] = field(default_factory=list)
    units: set[str] = field(default_factory=set)
    make: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    made: bool = False
    reserved: str | None = None
    sample: list[str] = field(default_factory=list)
    settled: int = 0
    carried: set[str] = field(default_factory=set)
    came: set[str] = field(default_factory=set)
    held: Counter[str] = field(default_factory=Counter)
    targets: list[str] = field(default_factory=list)
    looked: dict[str, dict[str, float | None]] = field(default_factory=dict)
    undecided: frozenset[str] = frozenset()
    workers: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def old(self) -> Spill:
        """Files below ``replaced``: path, size and etag, without a source."""
        return self.loaded.old

    def to_make(self, traits: Traits) -> list[str]:
        """Return the directories to create.

        These are leaves, or only empty ones where files create their parents.
        """
        found = leaves([path for path in self.missing if self.unit_of(path) is None])
        if traits.directories:
            return found
        return [path for path in found if path not in self.loaded.parents]

    async def take_sample(self) -> None:
        """Name the first destinations, in order: each owner names the same."""
        self.sample.clear()
        async for entry in self.loaded.spill.each():
            if len(self.sample) == SAMPLE:
                break
            self.sample.append(entry.dest)
        self.sample.sort()  # manifests are read in any order

    def unit_of(self, directory: str) -> str | None:
        """Return the unit that ``directory`` is, or is in, if there is one."""
        return next((path for path in (directory, *above(directory)) if path in self.units), None)

    def unit_directories(self) -> set[str]:
        """Return the units, and the directories in them that the job makes."""
        if not self.units:
            return set()
        wanted = self.loaded.parents | self.loaded.directories
        inside = {path for path in ancestors("", wanted) if self.unit_of(path)}
        return inside | self.units


def staged_path(layout: Layout, epoch: int, dest: str) -> str:
    """Return where a file of a unit waits until the unit is moved in."""
    return layout.beside(f"{layout.epoch_dir(epoch)}/new", dest)


def aside_path(layout: Layout, epoch: int, path: str) -> str:
    """Return where ``path`` is moved aside to."""
    return layout.beside(f"{layout.epoch_dir(epoch)}/aside", path)


def displaced_path(layout: Layout, commit_id: str, path: str, base: str = DISPLACED) -> str:
    """Return the place for a file that a rollback cannot restore.

    Outside of ``_temporary``, since other committers delete all of that.
    """
    number = f"{layout.job_id}-{layout.attempt:02d}-{commit_id[:12]}"
    return layout.beside(f"{layout.root}/{base}/{number}", path)


def undone_path(layout: Layout, epoch: int, path: str) -> str:
    """Return where a rollback moves the file."""
    return layout.beside(f"{layout.epoch_dir(epoch)}/undone", path)


def emptied_path(layout: Layout, epoch: int, path: str) -> str:
    """Return where a rollback moves a directory that a file replaces.

    Names in it are those of the table: a longer one might be longer than a file system takes.
    """
    return layout.beside(f"{layout.epoch_dir(epoch)}/emptied", path)


def untagged(plan: Plan) -> bool:
    """Return whether some files have no etag.

    A size alone does not identify a file.
    """
    return plan.loaded.etags is not True


def old_entry(info: Info) -> Entry:
    """Return the recorded facts about a replaced file."""
    return Entry("", info.path, info.size, info.etag)

"""The planned changes of an upload commit under the destination."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from asynccommit.commit.by_upload.loaded import LoadedSets
from asynccommit.commit.paths import SAMPLE
from asynccommit.commit.spill import Entry, Spill
from asynccommit.options.job import Mode, Options
from asynccommit.stores.base import Info


class Old(NamedTuple):
    """A file to be overwritten or deleted, as it was when planned."""

    size: int
    etag: str | None


@dataclass(slots=True)
class UploadPlan:
    """The changes that the commit will make.

    Attributes:
        loaded: the uploads to complete.
        old: every file that a mode replaces and no file of the job overwrites; deleted once the job
            is committed.
        made: the completed uploads: upload id, destination, size and etag.
        mode: treatment of existing data at the destination.
        targets: directories whose content is replaced; with the mode ``fail``, the destination.
        asides: path -> existing file that a file of the job overwrites, and the marker of an
            earlier job; each is copied aside before.
        sample: the first files completed.
        replacing: the first files replaced.
    """

    loaded: LoadedSets
    old: Spill
    made: Spill
    mode: Mode = Mode.APPEND
    targets: list[str] = field(default_factory=list)
    asides: dict[str, Old] = field(default_factory=dict)
    sample: list[str] = field(default_factory=list)
    replacing: list[str] = field(default_factory=list)

    @classmethod
    def new(cls, options: Options, mode: Mode = Mode.APPEND) -> Self:
        """Return an empty plan."""
        directory = options.spill_directory
        return cls(LoadedSets(options), Spill(directory), Spill(directory), mode)

    async def replace(self, infos: Iterable[Info]) -> None:
        """Plan to delete files once the job is committed."""
        entries = [Entry("", info.path, info.size, info.etag) for info in infos]
        await self.old.append(entries)
        self._name([entry.dest for entry in entries])

    def overwrite(self, info: Info) -> None:
        """Plan to keep a copy of a file that the job overwrites."""
        self.asides[info.path] = Old(info.size, info.etag)
        self._name([info.path])

    def _name(self, paths: list[str]) -> None:
        self.replacing += paths[: SAMPLE - len(self.replacing)]

    def completed_one(self, dest: str) -> None:
        """Add a file to the sample of completed files."""
        if len(self.sample) < SAMPLE:
            self.sample.append(dest)

    async def take_sample(self) -> None:
        """Fill the sample of files without completing anything."""
        async for pending in self.loaded.spill.each():
            if len(self.sample) == SAMPLE:
                return
            self.sample.append(pending.dest)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for rows in (self.loaded, self.old, self.made):
            rows.__exit__()

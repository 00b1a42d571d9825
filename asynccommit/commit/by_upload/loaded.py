"""The uploads of a job and the sets that name them, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from asynccommit.commit.fingerprints import Fingerprints
from asynccommit.commit.output_sizes import OutputSizes
from asynccommit.commit.spill import Rows
from asynccommit.formats.statistics import Statistics
from asynccommit.formats.upload_record import SetRow
from asynccommit.options.job import Options
from asynccommit.stores.parts import Part

_PARTS_A_ROW = 8  # parts that take about as much memory as the rest of a row


class Pending(NamedTuple):
    """One upload to complete: path, parts, length and token.

    The token marks the file; it is empty if the task gave none, as Hadoop's tasks do.
    """

    dest: str
    upload_id: str
    size: int
    parts: tuple[Part, ...]
    token: str = ""


class LoadedSets:
    """The content of the pending sets.

    Args:
        options: give the directory to spill to.

    Attributes:
        spill: every upload to complete.
        dests: fingerprints of the files' paths.
        parents: the directories that files go to.
        tasks: committed task id -> task attempt id, empty if the set does not name it.
        sets: the sets that were read.
        etags: path -> etag of the sets that were read.
        ignored: paths of pending sets that no commit message names.
        bytes: total length of all files.
    """

    def __init__(self, options: Options) -> None:
        directory = options.spill_directory
        self.spill = Rows(_pending, directory, weigh=_weight)
        self.dests = Fingerprints(directory)
        self.parents: set[str] = set()
        self.tasks: dict[str, str] = {}
        self.sets: list[SetRow] = []
        self.etags: dict[str, str | None] = {}
        self.ignored: list[str] = []
        self.statistics = Statistics()
        self.bytes = 0
        self.sizes = OutputSizes()

    @property
    def files(self) -> int:
        """Return the number of uploads to complete."""
        return self.spill.count

    async def add(self, found: Sequence[Pending]) -> None:
        """Add uploads."""
        self.bytes += sum([pending.size for pending in found])
        self.sizes.add((pending.dest, pending.size) for pending in found)
        self.dests.add([pending.dest for pending in found])
        self.parents.update({pending.dest.rpartition("/")[0] for pending in found})
        await self.spill.append(found)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.spill.close()
        self.dests.close()


def _pending(row: list[Any]) -> Pending:
    dest, upload_id, size, parts, token = row
    return Pending(dest, upload_id, size, tuple([Part(*part) for part in parts]), token)


def _weight(rows: Sequence[Pending]) -> int:
    return len(rows) + sum([len(row.parts) for row in rows]) // _PARTS_A_ROW

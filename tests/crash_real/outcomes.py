"""What a table may hold after several runs of jobs: as if some had been one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations, permutations
from typing import Any

from asynccommit.options.job import Mode
from tests.crash_real.places import OLD_SUCCESS, digest

Files = Mapping[str, str]
"""Path -> digest of the content."""
COMMITTED, UNDONE = "committed", "rolled back"
_UNDONE_ITSELF = "it was rolled back: "


@dataclass
class Run:
    """One run of a job.

    Attributes:
        job_id: the job, which may have several runs, one after the other.
        number: which run of it.
        mode: what it does with what is there.
        tasks: what each task writes: name -> text.
        said: what drivers have said of its end.
    """

    job_id: str
    number: int
    mode: Mode
    tasks: Sequence[Mapping[str, str]]
    said: set[str] = field(default_factory=set)

    @property
    def files(self) -> dict[str, str]:
        """All that it writes."""
        return {name: digest(text.encode()) for task in self.tasks for name, text in task.items()}

    def __str__(self) -> str:
        return f"{self.job_id}/{self.number} {self.mode.value}"


def claim(said: Mapping[str, Any]) -> str:
    """Return how a job has ended by what a driver says, ``""`` if it does not say."""
    if said["code"] == 0 and "outcome" in said:
        return UNDONE if said["rolled_back"] else ""
    if said["code"] == 0:
        return UNDONE if said["rolled_back"] else COMMITTED
    return UNDONE if _UNDONE_ITSELF in said.get("message", "") else ""


def applied(there: Files, run: Run) -> dict[str, str]:
    """Return what readers see after a run, by the rules of the modes and no commit's."""
    new = run.files
    gone: tuple[str, ...] = ()
    if run.mode is Mode.REPLACE_TABLE:
        gone = ("",)
    elif run.mode is Mode.REPLACE_PARTITIONS:
        gone = tuple({f"{name.rpartition('/')[0]}/" for name in new})
    return {path: data for path, data in there.items() if not path.startswith(gone)} | new


def problems(before: Files, runs: Sequence[Run], after: Files, marker: bytes | None) -> list[str]:
    """Return what is wrong with a table, its marker apart, and with what was said of it."""
    found = [f"{run}: {sorted(run.said)} were both said" for run in runs if len(run.said) > 1]
    if rest := sorted(path for path in after if path.startswith("_")):
        found.append(f"left: {rest}")
    ways = [way for way in possible(runs) if reduce(applied, way, before) == after]
    if not ways:
        found.append(f"no order of the runs leaves this: {differs(before, runs, after)}")
    elif not any(marked(marker, way) for way in ways):
        found.append(f"_SUCCESS is {marker!r:.200} after {[' '.join(map(str, w)) for w in ways]}")
    return found


def possible(runs: Iterable[Run]) -> Iterator[tuple[Run, ...]]:
    """Yield the orders in which runs may have been committed.

    Of a run whose last driver died before it could say how it ended, both ends are right.
    """
    sure = [run for run in runs if run.said == {COMMITTED}]
    maybe = [run for run in runs if not run.said]
    for count in range(len(maybe) + 1):
        for some in combinations(maybe, count):
            yield from permutations([*sure, *some])


def marked(marker: bytes | None, way: Sequence[Run]) -> bool:
    """Whether this may be the marker after these runs."""
    if not way:
        return marker == OLD_SUCCESS
    return marker is not None and json.loads(marker).get("jobId") in {run.job_id for run in way}


def differs(before: Files, runs: Sequence[Run], after: Files) -> str:
    """Say whose files are there, for people."""
    whose = {"before": before, **{str(run): run.files for run in runs}}
    pairs = set(after.items())
    seen = {name: f"{len(pairs & files.items())} of {len(files)}" for name, files in whose.items()}
    known = set().union(*(files.items() for files in whose.values()))
    return f"{seen}, others' {sorted(pairs - known)}"

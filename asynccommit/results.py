"""What commits and aborts give back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class JobReport:
    """What a job commit did, or would do.

    Attributes:
        job_id: the job.
        dest: the destination, as a user writes it.
        files: how many files are visible now that were not before.
        bytes: their sizes, added up.
        tasks: committed task id -> task attempt id.
        directories: how many directories were made, parents not counted.
        replaced: how many files or directories were moved aside and deleted.
        seconds: how long the commit took.
        stages: stage -> seconds, by their Hadoop statistic names.
        requests: store method -> how often it was asked for.
        refused: requests that the store refused because there were too many.
        recovered: store method -> requests whose answer was lost and that were found done.
        waited: reason -> seconds that requests waited before they were sent, added up.
        filenames: the first hundred of the files, decoded paths.
        warnings: what the caller should know though the commit succeeded.
        ignored: URLs of manifests that no task commit message names.
        success: URL of ``_SUCCESS``, ``None`` if it was not wanted.
        report: URL of the summary, ``None`` without a report directory.
        already: the job had been committed before; nothing was done.
    """

    job_id: str
    dest: str
    files: int = 0
    bytes: int = 0
    tasks: Mapping[str, str] = field(default_factory=dict)
    directories: int = 0
    replaced: int = 0
    seconds: float = 0.0
    stages: Mapping[str, float] = field(default_factory=dict)
    requests: Mapping[str, int] = field(default_factory=dict)
    refused: int = 0
    recovered: Mapping[str, int] = field(default_factory=dict)
    waited: Mapping[str, float] = field(default_factory=dict)
    filenames: Sequence[str] = ()
    warnings: Sequence[str] = ()
    ignored: Sequence[str] = ()
    success: str | None = None
    report: str | None = None
    already: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class AbortReport:
    """What an abort did.

    Attributes:
        job_id: the job.
        outcome: what became of the job's directory, as ``Outcome`` says it.
        kept: why the job's directory was left alone, ``""`` if it was not.
        report: URL of the summary, ``None`` without a report directory.
    """

    job_id: str
    outcome: str
    kept: str = ""
    report: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

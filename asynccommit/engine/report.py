"""Reports of bulk operations: progress, result and error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from asynccommit.errors import AsyncCommitError
from asynccommit.results import Printed

NAMED = 1_000
"""Maximum number of failures that a report names."""


@dataclass(frozen=True, slots=True)
class BulkProgress:
    """The progress of a bulk operation.

    Attributes:
        operation: name of the function.
        done: number of items that are finished, with those skipped and failed.
        total: number of items; ``None`` while unknown.
        failed: number of items that failed.
        seconds: seconds since the operation began.
    """

    operation: str
    done: int
    total: int | None
    failed: int
    seconds: float


OnProgress = Callable[[BulkProgress], object]


@dataclass(frozen=True, slots=True)
class Failure:
    """One item that failed.

    Attributes:
        path: the file; the source, if it was to be moved.
        dest: its destination, ``""`` if it has none.
        reason: the error, as text.
        error: the class of the error, such as ``ExistsError``.
    """

    path: str
    dest: str
    reason: str
    error: str


@dataclass(frozen=True, slots=True)
class BulkReport(Printed):
    """The result of a bulk operation.

    Attributes:
        operation: name of the function.
        done: number of items that were moved, deleted or made; of a dry run, that would be.
        directories: number of directories moved as a whole, whose files are not counted.
        skipped: number of items for which there was nothing to do.
        failed: number of items that failed.
        failures: the failures, at most a thousand.
        bytes: total size of the files done, of those whose size is known.
        requests: number of requests sent, every attempt counted.
        refused: number of requests that the store refused for their rate.
        recovered: method -> number of requests found done although their response was lost.
        seconds: duration.
        dry_run: whether nothing was changed.
    """

    operation: str
    done: int = 0
    directories: int = 0
    skipped: int = 0
    failed: int = 0
    failures: Sequence[Failure] = field(default=(), repr=False)
    bytes: int = 0
    requests: int = 0
    refused: int = 0
    recovered: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    dry_run: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


class BulkError(AsyncCommitError):
    """Raised when a bulk operation did not succeed for every item.

    Args:
        report: what was done, and what failed.
        cause: the first error.
    """

    def __init__(self, report: BulkReport, cause: BaseException) -> None:
        self.report = report
        self.cause = cause
        super().__init__(report, cause)

    def __str__(self) -> str:
        report = self.report
        done = f"{report.done:,} done"
        if report.directories:
            done += f", {report.directories:,} directories moved"
        if report.skipped:
            done += f", {report.skipped:,} skipped"
        return f"{report.operation}: {self.cause} ({done}, {report.failed:,} failed)"

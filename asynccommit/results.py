"""What commits and aborts give back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
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
        replacing: the first hundred of what a mode replaces, decoded paths.
        replaced_files: how many files that is.
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
        resumed: a commit that was cut short was finished.
        rolled_back: what was to be resumed was a rollback, and that was finished.
        left: paths that it could not make what they were before; a warning says why.
        epoch: how many have owned this commit, one after the other.
    """

    job_id: str
    dest: str
    files: int = 0
    bytes: int = 0
    tasks: Mapping[str, str] = field(default_factory=dict)
    directories: int = 0
    replaced: int = 0
    replacing: Sequence[str] = ()
    replaced_files: int = 0
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
    resumed: bool = False
    rolled_back: bool = False
    left: Sequence[str] = ()
    epoch: int = 1

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
        rolled_back: a commit that had begun was undone.
        files: how many files were taken back.
        restored: how many files or directories were put back in their place.
        uploads: how many uploads were aborted that no commit was to complete.
        warnings: what the caller should know.
        left: paths that a rollback could not make what they were before, the first thousand; a
            warning says why.
    """

    job_id: str
    outcome: str
    kept: str = ""
    report: str | None = None
    rolled_back: bool = False
    files: int = 0
    restored: int = 0
    uploads: int = 0
    warnings: Sequence[str] = ()
    left: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


class State(StrEnum):
    """How far a job is.

    Of a job whose commit has not begun: ``RUNNING``: its driver lives. ``DEAD``: its driver has
    ended or died, or has given no sign of life for longer than its lease. ``UNKNOWN``: nothing
    tells whether it lives. Of all others: ``COMMITTING``: it is under way, or at least its owner
    may live. ``STOPPED``: its owner has ended or died. ``EXPIRED``: its owner has given no sign of
    life for longer than its lease. ``ROLLING_BACK``: it is decided that it is undone.
    ``COMMITTED``: it is decided, and only the clean-up is left. ``ENDED``: what is left is rubbish.
    """

    RUNNING = "running"
    DEAD = "dead"
    UNKNOWN = "unknown"
    COMMITTING = "committing"
    STOPPED = "stopped"
    EXPIRED = "expired"
    ROLLING_BACK = "rolling back"
    COMMITTED = "committed"
    ENDED = "ended"


NOT_BEGUN = (State.RUNNING, State.DEAD, State.UNKNOWN)
"""The states of a job whose commit has not begun."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What is known of a job attempt under a destination.

    Attributes:
        job_id: the job.
        attempt: the job attempt.
        state: how far it is.
        started_ms: when its commit began, milliseconds since the epoch; 0 if it has not.
        files: how many files it commits.
        bytes: their sizes, added up.
        done: how many of them are at their destinations; ``None`` if they were not counted.
        tasks: how many tasks have committed.
        epoch: how many have owned the commit.
        owner: who does now, or who runs the job: ``user@host, process``.
        seen_ms: the owner's last sign of life, milliseconds since the epoch.
        lease: seconds after which another may continue.
        error: why the owner stopped, ``""`` if it did not say.
        why: what a state says that comes of signs of life: dead, unknown, running.
        key: the user's name for the job.
        alive: whether the owner lives; ``None`` if that cannot be told.
    """

    job_id: str
    attempt: int
    state: State
    started_ms: int = 0
    files: int = 0
    bytes: int = 0
    done: int | None = None
    tasks: int = 0
    epoch: int = 0
    owner: str = ""
    seen_ms: int = 0
    lease: float = 0.0
    error: str = ""
    key: str | None = None
    alive: bool | None = None
    why: str = ""

    @property
    def begun(self) -> bool:
        """Whether its commit has begun."""
        return self.state not in NOT_BEGUN

    @property
    def unfinished(self) -> bool:
        """Whether somebody has to finish or undo it, because nobody does."""
        return self.state in (State.STOPPED, State.EXPIRED) or (
            self.state in (State.ROLLING_BACK, State.COMMITTED) and self.alive is False
        )

    @property
    def unreadable(self) -> bool:
        """Whether its commit has begun, and its record cannot be read: ``error`` says why."""
        return self.state is State.STOPPED and self.epoch == 0

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

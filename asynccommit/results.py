"""Results of commits and aborts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from asynccommit.former import FormerField
from asynccommit.showing import display


class Printed:
    """A result whose text is what the command shows of it."""

    __slots__ = ()

    def __rich__(self) -> Any:
        return display().as_rich(self)

    def __str__(self) -> str:
        return display().printed(self.__rich__())


class _Shown(Printed):
    """A result that terminals and notebooks show in a few lines."""

    __slots__ = ()

    @abstractmethod
    def _told(self) -> Mapping[str, object]:
        """Return what the short text of this result says, by name."""

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self._told().items())
        return f"{type(self).__name__}({told})"

    def _repr_html_(self) -> str:
        return display().as_html(self)


def _counts(**named: object) -> dict[str, object]:
    """Return the names whose values are neither zero nor empty."""
    return {name: value for name, value in named.items() if value}


class StageTime(NamedTuple):
    """A stage of a commit: its name, its begin and its duration.

    The name is the Hadoop statistic name; ``begin`` is in seconds since the commit began.
    """

    name: str
    begin: float
    seconds: float


class Partition(NamedTuple):
    """A directory of the output with its number of files and bytes.

    The path is relative to the destination; it is empty for all other directories together.
    """

    path: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """The course of a commit over time.

    Attributes:
        began_ms: when the commit began, milliseconds since the epoch.
        stages: the stages in the order in which they ended.
        width: seconds of one bucket of ``sent``, ``refused`` and ``limits``.
        sent: requests that ended, by bucket; every attempt counts.
        refused: requests that the store refused for their rate, by bucket.
        limits: the rate at which requests were sent at most, by bucket; 0 for no limit.
        latency: store method -> upper bounds in seconds, ascending, and the number of requests
            between each and the one before.
        partitions: the directories with the most bytes.
        directories: number of directories with files.
    """

    began_ms: int
    stages: Sequence[StageTime] = ()
    width: float = 1.0
    sent: Sequence[int] = ()
    refused: Sequence[int] = ()
    limits: Sequence[float] = ()
    latency: Mapping[str, Sequence[tuple[float, int]]] = field(default_factory=dict)
    partitions: Sequence[Partition] = ()
    directories: int = 0

    def __repr__(self) -> str:
        return f"Timeline(stages={len(self.stages)}, buckets={len(self.sent)})"


@dataclass(frozen=True, slots=True, repr=False)
class JobReport(_Shown):
    """The result of a job commit, or of its dry run.

    Attributes:
        job_id: the job.
        dest: the destination, as a user writes it.
        files: number of files that the commit made visible.
        bytes: total size of those files.
        tasks: committed task id -> task attempt id.
        directories: number of new directories, parents not counted.
        replaced: number of files or directories that were moved aside and deleted.
        replacing: decoded paths of what the mode replaces, at most a hundred.
        replaced_files: number of files that the mode replaces.
        seconds: duration of the commit.
        stages: stage -> seconds, by their Hadoop statistic names.
        requests: store method -> number of calls.
        refused: number of requests that the store refused because there were too many.
        recovered: store method -> number of requests whose reply was lost although they were done.
        waited: reason -> seconds that requests waited before they were sent, added up.
        workers: process that renamed files for the commit -> its ``slices``, their ``files``, its
            ``seconds``, and how many of its requests were ``refused``; the requests of this process
            are counted above.
        filenames: decoded paths of the files, at most a hundred.
        warnings: problems that did not fail the commit.
        ignored: URLs of manifests that no task commit message names.
        success: URL of ``_SUCCESS``, ``None`` if it was disabled.
        report: URL of the summary, ``None`` without a report directory.
        already_committed: whether the job had been committed before; nothing was done.
        resumed: whether an interrupted commit was finished.
        rolled_back: whether the commit to resume was a rollback, which was finished.
        not_restored: paths that could not be restored to their previous state; a warning says
            why.
        epoch: number of owners that this commit has had, one after the other.
        dry_run: whether nothing was done: the other attributes are those of a commit to come.
        timeline: stages, requests and latencies over time; not part of the JSON.
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
    workers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    filenames: Sequence[str] = ()
    warnings: Sequence[str] = ()
    ignored: Sequence[str] = ()
    success: str | None = None
    report: str | None = None
    already_committed: bool = False
    resumed: bool = False
    rolled_back: bool = False
    not_restored: Sequence[str] = ()
    epoch: int = 1
    dry_run: bool = False
    timeline: Timeline | None = field(default=None, compare=False)

    already = FormerField("already_committed")
    left = FormerField("not_restored")

    def _told(self) -> Mapping[str, object]:
        told = {"job_id": self.job_id, "dest": self.dest, "files": self.files, "bytes": self.bytes}
        return told | _counts(
            tasks=len(self.tasks),
            seconds=round(self.seconds, 3),
            replaced=self.replaced,
            warnings=len(self.warnings),
            not_restored=len(self.not_restored),
            dry_run=self.dry_run,
            already_committed=self.already_committed,
            resumed=self.resumed,
            rolled_back=self.rolled_back,
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, former names of fields included."""
        value = asdict(replace(self, timeline=None))
        del value["timeline"]
        return {**value, "already": self.already_committed, "left": self.not_restored}

    def to_html(self) -> str:
        """Return the report as a page that needs no other file.

        Raises ``UnsupportedError`` without matplotlib, which draws its plots.
        """
        return display().page_of(self)

    def save_html(self, file: str | PathLike[str]) -> None:
        """Write the page of ``to_html`` to a file.

        Raises ``UnsupportedError`` and ``OSError``.
        """
        Path(file).write_text(self.to_html(), "utf-8")


@dataclass(frozen=True, slots=True, repr=False)
class AbortReport(_Shown):
    """The result of an abort.

    Attributes:
        job_id: the job.
        outcome: what happened to the job's directory, as an ``Outcome``.
        kept: why the job's directory was kept, ``""`` if it was not.
        report: URL of the summary, ``None`` without a report directory.
        rolled_back: whether a commit that had begun was undone.
        files: number of files that were removed from the destination.
        restored: number of files or directories that were put back in their place.
        uploads: number of uploads that were aborted and that no commit would have completed.
        warnings: problems that the caller should know of.
        not_restored: paths that a rollback could not restore to their previous state, at most a
            thousand; a warning says why.
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
    not_restored: Sequence[str] = ()

    left = FormerField("not_restored")

    def _told(self) -> Mapping[str, object]:
        return {"job_id": self.job_id, "outcome": self.outcome} | _counts(
            kept=self.kept,
            rolled_back=self.rolled_back,
            files=self.files,
            restored=self.restored,
            uploads=self.uploads,
            warnings=len(self.warnings),
            not_restored=len(self.not_restored),
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, former names of fields included."""
        return {**asdict(self), "left": self.not_restored}


class JobState(StrEnum):
    """The state of a job.

    A job whose commit has not begun is ``RUNNING`` if its driver lives; ``DEAD`` if its driver has
    ended or died, or has sent no heartbeat for longer than its lease; ``UNKNOWN`` if nothing
    shows whether its driver lives.

    A job whose commit has begun is ``COMMITTING`` while the commit runs, or its owner may live;
    ``STOPPED`` if its owner has ended or died; ``EXPIRED`` if its owner has sent no heartbeat
    for longer than its lease; ``ROLLING_BACK`` once it is decided that the commit is undone;
    ``COMMITTED`` once the commit is decided and only the clean-up is left; ``ENDED`` if only files
    to delete are left.
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


NOT_BEGUN = (JobState.RUNNING, JobState.DEAD, JobState.UNKNOWN)
"""The states of a job whose commit has not begun."""


@dataclass(frozen=True, slots=True, repr=False)
class JobStatus(_Shown):
    """The known facts about a job attempt under a destination.

    Attributes:
        job_id: the job.
        attempt: the job attempt.
        state: the state of the job.
        started_ms: when its commit began, milliseconds since the epoch; 0 if it has not.
        files: number of files that it commits.
        bytes: total size of those files.
        done: number of those files at their destinations; ``None`` if they were not counted.
        tasks: number of tasks that have committed.
        epoch: number of owners that the commit has had.
        owner: the process that owns the commit now, or runs the job: ``user@host, process``.
        seen_ms: the owner's last heartbeat, milliseconds since the epoch.
        lease: seconds without a heartbeat after which another process may continue.
        error: why the owner stopped, ``""`` if it did not report it.
        why: the reason for a state that depends on heartbeats: dead, unknown, running.
        key: the user's name for the job.
        alive: whether the owner lives; ``None`` if that is unknown.
        belongs_to: the user to whom the files of its commit belong, if that is another one than
            this process's; ``""`` if it is not, or if the store does not tell.
    """

    job_id: str
    attempt: int
    state: JobState
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
    belongs_to: str = ""

    @property
    def begun(self) -> bool:
        """Return whether the commit has begun."""
        return self.state not in NOT_BEGUN

    @property
    def unfinished(self) -> bool:
        """Return whether somebody must finish or undo it because no owner does."""
        return self.state in (JobState.STOPPED, JobState.EXPIRED) or (
            self.state in (JobState.ROLLING_BACK, JobState.COMMITTED) and self.alive is False
        )

    @property
    def unreadable(self) -> bool:
        """Return whether the commit has begun but its record is unreadable.

        ``error`` holds the reason.
        """
        return self.state is JobState.STOPPED and self.epoch == 0

    def _told(self) -> Mapping[str, object]:
        began = ""
        if self.started_ms:
            began = datetime.fromtimestamp(self.started_ms / 1000, UTC).isoformat(" ", "seconds")
        told: dict[str, object] = {"job_id": self.job_id, "state": str(self.state)}
        if self.done is not None:
            told["done"] = self.done
        return told | _counts(
            attempt=self.attempt,
            files=self.files,
            tasks=self.tasks,
            started=began,
            owner=self.owner,
            error=self.error,
            why=self.why,
            key=self.key,
            belongs_to=self.belongs_to,
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

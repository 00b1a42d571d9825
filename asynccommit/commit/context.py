"""The context of a commit in progress: shared by all its stages, with the clock that times it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Protocol

from asynccommit.commit.layout import Layout
from asynccommit.commit.layout_file_output import CLASS
from asynccommit.formats.statistics import Statistics
from asynccommit.formats.success import COMMITTER
from asynccommit.options.job import Options
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.policies.stats import Count
from asynccommit.stores.policies.traffic import Traffic
from asynccommit.stores.urls import Address

_PROGRESS_INTERVAL = 0.1
_CLOCK_EVERY = 32


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a commit.

    Attributes:
        job_id: id of the job.
        stage: current stage, by its Hadoop statistic name.
        done: number of items done in this stage.
        total: number of items in this stage; ``None`` while unknown.
        seconds: seconds since the commit began.
    """

    job_id: str
    stage: str
    done: int
    total: int | None
    seconds: float


OnProgress = Callable[[Progress], object]


class Ownership(Protocol):
    """The right to continue a commit."""

    def check(self) -> None:
        """Raise ``LeaseLostError`` unless this owner may continue the commit."""

    def close(self) -> None:
        """Stop cancelling work when the lease is lost: only cleanup is left."""

    def free(self) -> None:
        """Stop checking the lease before requests."""

    async def end(self) -> None:
        """Stop renewing the lease."""


class Phase(Enum):
    """The guarantee that a caller has if the commit ends now."""

    PLANNING = "nothing under the destination has changed"
    BEGUN = "a commit has begun, and this process has changed nothing"
    CHANGING = "something may have changed"
    DECIDING = "the decision is written, and perhaps it counts"
    COMMITTED = "the job is committed"


@dataclass(slots=True)
class CommitContext:
    """The context of one job commit, task commit or abort. It belongs to one event loop.

    ``phase`` is set by the commit record and by the outcome. ``renamed`` counts the files that
    reached their destinations; it is too low if ``miscounted``. ``success`` is the URL of
    ``_SUCCESS``. ``commit_id`` names this commit among all commits of the job, in at most 64 bytes;
    ``manifests`` is the digest of its input; ``epoch`` counts its owners, 0 before there is one,
    and ``owner_id`` is the id of this owner. ``lease`` makes it the owner; a ``withdrawn`` commit
    gives way to another job. ``driver_lives`` is called, in a thread, before the commit begins.
    """

    store: Store
    layout: Layout
    options: Options
    host: Host
    on_progress: OnProgress | None = None
    open_store: Callable[[Address], Store] | None = None
    counted: Mapping[str, Count] = field(default_factory=dict)
    traffic: Callable[[], Traffic] = Traffic
    statistics: Statistics = field(default_factory=Statistics)
    warnings: list[str] = field(default_factory=list)
    diagnostics: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    stage: str = ""
    phase: Phase = Phase.PLANNING
    renamed: int = 0
    miscounted: bool = False
    success: str | None = None
    commit_id: str = ""
    manifests: str = ""
    epoch: int = 0
    owner_id: str = ""
    lease: Ownership | None = None
    driver_lives: Callable[[], bool] | None = None
    withdrawn: bool = False
    done: int = 0
    total: int | None = None
    started: float = field(default_factory=lambda: _now())
    _told: float = 0.0

    def act_for(self, commit_id: str) -> None:
        """Make this run read and write only files of the commit with this id."""
        self.commit_id = commit_id
        self.layout = of_commit(self.store, self.layout, commit_id)

    def check_lease(self) -> None:
        """Raise ``LeaseLostError`` if this owner may not continue."""
        if self.lease is not None:
            self.lease.check()

    @property
    def committer(self) -> str:
        """Return the name of the committer in reports: Hadoop's class name."""
        return CLASS if self.layout.shared else COMMITTER

    def shown(self, path: str) -> str:
        """Return a path as reports name a file."""
        return self.layout.url(path)

    @property
    def place(self) -> int:
        """Return the number of the directory in which this owner works.

        It is the owner's own number if its predecessors can be kept out of the directory; otherwise
        all owners use the first one's.
        """
        return self.epoch if self.store.traits.fences else 1

    @property
    def epoch_dir(self) -> str:
        """Return the directory in which this owner works."""
        return self.layout.epoch_dir(self.place)

    @property
    def workers(self) -> int:
        """Return the number of requests to keep in flight."""
        return self.options.workers or self.store.traits.workers

    @contextmanager
    def timed(self, name: str, total: int | None = None) -> Iterator[None]:
        """Time a stage, count its failure, and name it in progress reports."""
        outer, self.stage = self.stage, name
        self.done, self.total = 0, total
        begin = _now()
        self.tell()
        failed = True
        try:
            yield
            failed = False
        finally:
            took = _now() - begin
            self.seconds[name] = self.seconds.get(name, 0.0) + took
            self.statistics.duration(name, took, failed=failed)
            self.tell()
            if not failed:
                self.stage = outer

    @contextmanager
    def counted_as(self, name: str) -> Iterator[None]:
        """Count and time one operation that is not a stage."""
        begin = _now()
        failed = True
        try:
            yield
            failed = False
        finally:
            self.statistics.duration(name, _now() - begin, failed=failed)

    def step(self, count: int = 1) -> None:
        """Count items done; report progress at most a few times a second."""
        self.done += count
        if self.on_progress is not None and (self.done % _CLOCK_EVERY == 0 or count > 1):
            now = _now()
            if now - self._told >= _PROGRESS_INTERVAL:
                self.tell()

    def renamed_one(self) -> None:
        """Count a file that reached its destination."""
        self.renamed += 1
        self.step()

    def tell(self) -> None:
        """Report progress now."""
        if self.on_progress is None:
            return
        self._told = _now()
        progress = Progress(
            self.layout.job_id, self.stage, self.done, self.total, self._told - self.started
        )
        try:
            self.on_progress(progress)
        except Exception as error:  # a broken pipe must not leave half a commit
            self.on_progress = None
            self.warn(f"progress is told no more: {_reason(error)}")

    def warn(self, text: str) -> None:
        """Add a warning for the caller; the commit continues."""
        self.warnings.append(text)


def _reason(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # from an exception whose text cannot be formatted
        return type(error).__name__


def _now() -> float:
    return asyncio.get_running_loop().time()


def of_commit(store: Store, layout: Layout, commit_id: str) -> Layout:
    """Return the layout in which state files are named by the commit's id.

    A late state file can then not be mistaken for one of the next commit under the same job id.
    Stores that rename the job's directory away keep late files out anyway, so there the layout is
    unchanged.
    """
    return layout if store.traits.fences else replace(layout, commit=commit_id)

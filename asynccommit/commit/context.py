"""The context of a commit in progress, shared by all its stages."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Protocol, Self, cast

from asynccommit.commit.layouts.file_output import CLASS
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.meter import CommitMeter, OnProgress
from asynccommit.commit.orders import Runner
from asynccommit.commit.output_sizes import OutputSizes
from asynccommit.errors import CommitError, OutcomeUnknownError, StoreError
from asynccommit.formats.commit_owner import Outcome
from asynccommit.formats.success import COMMITTER
from asynccommit.options.job import Options
from asynccommit.redact import Redacted
from asynccommit.results import JobReport
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.policies.stats import Count
from asynccommit.stores.policies.traffic import Traffic, waiting_for
from asynccommit.stores.urls import Address

log = logging.getLogger(__name__)

OnVisible = Callable[[JobReport], object]
OnEnd = Callable[[Outcome, int], Awaitable[None]]


class Ownership(Protocol):
    """The right to continue a commit."""

    @property
    def is_held(self) -> bool:
        """Return whether it is still to be asked: false once it has ended."""

    def check(self) -> None:
        """Raise ``LeaseLostError`` unless this owner may continue the commit."""

    def close(self) -> None:
        """Stop cancelling work when the lease is lost: only cleanup is left."""

    def free(self) -> None:
        """Stop checking the lease before requests."""

    async def end(self) -> None:
        """Stop renewing the lease."""


class Slicer(Protocol):
    """Workers that do a part of the commit, in other processes."""

    def planned(self, plan_id: str, digests: Sequence[str], outside: tuple[str, ...]) -> None:
        """Take the id of the plan, its chunks, and the places outside."""

    async def move(self, run: CommitContext, carried: Collection[str]) -> None:
        """Have every file of the plan renamed to its destination.

        ``carried`` are directories of tasks that were moved as a whole.
        """


class Phase(Enum):
    """The guarantee that a caller has if the commit ends now."""

    PLANNING = "nothing under the destination has changed"
    BEGUN = "a commit has begun, and this process has changed nothing"
    CHANGING = "something may have changed"
    DECIDING = "the decision is written, but may not be valid"
    COMMITTED = "the job is committed"


@dataclass(frozen=True, slots=True)
class Environment:
    """The objects that a committer works with, whatever it does.

    Attributes:
        store: the destination's store.
        host: clock, ids and names.
        pending: the store of the job's own directories.
        open_store: opens the store of a report directory that is elsewhere.
        counted: the store's request counters, for statistics.
        traffic: outcomes of the store's requests, for statistics.
        driver_lives: called in a thread before a commit begins; false if the process that ran the
            tasks has ended.
        runner: has workers that move files of a commit; ``None`` to move all in this process.
        storage: options of the store that the caller gave, for workers.
    """

    store: Store
    host: Host
    pending: Store
    open_store: Callable[[Address], Store] | None = None
    counted: Mapping[str, Count] = field(default_factory=dict)
    traffic: Callable[[], Traffic] = Traffic
    driver_lives: Callable[[], bool] | None = None
    runner: Runner | None = None
    storage: Mapping[str, object] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class CommitIdentity:
    """The identity of a commit, and of the owner that acts.

    Attributes:
        commit_id: names this commit among all commits of the job, in at most 64 bytes.
        manifests: the digest of its input.
        epoch: the number of this owner, 0 before there is one.
        owner_id: the id of this owner.
    """

    commit_id: str = ""
    manifests: str = ""
    epoch: int = 0
    owner_id: str = ""


@dataclass(slots=True)
class Promise:
    """The promise to the caller of a commit, abort or look, and the news.

    Attributes:
        phase: what may have changed; set by the commit record and by the outcome.
        renamed: files that reached their destinations; too low if ``miscounted``.
        withdrawn: the commit gives way to another job.
        warnings: what is to be known about an operation that succeeds.
        told: whether the caller was told that readers see the job; warnings and errors are logged
            from then on.
        success: the URL of ``_SUCCESS``, once it may be there.
        sizes: the files of the job by directory, once these are known.
        notes: what ``_SUCCESS`` and the report say besides, by name.
        acting: the context with which the operation goes on.
    """

    phase: Phase = Phase.PLANNING
    renamed: int = 0
    miscounted: bool = False
    withdrawn: bool = False
    warnings: list[str] = field(default_factory=list)
    told: bool = False
    success: str | None = None
    sizes: OutputSizes | None = None
    notes: dict[str, str] = field(default_factory=dict)
    acting: CommitContext | None = field(default=None, repr=False)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Promise less while a request is sent that begins the commit.

        It is taken back if the request has certainly failed.
        """
        self.reach(Phase.CHANGING)
        try:
            yield
        except OutcomeUnknownError:
            raise
        except (StoreError, CommitError):
            self.reach(Phase.PLANNING)
            raise

    def reach(self, phase: Phase) -> None:
        """Promise what ``phase`` says from now on."""
        self.phase = phase


@dataclass(frozen=True, slots=True, eq=False)
class CommitContext:
    """The context of one commit or abort, on one event loop.

    It does not change: who begins a commit, takes one over or reads a record goes on with another
    one, and returns it. All of one operation share the meter and the promise, where those who
    report errors find the last of them (``now``).

    Attributes:
        environment: what the committer works with.
        layout: destination and job; of the commit once it has an id.
        options: options of the commit; those of its record once that is read.
        meter: clock and counters of the stages.
        identity: which commit this is, and which owner.
        promise: what the caller may count on if the commit ends now.
        lease: the right to continue, while this process owns the commit.
        asked: whether somebody has named this job to be finished or undone; the commit of another
            user is left alone otherwise.
        trusted: the id of the commit that this process has begun.
        snapshot: the store with answers that were read at once, before the commit began.
        on_visible: called once, when readers see the job's files and ``_SUCCESS``, before the
            clean-up.
        on_end: awaited with the outcome and the number of files that were moved or moved back, when
            all are in place, before the clean-up deletes what tells so. Another owner may await it
            again.
        slicer: what hands the files out to workers; ``None`` without workers.
    """

    environment: Environment
    layout: Layout
    options: Options
    meter: CommitMeter
    identity: CommitIdentity = field(default_factory=CommitIdentity)
    promise: Promise = field(default_factory=Promise)
    lease: Ownership | None = None
    asked: bool = True
    trusted: str = ""
    snapshot: Store | None = None
    on_visible: OnVisible | None = None
    on_end: OnEnd | None = None
    slicer: Slicer | None = None

    @classmethod
    def new(
        cls,
        environment: Environment,
        layout: Layout,
        options: Options,
        on_progress: OnProgress | None = None,
    ) -> Self:
        """Return the context of a commit, abort or look that begins now."""
        promise, waiting = Promise(), partial(waiting_for, environment.store)
        warn = promise.warnings.append
        meter = CommitMeter(layout.job_id, on_progress, warn, waiting, layout.log_fields)
        return cls(environment, layout, options, meter, promise=promise)

    def of_attempt(self, layout: Layout) -> Self:
        """Return the context of another attempt or job, in the same environment."""
        promise = replace(self.promise, acting=None)  # with the same list of warnings
        return replace(self, layout=layout, identity=CommitIdentity(), promise=promise)

    def for_commit(self, commit_id: str) -> Self:
        """Return a context that reads and writes only files of this commit."""
        identity = replace(self.identity, commit_id=commit_id)
        layout = of_commit(self.store, self.layout, commit_id)
        return replace(self, identity=identity, layout=layout)

    def numbered(self, epoch: int) -> Self:
        """Return the context of this owner with its number, if not 0."""
        return replace(self, identity=replace(self.identity, epoch=epoch))

    def acts(self) -> Self:
        """Say that the operation goes on with this context; return it."""
        self.promise.acting = self
        return self

    @property
    def now(self) -> Self:
        """Return the context with which the operation goes on, or had to stop."""
        return cast(Self, self.promise.acting or self)

    @property
    def held(self) -> Ownership | None:
        """Return the right to continue, until it ends."""
        return self.lease if self.lease is not None and self.lease.is_held else None

    def check_lease(self) -> None:
        """Raise ``LeaseLostError`` if this owner may not continue."""
        if self.lease is not None and self.lease.is_held:
            self.lease.check()

    @property
    def phase(self) -> Phase:
        """Return the guarantee that the caller has now."""
        return self.promise.phase

    @property
    def warnings(self) -> list[str]:
        """Return the warnings for the caller until now."""
        return self.promise.warnings

    @property
    def store(self) -> Store:
        """Return the store of the destination, with the answers of a snapshot."""
        return self.snapshot or self.environment.store

    @property
    def host(self) -> Host:
        """Return the clock, ids and names."""
        return self.environment.host

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
        return self.identity.epoch if self.store.traits.fences else 1

    @property
    def epoch_dir(self) -> str:
        """Return the directory in which this owner works."""
        return self.layout.epoch_dir(self.place)

    @property
    def workers(self) -> int:
        """Return the number of requests to keep in flight."""
        return self.options.workers or self.store.traits.workers

    def reach(self, phase: Phase) -> None:
        """Promise the caller what ``phase`` says, from now on."""
        self.promise.reach(phase)

    def count_renamed(self, files: int = 1, steps: int = 1) -> None:
        """Count files that were renamed, and steps of the progress."""
        self.promise.renamed += files
        self.meter.step(steps)

    def miscount(self) -> None:
        """Say that more files may have been renamed than were counted."""
        self.promise.miscounted = True

    def withdraw(self) -> None:
        """Give way to another job: what has begun is undone."""
        self.promise.withdrawn = True

    def note(self, name: str, text: str) -> None:
        """Have ``_SUCCESS`` and the report say something from now on."""
        self.promise.notes[name] = text

    def note_sizes(self, sizes: OutputSizes) -> None:
        """Have reports say from now on which files the job has."""
        self.promise.sizes = sizes

    def note_success(self) -> None:
        """Say that ``_SUCCESS`` may be there."""
        self.promise.success = self.layout.url(self.layout.success)

    async def end(self, outcome: Outcome, files: int) -> None:
        """Await ``on_end``: nothing but the clean-up is left."""
        if self.on_end is not None:
            await self.on_end(outcome, files)

    def tell_visible(self, report: Callable[[], JobReport]) -> None:
        """Tell the caller that the job is committed; only the clean-up is left."""
        tell, behind = self.on_visible, self.options.cleans_up_behind
        behind = behind and bool(self.store.traits.account)
        if tell is None or self.promise.told or not behind or self.meter.is_telling:
            return
        self.meter.silence()
        self.promise.told = True
        try:
            tell(replace(report(), seconds=self.meter.elapsed))
        except Exception as error:  # the job is committed, whatever the caller makes of it
            self.warn(f"on_visible failed: {type(error).__name__}: {error}")

    def warn(self, text: str) -> None:
        """Add a warning for the caller; the commit continues."""
        self.promise.warnings.append(text)
        if self.promise.told:
            told = self.layout.job_id, Redacted(text)
            log.warning("job %s: %s", *told, extra=self.layout.log_fields)


def of_commit(store: Store, layout: Layout, commit_id: str) -> Layout:
    """Return the layout in which state files are named by the commit's id.

    So a late state file is not mistaken for one of the next commit with the same job id. Stores
    that rename the job's directory away keep late files out anyway, so there the layout is
    unchanged.
    """
    return layout if store.traits.fences else replace(layout, commit=commit_id)

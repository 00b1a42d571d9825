"""The interface through which ``JobCommitter`` publishes files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import Generic, NamedTuple, TypeVar

from asynccommit.commit.context import CommitContext
from asynccommit.commit.job.cleanup import CleanupResult
from asynccommit.commit.job.setup import Unfinished
from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.options.job import Mode
from asynccommit.results import AbortReport, JobReport, JobStatus
from asynccommit.stores.base import Store

RunT = TypeVar("RunT", bound=CommitContext)
StateT = TypeVar("StateT")
PlanT = TypeVar("PlanT")


class AbortResult(NamedTuple):
    """The result of an abort, and how many uploads it ended."""

    outcome: CleanupResult
    uploads: int = 0


class Inputs(NamedTuple):
    """The arguments of a commit.

    Attributes:
        tasks: the commit messages of the tasks; ``None`` if there are none.
        mode: treatment of existing data at the destination.
        overwrite: decoded paths of further directories whose content is replaced.
    """

    tasks: Sequence[TaskCommit] | None
    mode: Mode
    overwrite: Sequence[str]


class Publisher(ABC, Generic[RunT, StateT, PlanT]):
    """The part of a job commit that differs between renames and uploads.

    ``JobCommitter`` calls it in the order of the protocol. ``RunT`` is the context of a commit,
    ``StateT`` the state of one that has begun, and ``PlanT`` what one will change. Methods raise
    ``StoreError``, and what their contract names.
    """

    @abstractmethod
    def working(
        self, run: RunT, *, save: bool = True, inputs: Inputs | None = None
    ) -> AbstractAsyncContextManager[RunT]:
        """Commit or resume in the block; raise failures as ``CommitError``.

        The block has the context to go on with.

        Args:
            run: the commit, or its dry run.
            save: write the failure into the report directory.
            inputs: of a commit that may begin now.
        """

    def looking(self, run: RunT) -> AbstractAsyncContextManager[RunT]:
        """Pin the job's paths to the directories that exist now.

        The block has the context to go on with.
        """
        return nullcontext(run)

    # --- before a commit

    async def look_at_destination(self, run: RunT) -> Store | None:
        """Return the store with a snapshot of what a setup asks, if that is safe."""
        return None

    @abstractmethod
    async def unfinished(self, run: RunT) -> list[Unfinished]:
        """Return the unfinished commits of other jobs."""

    @abstractmethod
    async def check_setup(self, run: RunT, mode: Mode, overwrite: Sequence[str]) -> None:
        """Refuse a destination that the mode forbids, and repeated work.

        Raises ``PreflightError``, ``CommittedError``.
        """

    async def refuse_taken(self, run: RunT) -> None:
        """Raise an error if the job's place belongs to another job.

        The error is an ``ExistsError`` or a ``PreconditionError``.
        """
        return

    async def set_up(self, run: RunT) -> None:
        """Write the files that tasks check, once the job's directories exist."""
        return

    async def attempts(self, run: RunT) -> Sequence[Layout]:
        """Return the further attempts of the job that an abort deletes."""
        return ()

    # --- a commit

    @abstractmethod
    async def state(self, run: RunT) -> tuple[RunT, StateT | None]:
        """Return the state of the job's commit; ``None`` if it has not begun.

        The context to go on with is that of the commit. Raises ``ManifestError`` for a damaged
        record.
        """

    @abstractmethod
    async def is_over(self, run: RunT, state: StateT) -> bool:
        """Return whether a commit has nothing left to do."""

    @abstractmethod
    async def is_committed(
        self, run: RunT, tasks: Sequence[TaskCommit] | None = None, *, trusting: bool = False
    ) -> RunT | None:
        """Return the context of a job that is committed, its record gone.

        Args:
            run: the context.
            tasks: the commit messages; the marker of other task attempts does not count.
            trusting: whether there are no commit messages.
        """

    @abstractmethod
    async def refuse_other_attempts(self, run: RunT) -> None:
        """Raise ``CommitError`` if another attempt's commit has begun."""

    @abstractmethod
    def new_plan(self, run: RunT, mode: Mode) -> AbstractContextManager[PlanT]:
        """Return an empty plan; the block deletes its local files."""

    @abstractmethod
    async def load(
        self, run: RunT, plan: PlanT, tasks: Sequence[TaskCommit] | None, *, strict: bool = False
    ) -> None:
        """Read what the committed tasks have written. Raises ``ManifestError``."""

    async def refuse_leftovers(self, run: RunT, plan: PlanT, *, known: bool) -> None:
        """Refuse the remains of an ended job, unless ``known`` to be active.

        Raises ``PreconditionError``.
        """
        return

    @abstractmethod
    async def preflight(
        self,
        run: RunT,
        plan: PlanT,
        overwrite: Sequence[str],
        *,
        adopt: bool = False,
        dry: bool = False,
    ) -> None:
        """Complete the plan, or refuse now what would fail half-way.

        Args:
            run: the commit.
            plan: the files of the job; completed.
            overwrite: decoded paths of further directories whose content is replaced.
            adopt: files that Hadoop's committer has published already are no conflict.
            dry: write nothing.

        Raises ``ExistsError``, ``PreconditionError``, ``NotFoundError``.
        """

    @abstractmethod
    async def commit(
        self,
        run: RunT,
        plan: PlanT,
        *,
        made_destination: bool,
        began: Callable[[], Awaitable[None]],
        adopt: bool = False,
    ) -> RunT:
        """Carry out the plan; return the context with which it ended.

        The steps are record, files, validation, decision, ``_SUCCESS`` and clean-up.

        Args:
            run: the commit.
            plan: as ``preflight`` has completed it.
            made_destination: whether the job made the destination, so that a rollback removes it.
            began: called once, when the commit record is written.
            adopt: see ``preflight``.

        Raises ``OwnedError`` if a commit of this job attempt has begun already, and
        ``ValidationError``.
        """

    @abstractmethod
    def report(self, run: RunT, plan: PlanT | None = None) -> JobReport:
        """Return what a commit has done, or would do."""

    # --- a commit that has begun

    @abstractmethod
    def check_messages(self, run: RunT, state: StateT, tasks: Sequence[TaskCommit]) -> None:
        """Raise ``CommitError`` if the commit began with other task attempts."""

    def are_named(
        self, state: StateT, tasks: Sequence[TaskCommit], overwrite: Sequence[str]
    ) -> bool:
        """Return whether the arguments name all outside places of the commit."""
        return False

    @abstractmethod
    async def resume(self, run: RunT, state: StateT, *, force: bool = False) -> JobReport:
        """Finish a commit as decided; without a decision, commit it.

        Raises ``OwnedError`` if its owner is alive and ``force`` is false.
        """

    @abstractmethod
    async def roll_back(self, run: RunT, state: StateT, *, force: bool = False) -> AbortReport:
        """Undo a commit. Raises ``OwnedError``, ``CommittedError``."""

    async def stopped(self, run: RunT, error: BaseException) -> None:
        """Record that this owner stopped, so that its lease is not awaited."""
        return

    # --- afterwards

    @abstractmethod
    async def finish(self, run: RunT, state: StateT | None) -> RunT:
        """Delete what a committed job needs no more; return its context."""

    @abstractmethod
    async def abort(self, run: RunT) -> AbortResult:
        """Delete the job's files, unless its commit has begun."""

    @abstractmethod
    async def clean_up(self, run: RunT) -> CleanupResult:
        """Delete the job's files, whatever its state."""

    @abstractmethod
    async def status(self, run: RunT, state: StateT) -> JobStatus:
        """Return the status of a commit, its files at their destinations counted."""

    @abstractmethod
    async def statuses(self, run: RunT) -> list[JobStatus]:
        """Return the status of every visible job, without file counts."""

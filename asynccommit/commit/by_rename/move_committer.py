"""The committer of a move of existing files.

Steps, record, plan, owners, settling and rollback are those of the manifest committer. There are no
tasks: the files to move are given, and are where their owner has left them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.by_rename.publisher import RenamePublisher
from asynccommit.commit.context import CommitContext, OnEnd, Phase
from asynccommit.commit.driver.claims import setup_id
from asynccommit.commit.job.setup import Unfinished
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.layouts.move import MoveLayout
from asynccommit.commit.meter import OnProgress
from asynccommit.commit.ownership.status import CommitState
from asynccommit.commit.planning.load_manifests import LoadedManifests
from asynccommit.commit.spill import CHUNK, Spill, in_batches
from asynccommit.errors import ManifestError, PreconditionError
from asynccommit.options.job import Options
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store


@dataclass(slots=True)
class FilesToMove:
    """The files to move.

    Attributes:
        files: the files.
        directories: decoded paths of directories that must exist at the destination.
    """

    files: Spill
    directories: Sequence[str] = field(default_factory=list)

    async def load(
        self,
        run: CommitContext,
        loaded: LoadedManifests,
        tasks: Sequence[TaskCommit] | None,
        *,
        strict: bool = False,
    ) -> None:
        """Give the files to a commit. See ``publisher.Load``."""
        loaded.vouched = True
        loaded.setup_id = await setup_id(run.store, run.layout.job_owner)
        await loaded.add([], self.directories)
        async for batch in in_batches(self.files.entries(), CHUNK):
            await loaded.add(batch, [])


class MovePublisher(RenamePublisher):
    """FilesToMove existing files; settles only the move of its own journal."""

    moves: ClassVar[bool] = True

    async def unfinished(self, run: CommitContext) -> list[Unfinished]:
        """See ``Publisher.unfinished``. Other moves have journals of their own."""
        found = await super().unfinished(run)
        return [one for one in found if not one.layout.outside]

    async def state(self, run: CommitContext) -> tuple[CommitContext, CommitState | None]:
        """See ``Publisher.state``.

        Raises ``ManifestError`` for a record of anything but this move.
        """
        given = run.layout
        run, state = await super().state(run)
        if state is not None and run.layout.sources_dir != given.sources_dir:
            raise ManifestError(given.url(given.record), "is not of the move of this journal")
        return run, state


class MoveCommitter(ManifestCommitter):
    """A committer of one move.

    Args:
        store: the store of the files.
        layout: the move.
        options: of the commit.
        host: clock, ids and names.
        moves: the files, where the move may begin now.
        on_begin: awaited once the commit record is written; it raises if the move was given up.
        on_end: see ``CommitContext``.
    """

    def __init__(
        self,
        store: Store,
        layout: MoveLayout,
        options: Options,
        host: Host,
        *,
        moves: FilesToMove,
        on_begin: Callable[[], Awaitable[None]],
        on_end: OnEnd,
    ) -> None:
        super().__init__(store, layout, options, host)
        self.publisher = MovePublisher(moves.load)
        self._on_begin = on_begin
        self._on_end = on_end
        self._context: CommitContext | None = None

    @property
    def renamed(self) -> int:
        """Return how many files reached their destinations by this process."""
        return 0 if self._context is None else self._context.promise.renamed

    @property
    def has_begun(self) -> bool:
        """Return whether something may have been moved."""
        return self._context is not None and self._context.phase is not Phase.PLANNING

    def _run(self, on_progress: OnProgress | None = None) -> CommitContext:
        self._context = run = replace(super()._run(on_progress), on_end=self._on_end)
        return run

    async def _began(self) -> None:
        await super()._began()
        try:
            await self._on_begin()
        except PreconditionError:
            assert self._context is not None
            self._context.withdraw()  # nothing was moved, and nobody would find the record
            raise

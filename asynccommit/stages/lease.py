"""The right to go on with a commit: held while its owner says in time that it lives.

The owner measures with a clock that counts suspension, stops a margin before the lease is over, and
looks for another's claim whenever it says that it lives.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

import anyio

from asynccommit.errors import (
    AsyncCommitError,
    CommitError,
    LeaseLostError,
    NotFoundError,
    StoreError,
)
from asynccommit.formats.commit_owner import Stop, encode_beat, encode_stop
from asynccommit.stages.run import Run

LEASE = 60.0
ACCOUNT_LEASE = 300.0
"""Longer than twice the two minutes that a request over a network may take, and some."""
MARGIN = 0.75
"""The part of a lease that its owner uses."""

_TICKS = 16  # looks at the clock in one lease
_BEAT = 4  # ticks from one sign of life to the next
_LAST_WORDS = 30.0

_under_way: set[str] = set()


def is_under_way(owner_id: str) -> bool:
    """Whether an owner of this process is at work."""
    return owner_id in _under_way


def lease_of(run: Run) -> float:
    """Return the lease of this run, in seconds."""
    if run.options.lease is not None:
        return run.options.lease
    return ACCOUNT_LEASE if run.store.traits.account else LEASE


class Lease:
    """Held by ``run``, the owner of its commit; ends the work if it is lost.

    Args:
        run: has taken the commit, and says so in ``epoch`` and ``owner_id``.
        since: the clock before the claim was sent.
    """

    def __init__(self, run: Run, since: float) -> None:
        self._run = run
        self._seconds = lease_of(run)
        self._until = since + MARGIN * self._seconds
        self._why = ""
        self._task: asyncio.Task[object] | None = None
        self._beating: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        _under_way.add(self._run.owner_id)
        self._run.check_lease = self.check
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._beating is not None
        assert self._task is not None
        self._run.check_lease = _nothing
        self._beating.cancel()
        try:
            with suppress(asyncio.CancelledError):
                await self._beating
        finally:
            _under_way.discard(self._run.owner_id)
        if self._why and isinstance(error, asyncio.CancelledError):
            self._task.uncancel()
            raise self._lost() from error

    def check(self) -> None:
        """Raise ``LeaseLostError`` unless the commit is still this owner's to go on with."""
        if self._why or self._run.host.clock() > self._until:
            self._why = self._why or "it could not say in time that it lives"
            raise self._lost()

    def _lost(self) -> LeaseLostError:
        text = (
            f"this process stopped, because {self._why}, and another may go on with the commit. "
            f"All that is needed for it is in {self._run.layout.attempt_dir}"
        )
        return LeaseLostError(self._run.layout.job_id, self._run.stage, (), text)

    async def _beat(self) -> None:
        """Say that this owner lives, from time to time; end its work when it may no longer."""
        saying: asyncio.Task[None] | None = None
        ticks = 0
        try:
            while not self._why:
                await asyncio.sleep(self._seconds / _TICKS)
                ticks += 1
                if ticks % _BEAT == 0 and (saying is None or saying.done()):
                    saying = asyncio.create_task(self._say())
                if self._run.host.clock() > self._until:
                    self._why = "it could not say in time that it lives"
            assert self._task is not None
            self._task.cancel()
        finally:
            if saying is not None:
                saying.cancel()
                with suppress(asyncio.CancelledError):
                    await saying

    async def _say(self) -> None:
        run, now = self._run, self._run.host.clock()
        beat = encode_beat(run.epoch, run.owner_id, int(run.host.now() * 1000))
        with suppress(StoreError):
            await run.store.put(run.layout.alive(run.epoch), beat)
            try:
                await run.store.head(run.layout.owner(run.epoch + 1))
            except NotFoundError:
                self._until = now + MARGIN * self._seconds
            else:
                self._why = "another has taken the commit over"


def _nothing() -> None:
    """Check nothing: there is no lease."""


async def say_stopped(run: Run, error: BaseException) -> None:
    """Say that this owner has ended, so that nobody has to wait for its lease."""
    if not run.epoch or isinstance(error, LeaseLostError):
        return
    text = str(error) if isinstance(error, AsyncCommitError) else f"{type(error).__name__}: {error}"
    stage = error.stage if isinstance(error, CommitError) else run.stage
    stop = Stop(run.epoch, run.owner_id, int(run.host.now() * 1000), stage, text, run.renamed)
    with anyio.move_on_after(_LAST_WORDS, shield=True), suppress(StoreError):
        await run.store.put(run.layout.stopped(run.epoch), encode_stop(stop), overwrite=False)

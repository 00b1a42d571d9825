"""The right to continue a commit, renewed by heartbeats.

The owner measures with a clock that counts suspension, stops a margin before the lease is over, and
looks for another's claim whenever it says that it lives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

import anyio

from asynccommit.commit.context import CommitContext
from asynccommit.commit.errors import TAKEN, is_interrupt, lease_lost, reason
from asynccommit.commit.hints import job_command
from asynccommit.commit.ownership.directory_of import directory_of
from asynccommit.errors import (
    CommitError,
    ExistsError,
    LeaseLostError,
    NotFoundError,
    StoreError,
)
from asynccommit.formats.commit_owner import (
    Outcome,
    OwnerStop,
    encode_beat,
    encode_stop,
)
from asynccommit.stores.grant import granting
from asynccommit.stores.tree import list_if_there

LEASE = 60.0
ACCOUNT_LEASE = 300.0
"""More than twice the two minutes that a request over a network may take."""
MARGIN = 0.75
"""The part of a lease that its owner uses."""

_TICKS = 16  # looks at the clock in one lease
_BEAT = 4  # ticks from one heartbeat to the next
_QUICK = 2  # the same where other processes work under the lease
_CLEANUP_GRACE_SECONDS = 30.0
_SILENT = "it could not renew its lease in time"

_under_way: set[str] = set()


def is_under_way(owner_id: str) -> bool:
    """Return whether an owner in this process is at work."""
    return owner_id in _under_way


def lease_of(run: CommitContext) -> float:
    """Return the lease of this run, in seconds."""
    if run.options.lease is not None:
        return run.options.lease
    return ACCOUNT_LEASE if run.store.traits.account else LEASE


class Lease:
    """A lease on the commit of ``run``; its loss ends the work.

    It is held from before the claim is written.

    It is created before the claim, so that this process knows the owner to be active, and entered
    once the claim exists. Whoever makes one enters it or calls ``forget``. Until then every request
    of this task that changes something looks at it when it is sent.

    Args:
        run: the owner to be, which has its ``owner_id``.

    Attributes:
        run: the context of the owner, as far as it has become one.
        closed: whether an earlier owner has done all but the clean-up.
        bare: whether nothing can have been moved: an abort took the place away when it began.
    """

    def __init__(self, run: CommitContext) -> None:
        self.closed = False
        self.bare = False
        self.run = replace(run, lease=self)
        self._held = True
        self._seconds = lease_of(run)
        self._until = run.host.clock() + MARGIN * self._seconds
        self._why = ""
        self._cancelled = False
        self._task: asyncio.Task[object] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._beats = 0
        self._ticks = _BEAT
        self._closing = False
        self._over = False
        _under_way.add(run.identity.owner_id)
        self._granting = granting(check=self.check)
        self._granting.__enter__()

    def forget(self) -> None:
        """Give up a claim that was not written."""
        self._granting.__exit__(None, None, None)
        _under_way.discard(self.run.identity.owner_id)
        self._held = False

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.end()
        finally:
            self.forget()
            if self._cancelled and self._task is not None:
                self._task.uncancel()
        if self._cancelled and isinstance(error, Exception | asyncio.CancelledError):
            raise self._lost() from error
        if isinstance(error, StoreError) and self._is_late():
            raise self._lost() from error  # what it found is another's doing

    @property
    def is_held(self) -> bool:
        """See ``Ownership.is_held``."""
        return self._held

    @property
    def is_lost(self) -> bool:
        """Return whether it was not renewed in time, or another owner was seen."""
        return bool(self._why)

    @property
    def left(self) -> float:
        """Return the seconds for which the owner may go on without a heartbeat."""
        return self._until - self.run.host.clock()

    def quicken(self) -> None:
        """Send heartbeats twice as often: workers need much of the lease."""
        self._ticks = _QUICK

    def close(self) -> None:
        """Let no work be cancelled from now on: only the clean-up is left.

        Requests still check the lease until ``free``.
        """
        self._closing = True

    def free(self) -> None:
        """Let requests look at the lease no more."""
        self._over = True

    async def end(self) -> None:
        """Say no more that this owner lives."""
        self._held = False
        beating, self._beating = self._beating, None
        if beating is not None:
            beating.cancel()
            await asyncio.wait([beating])

    def check(self) -> None:
        """Raise ``LeaseLostError`` unless this owner still holds the commit."""
        if self.run.host.clock() <= self._until and not self._why:
            return  # told in a fraction of a microsecond, for it is asked before every rename
        if not self._over and self._is_late():
            raise self._lost()

    def _is_late(self) -> bool:
        if self.run.host.clock() > self._until:
            self._why = self._why or _SILENT
        return bool(self._why)

    def _lost(self) -> LeaseLostError:
        return lease_lost(self.run, self._why)

    async def _beat(self) -> None:
        """Send heartbeats; end the work when the lease is lost."""
        saying: asyncio.Task[None] | None = None
        ticks = 0
        try:
            while not self._why:
                await asyncio.sleep(self._seconds / _TICKS)
                ticks += 1
                if ticks % self._ticks == 0 and (saying is None or saying.done()):
                    saying = asyncio.create_task(self._say())
                if self.run.host.clock() > self._until:
                    self._why = _SILENT
            if not self._closing:
                assert self._task is not None
                self._cancelled = True
                self._task.cancel()
        finally:
            if saying is not None:
                saying.cancel()
                await asyncio.wait([saying])

    async def _say(self) -> None:
        """Write a heartbeat with a new name, and check for another claim."""
        run, now = self.run, self.run.host.clock()
        self._beats += 1
        beat = encode_beat(run.identity.epoch, run.identity.owner_id, int(run.host.now() * 1000))
        with suppress(StoreError, LeaseLostError):
            await run.store.put(
                run.layout.alive(run.identity.epoch, self._beats), beat, overwrite=False
            )
            directory = directory_of(run)
            if await directory.is_taken(run):
                self._why = TAKEN
                await directory.take_back(run, run.layout.alive(run.identity.epoch, self._beats))
            else:
                self._until = now + MARGIN * self._seconds


def haste(run: CommitContext) -> Callable[[], None]:
    """Return a check that raises if this process is suspended from now on.

    The check raises ``CommitError``.

    What it has looked at may be gone by then, and the job of this id another.
    """
    until = run.host.clock() + MARGIN * lease_of(run)

    def check() -> None:
        if run.host.clock() > until:
            text = (
                "this process was suspended during the abort, and the job may have been "
                "replaced since. Nothing was deleted: check the job and abort it again: "
                f"{job_command('status', run.layout)}"
            )
            raise CommitError(run.layout.job_id, run.meter.stage, (), text)

    return check


async def require_place(run: CommitContext) -> None:
    """Raise ``LeaseLostError`` unless this run is the last owner."""
    await directory_of(run).require_place(run)


async def close_place(run: CommitContext, outcome: Outcome, *, looked: bool = False) -> None:
    """End this owner's work, which is done except for the clean-up.

    Afterwards no other process finds a commit to continue.

    Args:
        run: the owner.
        outcome: how its work ended.
        looked: whether ``require_place`` was asked a moment ago.

    Raises ``LeaseLostError`` if another has taken the commit over.
    """
    run.check_lease()
    if not looked:
        await require_place(run)
    await directory_of(run).close(run, outcome)


async def say_stopped(run: CommitContext, error: BaseException | None = None) -> None:
    """Record that this owner has ended, so that its lease is not awaited.

    Without an error it says that all is done, though the job's directory is still there. If that
    fails, a note on ``error`` tells what it means for the next owner.
    """
    if not run.identity.epoch or isinstance(error, LeaseLostError):
        return
    cause = None if error is None else _cause(error)
    text = "" if cause is None else reason(cause)
    stage = error.stage if isinstance(error, CommitError) else run.meter.stage
    if is_interrupt(cause):
        text += f" at {stage}"
    stop = OwnerStop(
        run.identity.epoch,
        run.identity.owner_id,
        int(run.host.now() * 1000),
        stage,
        text,
        run.promise.renamed,
    )
    why = "the store did not answer in time"
    with anyio.move_on_after(_CLEANUP_GRACE_SECONDS, shield=True):
        try:
            why = await _write_stop(run, encode_stop(stop))
        except LeaseLostError:  # the commit is another's by now
            return
    if why and error is not None:
        _say_unsaid(run, error, why)


async def _write_stop(run: CommitContext, data: bytes) -> str:
    """Write the stop file; return the reason for a failure, or ``""``.

    On a full disk a small file of this owner's is renamed, which needs no room.
    """
    path = run.layout.stopped(run.identity.epoch)
    try:
        await run.store.put(path, data, overwrite=False)
    except (ExistsError, NotFoundError):
        return ""  # said before, or the job has ended and its directory is gone
    except StoreError as error:
        if not await _rename_to_stop(run, path):
            return str(error)
    await directory_of(run).take_back(run, path)
    return ""


async def _rename_to_stop(run: CommitContext, path: str) -> bool:
    """Rename a heartbeat to a stop file; return whether there was one."""
    layout = run.layout
    heartbeats = layout.alive(run.identity.epoch, 0).rpartition("-")[0] + "-"
    with suppress(StoreError):
        found = [info.path for info in await list_if_there(run.store, layout.attempt_dir)]
        beats = [path for path in found if path.startswith(heartbeats)]
        for spare in (layout.job_owner, layout.job_ended, *beats):
            if spare in found:
                await run.store.rename(spare, path)
                return True
    return False


def _say_unsaid(run: CommitContext, error: BaseException, why: str) -> None:
    """Add to an error that other processes will consider this one alive."""
    text = (
        f"The stop of this process could not be recorded ({why}): while it runs, others are "
        f"refused until its lease of {lease_of(run):,.0f} s expires. Nothing is running any "
        f"more, so it is safe to continue earlier: {job_command('takeover', run.layout)}"
    )
    if isinstance(error, CommitError) and error.summary:
        error.summary = f"{error.summary}. {text}"
    else:
        error.add_note(text)


def _cause(error: BaseException) -> BaseException:
    return error.failures[0] if isinstance(error, CommitError) and error.failures else error

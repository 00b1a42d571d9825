"""Commit a MapReduce job with markers, in a crash-safe order.

Hadoop's order does not: its application master writes the start marker, waits until it is
connected, commits, and writes the result; any error on the way counts as a failed commit. This
module first checks that the process may commit, lets exactly one of several owners begin, and
reports a failure only if the commit has failed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, TypeVar

from asynccommit.commit.ownership.lease import ACCOUNT_LEASE, LEASE
from asynccommit.errors import (
    CommitError,
    CommittedError,
    CommitUnknownError,
    LeaseLostError,
    ManifestError,
    OptionError,
    OutcomeUnknownError,
    OwnedError,
    PreflightError,
    StoreError,
)
from asynccommit.formats.commit_owner import MAX_EPOCH
from asynccommit.formats.commit_record import Owner
from asynccommit.mapreduce.commit_window import (
    STAGE,
    Heartbeat,
    MarkerSettings,
    is_open,
    wait_for_window,
)
from asynccommit.mapreduce.lease import MARGIN, Tenure
from asynccommit.mapreduce.marker_store import Committed, MarkerStore, is_silent
from asynccommit.mapreduce.markers import (
    FAIL,
    STARTED,
    SUCCESS,
    CommitVerdict,
    End,
    MarkerState,
    Start,
    encode_end,
    encode_start,
    judge,
    later_start,
    sign_of_life,
)
from asynccommit.mapreduce.refusals import ABORT, refusal, refuse_abort
from asynccommit.options.checked import located
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.base import Store
from asynccommit.stores.urls import Address, parse_url

T = TypeVar("T")
Check = Callable[[], None]
Work = Callable[[Check], Coroutine[Any, Any, str]]

_TRIES = 10
_PAUSES = (0.0, 1.0, 2.0, 4.0, 8.0)  # Seconds before each attempt to write the success marker.
# After these errors the outcome is unknown, or another owner must decide it.
_UNDECIDED = (
    OwnedError,
    LeaseLostError,
    CommitUnknownError,
    CommittedError,
    OutcomeUnknownError,
)


class CommitMarkers:
    """The job commit of one application master attempt.

    Args:
        store: store of the staging directory.
        directory: staging directory of the job, in this store; must exist.
        job_id: id of the job.
        epoch: number of this attempt, from 1; of two owners the higher one wins.
        heartbeat: reports when the resource manager responded.
        host: clock, ids and names; the real ones by default.
        settings: timeouts.

    Raises:
        OptionError: the attempt number is invalid.
        UrlError: ``directory`` cannot be parsed.
    """

    def __init__(
        self,
        store: Store,
        directory: str | os.PathLike[str] | Address,
        job_id: str,
        *,
        epoch: int,
        heartbeat: Heartbeat,
        host: Host | None = None,
        settings: MarkerSettings | None = None,
    ) -> None:
        if not 1 <= epoch <= MAX_EPOCH:
            raise OptionError(
                f"epoch is {epoch}: expected the attempt's number, from 1 to {MAX_EPOCH}"
            )
        host = host or this_host()
        self.place = MarkerStore(store, _address(directory).path, job_id)
        self.owner = Owner(host.new_id(), host.name, host.user, host.process)
        self.epoch = epoch
        self._host = host
        self._heartbeat = heartbeat
        self._settings = settings or MarkerSettings()
        self._idle = asyncio.Event()
        self._idle.set()
        self._aborted = False
        self._waiting: asyncio.Task[Any] | None = None
        self._digest: str | None = None
        self._worked = False
        self._failed = False
        self._numbers = count(1)

    @property
    def job_id(self) -> str:
        """The id of the job."""
        return self.place.job_id

    @property
    def lease(self) -> float:
        """Seconds without a heartbeat after which another owner may take over."""
        if self._settings.lease is not None:
            return self._settings.lease
        return ACCOUNT_LEASE if self.place.store.traits.account else LEASE

    async def commit(
        self, work: Work, *, repeatable: bool = False, force: bool = False
    ) -> Committed:
        """Commit the job unless another owner does or did; write the result.

        If the work is done and the result could not be written, this may be called again to write
        it.

        Args:
            work: commits the job and returns a digest of the committed output. It must call its
                argument before each step; that call raises ``LeaseLostError`` if another owner may
                commit now.
            repeatable: the work may be repeated, whatever happened to an earlier attempt.
            force: the caller knows that the present owner is dead. Valid only for repeatable work.

        Raises:
            PreflightError: the resource manager does not respond, or the directory is not in the
                expected state; nothing was written.
            OwnedError: another owner is committing the job; nothing was written.
            LeaseLostError: another owner may commit the job now; no end marker was written.
            CommitUnknownError: it is unknown whether the job is committed, or it is committed and
                the result could not be written; ``COMMIT_FAIL`` was not written.
            CommitError: the commit has failed.
            UnsupportedError: the store cannot prevent two owners from committing; nothing was
                written.
            Exception: an error of the work; the commit has failed.
        """
        if not self._idle.is_set():
            raise OwnedError(self.job_id, STAGE, (), "this process is already committing it")
        self._idle.clear()
        try:
            async with self._store_errors():
                since, start = await self._begin(repeatable, force)
            if isinstance(start, Committed):
                return start
            async with Tenure(self.place, start, self._host, since, self._numbers) as tenure:
                return await self._go_on(work, tenure)
        finally:
            self._idle.set()

    async def abort(self, undo: Callable[[], Awaitable[T]]) -> T:
        """Stop this process's running commit, wait for its end, then undo the job.

        Args:
            undo: aborts the job; called only if the job is not committed and no owner is committing
                it.

        Raises:
            CommittedError: the job is committed; nothing was undone.
            OwnedError: another owner is committing the job; nothing was undone.
            CommitUnknownError: it is unknown whether the job is committed; nothing was undone.
            CommitError: the commit does not stop; nothing was undone.
        """
        self._aborted = True
        if self._waiting is not None:
            self._waiting.cancel()
        try:
            async with asyncio.timeout(self._settings.cancel_timeout):
                await self._idle.wait()
        except TimeoutError:
            seconds = self._settings.cancel_timeout
            text = f"its commit did not stop within {seconds:,.0f} s: nothing was undone"
            raise CommitError(self.job_id, ABORT, (), text) from None
        done, failed = self._digest is not None, self._failed
        try:
            async with self._store_errors():
                standing = await self.place.look()
            refuse_abort(self.place, standing, self.owner.id, done=done, failed=failed)
        except CommitError:
            self._aborted = False
            raise
        return await undo()

    # --- beginning -----------------------------------------------------------------------------

    async def _begin(self, repeatable: bool, force: bool) -> tuple[float, Start | Committed]:
        """Become the only owner of the commit; return the start time by this host's clock."""
        for _ in range(_TRIES):
            await self._interruptible(wait_for_window(self._heartbeat, self._settings, self.job_id))
            standing = await self.place.look()
            verdict = await self._verdict(standing, repeatable, force)
            if verdict is CommitVerdict.COMMITTED:
                return 0.0, self._committed(standing.success, already=True)
            if not verdict.commits:
                raise refusal(self.place, verdict, standing, self._host.now())
            since = self._host.clock()
            start = await self._claim(verdict, standing, repeatable)
            new = verdict is not CommitVerdict.GO_ON
            if start is not None and await self._is_proven(start, since, new=new):
                return since, start
        text = (
            f"in {_TRIES} attempts, the last response of the resource manager was always older "
            f"than {self._settings.window:g} s when the commit was about to begin: the window is "
            "too short for this store. Nothing was begun"
        )
        raise PreflightError(self.job_id, STAGE, (), text)

    async def _verdict(self, standing: MarkerState, repeatable: bool, force: bool) -> CommitVerdict:
        verdict, free = (
            judge(standing, self.owner.id, self.epoch, repeatable=repeatable, expired=expired)
            for expired in (False, True)
        )
        if verdict is CommitVerdict.GO_ON and self._is_lost and not repeatable:
            return CommitVerdict.UNREPEATABLE
        if verdict is not CommitVerdict.OWNED:
            return verdict
        if force and standing.start is None:
            return CommitVerdict.TAKE_OVER if repeatable else CommitVerdict.UNREPEATABLE
        if force:
            return free
        if free is CommitVerdict.TAKE_OVER:
            # Asked last, because asking the store for its time creates a file there for a moment.
            return free if await self.place.is_expired(standing, self._host) else verdict
        return free if is_silent(standing, self._host) else verdict

    @property
    def _is_lost(self) -> bool:
        """Return whether this process began the work and its outcome is unknown."""
        return self._worked and self._digest is None

    async def _claim(
        self, verdict: CommitVerdict, standing: MarkerState, repeatable: bool
    ) -> Start | None:
        """Write the start marker of this owner; ``None`` if another was faster."""
        if verdict is CommitVerdict.GO_ON:
            sign = sign_of_life(self.epoch, next(self._numbers))
            return standing.start if await self.place.write(sign, b"") else None
        name = STARTED
        if verdict is CommitVerdict.TAKE_OVER and standing.start is not None:
            name = later_start(self.epoch)
        elif verdict is CommitVerdict.TAKE_OVER:
            # Forced, or committed by Hadoop's application master: delete its start marker and
            # commit again.
            await self.place.take_back(STARTED, b"", self._host.new_id())
        start = Start(
            self.job_id,
            self.epoch,
            self.owner,
            self.lease,
            int(self._host.now() * 1000),
            repeatable,
        )
        mine = await self.place.claim(name, encode_start(start), self._host.new_id())
        return start if mine else None

    async def _is_proven(self, start: Start, since: float, *, new: bool) -> bool:
        """Check that the start marker stands now that others can see it.

        Otherwise it is deleted. This leaves only a moment in which an application master that is
        cut off announces a commit, and of two that began together one gives way.
        """
        standing = await self.place.look()
        mine = standing.start is not None and standing.start.owner.id == self.owner.id
        ended = standing.markers.success or standing.is_failed
        if mine and not ended and is_open(self._heartbeat.age, self._settings.window):
            return True
        # A start that another owner has built upon stays: without it that owner would have no
        # predecessor.
        if mine and new and self._host.clock() - since < MARGIN * start.lease:
            for name in (later_start(start.epoch), STARTED):
                await self.place.take_back(name, encode_start(start), self._host.new_id())
        return False

    # --- going on ------------------------------------------------------------------------------

    async def _go_on(self, work: Work, tenure: Tenure) -> Committed:
        if self._digest is None:
            self._worked = True
            try:
                self._digest = await self._interruptible(work(tenure.check), tenure)
            except Exception as error:
                self._failed = not isinstance(error, _UNDECIDED)
                await self._fail(tenure, error)
                raise
        return await self._succeed(tenure, self._digest)

    async def _interruptible(self, work: Coroutine[Any, Any, T], tenure: Tenure | None = None) -> T:
        """Await work that an abort, or the end of the lease, may cancel.

        The work has ended when this returns.
        """
        task: asyncio.Task[T] = asyncio.create_task(work)
        self._waiting = task
        if self._aborted:
            task.cancel()
        if tenure is not None:
            tenure.guard(task)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            self._waiting = None
        if task.cancelled():
            if tenure is not None:
                tenure.check()
            who = "an abort" if self._aborted else "a cancellation"
            raise CommitError(self.job_id, STAGE, (), f"{who} stopped the commit")
        return task.result()

    async def _succeed(self, tenure: Tenure, digest: str) -> Committed:
        """Write the success marker, with retries; never write a failure.

        Raises ``CommitUnknownError`` if the marker could not be written.
        """
        end = self._end(digest=digest)
        problem: Exception | None = None
        for pause in _PAUSES:
            await asyncio.sleep(pause)
            try:
                await tenure.require()
                await self.place.write(SUCCESS, encode_end(end))
                standing = await self.place.look()
            except (StoreError, ManifestError) as error:
                problem = error
                continue
            await self._tidy(tenure, standing)
            return self._committed(standing.success or end)
        text = (
            f"the job is committed, and its output published, but {SUCCESS} could not be "
            f"written: {problem}. {FAIL} was not written. Call commit again, or write "
            f"{self.place.at(SUCCESS)} by hand"
        )
        raise CommitUnknownError(self.job_id, STAGE, (problem,) if problem else (), text)

    async def _fail(self, tenure: Tenure, error: Exception) -> None:
        """Write the failure marker if the commit has failed under this owner.

        Raises ``LeaseLostError`` if another owner has to decide.
        """
        if not self._failed:
            return
        data = encode_end(self._end(error=f"{type(error).__name__}: {error}"))
        try:
            if (await tenure.require()).markers.success:
                return
            await self.place.write(FAIL, data)
            standing = await self.place.look()
            if standing.markers.success or not tenure.holds(standing):
                await self.place.take_back(FAIL, data, self._host.new_id())
            else:
                await self.place.remove(tenure.heartbeats)
        except LeaseLostError as lost:
            raise lost from error
        except (StoreError, ManifestError) as problem:
            error.add_note(f"{FAIL} was not written: {problem}")

    async def _tidy(self, tenure: Tenure, standing: MarkerState) -> None:
        """Delete obsolete files: heartbeats, and an earlier owner's end marker.

        The replaced owner may have written a failure just when it was replaced.
        """
        await self.place.remove(tenure.heartbeats)
        if standing.fail is not None and standing.fail.epoch < self.epoch:
            with suppress(StoreError):
                data = encode_end(standing.fail)
                await self.place.take_back(FAIL, data, self._host.new_id())

    # --- shared by these ---------------------------------------------------------------------

    def _end(self, *, digest: str = "", error: str = "") -> End:
        now = int(self._host.now() * 1000)
        return End(self.job_id, self.epoch, self.owner, now, digest, error)

    def _committed(self, end: End | None, *, already: bool = False) -> Committed:
        if end is None:
            return Committed(self.job_id, "", None, already)
        return Committed(self.job_id, end.digest, end.owner, already)

    @asynccontextmanager
    async def _store_errors(self) -> AsyncIterator[None]:
        """Turn errors of the store into errors of the commit."""
        try:
            yield
        except OutcomeUnknownError as error:
            raise CommitUnknownError(self.job_id, STAGE, (error,)) from error
        except (StoreError, ManifestError) as error:
            raise CommitError(self.job_id, STAGE, (error,)) from error


def _address(directory: str | os.PathLike[str] | Address) -> Address:
    return directory if isinstance(directory, Address) else parse_url(located(os.fspath(directory)))

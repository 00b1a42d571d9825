"""Determine whether a job's driver is alive, or is this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.claims import claim_job, take_owner
from asynccommit.commit.driver.heartbeat import LEASE, Heartbeats
from asynccommit.commit.driver.liveness import is_orphaned, refuse_living
from asynccommit.commit.driver.owners import describe, owner_of
from asynccommit.commit.layouts.layout import Layout
from asynccommit.errors import ExistsError, ManifestError, NotFoundError, OwnedError
from asynccommit.formats.job_owner import (
    MAX_JOB_OWNER_BYTES,
    JobOwner,
    decode_job_owner,
    encode_job_owner,
)
from asynccommit.stores.base import Store
from asynccommit.stores.tree import read_if_there, remove_file


class DriverLiveness:
    """The part of a committer that records the owner of the job.

    Attributes:
        set_up: the job's directories may be there, and are this committer's to abort.
        heartbeats: the heartbeats of this driver, once it has set the job up.
        sends_heartbeats: whether somebody sends heartbeats from the setup on; if not, only the
            process tells whether the driver lives.
    """

    set_up: bool = False
    heartbeats: Heartbeats | None = None
    sends_heartbeats: bool = True

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Send heartbeats during the block, for a job that was set up here."""
        if self.heartbeats is None:
            yield
            return
        async with self.heartbeats.sent():
            yield

    async def _claim(self, run: CommitContext, store: Store) -> None:
        """Create the job's directories and owner file. Raises ``ExistsError``."""
        owner = self._owner(run)
        self.set_up = True
        try:
            await claim_job(run, store, owner)
        except ExistsError:
            self.set_up = False
            raise
        self.heartbeats = Heartbeats(store, run.layout, owner, run.host)

    async def _take(self, run: CommitContext, store: Store) -> None:
        """Write the owner file. Raises ``ExistsError`` for another driver's file."""
        owner = self._owner(run)
        await take_owner(store, run.layout, owner)
        self.heartbeats = Heartbeats(store, run.layout, owner, run.host)

    async def _rejoin(self, run: CommitContext, store: Store) -> bool:
        """Replace the owner file of a job; return whether the job was there.

        Raises ``OwnedError`` if its driver may be alive.
        """
        if not await is_orphaned(run, store):
            return False
        owner = self._owner(run)
        await store.put(run.layout.job_owner, encode_job_owner(owner))
        with suppress(NotFoundError):
            await remove_file(store, run.layout.job_ended)
        self.heartbeats = Heartbeats(store, run.layout, owner, run.host)
        return True

    def _owner(self, run: CommitContext) -> JobOwner:
        now, lease = int(run.host.now() * 1000), run.options.lease or LEASE
        return JobOwner(owner_of(run), lease if self.sends_heartbeats else None, now, now)

    async def _before_abort(
        self, run: CommitContext, store: Store, others: Sequence[Layout] = (), *, careful: bool
    ) -> None:
        """Check that the job may be deleted, and stop its heartbeats.

        Args:
            run: the abort.
            store: where the job's own directory is.
            others: attempts of the job that are deleted as well.
            careful: it is not the job's driver that aborts it.

        Raises ``OwnedError`` if the job may be alive, or another has set it up since.
        """
        run.meter.stage = run.meter.stage or "job_stage_abort"
        if self.heartbeats is not None:
            await self._refuse_another(run, store, self.heartbeats)
            await self.heartbeats.stop()
        elif careful:
            attempts = {layout.attempt_dir: layout for layout in (*others, run.layout)}
            for layout in attempts.values():
                await refuse_living(run.of_attempt(layout), store)

    async def _refuse_another(
        self, run: CommitContext, store: Store, heartbeats: Heartbeats
    ) -> None:
        path = run.layout.job_owner
        data = await read_if_there(store, path, MAX_JOB_OWNER_BYTES)
        try:
            owner = None if data is None else decode_job_owner(data, path).owner
        except ManifestError:
            return
        if owner is not None and owner.id != heartbeats.owner.owner.id:
            text = (
                f"the job that was set up here has ended, and {describe(owner)} has set up another "
                "with this id. Nothing was deleted"
            )
            raise OwnedError(run.layout.job_id, run.meter.stage, (), text)

    async def _began(self) -> None:
        """Act on the commit record, which is written: the job's heartbeats stop."""
        await self._ended()

    async def _ended(self) -> None:
        """Stop the heartbeats: the commit has begun, or the job is deleted."""
        if self.heartbeats is not None:
            await self.heartbeats.end()

"""The owner side of the grants: renewals, and a stop that all obey."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

from asynccommit.commit.context import CommitContext
from asynccommit.commit.orders import GRANT, RENEWAL, REQUEST
from asynccommit.commit.ownership.directory_of import directory_of
from asynccommit.commit.ownership.lease import Lease
from asynccommit.commit.slices.permit import grants_of
from asynccommit.errors import LeaseLostError, StoreError
from asynccommit.formats.commit_grants import Grants, encode_grants


class Granting:
    """A context in which workers of this owner may send requests.

    At its end they must stop. If some of them may be at work the end waits until none may send
    anything any more.

    Args:
        run: the owner.
        parts: number of workers.

    Attributes:
        unsure: whether workers may be at work that have not answered.
    """

    def __init__(self, run: CommitContext, parts: int) -> None:
        self.unsure = False
        self._run = run
        self._parts = parts
        self._path = grants_of(run)
        self._number = 0
        self._until = float("-inf")
        self._renewing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if isinstance(lease := self._run.held, Lease):
            lease.quicken()
        await self._write()
        self._renewing = asyncio.create_task(self._renew())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._renewing is not None
        self._renewing.cancel()
        await asyncio.wait([self._renewing])
        if not self._renewing.cancelled():
            self._renewing.exception()  # the work has met it as well
        with suppress(StoreError, LeaseLostError):
            await self._write(stop=True)
        if self.unsure:
            await self._outlive()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL)
            with suppress(StoreError, LeaseLostError):
                await self._write()

    async def _write(self, *, stop: bool = False) -> None:
        """Write the next number, if the lease lasts as long as what that allows."""
        run, lease = self._run, self._run.held
        short = isinstance(lease, Lease) and lease.left < GRANT + REQUEST
        if not stop and (short or await directory_of(run).is_taken(run)):
            return
        run.check_lease()
        self._number += 1
        data = encode_grants(Grants(self._number, self._parts, stop))
        try:
            await run.store.put(self._path, data)
            self._until = max(self._until, run.host.clock() + GRANT)
        except BaseException:  # it may be executed later
            self._until = run.host.clock() + REQUEST + GRANT
            raise

    async def _outlive(self) -> None:
        """Wait until no worker may send anything, also while cancelled."""
        cancelled: asyncio.CancelledError | None = None
        while (left := self._until - self._run.host.clock()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

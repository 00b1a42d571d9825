"""The right of a worker to send requests, without a common clock.

The owner writes a number that grows. A worker that reads another number than at its last look knows
that the owner lived after that look, so it may send requests for ``GRANT`` seconds from then, by
its own clock, which counts suspension.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.errors import lease_lost
from asynccommit.commit.orders import GRANT, RENEWAL
from asynccommit.errors import ManifestError, NotFoundError, StoreError
from asynccommit.formats.commit_grants import MAX_GRANTS_BYTES, Grants, decode_grants
from asynccommit.stores.grant import granting

_PATIENCE = 2 * GRANT
"""Seconds in which the owner must be seen alive at first."""
_LOOK = 2 * RENEWAL
"""Seconds after which a look is given up, for the next one."""
_SILENT = "its owner sends no heartbeats"


class Permit:
    """The ``Ownership`` of a worker's context.

    Args:
        run: the context of the worker, whose identity is the owner's.

    Attributes:
        parts: number of workers that share the rate of the account.
    """

    def __init__(self, run: CommitContext) -> None:
        self.parts = 1
        self._run = run
        self._path = grants_of(run)
        self._until = float("-inf")
        self._seen: int | None = None
        self._asked = float("-inf")
        self._over = ""

    def check(self) -> None:
        """Raise ``LeaseLostError`` unless the owner was seen alive lately."""
        if self._over or self._run.host.clock() > self._until:
            raise lease_lost(self._run, self._over or _SILENT)

    @property
    def is_held(self) -> bool:
        """See ``Ownership.is_held``."""
        return True

    def close(self) -> None:
        """See ``Ownership.close``: a worker only moves files."""

    def free(self) -> None:
        """See ``Ownership.free``."""

    async def end(self) -> None:
        """See ``Ownership.end``."""

    async def look(self) -> None:
        """Read the owner's number once. Raises ``StoreError``."""
        asked = self._run.host.clock()
        try:
            # A look that was refused waits ever longer, and an old one allows little.
            async with asyncio.timeout(_LOOK):
                data = await self._run.store.get(self._path, MAX_GRANTS_BYTES)
        except TimeoutError:
            return
        except NotFoundError:
            self._over = "the commit is another owner's by now, or it has ended"
            return
        with suppress(ManifestError):  # as good as unread: the time runs out
            self._take(decode_grants(data, self._path), asked)

    def _take(self, grants: Grants, asked: float) -> None:
        if grants.stop:
            self._over = "its owner has ended the work"
        # From the earlier look on: the number may have been written right after it.
        if self._seen is not None and grants.number != self._seen:
            self._until = self._asked + GRANT
        self._seen, self._asked, self.parts = grants.number, asked, grants.parts

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Wait for the permit, and renew it during the block.

        Every request of the block that changes something looks at it when it is sent. Raises
        ``LeaseLostError``.
        """
        await self._begin()
        looking = asyncio.create_task(self._look_often())
        try:
            with granting(check=self.check):
                yield
        finally:
            looking.cancel()
            await asyncio.wait([looking])

    async def _begin(self) -> None:
        begin = self._run.host.clock()
        while self._until == float("-inf") and not self._over:
            await self.look()
            if self._run.host.clock() > begin + _PATIENCE:
                break
            if self._until == float("-inf") and not self._over:
                await asyncio.sleep(RENEWAL / 2)
        self.check()

    async def _look_often(self) -> None:
        while not self._over:
            await asyncio.sleep(RENEWAL)
            with suppress(StoreError):
                await self.look()


def grants_of(run: CommitContext) -> str:
    """Return the path of the grants of this owner's workers."""
    return run.layout.grants(run.identity.epoch, fenced=run.store.traits.fences)

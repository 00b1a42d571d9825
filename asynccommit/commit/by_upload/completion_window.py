"""The time in which completions may be sent, where no abort bars them.

Uncommitted blocks of Azure cannot be deleted, so a driver that stood still could complete an upload
after another process has rolled its commit back. Two bounds keep that out. A driver sends a
completion only for ``PERIOD`` seconds after it has asked whether the commit is to be rolled back,
by its own clock, which counts suspension. And the service refuses a completion that arrives more
than ``Multipart.late`` seconds after it was sent. A rollback is decided first, and looks at the
uploads only when both have passed: from then on nothing is completed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.status import find_outcome, has_begun
from asynccommit.commit.errors import lease_lost
from asynccommit.errors import ManifestError, StoreError
from asynccommit.formats.commit_owner import Outcome
from asynccommit.stores.grant import granting

PERIOD = 15.0
"""Seconds in which completions may be sent after the outcome was asked for."""
_RENEWALS = 3  # of a period
_ENDED = "the commit was rolled back, or has ended"
_UNSEEN = "it could not see in time whether the commit was rolled back"


class CompletionWindow:
    """The right of this process to send completions.

    Args:
        run: the commit, which has a record.
    """

    def __init__(self, run: UploadContext) -> None:
        self._run = run
        self._until = float("-inf")
        self._why = _UNSEEN

    def check(self) -> None:
        """Raise ``LeaseLostError`` unless completions may be sent now."""
        if self._run.host.clock() > self._until:
            raise lease_lost(self._run, self._why)

    async def renew(self) -> bool:
        """Ask for the outcome; return whether completions may be sent."""
        asked = self._run.host.clock()
        try:
            decided = await find_outcome(self._run)
            if (decided is not None and decided.outcome is Outcome.ROLLBACK) or not await has_begun(
                self._run
            ):
                self._until, self._why = float("-inf"), _ENDED
                return False
        except (StoreError, ManifestError):
            return self._run.host.clock() <= self._until
        if self._why != _ENDED:
            self._until = asked + PERIOD
        return self._why != _ENDED

    async def _renew_often(self) -> None:
        while self._why != _ENDED:
            await asyncio.sleep(PERIOD / _RENEWALS)
            with suppress(StoreError):
                await self.renew()


@asynccontextmanager
async def completing(run: UploadContext) -> AsyncIterator[CompletionWindow | None]:
    """Send the requests of this block while the commit is not rolled back.

    It is ``None`` where aborts bar completions, and then nothing is asked. Raises
    ``LeaseLostError``.
    """
    if run.store.traits.aborts:
        yield None
        return
    window = CompletionWindow(run)
    await window.renew()
    window.check()
    renewing = asyncio.create_task(window._renew_often())
    try:
        with granting(check=window.check):
            yield window
    finally:
        renewing.cancel()
        await asyncio.wait([renewing])


async def outlast_completions(run: UploadContext) -> None:
    """Wait until no completion of this commit can take effect any more.

    That it is rolled back must have been decided before.
    """
    rules = run.store.traits.multipart
    if rules is not None and not rules.aborts:
        await asyncio.sleep(PERIOD + rules.late)

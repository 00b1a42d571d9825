"""Keep the lease of a marker commit by heartbeats.

The lease is measured with a clock that counts suspension, from before the heartbeat was written,
and ends a margin before any other owner may take the commit over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from asynccommit.errors import LeaseLostError, ManifestError, StoreError
from asynccommit.mapreduce.commit_window import STAGE
from asynccommit.mapreduce.marker_store import MarkerStore
from asynccommit.mapreduce.markers import MarkerState, Start, sign_of_life
from asynccommit.runtime.host import Host

MARGIN = 0.75
"""The part of a lease that its owner uses."""

_TICKS = 16  # clock checks in one lease
_BEAT = 4  # ticks between two heartbeats
_SILENT = "it could not renew its lease in time"
_TAKEN = "another application master took the commit over"


class Tenure:
    """A lease that is held while a commit goes on.

    Attributes:
        heartbeats: names of the remaining heartbeats.

    Args:
        place: location of the markers.
        start: start marker of the owner.
        host: host of the owner.
        since: when the owner began to write its start marker, by the host's clock.
        numbers: numbers for its heartbeats.
    """

    def __init__(
        self, place: MarkerStore, start: Start, host: Host, since: float, numbers: Iterator[int]
    ) -> None:
        self._place, self._start, self._host = place, start, host
        self._until = since + MARGIN * start.lease
        self._why = ""
        self._numbers = numbers
        self.heartbeats: list[str] = []
        self._guarded: asyncio.Task[Any] | None = None
        self._beating: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait([self._beating])

    def guard(self, task: asyncio.Task[Any]) -> None:
        """Cancel this task when the lease is lost."""
        self._guarded = task

    def check(self) -> None:
        """Raise ``LeaseLostError`` unless this owner may still go on."""
        if self._host.clock() > self._until:
            self._why = self._why or _SILENT
        if self._why:
            raise self.lost()

    def lost(self, why: str = "") -> LeaseLostError:
        """Return the error for a lost lease."""
        text = (
            f"this process stopped because {why or self._why}: it wrote no end marker to "
            f"{self._place.path}. Its successor ends the commit"
        )
        return LeaseLostError(self._place.job_id, STAGE, (), text)

    def holds(self, standing: MarkerState) -> bool:
        """Return whether this owner is the present one."""
        start = standing.start
        return start is not None and start.owner.id == self._start.owner.id

    async def require(self) -> MarkerState:
        """Return the state of the markers. Raises ``LeaseLostError``.

        The error means that this owner is not the present one.
        """
        self.check()
        standing = await self._place.look()
        if not self.holds(standing):
            self._why = _TAKEN
            raise self.lost()
        self.check()
        return standing

    @property
    def _is_over(self) -> bool:
        return bool(self._why)

    async def _beat(self) -> None:
        """Write heartbeats; cancel the work when the lease is lost."""
        saying: asyncio.Task[None] | None = None
        ticks = 0
        try:
            while not self._is_over:
                await asyncio.sleep(self._start.lease / _TICKS)
                ticks += 1
                if ticks % _BEAT == 0 and (saying is None or saying.done()):
                    saying = asyncio.create_task(self._say())
                if self._host.clock() > self._until:
                    self._why = self._why or _SILENT
            if self._guarded is not None:
                self._guarded.cancel()
        finally:
            if saying is not None:
                saying.cancel()
                await asyncio.wait([saying])

    async def _say(self) -> None:
        """Write a new heartbeat, and check that the commit was not taken over."""
        now, name = self._host.clock(), sign_of_life(self._start.epoch, next(self._numbers))
        with suppress(StoreError, ManifestError):
            # Never overwrite: creating a file that must be new does not bring a deleted directory
            # back.
            await self._place.store.put(self._place.at(name), b"", overwrite=False)
            if not self.holds(await self._place.look()):
                self._why = _TAKEN
                await self._place.remove([name, *self.heartbeats])
                return
            self._until = now + MARGIN * self._start.lease
            before, self.heartbeats = self.heartbeats, [name]
            await self._place.remove(before)

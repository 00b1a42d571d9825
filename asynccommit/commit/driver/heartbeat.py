"""Heartbeats of a job's driver, from setup until the commit begins."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import anyio

from asynccommit.commit.layouts.layout import Layout
from asynccommit.errors import ManifestError, NotFoundError, StoreError
from asynccommit.formats.job_owner import (
    MAX_JOB_OWNER_BYTES,
    JobOwner,
    decode_job_owner,
    encode_job_owner,
)
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.tree import is_there, remove_file

LEASE = 300.0
"""Seconds; longer than that of a commit, because user code runs on the same event loop."""

_BEATS = 4  # heartbeats in one lease
_CLEANUP_GRACE_SECONDS = 30.0

_held: set[str] = set()


def is_held(owner_id: str) -> bool:
    """Return whether a driver of this process is keeping its job alive now."""
    return owner_id in _held


def _yes() -> bool:
    return True


class Heartbeats:
    """The heartbeats that the driver of a job writes after its setup.

    Args:
        store: where the job's own directory is.
        layout: the job attempt.
        owner: what the setup has written.
        host: the clock.

    Attributes:
        over: the job has ended, or its commit has begun: there is nothing more to send.
    """

    def __init__(self, store: Store, layout: Layout, owner: JobOwner, host: Host) -> None:
        self.owner = owner
        self.over = False
        self._store = store
        self._layout = layout
        self._host = host
        self._pid = os.getpid()
        self._beating: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def sent(self) -> AsyncIterator[None]:
        """Send heartbeats in the block; record at its end that the driver left."""
        self.start()
        try:
            yield
        finally:
            with anyio.move_on_after(_CLEANUP_GRACE_SECONDS, shield=True):
                await self.stop()
                await self.say_ended()

    def start(self, lives: Callable[[], bool] = _yes) -> None:
        """Send heartbeats from now on; the caller must stop them.

        It ends when the job is gone, or when ``lives``, called in a thread, returns false.
        """
        if self._beating is None and self.owner.lease is not None:
            _held.add(self.owner.owner.id)
            self._beating = asyncio.create_task(self._send(lives))

    async def wait(self) -> None:
        """Return once no more heartbeats are sent."""
        if self._beating is not None:
            await asyncio.wait([self._beating])

    async def stop(self) -> None:
        """Send no more heartbeats."""
        _held.discard(self.owner.owner.id)
        beating, self._beating = self._beating, None
        if beating is not None:
            beating.cancel()
            await asyncio.wait([beating])

    async def end(self) -> None:
        """Send nothing more: the commit has begun, or the job is deleted."""
        self.over = True
        await self.stop()

    async def _send(self, lives: Callable[[], bool]) -> None:
        """Write heartbeats periodically; a failed one is retried with the next.

        Nothing is said in a forked child: the job is its parent's.
        """
        assert self.owner.lease is not None
        try:
            while True:
                await asyncio.sleep(self.owner.lease / _BEATS)
                if os.getpid() != self._pid or not await asyncio.to_thread(lives):
                    return
                with suppress(StoreError):
                    if not await self._say():
                        return
        finally:
            _held.discard(self.owner.owner.id)

    async def _say(self) -> bool:
        """Renew the owner file; return whether the job is still this driver's."""
        store, path = self._store, self._layout.job_owner
        if not await self._is_mine():
            return False
        now = replace(self.owner, seen_ms=int(self._host.now() * 1000))
        try:
            await store.put(path, encode_job_owner(now))
        except NotFoundError:
            return False
        keeps_out = store.traits.directories or not store.traits.atomic_rename
        if keeps_out or await is_there(store, self._layout.committed_dir):
            return True
        with suppress(NotFoundError):  # the job ended meanwhile, and this has come back
            await remove_file(store, path)
        return False

    async def say_ended(self) -> None:
        """Record that this driver gave the job up, if its files still exist.

        Where files are renamed that is a rename: it succeeds on a disk that is full.
        """
        if self.over or os.getpid() != self._pid:
            return
        self.over = True
        store, layout = self._store, self._layout
        with suppress(StoreError):
            if not await self._is_mine():
                return
            if store.traits.atomic_rename:
                await store.rename(layout.job_owner, layout.job_ended, replace=True)
            else:
                await store.put(layout.job_ended, encode_job_owner(self.owner))

    async def _is_mine(self) -> bool:
        """Return whether the existing job is the one that was set up here."""
        path = self._layout.job_owner
        try:
            found = decode_job_owner(await self._store.get(path, MAX_JOB_OWNER_BYTES), path)
        except (NotFoundError, ManifestError):
            return False
        return found.owner.id == self.owner.owner.id

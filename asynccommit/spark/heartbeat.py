"""Heartbeats and open committers of Spark's jobs, in the driver's Python.

The heartbeat runs on the engine's event loop. It ends with the job, with the session and with this
process; a forked child does not send it. The committer that sends it also commits the job, so that
a job opens its store once.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib import import_module

from asynccommit.commit.registry import Committer
from asynccommit.runtime.loop_thread import submit


@dataclass(slots=True)
class _Holding:
    committer: Committer
    opened: AsyncExitStack
    commits: bool = False
    task: asyncio.Task[None] | None = None

    async def hold(self, lives: Callable[[], bool]) -> None:
        """Send heartbeats until job or session end, then close the store.

        Whoever commits the job meanwhile closes it.
        """
        heartbeats = self.committer.heartbeats
        assert heartbeats is not None
        try:
            heartbeats.start(lives)
            try:
                await heartbeats.wait()
            finally:
                await heartbeats.stop()
            await heartbeats.say_ended()  # the session has ended but not the job
        finally:
            if not self.commits:
                await self.opened.aclose()


_jobs: dict[str, _Holding] = {}
_ended_by = 0


def begin(
    key: str, committer: Committer, opened: AsyncExitStack, lives: Callable[[], bool]
) -> None:
    """Send heartbeats for a job until it ends.

    Args:
        key: names the job in this process.
        committer: of the job, with its sender of heartbeats.
        opened: holds the store, and is closed afterwards.
        lives: returns whether the session lives; called in a thread before each sign.
    """
    _end_all_at_exit()
    holding = _jobs[key] = _Holding(committer, opened)
    holding.task = asyncio.create_task(holding.hold(lives))


def committer_of(key: str) -> Committer | None:
    """Return the open committer of a job, or ``None``.

    It stays open until ``end``.
    """
    holding = _jobs.get(key)
    if holding is None or holding.task is None or holding.task.done():
        return None
    holding.commits = True
    return holding.committer


async def end(key: str) -> None:
    """Stop sending heartbeats for a job, and close its committer."""
    holding = _jobs.pop(key, None)
    if holding is not None and holding.task is not None:
        holding.task.cancel()
        await asyncio.wait([holding.task])
        await holding.opened.aclose()


def _end_all_at_exit() -> None:
    """Close open stores while the thread pools they use still accept work."""
    global _ended_by
    if _ended_by == os.getpid():
        return
    _ended_by = os.getpid()
    import_module("concurrent.futures.thread")  # hooks run in reverse order of registration
    register = getattr(threading, "_register_atexit", atexit.register)
    register(_end_all, _ended_by)


def _end_all(process: int) -> None:
    if process == os.getpid() and _jobs:
        submit(_end_each())


async def _end_each() -> None:
    for key, holding in list(_jobs.items()):
        if not holding.commits:  # a commit ends its job itself
            await end(key)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_jobs.clear)

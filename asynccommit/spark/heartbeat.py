"""Heartbeats of Spark's jobs, sent by the driver's Python.

The heartbeat runs on the engine's event loop. It ends with the job, with the session and with this
process; a forked child does not send it.
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

from asynccommit.commit.job.heartbeat import Heartbeats
from asynccommit.runtime.loop_thread import submit


@dataclass(frozen=True, slots=True)
class _Holding:
    heartbeats: Heartbeats
    task: asyncio.Task[None]


_jobs: dict[str, _Holding] = {}
_ended_by = 0


def begin(
    key: str, heartbeats: Heartbeats, opened: AsyncExitStack, lives: Callable[[], bool]
) -> None:
    """Send heartbeats for a job until it ends.

    Args:
        key: names the job in this process.
        heartbeats: the job's sender of heartbeats.
        opened: holds the store, and is closed afterwards.
        lives: returns whether the session lives; called in a thread before each sign.
    """
    _end_all_at_exit()
    _jobs[key] = _Holding(heartbeats, asyncio.create_task(_hold(heartbeats, opened, lives)))


def heartbeats_of(key: str) -> Heartbeats | None:
    """Return the sender of heartbeats for a job, or ``None``."""
    holding = _jobs.get(key)
    return None if holding is None else holding.heartbeats


async def end(key: str) -> None:
    """Stop sending heartbeats for a job."""
    holding = _jobs.pop(key, None)
    if holding is not None:
        holding.task.cancel()
        await asyncio.wait([holding.task])


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
    for key in list(_jobs):
        await end(key)


async def _hold(heartbeats: Heartbeats, opened: AsyncExitStack, lives: Callable[[], bool]) -> None:
    async with opened:
        heartbeats.start(lives)
        try:
            await heartbeats.wait()
        finally:
            await heartbeats.stop()
        await heartbeats.say_ended()  # the session has ended but not the job


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_jobs.clear)

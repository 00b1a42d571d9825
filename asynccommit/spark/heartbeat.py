"""Signs of life for Spark's jobs: given by the driver's Python, from a job's setup to its end.

All of it runs on the engine's event loop. It ends with the job, with the session, and with this
process; a forked child knows nothing of it.
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

from asynccommit.commit.by_rename.heartbeat import SignsOfLife
from asynccommit.runtime.loop_thread import submit


@dataclass(frozen=True, slots=True)
class _Holding:
    signs: SignsOfLife
    task: asyncio.Task[None]


_jobs: dict[str, _Holding] = {}
_ended_by = 0


def begin(key: str, signs: SignsOfLife, opened: AsyncExitStack, lives: Callable[[], bool]) -> None:
    """Give signs of life for a job until it ends.

    Args:
        key: names the job in this process.
        signs: the job's.
        opened: holds the store, and is closed afterwards.
        lives: whether the session lives; asked in a thread before each sign.
    """
    _end_all_at_exit()
    _jobs[key] = _Holding(signs, asyncio.create_task(_hold(signs, opened, lives)))


def signs_of(key: str) -> SignsOfLife | None:
    """Return what gives signs of life for a job, ``None`` if nothing does."""
    holding = _jobs.get(key)
    return None if holding is None else holding.signs


async def end(key: str) -> None:
    """Give no more signs of life for a job."""
    holding = _jobs.pop(key, None)
    if holding is not None:
        holding.task.cancel()
        await asyncio.wait([holding.task])


def _end_all_at_exit() -> None:
    """Close what is open while the pools of threads, which stores use, still take work."""
    global _ended_by
    if _ended_by == os.getpid():
        return
    _ended_by = os.getpid()
    import_module("concurrent.futures.thread")  # the last to register is the first to run
    register = getattr(threading, "_register_atexit", atexit.register)
    register(_end_all, _ended_by)


def _end_all(process: int) -> None:
    if process == os.getpid() and _jobs:
        submit(_end_each())


async def _end_each() -> None:
    for key in list(_jobs):
        await end(key)


async def _hold(signs: SignsOfLife, opened: AsyncExitStack, lives: Callable[[], bool]) -> None:
    async with opened:
        signs.start(lives)
        try:
            await signs.wait()
        finally:
            await signs.stop()
        await signs.say_ended()  # the session has ended without ending the job


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_jobs.clear)

"""The engine: one loop thread a process, interruptible, and not carried over a fork."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster

from asynccommit.errors import UnsupportedError
from asynccommit.runtime.loop_thread import Engine, engine, submit


@pytest.fixture
def own() -> Iterator[Engine]:
    """Return an engine of this test."""
    made = Engine()
    yield made
    made.close()


def test_submit_returns_what_the_coroutine_returns(own: Engine) -> None:
    """A blocking caller gets the result, or the very error."""

    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    async def fail() -> None:
        raise KeyError("x")

    assert own.submit(double(21)) == 42
    with pytest.raises(KeyError):
        own.submit(fail())


def test_callers_share_one_loop() -> None:
    """Blocking callers of several threads run on one loop, so that they can share limiters."""
    loops = set()

    async def note() -> None:
        loops.add(id(asyncio.get_running_loop()))

    threads = [threading.Thread(target=lambda: submit(note())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(loops) == 1


async def test_works_under_a_running_loop(own: Engine, blockbuster: BlockBuster) -> None:
    """A notebook's loop is running already; blocking calls work all the same."""
    blockbuster.deactivate()

    async def answer() -> int:
        return 1

    assert own.submit(answer()) == 1


def test_its_own_thread_must_not_block(own: Engine) -> None:
    """A blocking call from a coroutine of the engine would wait for itself: it is refused."""

    async def inner() -> None:
        await asyncio.sleep(0)

    async def outer() -> None:
        own.submit(inner())

    with pytest.raises(UnsupportedError, match="own thread"):
        own.submit(outer())


def test_an_interrupt_cancels_and_waits(own: Engine) -> None:
    """Ctrl-C cancels the work, and is raised only when the work has said its last words."""
    events = []

    async def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
            events.append("last words")
            raise

    with pytest.raises(KeyboardInterrupt):
        own.submit(work())

    assert events == ["last words"]


def test_a_fork_gets_an_engine_of_its_own() -> None:
    """A child process does not use its parent's loop, which does not run there."""

    async def pid() -> int:
        return os.getpid()

    assert submit(pid()) == os.getpid()
    child = os.fork()
    if child == 0:
        os._exit(0 if submit(pid()) == os.getpid() and engine().pid == os.getpid() else 1)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0


PATCHED = """
from gevent import monkey

monkey.patch_all()

import sys

import gevent

from asynccommit import sync


def run(number):
    with sync.open_job(f"{sys.argv[1]}/{number}") as job, job.task(0) as task:
        task.put("part", b"x")
    return job.report.files


print([one.get() for one in [gevent.spawn(run, number) for number in range(3)]])
"""


def test_blocking_calls_where_gevent_has_changed_the_threads(tmp_path: Path) -> None:
    """Greenlets of a program that gevent has changed run jobs, though uvloop is installed."""
    pytest.importorskip("gevent", reason="gevent is not installed")
    pytest.importorskip("uvloop", reason="uvloop is not installed")
    done = subprocess.run(
        [sys.executable, "-c", PATCHED, tmp_path],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "[1, 1, 1]\n", "")

"""Limit bounds the requests under way and gives every slot back."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from asynccommit.errors import NotFoundError
from asynccommit.stores.http.client import TRANSPORTS
from asynccommit.stores.policies.funnel import Op
from asynccommit.stores.policies.in_flight import InFlightLimit
from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread
from asynccommit.testing.pytest_plugin import gcs_emulator_thread
from tests.support.stack import Answers, Clock, head

__all__ = ["gcs_emulator_thread"]

FEW_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from asynccommit import sync

options = {"endpoint_url": sys.argv[1], "token": "anon", "http_library": sys.argv[2]}
with sync.open_job("gs://data/out", storage_options=options) as job, job.task(0) as task:
    for number in range(200):
        task.put(f"part-{number}", b"x")
print(job.report.files, {*job.report.waited} & {"backoff", "budget"})
"""


class Gate:
    """A call that waits until it is let through."""

    def __init__(self) -> None:
        self.inside = self.most = 0
        self.open = asyncio.Event()

    async def __call__(self, op: Op) -> Any:
        """Count in, wait, count out."""
        self.inside += 1
        self.most = max(self.most, self.inside)
        await self.open.wait()
        self.inside -= 1


async def test_no_more_than_the_slots_run_at_once(clock: Clock) -> None:
    """Of ten requests three run, and all of them in the end."""
    gate = Gate()
    call = InFlightLimit(3).around(gate)
    tasks = [asyncio.ensure_future(call(head())) for _ in range(10)]
    await clock.settle()
    assert gate.inside == 3
    gate.open.set()
    await asyncio.gather(*tasks)
    assert (gate.inside, gate.most) == (0, 3)


async def test_a_slot_comes_back_after_an_error_and_a_cancellation(clock: Clock) -> None:
    """Neither an error nor a cancelled caller, waiting or running, keeps a slot."""
    call = InFlightLimit(1).around(Answers(NotFoundError("head", "/a")))
    with pytest.raises(NotFoundError):
        await call(head())
    gate = Gate()
    call = InFlightLimit(1).around(gate)
    running, waiting = (asyncio.ensure_future(call(head())) for _ in range(2))
    await clock.settle()
    waiting.cancel()
    running.cancel()
    await asyncio.gather(running, waiting, return_exceptions=True)
    gate.open.set()
    await call(head())


def test_no_bound_costs_nothing() -> None:
    """Without a bound the call is left as it is."""
    answers = Answers()
    assert InFlightLimit(None).around(answers) is answers


def test_a_bound_below_one_is_refused() -> None:
    """A limit that lets nothing through is a mistake."""
    with pytest.raises(ValueError, match="slots"):
        InFlightLimit(0)


@pytest.mark.parametrize("library", TRANSPORTS)
def test_requests_in_flight_leave_room_for_open_files(
    library: str, gcs_emulator_thread: GcsEmulatorThread
) -> None:
    """Where a process may open 64 files, no request fails for want of one."""
    gcs_emulator_thread.do(lambda running: running.model.create_bucket("data"))
    done = subprocess.run(
        [sys.executable, "-c", FEW_FILES, gcs_emulator_thread.endpoint, library],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "200 set()\n", "")

"""The processor's time in a simulated commit."""

from __future__ import annotations

import asyncio
from typing import Any

from asynccommit.simulate.setup import Setup
from asynccommit.stores.policies.funnel import Call, Op

LOAD_STAGE = "job_stage_load_manifests"
"""The stage to which the planning's time is added."""

PLANNING = 0.21
"""Processor time to plan a file, in that of a request.

Reading, checking and recording a file took 20 us where a rename took 95.
"""


class Processor:
    """A policy under which requests take a processor, one after another.

    Args:
        seconds: time of one request; with several processors a part of it.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._free = 0.0

    def __repr__(self) -> str:
        return f"Processor({self._seconds})"

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def processed(op: Op) -> Any:
            now = asyncio.get_running_loop().time()
            self._free = max(now, self._free) + self._seconds
            await asyncio.sleep(self._free - now)
            return await call(op)

        return processed


def planning_seconds(setup: Setup) -> float:
    """Return the processor's time to plan the job, shared by the workers.

    A simulation runs that work itself, in no time of its clock.
    """
    return PLANNING * setup.cpu * setup.files / setup.workers

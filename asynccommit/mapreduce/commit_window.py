"""Require a recent answer of the resource manager for a commit.

An application master that is cut off may have been replaced without knowing it. Hadoop checks this
after it has announced the commit, and waits without a limit. Here the check comes first, and the
wait has a timeout.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from asynccommit.errors import OptionError, PreflightError
from asynccommit.options.checked import Within, check_fields
from asynccommit.options.job import LEASE as LEASE_BOUNDS
from asynccommit.options.values import seconds
from asynccommit.runtime.host import this_host

WINDOW = "yarn.app.mapreduce.am.job.committer.commit-window"
CANCEL_TIMEOUT = "yarn.app.mapreduce.am.job.committer.cancel-timeout"
LEASE = "asynccommit.lease"
STAGE = "committer_commit_job"

_MOST = 86_400_000  # milliseconds
_DAY = Within(0, 86_400, "seconds")


@dataclass(frozen=True, slots=True)
class MarkerSettings:
    """Timeouts of a commit with markers, all in seconds.

    Attributes:
        window: maximum age of the resource manager's last answer when a commit begins.
        patience: maximum wait for a more recent answer. After that time YARN itself, with its
            default settings, has given the application master up.
        cancel_timeout: maximum time that an abort waits for a commit to stop.
        lease: time without a heartbeat after which a commit counts as abandoned; ``None`` for
            one minute, or five on a store over a network.
    """

    window: Annotated[float, _DAY] = 10.0
    patience: Annotated[float, _DAY] = 600.0
    cancel_timeout: Annotated[float, _DAY] = 60.0
    lease: Annotated[float | None, LEASE_BOUNDS] = None

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def from_conf(cls, conf: Mapping[str, str]) -> MarkerSettings:
        """Read Hadoop's two keys (in ms) and ``asynccommit.lease`` (in seconds).

        Raises ``OptionError``.
        """
        found = {
            "window": _seconds(WINDOW, conf.get(WINDOW, "10000")),
            "cancel_timeout": _seconds(CANCEL_TIMEOUT, conf.get(CANCEL_TIMEOUT, "60000")),
        }
        if LEASE in conf:
            found["lease"] = seconds(LEASE, conf[LEASE])
        return cls(**found)


def _seconds(key: str, value: str) -> float:
    text = value.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= _MOST):
        raise OptionError(f"{key} is {value!r}: expected milliseconds, from 0 to {_MOST}")
    return int(text) / 1000


class Heartbeat:
    """The time of the resource manager's last answer, reported by the code that talks to it.

    Args:
        clock: seconds since any moment; by default the clock of commits on this host.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or this_host().clock
        self._last = -math.inf
        self._next = asyncio.Event()

    def beat(self) -> None:
        """Record an answer received now. Must be called on the event loop."""
        self._last = self._clock()
        self._next.set()
        self._next = asyncio.Event()

    @property
    def age(self) -> float:
        """Seconds since the last answer; infinite if there was none."""
        return self._clock() - self._last

    async def next(self) -> None:
        """Wait for the next answer."""
        await self._next.wait()


def is_open(age: float, window: float) -> bool:
    """Return whether a commit may begin: the last answer is no older than the window."""
    return age <= window


async def wait_for_window(heartbeat: Heartbeat, settings: MarkerSettings, job_id: str) -> None:
    """Wait until a commit may begin.

    Raises ``PreflightError`` if the resource manager does not answer in time.
    """
    try:
        async with asyncio.timeout(settings.patience):
            while not is_open(heartbeat.age, settings.window):
                await heartbeat.next()
    except TimeoutError:
        text = (
            f"the resource manager has not answered for {settings.patience:,.0f} s and may have "
            "given up this attempt: nothing was begun, and another attempt can commit the job"
        )
        raise PreflightError(job_id, STAGE, (), text) from None

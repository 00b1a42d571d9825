"""The one door to what a run cannot repeat: wall time, randomness, ids, names of this machine.

Everything else takes a ``Host`` as an argument, so that a simulated run repeats exactly.
"""

from __future__ import annotations

import getpass
import random
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Host:
    """Where and when a job is committed.

    Attributes:
        now: seconds since the epoch.
        new_id: a fresh unique name.
        rng: for jitter; nothing that must be secret comes from it.
        name: the host's name, as written into ``_SUCCESS``.
        user: the short user name, as written into ``_SUCCESS``.
    """

    now: Callable[[], float]
    new_id: Callable[[], str]
    rng: random.Random = field(repr=False)
    name: str = "localhost"
    user: str = "unknown"


def this_host() -> Host:
    """Return the real one."""
    return Host(
        now=time.time,
        new_id=lambda: str(uuid.uuid4()),
        rng=random.Random(),
        name=socket.gethostname() or "localhost",
        user=_user(),
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"

"""The only source of wall time, randomness, ids, machine names and user names.

All other code takes a ``Host`` as an argument, so that a simulated run repeats exactly.
"""

from __future__ import annotations

import getpass
import os
import pwd
import random
import re
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

_PROC = "/proc"
_NUMBER = r"(?:0|[1-9][0-9]{0,19})"
# Process number, start in ticks since boot, boot id, pid namespace.
_PROCESS = re.compile(rf"([1-9][0-9]{{0,6}})\.({_NUMBER})\.([0-9a-f-]{{36}}\.{_NUMBER})", re.ASCII)
_ENDED = ("Z", "X", "x")
_ABOVE = 32  # maximum number of ancestors that are examined


def _cannot_tell(process: str) -> bool | None:
    return None


@dataclass(frozen=True, slots=True)
class Host:
    """The clock, randomness and identity of the machine that commits a job.

    Attributes:
        now: returns the seconds since the epoch.
        new_id: returns a new unique name.
        rng: source of jitter; never used for secrets.
        name: the host's name, as written into ``_SUCCESS``.
        user: the short user name, as written into ``_SUCCESS``.
        clock: seconds since an arbitrary moment, for measuring durations; it includes the time that
            the machine sleeps if the system has such a clock.
        process: identifies this process among all that ever ran on this machine; empty if unknown.
        is_running: returns whether the process of this machine with this ``process`` id still runs;
            ``None`` if unknown.
    """

    now: Callable[[], float]
    new_id: Callable[[], str]
    rng: random.Random = field(repr=False)
    name: str = "localhost"
    user: str = "unknown"
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    process: str = ""
    is_running: Callable[[str], bool | None] = field(default=_cannot_tell, repr=False)


def this_host() -> Host:
    """Return the host that this process runs on."""
    return Host(
        now=time.time,
        new_id=lambda: str(uuid.uuid4()),
        rng=random.Random(),
        name=socket.gethostname() or "localhost",
        user=_user(),
        clock=_clock(),
        process=_own(os.getpid()),
        is_running=_is_running,
    )


def _user() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
    return name.encode("utf-8", "replace").decode()


# --- the clock -------------------------------------------------------------------------------


def _clock() -> Callable[[], float]:
    """Return a clock that includes the time the machine sleeps, if possible."""
    number: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    if number is None:
        return time.monotonic
    try:
        time.clock_gettime(number)
    except OSError:  # an old kernel, or an emulation of Linux
        return time.monotonic
    return lambda: time.clock_gettime(number)


# --- processes -------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _own(number: int) -> str:
    """Return the identity of this process; empty if unknown."""
    try:
        boot = _read("sys/kernel/random/boot_id").strip()
        space = os.stat(f"{_PROC}/self/ns/pid").st_ino
        known, _, _, start = _status("self")
    except (OSError, ValueError):
        return ""
    name = f"{number}.{start}.{boot}.{space}"
    # If /proc shows another pid namespace, its numbers differ from those of this process.
    return name if known == number and _PROCESS.fullmatch(name) else ""


def process_above(program: str) -> str:
    """Return the identity of the nearest ancestor running ``program``, or ``""``."""
    own = _PROCESS.fullmatch(_own(os.getpid()))
    number = os.getpid()
    try:
        for _ in range(_ABOVE):
            found, above, start = _parent(str(number))
            if own is not None and found == program:
                return f"{number}.{start}.{own[3]}"
            number = above
    except (OSError, ValueError):
        pass
    return ""


def _parent(process: str) -> tuple[str, int, int]:
    """Return program, parent's process number and start time of a process."""
    name, _, rest = _read(f"{process}/stat").partition(" (")[2].rpartition(") ")
    fields = rest.split()
    return name, int(fields[1]), int(fields[19])


def _is_running(process: str) -> bool | None:
    """Implement ``Host.is_running``."""
    own = _PROCESS.fullmatch(_own(os.getpid()))
    other = _PROCESS.fullmatch(process)
    if own is None or other is None or own[3] != other[3]:
        return None
    try:
        _, state, threads, start = _status(other[1])
    except (FileNotFoundError, ProcessLookupError):
        return _has_number(int(other[1]))
    except (OSError, ValueError):
        return None
    if start != int(other[2]):
        return False
    return state not in _ENDED or threads > 1


def _has_number(number: int) -> bool | None:
    """Return false if a process number is unused, else ``None``."""
    try:
        os.kill(number, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except OSError:
        return None
    return None


def _status(process: str) -> tuple[int, str, int, int]:
    """Return number, state, thread count and start time of a process."""
    number, _, rest = _read(f"{process}/stat").partition(" (")
    # The program name may contain anything, including brackets and spaces.
    fields = rest.rpartition(") ")[2].split()
    if len(fields) < 20:
        raise ValueError("not what Linux says of a process")
    return int(number), fields[0], int(fields[17]), int(fields[19])


def _read(name: str) -> str:
    with open(f"{_PROC}/{name}", "rb") as file:
        return file.read(4096).decode("ascii", "replace")


def _know_own() -> None:
    """Cache the own identity, so that no event loop waits for /proc."""
    _own(os.getpid())


_know_own()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_know_own)


def own_name() -> str:
    """Return the name of this process's user, or ``""`` if it has none.

    Variables like ``LOGNAME`` do not count: YARN's containers have that of who has submitted them.
    """
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container may run as a number
        return ""


def user_name(owner: int | str) -> str:
    """Return a user as messages show it, with the number if there is one."""
    if isinstance(owner, str):
        return owner
    try:
        return f"{pwd.getpwuid(owner).pw_name}, uid {owner}"
    except KeyError:
        return f"uid {owner}"

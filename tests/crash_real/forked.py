"""The hand that starts drivers by ``forks.py``, and sends them signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash_real.processes import environment, wait_until

FORKS = Path(__file__).with_name("forks.py")


@dataclass
class Forked:
    """One driver.

    Attributes:
        pid: its process.
        what: what it does, for people.
        out: where its output goes.
        stopped: whether it stands still.
        code: how it ended, ``None`` as long as it runs, negative for a signal.
    """

    pid: int
    what: str
    out: Path
    stopped: bool = False
    code: int | None = None

    def send(self, number: signal.Signals) -> None:
        """Send a signal; it has not been waited for, so its number is its own."""
        os.kill(self.pid, number)
        self.stopped = number == signal.SIGSTOP

    def said(self) -> list[dict[str, Any]]:
        """Return the lines of JSON that it has written in full."""
        lines = self.out.read_text().splitlines() if self.out.exists() else []
        return [json.loads(line) for line in lines if line[:1] == "{" and line[-1:] == "}"]


@dataclass
class Forks:
    """The process that forks drivers, and all of them."""

    folder: Path
    child: subprocess.Popen[str]
    all: list[Forked] = field(default_factory=list)

    def start(self, deed: str, what: str, **spec: Any) -> Forked:
        """Start a driver."""
        out = self.folder / f"out-{len(self.all)}"
        given = {"deed": deed, "out": str(out), **spec}
        started = Forked(self._order({"fork": given}), what, out)
        self.all.append(started)
        return started

    def living(self) -> list[Forked]:
        """Return the drivers that have not ended."""
        ended = self._order({"look": True})
        for one in self.all:
            one.code = ended.get(str(one.pid), one.code) if one.code is None else one.code
        return [one for one in self.all if one.code is None]

    def wait(self, *which: Forked) -> None:
        """Wait until these have ended. Raises ``TimeoutError``."""
        wait_until(lambda: not {one.pid for one in which} & {one.pid for one in self.living()})

    def _order(self, order: dict[str, Any]) -> Any:
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(json.dumps(order) + "\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())


@contextmanager
def forking(folder: Path) -> Iterator[Forks]:
    """Start the process that forks; it has ended after the block, with all of its drivers."""
    with subprocess.Popen(
        [sys.executable, str(FORKS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as child:
        yield Forks(folder, child)

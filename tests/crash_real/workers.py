"""A driver with three workers, and the signals that meet them.

``python tests/crash_real/workers.py SPEC`` is the driver; ``SPEC`` is JSON with the options of the
store. Whatever is left, one process without workers ends it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from asynccommit import sync
from asynccommit.commit.planning import plan_file
from asynccommit.errors import CommittedError
from asynccommit.options.job import Options
from asynccommit.runners import processes
from asynccommit.testing import AdlsEmulator, Climate, running_emulator
from asynccommit.testing.models.invariants import tree_of
from tests.crash_real.processes import environment, wait_until

URL, JOB = "abfs://lake/t", "job1"
TASKS, FILES = 3, 100
_SLOW = {"latency": {"model": "lognormal", "median": 0.15, "sigma": 0.3}}


def drive(storage: dict[str, Any]) -> None:
    """Commit the job with three workers; say on standard output when the commit begins."""
    setattr(plan_file, "CHUNK_ROWS", 40)  # noqa: B010  # for a slice each some seconds
    setattr(processes, "_SILENCE", 12.0)  # noqa: B010
    options = Options(runner="processes:3", cleanup="wait")
    with sync.open_job(URL, job_id=JOB, storage_options=storage, options=options) as job:
        for number in range(TASKS):
            with job.task(number) as task:
                for part in range(FILES):
                    task.put(f"d={part % 5}/p-{number}-{part}", b"x")
        sys.stdout.write("begins\n")
        sys.stdout.flush()


class Strikes:
    """One commit whose workers are struck at drawn moments, and its driver in half of the cases.

    Attributes:
        counts: of the signals, and of how the commit was ended.
    """

    def __init__(self, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self._rng = random.Random(seed)

    def happen(self) -> list[str]:
        """Let it happen; return what is wrong in the end."""
        with running_emulator(filesystems=["lake"]) as emulator:
            self._emulator = emulator
            storage = {"connection_string": emulator.connection_string}
            command = [sys.executable, str(Path(__file__)), json.dumps(storage)]
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True, env=environment()
            ) as driver:
                assert driver.stdout is not None
                driver.stdout.readline()
                self._set(Climate.from_json(_SLOW))
                slept = self._strike(driver)
            self._set(Climate())
            committed = driver.returncode == 0 or self._end(storage)
            for worker in slept:
                self._send(worker, signal.SIGCONT)
            time.sleep(1)  # in which one that is left would send what it still holds
            return self._judge(committed)

    def _set(self, climate: Climate) -> None:
        self._emulator.do(partial(_set_climate, climate))

    def _strike(self, driver: subprocess.Popen[str]) -> list[int]:
        """Send the signals; return the workers that sleep, once the driver has ended."""
        at = self._rng.randint(0, TASKS * FILES - 50)
        wait_until(
            lambda: driver.poll() is not None or bool(_children(driver) and self._shown() >= at)
        )
        workers, slept = _children(driver), []
        for worker in self._rng.sample(workers, min(len(workers), self._rng.randint(1, 2))):
            sent = self._rng.choice([signal.SIGKILL, signal.SIGSTOP])
            self._send(worker, sent)
            slept += [worker] if sent is signal.SIGSTOP else []
        if self._rng.random() < 0.5:
            time.sleep(self._rng.random())
            self._send(driver.pid, signal.SIGKILL)
            self.counts["driver"] += 1
        driver.wait(120)
        return slept

    def _send(self, process: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(process, number)
            self.counts[number.name] += 1

    def _end(self, storage: dict[str, Any]) -> bool:
        """End the commit in this process; return whether the job is committed then."""
        back = self._rng.random() < 0.5
        self.counts["rollback" if back else "resume"] += 1
        if back:
            with suppress(CommittedError):
                sync.job(URL, JOB, storage_options=storage).rollback()
                return False
        sync.job(URL, JOB, storage_options=storage).resume()
        return True

    def _files(self) -> list[str]:
        tree = self._emulator.do(lambda emulator: tree_of(emulator.model, "lake"))
        return [path for path, item in tree.items() if item.data is not None]

    def _shown(self) -> int:
        return sum(path.startswith("/t/d=") for path in self._files())

    def _judge(self, committed: bool) -> list[str]:
        files, wanted = self._files(), TASKS * FILES if committed else 0
        shown = self._shown()
        problems = [] if shown == wanted else [f"{shown} files, not {wanted}"]
        if ("/t/_SUCCESS" in files) is not committed:
            problems.append(f"_SUCCESS: {not committed}")
        return problems


def _set_climate(climate: Climate, emulator: AdlsEmulator) -> None:
    emulator.weather.climate = climate


def _children(driver: subprocess.Popen[str]) -> list[int]:
    """Return the workers of a driver that runs."""
    with suppress(OSError):
        path = Path(f"/proc/{driver.pid}/task/{driver.pid}/children")
        found = [int(word) for tasks in path.parent.parent.iterdir() for word in _words(tasks)]
        return [one for one in found if b"runners.child" in _command(one)]
    return []


def _words(task: Path) -> list[str]:
    with suppress(OSError):
        return (task / "children").read_text().split()
    return []


def _command(process: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""


if __name__ == "__main__":
    drive(json.loads(sys.argv[1]))

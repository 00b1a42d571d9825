"""Write a table in a driver process that the demo kills.

Run as ``python -m asynccommit.demo.killed_driver JOB``, where ``JOB`` is a ``DriverJob`` in JSON.
The process that starts it kills it when enough of its files are moved.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from asynccommit.demo import flights
from asynccommit.demo.session import TASKS, quiet_session
from asynccommit.errors import AsyncCommitError

_LOOK = 0.01
_PATIENCE = 300.0  # Seconds; Spark starts again, on a machine that may be busy.


@dataclass(frozen=True, slots=True)
class DriverJob:
    """The job of the driver.

    Attributes:
        source: the table of flights.
        url: destination.
        conf: configuration of its Spark session.
        threads: number of threads of its Spark session.
        log: file for all output.
        scratch: directory for temporary files of its Spark session.
        tasks: number of tasks.
        ours: whether this package commits, and not Spark's own committer.
    """

    source: str
    url: str
    conf: Mapping[str, str]
    threads: int
    log: str
    scratch: str
    tasks: int = TASKS
    ours: bool = True

    @classmethod
    def on(
        cls,
        ground: flights.Ground,
        url: str,
        conf: Mapping[str, str],
        threads: int,
        *,
        tasks: int = TASKS,
        ours: bool = True,
    ) -> Self:
        """Return the job that writes the flights of a demo to ``url``."""
        table, log, scratch = str(ground.table), str(ground.log), str(ground.scratch)
        return cls(table, url, conf, threads, log, scratch, tasks, ours)


def write(job: DriverJob) -> None:
    """Write the table as a user's program does."""
    log, scratch = Path(job.log), Path(job.scratch)
    with quiet_session(log, scratch, threads=job.threads, conf=job.conf) as session:
        data = flights.read_flights(session, Path(job.source)).repartition(job.tasks)
        with flights.committer(session, log) if job.ours else nullcontext():
            data.write.partitionBy(*flights.PARTITIONS).parquet(job.url)


def kill_half_way(job: DriverJob, half_way: Callable[[], bool], look: float = _LOOK) -> None:
    """Run the job in a process and kill the process tree half-way.

    The kill happens when ``half_way``, asked every ``look`` seconds, returns true. Raises
    ``AsyncCommitError`` if the process ends before that, or does not reach it in time.
    """
    command = [sys.executable, "-m", __spec__.name, json.dumps(asdict(job))]
    end = time.monotonic() + _PATIENCE
    with Path(job.log).open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    with process:
        try:
            while not half_way():
                if process.poll() is not None or time.monotonic() > end:
                    raise AsyncCommitError(
                        f"the driver was not killed half-way; its log is {job.log}"
                    )
                time.sleep(look)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    write(DriverJob(**json.loads(sys.argv[1])))

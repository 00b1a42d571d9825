"""The engine of all demos: write, time and read back the flights."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from asynccommit.demo import flights
from asynccommit.demo.flights import Ground, Say, fingerprint
from asynccommit.demo.outcome import Timing
from asynccommit.demo.session import TASKS, commit_times
from asynccommit.errors import NotFoundError
from asynccommit.results import JobReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Scenario:
    """The steps that all demos share.

    Args:
        session: Spark.
        ground: the directories and files of the run.
        say: called with progress messages.
        through: how the tasks write, for the first message.
        progress: whether our commits show progress; ``None`` for a terminal only.
        conf: Hadoop options of our commits.
        partitions: columns to partition by.
        tasks: number of tasks.
    """

    def __init__(
        self,
        session: SparkSession,
        ground: Ground,
        say: Say,
        *,
        through: str = "",
        progress: bool | None = False,
        conf: Mapping[str, str] | None = None,
        partitions: Sequence[str] = flights.PARTITIONS,
        tasks: int = TASKS,
    ) -> None:
        self.session = session
        self.ground = ground
        self.say = say
        self.partitions = partitions
        self.tasks = tasks
        self._through = through
        self._progress = progress
        self._conf = conf

    def ours(self) -> AbstractContextManager[None]:
        """Commit with this package inside the block."""
        log = self.ground.log
        return flights.committer(self.session, log, progress=self._progress, conf=self._conf)

    def theirs(self) -> AbstractContextManager[None]:
        """Use the other committer in the block; by default Spark's own."""
        return nullcontext()

    def load(self) -> tuple[DataFrame, int, str]:
        """Return the flights to write, their number and the sum of their hashes."""
        data = flights.read_flights(self.session, self.ground.table)
        # With thousands of partitions one file each is enough.
        big = self.partitions if self.partitions == flights.BIG_PARTITIONS else ()
        data = data.repartition(self.tasks, *big).cache()
        rows, content = fingerprint(data)
        through = f", through {self._through}" if self._through else ""
        self.say(f"{rows:,} flights are to be written by {self.tasks} tasks{through}")
        return data, rows, content

    def warm_up(self, data: DataFrame, root: str) -> None:
        """Write ``data`` below ``root`` with both committers and read it back."""
        self.say("warming up the JVM with both committers")
        for name, committer in (("ours", self.ours()), ("theirs", self.theirs())):
            with committer:
                url = f"{root}/warm-up-{name}"
                data.write.partitionBy(*self.partitions).parquet(url)
                self.read(url)

    def timed(self, data: DataFrame, url: str, committer: AbstractContextManager[None]) -> Timing:
        """Write a table and measure it."""
        with committer:
            begin = time.perf_counter()
            data.write.partitionBy(*self.partitions).parquet(url)
            return Timing(time.perf_counter() - begin, *commit_times(self.session))

    def announce(self, who: str) -> None:
        """Say that a table is written and who commits it."""
        self.say(f"writing them by {', '.join(self.partitions)}, committed by {who}")

    def read_back(self, url: str, timing: Timing) -> tuple[int, str]:
        """Print the time of a write; return the fingerprint of its result."""
        self.say(f"that took {timing.write:.1f} s; reading them back")
        return self.read(url)

    def read(self, url: str) -> tuple[int, str]:
        """Return the fingerprint of a table."""
        return fingerprint(self.session.read.parquet(url))


def report_of(url: str) -> JobReport:
    """Return the report of the last commit. Raises ``NotFoundError``.

    The error means that the last commit was not one of ``url``.
    """
    from asynccommit.spark import last_report

    report = last_report()
    if report is None or report.dest != url:
        raise NotFoundError("get", url, "Spark did not ask this package to commit")
    return report

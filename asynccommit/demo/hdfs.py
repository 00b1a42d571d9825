"""Run the demo on HDFS: Hadoop's own servers on this machine.

Spark's tasks write ``hdfs://`` through Hadoop's client. The job is committed first by this package,
without a JVM, then by Spark's own committer. A third job's driver is killed in the middle of its
commit, which this process finishes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from asynccommit import sync
from asynccommit.commit.layouts.layout import TEMPORARY
from asynccommit.demo import flights
from asynccommit.demo.flights import Ground, Say
from asynccommit.demo.killed_driver import DriverJob, kill_half_way
from asynccommit.demo.mini_hdfs import minicluster_jar, serving_hdfs
from asynccommit.demo.outcome import (
    Findings,
    Killed,
    WrittenTable,
    add_times,
    both_hold,
    compared,
    comparison,
)
from asynccommit.demo.scenario import Scenario, report_of
from asynccommit.demo.session import TASKS, printed_to
from asynccommit.results import JobReport
from asynccommit.runtime.terminal import show_seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HDFS_MONTHS = (1, 2, 3)
"""The default months: the one DataNode writes some hundred small files a second."""

# So few renames a second that the driver can be killed between two of them.
_SLOW = {"spark.hadoop.asynccommit.rate": "20"}
_SHARE = 4  # the driver is killed when one in so many files is visible


@dataclass(frozen=True, slots=True)
class HdfsOutcome(Findings):
    """The findings of the demo on HDFS.

    Attributes:
        rows: number of rows to write.
        content: sum of the hashes of these rows.
        theirs: the table that Spark committed.
        ours: the table that this package committed.
        report: report of this package's job commit.
        killed: the job whose driver was killed.
        left: paths left below ``_temporary`` of our tables.
        log: log file of Spark.
        servers: log file of HDFS.
    """

    rows: int
    content: str
    theirs: WrittenTable
    ours: WrittenTable
    report: JobReport
    killed: Killed
    left: int
    log: str
    servers: str

    @property
    def checks(self) -> Mapping[str, bool]:
        """Return each check and whether it passed."""
        theirs, ours, killed = self.theirs, self.ours, self.killed
        return {
            **both_hold(self.rows, self.content, theirs, ours),
            f"each of the {ours.files:,} files is there once": (
                theirs.files == ours.files == self.report.files
            ),
            f"a driver was killed with {killed.visible:,} files moved, and its job was finished": (
                killed.finished
            ),
            "no _temporary is left, and _SUCCESS is there": (
                not self.left and None not in (self.report.success, killed.report.success)
            ),
        }

    def table(self) -> RenderableType:
        """Return the comparison as a table, with the checks and the locations."""
        shown = comparison("Spark's own committer", "difference")
        shown.add_row("files", f"{self.theirs.files:,}", f"{self.ours.files:,}", "")
        add_times(shown, self.theirs, self.ours)
        facts = {
            "commit of the killed job": show_seconds(self.killed.seconds),
            "log of HDFS": self.servers,
            "Spark's log": self.log,
        }
        return compared(self, shown, self.report, facts)


def run_on_hdfs(
    keep: Path | None = None, *, months: Sequence[int] = HDFS_MONTHS, say: Say = print
) -> HdfsOutcome:
    """Write the flights to HDFS, compare both committers, kill and resume.

    Args:
        keep: directory for the logs, new or empty; ``demo-out`` by default.
        months: months to write.
        say: called with progress messages.

    Raises:
        UnsupportedError: a required package is not installed; the message says what to install.
        OptionError: the directory is not empty.
        AsyncCommitError: Spark or HDFS failed; the message says where the log is.
    """
    source, jar = flights.find_flights(), minicluster_jar()
    with flights.ground(source, keep, months) as ground:
        say("starting a NameNode and a DataNode")
        servers = ground.directory / "hdfs.log"
        with serving_hdfs(jar, ground.scratch / "hdfs", servers) as url:
            say(f"they serve {url}; starting Spark")
            with ground.session() as session:
                return _HdfsScenario(session, url, ground, say).go(str(servers))


class _HdfsScenario(Scenario):
    """The scenario: tasks write through Hadoop's client; both commit."""

    def __init__(self, session: SparkSession, root: str, ground: Ground, say: Say) -> None:
        super().__init__(session, ground, say, through="Hadoop's client", progress=None)
        self._root = root

    def go(self, servers: str) -> HdfsOutcome:
        """Run all steps of the demo."""
        data, rows, content = self.load()
        self.warm_up(data.where("day <= 3"), self._root)
        # This package writes first: if the JVM warms up further, Spark benefits.
        ours = self._write(data, "ours", self.ours(), "asynccommit")
        report = report_of(f"{self._root}/ours")
        theirs = self._write(data, "theirs", self.theirs(), "Spark's own committer")
        killed = self._kill(ours.files, (rows, content))
        left = sum(f"/{TEMPORARY}/" in name for name in self._names("ours", "killed"))
        log = str(self.ground.log)
        return HdfsOutcome(rows, content, theirs, ours, report, killed, left, log, servers)

    def _write(
        self, data: DataFrame, name: str, committer: AbstractContextManager[None], who: str
    ) -> WrittenTable:
        self.announce(who)
        url = f"{self._root}/{name}"
        timing = self.timed(data, url, committer)
        rows, content = self.read_back(url, timing)
        files = self._visible(name)
        return WrittenTable(files=files, rows=rows, content=content, **timing._asdict())

    def _kill(self, files: int, content: tuple[int, str]) -> Killed:
        """Have a driver killed amid its renames, and finish its job here."""
        self.say(f"a second driver writes them, and is killed when {files // _SHARE} files moved")
        url = f"{self._root}/killed"
        job = DriverJob.on(self.ground, url, _SLOW, TASKS)
        kill_half_way(job, lambda: self._visible("killed") >= files // _SHARE)
        visible = self._visible("killed")
        self.say("finishing its job, without a JVM")
        begin = time.perf_counter()
        with printed_to(self.ground.log):
            report = sync.job(url).resume(force=True)
        seconds = time.perf_counter() - begin
        return Killed(url, visible, seconds, report, self.read(url) == content)

    def _visible(self, name: str) -> int:
        """Return the number of data files of a table that readers see."""
        names = self._names(name)
        return sum(each.endswith(".parquet") and f"/{TEMPORARY}/" not in each for each in names)

    def _names(self, *tables: str) -> list[str]:
        """Return all files of tables, as Hadoop's client lists them."""
        spark: Any = self.session
        names = []
        for table in tables:
            path = spark._jvm.org.apache.hadoop.fs.Path(f"{self._root}/{table}")
            system = path.getFileSystem(spark._jsc.hadoopConfiguration())
            files = system.listFiles(path, True) if system.exists(path) else None
            while files is not None and files.hasNext():
                names.append(str(files.next().getPath().toString()))
        return names

"""Run the demo on an emulated ADLS Gen2 account with faults.

Spark's tasks write ``abfs://`` through Hadoop's own client. This package commits the job through
its own store, over HTTP, at the request limit of the account and never above it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding

from asynccommit.demo import flights
from asynccommit.demo.buckets import THREADS
from asynccommit.demo.emulated import RunningEmulator, serving
from asynccommit.demo.flights import Ground, Say
from asynccommit.demo.hadoop_jars import cached_jar, hadoop_version, spark_conf
from asynccommit.demo.outcome import Findings, StoreBehaviour
from asynccommit.demo.scenario import Scenario, report_of
from asynccommit.inspect.text import check_list, job_report
from asynccommit.results import JobReport
from asynccommit.runtime.cells import facts_table
from asynccommit.runtime.terminal import show_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILESYSTEM = "flights"
_OTHERS = 10
"""Number of renames of other than data files: manifests, Spark's own, temporary files."""


@dataclass(frozen=True, slots=True)
class AdlsOutcome(Findings):
    """The findings of the ADLS demo.

    Attributes:
        url: URL of the table.
        rows: number of rows to write.
        read: number of rows read back.
        same: whether the rows read back equal the rows written.
        files: number of data files found.
        left: paths left below ``_temporary``.
        write: duration of the whole write in seconds.
        report: report of this package's job commit.
        requests: number of requests to the emulator, by operation.
        struck: number of injected faults, by kind.
        weather: configured behaviour of the emulator.
        log: log file of Spark.
    """

    url: str
    rows: int
    read: int
    same: bool
    files: int
    left: int
    write: float
    report: JobReport
    requests: Mapping[str, int]
    struck: Mapping[str, int]
    weather: StoreBehaviour
    log: str

    @property
    def checks(self) -> Mapping[str, bool]:
        """Return each check and whether it passed."""
        lost = self.struck.get("cut rename", 0)
        return {
            f"the table holds the {self.rows:,} rows of the source": self.same,
            f"each of the {self.files:,} files is there once": self.files == self.report.files,
            f"the responses to {lost} renames were lost, and each of ours was settled": (
                0 <= lost - self.report.recovered.get("rename", 0) <= _OTHERS
            ),
            "no _temporary is left, and _SUCCESS is there": (
                not self.left and self.report.success is not None
            ),
        }

    def table(self) -> RenderableType:
        """Return the run as a table, with the checks and the locations."""
        asked = ", ".join(f"{name} {n:,}" for name, n in sorted(self.requests.items()))
        struck = ", ".join(f"{name} {n:,}" for name, n in sorted(self.struck.items()))
        facts = {
            "whole write": show_seconds(self.write),
            "requests": f"{sum(self.requests.values()):,} ({asked})",
            "weather": struck or "calm",
            "Spark's log": self.log,
        }
        return Group(
            job_report(self.report), Padding(facts_table(facts), (1, 0)), check_list(self.checks)
        )


def run_on_adls(
    keep: Path | None = None,
    *,
    months: Sequence[int] = (),
    weather: StoreBehaviour | None = None,
    say: Say = print,
) -> AdlsOutcome:
    """Write the flights to an emulated account and check that all arrive.

    Args:
        keep: directory for the logs, new or empty; ``demo-out`` by default.
        months: months to write; all by default.
        weather: behaviour of the emulated store.
        say: called with progress messages.

    Raises:
        UnsupportedError: a required package is not installed; the message says what to install.
        OptionError: the directory is not empty.
        AsyncCommitError: Spark or the emulator failed; the message says where the log is.
    """
    source = flights.find_flights()
    jar = client_jar()
    weather = weather or StoreBehaviour()
    with (
        flights.ground(source, keep, months) as ground,
        emulated(weather, ground.directory / "emulator.log") as emulator,
    ):
        say(
            f"an emulator serves {emulator.endpoint}: {weather.latency} a response, "
            f"{weather.limit:,} requests/s at most, {weather.lost} of the renames lose theirs"
        )
        say("starting Spark")
        conf = spark_conf([jar], account_conf(emulator))
        with ground.session(THREADS, conf) as spark:
            return _AdlsScenario(spark, emulator, ground, say).go(weather)


@contextmanager
def emulated(weather: StoreBehaviour, log: Path) -> Iterator[RunningEmulator]:
    """Run an emulator with an account.

    Raises ``AsyncCommitError`` if it does not start.
    """
    arguments = ["--latency", weather.latency, "--limit", str(weather.limit)]
    arguments += ["--lost", weather.lost, "--filesystem", FILESYSTEM]
    with serving("adls", arguments, log) as running:
        yield running


def client_jar() -> Path:
    """Return the ``hadoop-azure`` jar, fetched if it is not in the cache.

    All other dependencies of ``hadoop-azure`` are among PySpark's jars, or are needed only for
    https with OpenSSL and for latency histograms, which are disabled. Its version is that of
    PySpark's Hadoop. Raises ``UnsupportedError`` that says what is missing.
    """
    version = hadoop_version()
    return cached_jar(f"org.apache.hadoop:hadoop-azure:{version}", f"hadoop-azure-{version}.jar")


def client_conf(account: str, key: str, endpoint: str) -> Mapping[str, str]:
    """Return Hadoop's options for an account at ``HOST:PORT`` without TLS.

    The client authenticates with the account's key.
    """
    return {
        "fs.azure.abfs.endpoint": endpoint,
        "fs.azure.always.use.https": "false",
        "fs.azure.account.auth.type": "SharedKey",
        f"fs.azure.account.key.{account}.dfs.core.windows.net": key,
        "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
        "fs.azure.createRemoteFileSystemDuringInitialization": "true",
        # With its defaults the client waits for seconds before it retries.
        "fs.azure.io.retry.backoff.interval": "50",
        "fs.azure.io.retry.min.backoff.interval": "20",
        "fs.azure.io.retry.max.backoff.interval": "1000",
    }


def account_conf(emulator: RunningEmulator) -> Mapping[str, str]:
    """Return Hadoop's options for the emulator's account."""
    pairs = [part.partition("=") for part in emulator.facts["connection_string"].split(";")]
    key = next(value for name, _, value in pairs if name == "AccountKey")
    return client_conf(emulator.facts["account"], key, emulator.endpoint.partition("://")[2])


class _AdlsScenario(Scenario):
    """The scenario: tasks write through Hadoop's client, this package commits."""

    def __init__(
        self, session: SparkSession, emulator: RunningEmulator, ground: Ground, say: Say
    ) -> None:
        super().__init__(session, ground, say, through="Hadoop's client", progress=None)
        self._emulator = emulator

    def go(self, weather: StoreBehaviour) -> AdlsOutcome:
        """Write, commit and read back the table."""
        data, rows, content = self.load()
        account = self._emulator.facts["account"]
        url = f"abfs://{FILESYSTEM}@{account}.dfs.core.windows.net/table"
        timing = self.timed(data, url, self.ours())
        report = report_of(url)
        read = self.read_back(url, timing)
        stats = self._emulator.stats()
        names = self._names(url)
        return AdlsOutcome(
            url=url,
            rows=rows,
            read=read[0],
            same=read == (rows, content),
            files=sum(name.endswith(".parquet") and "/_temporary/" not in name for name in names),
            left=sum("/_temporary/" in name for name in names),
            write=timing.write,
            report=report,
            requests=stats["requests"],
            struck=stats["struck"],
            weather=weather,
            log=str(self.ground.log),
        )

    def _names(self, url: str) -> list[str]:
        """Return all files of the table, as Hadoop's client lists them."""
        spark: Any = self.session
        path = spark._jvm.org.apache.hadoop.fs.Path(url)
        files = path.getFileSystem(spark._jsc.hadoopConfiguration()).listFiles(path, True)
        names = []
        while files.hasNext():
            names.append(str(files.next().getPath().toString()))
        return names

"""Run the demo on an emulated ADLS Gen2 account that is slow, strict and loses responses.

Spark's tasks write ``abfs://`` through Hadoop's own client. This package commits the job through
its own store, over HTTP, at the request limit of the account and never above it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asynccommit.demo import flights, hadoop_azure
from asynccommit.demo.adls_outcome import AdlsOutcome
from asynccommit.demo.emulated import RunningEmulator, serving
from asynccommit.demo.outcome import StoreBehaviour
from asynccommit.demo.session import printed_to
from asynccommit.errors import NotFoundError
from asynccommit.results import JobReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILESYSTEM = "flights"
TASKS = 4
THREADS = 8  # More threads than tasks: reading back only waits for responses.
Say = Callable[[str], object]


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
    jar = hadoop_azure.client_jar()
    weather = weather or StoreBehaviour()
    with (
        flights.ground(source, keep, months) as ground,
        emulator(weather, ground.directory / "emulator.log") as account,
    ):
        say(
            f"an emulator serves {account.endpoint}: {weather.latency} an answer, "
            f"{weather.limit:,} requests/s at most, {weather.lost} of the renames lose theirs"
        )
        say("starting Spark")
        conf = {"spark.jars": str(jar), **account.spark_conf()}
        with ground.session(THREADS, conf) as spark:
            return _AdlsScenario(spark, account, say, ground.log).go(ground.table, weather)


class Emulated(RunningEmulator):
    """An ADLS account on an emulator."""

    @property
    def root(self) -> str:
        """The URL of its filesystem."""
        return f"abfs://{FILESYSTEM}@{self.facts['account']}.dfs.core.windows.net"

    def spark_conf(self) -> dict[str, str]:
        """Return the Spark configuration that reaches the account."""
        pairs = [part.partition("=") for part in self.facts["connection_string"].split(";")]
        key = next(value for name, _, value in pairs if name == "AccountKey")
        host = self.endpoint.partition("://")[2]
        conf = hadoop_azure.client_conf(self.facts["account"], key, host)
        return {f"spark.hadoop.{key}": value for key, value in conf.items()}


@contextmanager
def emulator(weather: StoreBehaviour, log: Path) -> Iterator[Emulated]:
    """Run an emulator process.

    Raises ``AsyncCommitError`` if it does not start.
    """
    arguments = ["--latency", weather.latency, "--limit", str(weather.limit)]
    arguments += ["--lost", weather.lost, "--filesystem", FILESYSTEM]
    with serving("adls", arguments, log) as running:
        yield Emulated(running.facts)


class _AdlsScenario:
    """The scenario: tasks write through Hadoop's client, this package commits."""

    def __init__(self, session: SparkSession, account: Emulated, say: Say, log: Path) -> None:
        self._session = session
        self._account = account
        self._say = say
        self._log = log

    def go(self, source: Path, weather: StoreBehaviour) -> AdlsOutcome:
        """Write, commit and read back the table."""
        data = flights.read_flights(self._session, source).repartition(TASKS).cache()
        rows, content = flights.fingerprint(data)
        self._say(f"{rows:,} flights are to be written by {TASKS} tasks, through Hadoop's client")
        url = f"{self._account.root}/table"
        took, report = self._write(data, url)
        self._say(f"that took {took:.1f} s; reading them back")
        read = flights.fingerprint(self._session.read.parquet(url))
        stats = self._account.stats()
        names = self._names(url)
        return AdlsOutcome(
            url=url,
            rows=rows,
            read=read[0],
            same=read == (rows, content),
            files=sum(name.endswith(".parquet") and "/_temporary/" not in name for name in names),
            left=sum("/_temporary/" in name for name in names),
            write=took,
            report=report,
            requests=stats["requests"],
            struck=stats["struck"],
            weather=weather,
            log=str(self._log),
        )

    def _write(self, data: DataFrame, url: str) -> tuple[float, JobReport]:
        from asynccommit.spark import configure, last_report

        with printed_to(self._log):
            configure(self._session, progress=None)
        begin = time.perf_counter()
        data.write.partitionBy(*flights.PARTITIONS).parquet(url)
        took = time.perf_counter() - begin
        report = last_report()
        if report is None or report.dest != url:
            raise NotFoundError("get", url, "Spark did not ask this package to commit")
        return took, report

    def _names(self, url: str) -> list[str]:
        """Return all files of the table, as Hadoop's client lists them."""
        spark: Any = self._session
        path = spark._jvm.org.apache.hadoop.fs.Path(url)
        files = path.getFileSystem(spark._jsc.hadoopConfiguration()).listFiles(path, True)
        names = []
        while files.hasNext():
            names.append(str(files.next().getPath().toString()))
        return names

"""The flights once more, on an emulator of ADLS Gen2 that is slow, strict and loses answers.

Spark's tasks write ``abfs://`` through Hadoop's own client; the job is committed by this package
through its own store, over HTTP, at the limit of the account and not over it.
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
THREADS = 8  # more than there are tasks: reading back is nothing but waiting for answers
Say = Callable[[str], object]


def run_on_adls(
    keep: Path | None = None,
    *,
    months: Sequence[int] = (),
    weather: StoreBehaviour | None = None,
    say: Say = print,
) -> AdlsOutcome:
    """Write the flights to an emulated account and see that all of them arrive.

    Args:
        keep: where logs go, a directory that is new or empty; ``demo-out`` by default.
        months: write these months only; all by default.
        weather: how the store behaves.
        say: is told what is going on.

    Raises:
        UnsupportedError: something that the demo needs is not installed; says what to install.
        OptionError: the directory holds something already.
        AsyncCommitError: Spark or the emulator failed; says where the log is.
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
    """An account on an emulator."""

    @property
    def root(self) -> str:
        """The URL of its filesystem."""
        return f"abfs://{FILESYSTEM}@{self.facts['account']}.dfs.core.windows.net"

    def spark_conf(self) -> dict[str, str]:
        """Return what a session needs to reach it."""
        pairs = [part.partition("=") for part in self.facts["connection_string"].split(";")]
        key = next(value for name, _, value in pairs if name == "AccountKey")
        host = self.endpoint.partition("://")[2]
        conf = hadoop_azure.client_conf(self.facts["account"], key, host)
        return {f"spark.hadoop.{key}": value for key, value in conf.items()}


@contextmanager
def emulator(weather: StoreBehaviour, log: Path) -> Iterator[Emulated]:
    """Run an emulator in a process of its own. Raises ``AsyncCommitError`` if it does not start."""
    arguments = ["--latency", weather.latency, "--limit", str(weather.limit)]
    arguments += ["--lost", weather.lost, "--filesystem", FILESYSTEM]
    with serving("adls", arguments, log) as running:
        yield Emulated(running.facts)


class _AdlsScenario:
    """From Spark's tasks through Hadoop's client to the store, and our commit of it."""

    def __init__(self, session: SparkSession, account: Emulated, say: Say, log: Path) -> None:
        self._session = session
        self._account = account
        self._say = say
        self._log = log

    def go(self, source: Path, weather: StoreBehaviour) -> AdlsOutcome:
        """Write, commit, read back."""
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
        """Return every file of the table, as Hadoop's client lists it."""
        spark: Any = self._session
        path = spark._jvm.org.apache.hadoop.fs.Path(url)
        files = path.getFileSystem(spark._jsc.hadoopConfiguration()).listFiles(path, True)
        names = []
        while files.hasNext():
            names.append(str(files.next().getPath().toString()))
        return names

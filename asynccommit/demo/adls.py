"""The flights once more, on an emulator of ADLS Gen2 that is slow, strict and loses answers.

Spark's tasks write ``abfs://`` through Hadoop's own client; the job is committed by this package
through its own store, over HTTP, at the limit of the account and not over it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asynccommit.demo import flights, hadoop_azure
from asynccommit.demo.adls_outcome import AdlsOutcome, Weather
from asynccommit.demo.session import printed_to, quiet_session
from asynccommit.errors import AsyncCommitError, NotFoundError
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
    weather: Weather | None = None,
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
    directory = flights.prepare(keep)
    log, scratch = directory / "spark.log", directory / "scratch"
    scratch.mkdir()
    with zipfile.ZipFile(source) as packed:
        table = Path(packed.extract("flights.csv", scratch))
    weather = weather or Weather()
    with emulator(weather, directory / "emulator.log") as account:
        say(
            f"an emulator serves {account.endpoint}: {weather.latency} an answer, "
            f"{weather.limit:,} requests/s at most, {weather.lost} of the renames lose theirs"
        )
        say("starting Spark")
        session = quiet_session(
            log, scratch, threads=THREADS, conf={"spark.jars": str(jar), **account.spark_conf()}
        )
        with flights.explained(log), session as spark:
            outcome = _Road(spark, account, say, log).go(table, months, weather)
    shutil.rmtree(scratch, ignore_errors=True)
    return outcome


@dataclass(frozen=True, slots=True)
class Emulated:
    """An account on an emulator that runs as a process of its own."""

    endpoint: str
    account: str
    key: str

    @property
    def root(self) -> str:
        """The URL of its filesystem."""
        return f"abfs://{FILESYSTEM}@{self.account}.dfs.core.windows.net"

    @property
    def host(self) -> str:
        """Where it listens, ``HOST:PORT``."""
        return self.endpoint.partition("://")[2]

    def spark_conf(self) -> dict[str, str]:
        """Return what a session needs to reach it."""
        conf = hadoop_azure.client_conf(self.account, self.key, self.host)
        return {f"spark.hadoop.{key}": value for key, value in conf.items()}

    def stats(self) -> dict[str, Any]:
        """Return what it has counted."""
        with urllib.request.urlopen(f"{self.endpoint}/_emulator/stats", timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


@contextmanager
def emulator(weather: Weather, log: Path) -> Iterator[Emulated]:
    """Run an emulator in a process of its own. Raises ``AsyncCommitError`` if it does not start."""
    command = [sys.executable, "-m", "asynccommit", "emulate", "adls", "--json", "--port", "0"]
    command += ["--latency", weather.latency, "--limit", str(weather.limit)]
    command += ["--lost", weather.lost, "--filesystem", FILESYSTEM]
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=file
        )
    assert process.stdout is not None
    try:
        yield _first_words(process, log)
    finally:
        process.terminate()
        process.stdout.close()
        process.wait(30)


def _first_words(process: subprocess.Popen[bytes], log: Path) -> Emulated:
    assert process.stdout is not None
    text = b""
    for line in process.stdout:
        text += line
        if line.rstrip() == b"}":
            break
    try:
        facts = json.loads(text)
        key = dict(
            part.partition("=")[::2] for part in facts["connection_string"].split(";") if part
        )["AccountKey"]
        return Emulated(facts["endpoint"], facts["account"], key)
    except (ValueError, KeyError) as error:
        raise AsyncCommitError(f"the emulator did not start; its log is {log}") from error


class _Road:
    """From Spark's tasks through Hadoop's client to the store, and our commit of it."""

    def __init__(self, session: SparkSession, account: Emulated, say: Say, log: Path) -> None:
        self._session = session
        self._account = account
        self._say = say
        self._log = log

    def go(self, source: Path, months: Sequence[int], weather: Weather) -> AdlsOutcome:
        """Write, commit, read back."""
        data = flights.read_flights(self._session, source, months).repartition(TASKS).cache()
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

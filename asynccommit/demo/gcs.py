"""Run the demo on an emulated bucket that is slow, strict and loses responses.

Spark's tasks write ``gs://`` through Google's connector. The job is committed first by Spark's
default committer, which renames directories and so sends many requests on this store; then by this
package.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from asynccommit.commit.layout import TEMPORARY
from asynccommit.demo import flights, hadoop_gcs
from asynccommit.demo.emulated import RunningEmulator, serving
from asynccommit.demo.gcs_killed import DriverJob, kill_half_way
from asynccommit.demo.gcs_outcome import GcsOutcome, GcsSide
from asynccommit.demo.outcome import Killed, Overwritten, StoreBehaviour
from asynccommit.demo.session import TASKS, commit_times
from asynccommit.demo.steps import finish, last_words, overwrite_day, report_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUCKET = "flights"
MONTHS = (1, 2)
"""The default months: Spark's own commit of a year takes minutes."""

GCS_WEATHER = StoreBehaviour(latency="10ms", limit=300, lost="2%")
THREADS = 8  # More threads than tasks: reading back only waits for responses.
Say = Callable[[str], object]


def run_on_gcs(
    keep: Path | None = None,
    *,
    months: Sequence[int] = MONTHS,
    weather: StoreBehaviour = GCS_WEATHER,
    hns: bool = False,
    say: Say = print,
) -> GcsOutcome:
    """Write the flights to an emulated bucket with both committers; compare.

    Args:
        keep: directory for the logs, new or empty; ``demo-out`` by default.
        months: months to write.
        weather: behaviour of the emulated store; responses are lost only during this package's
            commits.
        hns: whether the bucket has a hierarchical namespace.
        say: called with progress messages.

    Raises:
        UnsupportedError: a required package is not installed; the message says what to install.
        OptionError: the directory is not empty.
        AsyncCommitError: Spark or the emulator failed; the message says where the log is.
    """
    source = flights.find_flights()
    jar = hadoop_gcs.client_jar()
    with (
        flights.ground(source, keep, months) as ground,
        emulated(weather, hns, ground.directory) as emulator,
    ):
        say(
            f"an emulator serves {emulator.endpoint}: {weather.latency} an answer, "
            f"{weather.limit:,} writes/s at most"
        )
        say("starting Spark")
        hadoop = hadoop_gcs.client_conf(emulator.endpoint).items()
        conf = {"spark.jars": str(jar), **{f"spark.hadoop.{key}": value for key, value in hadoop}}
        job = DriverJob.on(ground, _url("killed"), conf, THREADS)
        with ground.session(THREADS, conf) as session:
            return _GcsScenario(session, emulator, job, weather, say).go(months[0])


@contextmanager
def emulated(weather: StoreBehaviour, hns: bool, directory: Path) -> Iterator[RunningEmulator]:
    """Run an emulator with the bucket.

    Raises ``AsyncCommitError`` if it does not start.
    """
    quotas = {"writes": weather.limit, "name_interval": 1.0}
    config = directory / "emulator.json"
    config.write_text(json.dumps({"buckets": {BUCKET: {"hns": hns, "quotas": quotas}}}))
    arguments = ["--config", str(config), "--latency", weather.latency]
    with serving("gcs", arguments, directory / "emulator.log") as emulator:
        yield emulator


def _url(table: str) -> str:
    return f"gs://{BUCKET}/{table}"


class _GcsScenario:
    """The scenario: tasks write through Google's connector, both committers commit."""

    def __init__(
        self,
        session: SparkSession,
        emulator: RunningEmulator,
        job: DriverJob,
        weather: StoreBehaviour,
        say: Say,
    ) -> None:
        self._session = session
        self._emulator = emulator
        self._job = job
        self._weather = weather
        self._say = say
        self._log = Path(job.log)

    def go(self, month: int) -> GcsOutcome:
        """Run all steps; the first day of ``month`` is overwritten."""
        data = flights.read_flights(self._session, Path(self._job.source))
        data = data.repartition(TASKS).cache()
        rows, content = flights.fingerprint(data)
        self._say(
            f"{rows:,} flights are to be written by {TASKS} tasks, through Google's connector"
        )
        self._warm_up(data.where("day = 1"))
        spark = self._write(data, "spark", ours=False)
        self._say(f"from now on {self._weather.lost} of the moves lose their answers")
        self._lose(self._weather.lost)
        ours = self._write(data, "ours", ours=True)
        report = report_of(ours.url)
        overwritten = self._overwrite(data, month)
        killed = self._kill(ours.files, (rows, content))
        trial = self._try_spark(data.where("day = 1"))
        left = sum(len(self._left(name)) for name in ("ours", "killed"))
        return GcsOutcome(
            rows=rows,
            content=content,
            spark=spark,
            ours=ours,
            report=report,
            trial=trial,
            overwritten=overwritten,
            killed=killed,
            left=left,
            weather=self._weather,
            log=str(self._log),
        )

    def _warm_up(self, data: DataFrame) -> None:
        self._say("warming up the JVM with both committers")
        for ours in (True, False):
            with flights.committer(self._session, self._log, ours=ours):
                url = _url(f"warm-up-{ours}")
                data.write.partitionBy(*flights.PARTITIONS).parquet(url)
                flights.fingerprint(self._session.read.parquet(url))

    def _write(self, data: DataFrame, name: str, *, ours: bool) -> GcsSide:
        who = "asynccommit" if ours else "Spark's own committer"
        self._say(f"writing them by {', '.join(flights.PARTITIONS)}, committed by {who}")
        self._emulator.forget_stats()
        with flights.committer(self._session, self._log, ours=ours):
            begin = time.perf_counter()
            data.write.partitionBy(*flights.PARTITIONS).parquet(_url(name))
            took = time.perf_counter() - begin
            task_commit, job_commit = commit_times(self._session)
        stats = self._emulator.stats()
        self._say(f"that took {took:.1f} s; reading them back")
        rows, content = flights.fingerprint(self._session.read.parquet(_url(name)))
        return GcsSide(
            url=_url(name),
            files=len(self._files(name)),
            task_commit=task_commit,
            job_commit=job_commit,
            write=took,
            requests=stats["requests"],
            refused=stats["statuses"].get("429", 0),
            lost=stats["struck"].get("cut move", 0),
            left=len(self._left(name)),
            rows=rows,
            content=content,
        )

    def _overwrite(self, data: DataFrame, month: int) -> Overwritten:
        self._say(f"overwriting month={month}/day=1 of it dynamically")
        files = partial(self._files, "ours")
        return overwrite_day(self._session, self._log, data, _url("ours"), month, files)

    def _kill(self, files: int, expected: tuple[int, str]) -> Killed:
        """Kill another driver half-way through the same write and finish its job."""
        self._say("another driver writes the same, and is killed half-way")
        self._emulator.forget_stats()
        kill_half_way(self._job, lambda: self._moved() >= files // 2)
        visible = len(self._files("killed"))
        self._say(f"killed with {visible} files moved; its job is resumed")
        return finish(self._session, self._log, self._job, visible, expected)

    def _moved(self) -> int:
        """Return approximately how many moves the emulator has accepted."""
        stats = self._emulator.stats()
        moved: int = stats["requests"].get("move", 0) - stats["statuses"].get("429", 0)
        return moved

    def _try_spark(self, data: DataFrame) -> str | None:
        """Return Spark's error when every second move loses its response."""
        self._say("a small job once more, committed by Spark, and every other answer is lost")
        self._lose("100%", every=2)
        try:
            data.write.partitionBy(*flights.PARTITIONS).parquet(_url("trial"))
        except Exception as error:
            return last_words(error)
        return None

    def _lose(self, share: str, every: int = 1) -> None:
        probability = float(share.rstrip("%")) / 100
        rule = {"kind": "cut", "op": "move", "probability": probability, "every": every}
        self._emulator.strike(rule)

    def _files(self, table: str) -> dict[str, str]:
        """Return the data files that a reader of a table sees, with generations."""
        found = self._objects(table)
        return {
            name: generation
            for name, generation in found.items()
            if name.endswith(".parquet") and f"/{TEMPORARY}/" not in name
        }

    def _left(self, table: str) -> list[str]:
        return [name for name in self._objects(table) if f"/{TEMPORARY}/" in name]

    def _objects(self, table: str) -> Mapping[str, str]:
        """Return the generation of each object of a table, by name."""
        found: dict[str, str] = {}
        token = ""
        while True:
            query = f"prefix={table}/&fields=items(name,generation),nextPageToken{token}"
            page = self._emulator.ask(f"/storage/v1/b/{BUCKET}/o?{query}")
            found.update((item["name"], item["generation"]) for item in page.get("items", ()))
            if "nextPageToken" not in page:
                return found
            token = f"&pageToken={page['nextPageToken']}"

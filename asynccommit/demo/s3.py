"""Run the demo on S3: moto behind a proxy that is slow and loses responses.

Spark's tasks upload through Hadoop's magic committer. The uploads are completed first by Hadoop,
with the classes that Spark has for that, and then by this package. A third run on one week of
flights shows what Spark does without these classes: it copies files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from asynccommit.commit.layout import TEMPORARY
from asynccommit.demo import flights, hadoop_s3
from asynccommit.demo.emulated import RunningEmulator, serving
from asynccommit.demo.gcs_killed import DriverJob, kill_half_way
from asynccommit.demo.moto import Moto, need_moto, serving_moto
from asynccommit.demo.outcome import Killed, Overwritten, StoreBehaviour
from asynccommit.demo.s3_outcome import Copied, S3Outcome, S3Side
from asynccommit.demo.session import TASKS, commit_times
from asynccommit.demo.steps import finish, last_words, overwrite_day, report_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUCKET = "flights"
S3_MONTHS = (1,)
"""The default months: moto handles a few hundred requests per second."""

S3_WEATHER = StoreBehaviour(latency="5ms", limit=3500, lost="5%")
THREADS = 8  # More threads than tasks: reading back only waits for responses.
_COMPLETE = "complete_upload"
# So many simultaneous completions would end before their driver could be killed. Some are delayed,
# and arrive after the job has been finished.
_HOLD = {"kind": "late", "op": _COMPLETE, "every": 3, "delay": 30, "reply": "never"}
_LEFT = (f"/{TEMPORARY}/", "/__magic")
Say = Callable[[str], object]


def run_on_s3(
    keep: Path | None = None,
    *,
    months: Sequence[int] = S3_MONTHS,
    weather: StoreBehaviour = S3_WEATHER,
    say: Say = print,
) -> S3Outcome:
    """Write the flights to moto with both committers and compare.

    Args:
        keep: directory for the logs, new or empty; ``demo-out`` by default.
        months: months to write.
        weather: behaviour of the emulated store; responses are lost only during this package's
            commits.
        say: called with progress messages.

    Raises:
        UnsupportedError: a required package is not installed; the message says what to install.
        OptionError: the directory is not empty.
        AsyncCommitError: Spark, moto or the proxy failed; the message says where the log is.
    """
    source = flights.find_flights()
    need_moto()
    jars = [*hadoop_s3.client_jars(), hadoop_s3.committers_jar()]
    with (
        flights.ground(source, keep, months) as ground,
        emulated(weather, ground.directory) as (moto, proxy),
    ):
        say(f"moto is behind {proxy.endpoint}: {weather.latency} an answer, or more")
        say("starting Spark")
        conf = _conf(jars, proxy.endpoint, ground.scratch)
        job = DriverJob.on(ground, _url("killed"), conf, THREADS)
        with ground.session(THREADS, conf) as session:
            return _S3Scenario(session, moto, proxy, job, weather, say).go(months[0])


@contextmanager
def emulated(weather: StoreBehaviour, directory: Path) -> Iterator[tuple[Moto, RunningEmulator]]:
    """Run moto with the bucket, and the proxy; neither keeps files.

    Raises ``AsyncCommitError`` if one of them does not start.
    """
    with serving_moto(directory / "moto.log") as moto:
        moto.make_bucket(BUCKET)
        arguments = ["--target", moto.url, "--latency", weather.latency]
        arguments += ["--limit", str(weather.limit)]
        with serving("s3-proxy", arguments, directory / "proxy.log") as proxy:
            yield moto, proxy


def _conf(jars: Sequence[Path], endpoint: str, scratch: Path) -> Mapping[str, str]:
    hadoop = {
        **hadoop_s3.client_conf(endpoint),
        "fs.s3a.committer.name": "magic",
        "fs.s3a.buffer.dir": str(scratch / "buffer"),
    }
    settings = {f"spark.hadoop.{key}": value for key, value in hadoop.items()}
    return {"spark.jars": ",".join(map(str, jars)), **settings}


def _url(table: str) -> str:
    return f"s3a://{BUCKET}/{table}"


class _S3Scenario:
    """The scenario: tasks upload through S3A, both committers commit."""

    def __init__(
        self,
        session: SparkSession,
        moto: Moto,
        proxy: RunningEmulator,
        job: DriverJob,
        weather: StoreBehaviour,
        say: Say,
    ) -> None:
        self._session = session
        self._moto = moto
        self._proxy = proxy
        self._job = job
        self._weather = weather
        self._say = say
        self._log = Path(job.log)

    def go(self, month: int) -> S3Outcome:
        """Run all steps; the first day of ``month`` is overwritten."""
        data = flights.read_flights(self._session, Path(self._job.source))
        data = data.repartition(TASKS).cache()
        rows, content = flights.fingerprint(data)
        self._say(f"{rows:,} flights are to be written by {TASKS} tasks, through S3A")
        self._warm_up(data.where("day = 1"))
        hadoop = self._write(data, "hadoop", self._hadoops(), "Hadoop's magic committer")
        copied = self._copy(data.where(f"month = {month} and day <= 7"))
        self._say(f"from now on {self._weather.lost} of the completions lose their answers")
        self._proxy.strike(_losing(self._weather.lost))
        ours = self._write(data, "ours", self._ours(), "asynccommit")
        report = report_of(ours.url)
        overwritten = self._overwrite(data, month)
        killed = self._kill(ours.files, (rows, content))
        trial = self._try_hadoop(data.where("day = 1"))
        return S3Outcome(
            rows=rows,
            content=content,
            hadoop=hadoop,
            ours=ours,
            copied=copied,
            report=report,
            trial=trial,
            overwritten=overwritten,
            killed=killed,
            left=sum(len(self._left(name)) for name in ("ours", "killed")),
            uploads=sum(len(self._moto.uploads(BUCKET, f"{name}/")) for name in ("ours", "killed")),
            weather=self._weather,
            log=str(self._log),
        )

    def _ours(self) -> AbstractContextManager[None]:
        return flights.committer(self._session, self._log, ours=True)

    @contextmanager
    def _hadoops(self) -> Iterator[None]:
        """Commit with S3A's committer inside the block."""
        conf = hadoop_s3.committers_conf()
        for key, value in conf.items():
            self._session.conf.set(key, value)
        try:
            yield
        finally:
            for key in conf:
                self._session.conf.unset(key)

    def _warm_up(self, data: DataFrame) -> None:
        self._say("warming up the JVM with both committers")
        for number, committer in enumerate((self._ours(), self._hadoops())):
            with committer:
                url = _url(f"warm-up-{number}")
                data.write.partitionBy(*flights.PARTITIONS).parquet(url)
                flights.fingerprint(self._session.read.parquet(url))

    def _write(
        self, data: DataFrame, name: str, committer: AbstractContextManager[None], who: str
    ) -> S3Side:
        self._say(f"writing them by {', '.join(flights.PARTITIONS)}, committed by {who}")
        self._proxy.forget_stats()
        took, task_commit, job_commit = self._timed(data, name, committer)
        stats = self._proxy.stats()
        self._say(f"that took {took:.1f} s; reading them back")
        rows, content = flights.fingerprint(self._session.read.parquet(_url(name)))
        return S3Side(
            url=_url(name),
            files=len(self._files(name)),
            task_commit=task_commit,
            job_commit=job_commit,
            write=took,
            requests=stats["requests"],
            refused=stats["statuses"].get("503", 0),
            lost=stats["struck"].get(f"cut {_COMPLETE}", 0),
            rows=rows,
            content=content,
        )

    def _timed(
        self, data: DataFrame, name: str, committer: AbstractContextManager[None]
    ) -> tuple[float, float | None, float | None]:
        """Write a table and measure it.

        Returns the seconds of the whole write, of the task commits and of the job commit.
        """
        with committer:
            begin = time.perf_counter()
            data.write.partitionBy(*flights.PARTITIONS).parquet(_url(name))
            took = time.perf_counter() - begin
            return took, *commit_times(self._session)

    def _copy(self, data: DataFrame) -> Copied:
        """Write a week with plain PySpark, without classes for S3A's committers."""
        self._say("writing a week of them as PySpark comes, committed by copies")
        self._proxy.forget_stats()
        _, _, job_commit = self._timed(data, "copied", nullcontext())
        copies = self._proxy.stats()["requests"].get("copy", 0)
        return Copied(files=len(self._files("copied")), copies=copies, job_commit=job_commit)

    def _overwrite(self, data: DataFrame, month: int) -> Overwritten:
        self._say(f"overwriting month={month}/day=1 of it dynamically")
        files = partial(self._files, "ours")
        return overwrite_day(self._session, self._log, data, _url("ours"), month, files)

    def _kill(self, files: int, expected: tuple[int, str]) -> Killed:
        """Kill another driver half-way through the same write and finish its job."""
        self._say("another driver writes the same, and is killed half-way")
        self._proxy.forget_stats()
        self._proxy.strike(_HOLD, _losing(self._weather.lost))
        kill_half_way(self._job, lambda: self._is_half_way(files // 3))
        self._proxy.strike(_losing(self._weather.lost))
        visible = len(self._files("killed"))
        self._say(f"killed with {visible} uploads completed; its job is resumed")
        return finish(self._session, self._log, self._job, visible, expected)

    def _is_half_way(self, enough: int) -> bool:
        return self._completed() >= enough <= len(self._files("killed"))

    def _completed(self) -> int:
        """Return how many completions moto received."""
        sent: int = self._proxy.stats()["forwarded"].get(_COMPLETE, 0)
        return sent

    def _try_hadoop(self, data: DataFrame) -> str | None:
        """Return Hadoop's error when every second completion loses its response."""
        self._say("a small job once more, committed by Hadoop, and every other answer is lost")
        self._proxy.strike(_losing("100%", every=2))
        with self._hadoops():
            try:
                data.write.partitionBy(*flights.PARTITIONS).parquet(_url("trial"))
            except Exception as error:
                return last_words(error)
        return None

    def _files(self, table: str) -> dict[str, str]:
        """Return the data files that a reader sees, each with its etag and time."""
        found = self._moto.objects(BUCKET, f"{table}/")
        return {
            name: one
            for name, one in found.items()
            if name.endswith(".parquet") and not _is_left(name)
        }

    def _left(self, table: str) -> list[str]:
        return list(filter(_is_left, self._moto.objects(BUCKET, f"{table}/")))


def _losing(share: str, every: int = 1) -> Mapping[str, object]:
    probability = float(share.rstrip("%")) / 100
    return {"kind": "cut", "op": _COMPLETE, "probability": probability, "every": every}


def _is_left(name: str) -> bool:
    return any(part in name for part in _LEFT)

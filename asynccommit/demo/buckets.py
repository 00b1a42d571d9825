"""The scenario on a bucket: both committers and several faults."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Table

from asynccommit.commit.layouts.layout import TEMPORARY
from asynccommit.demo import flights
from asynccommit.demo.emulated import RunningEmulator, losing
from asynccommit.demo.flights import Ground, Say
from asynccommit.demo.killed_driver import DriverJob, kill_half_way
from asynccommit.demo.outcome import (
    Findings,
    Killed,
    Overwritten,
    StoreBehaviour,
    WrittenTable,
    add_times,
    both_hold,
    compared,
    comparison,
    show_ratio,
    show_time,
)
from asynccommit.demo.scenario import Scenario, report_of
from asynccommit.demo.session import printed_to
from asynccommit.results import JobReport
from asynccommit.runtime.terminal import count_of, show_seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THREADS = 8  # More threads than tasks: reading back only waits for responses.
_LEFT = (f"/{TEMPORARY}/", "/__magic")
# So few requests a second that the driver can be killed between two of them.
_SLOW = {"spark.hadoop.asynccommit.rate": "100"}


@dataclass(frozen=True, slots=True)
class BucketStore:
    """The facts about a store that its demo depends on.

    Attributes:
        root: URL of the bucket.
        through: the Hadoop client of the tasks.
        whose: whose committer ours is compared with; its table has this name.
        committer: the full name of that committer.
        conf: Spark options that enable that committer.
        op: the request that makes a file visible.
        noun: its name in messages, without the plural ``s``.
        recovered: its name in a job report.
        resent: whether a rejected request may count as lost.
        visible: how messages call files that it made visible.
        refused: the HTTP status of a rejected request.
        done: count of the requests ``op`` that were done, from the emulator's counts.
        hold: faults while the driver is killed.
        share: the driver is killed when one in so many files is visible.
        groups: requests to show by name, or none to show each.
        trial: label of the other committer's result while responses are lost.
        nothing_left: the check that nothing of a job is left.
        copies: whether to write a week without the classes of ``committer`` too.
    """

    root: str
    through: str
    whose: str
    committer: str
    conf: Mapping[str, str]
    op: str
    noun: str
    recovered: str
    resent: bool
    visible: str
    refused: str
    done: Callable[[Mapping[str, Any]], int]
    hold: Sequence[Mapping[str, object]]
    share: int
    groups: Mapping[str, Sequence[str]]
    trial: str
    nothing_left: str
    copies: bool


class Bucket:
    """A served bucket.

    Args:
        emulator: what counts requests and injects faults.
        objects: returns for each name with a prefix a value that changes with the object.
        uploads: returns the names of open uploads with a prefix.
    """

    def __init__(
        self,
        emulator: RunningEmulator,
        objects: Callable[[str], Mapping[str, str]],
        uploads: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        self.emulator = emulator
        self._objects = objects
        self.uploads = uploads

    def files(self, table: str) -> dict[str, str]:
        """Return the visible data files of a table, with their versions."""
        found = self._objects(f"{table}/").items()
        return {name: v for name, v in found if name.endswith(".parquet") and not is_left(name)}

    def left(self, table: str) -> int:
        """Return the number of a table's objects that belong to jobs."""
        return sum(map(is_left, self._objects(f"{table}/")))


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketSide(WrittenTable):
    """One table in a bucket, as one committer wrote it.

    Attributes:
        url: URL of the table.
        requests: number of requests to the emulator, by operation.
        refused: number of requests rejected by the rate limit.
        lost: number of requests that made a file visible and whose response was lost.
        left: objects of jobs left.
    """

    url: str
    requests: Mapping[str, int]
    refused: int
    lost: int
    left: int


@dataclass(frozen=True, slots=True)
class Copied:
    """Flights that PySpark wrote without S3A's committer classes.

    Attributes:
        files: number of data files found.
        copies: number of objects copied to make them.
        job_commit: seconds of the job commit, measured by Spark; ``None`` if not measured.
    """

    files: int
    copies: int
    job_commit: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketOutcome(Findings):
    """The findings of a demo on a bucket.

    Attributes:
        store: the store.
        rows: number of rows to write.
        content: sum of the hashes of these rows.
        theirs: the table of the other committer, while no response was lost.
        ours: the table that this package committed, while responses were lost.
        copied: result of Spark's write where it cannot commit uploads.
        report: report of this package's job commit.
        trial: result of a small job with the other committer while responses are lost: the error,
            or ``None``.
        overwritten: one partition of our table.
        killed: the job whose driver was killed.
        left: objects of jobs left below our tables at the end.
        uploads: open uploads left below our tables; ``None`` for a store without uploads.
        weather: behaviour of the store.
        log: log file of Spark.
    """

    store: BucketStore
    rows: int
    content: str
    theirs: BucketSide
    ours: BucketSide
    copied: Copied | None = None
    report: JobReport
    trial: str | None
    overwritten: Overwritten
    killed: Killed
    left: int
    uploads: int | None = None
    weather: StoreBehaviour
    log: str

    @property
    def checks(self) -> Mapping[str, bool]:
        """Return each check and whether it passed."""
        theirs, ours, killed, store = self.theirs, self.ours, self.killed, self.store
        unsettled = ours.lost - self.report.recovered.get(store.recovered, 0)
        return {
            **both_hold(self.rows, self.content, theirs, ours),
            f"each of the {ours.files:,} files is there once": (
                theirs.files == ours.files == self.report.files
            ),
            f"the responses to {ours.lost} {store.noun}s were lost, and each was settled": (
                0 <= unsettled <= (ours.refused if store.resent else 0)
            ),
            **self.overwritten.check,
            f"a driver was killed with {killed.visible:,} {store.visible}, and its job was "
            "finished": killed.finished,
            **({} if self.uploads is None else {"no upload is pending": not self.uploads}),
            f"{store.nothing_left} is left, and _SUCCESS is there": (
                not self.left and None not in (self.report.success, killed.report.success)
            ),
        }

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        found = super(BucketOutcome, self).to_json()
        found[self.store.whose.lower()] = found.pop("theirs")
        del found["store"]
        return {
            name: value for name, value in found.items() if name == "trial" or value is not None
        }

    def table(self) -> RenderableType:
        """Return the comparison as a table, with the checks and the locations."""
        day, killed, copied = self.overwritten, self.killed, self.copied
        facts = {
            f"overwrite of {day.partition}": f"{show_seconds(day.seconds)}, {day.replaced} files",
            "commit of the killed job": show_seconds(killed.seconds),
            self.store.trial: self.trial or "its job was done",
            "Spark's log": self.log,
        }
        if copied is not None:
            how = f"{count_of(copied.files, 'file')} by {copied.copies} copies, "
            how += f"job commit {show_time(copied.job_commit)}"
            facts = {"plain PySpark": how, **facts}
        return compared(self, self._comparison(), self.report, facts)

    def _comparison(self) -> Table:
        theirs, ours = self.theirs, self.ours
        shown = comparison(f"{self.store.whose}'s committer", "difference")
        of = f" of {self.store.noun}s" if self.store.groups else ""
        shown.add_row("lost responses", "none", f"{ours.lost:,} ({self.weather.lost}{of})", "")
        shown.add_row("files", f"{theirs.files:,}", f"{ours.files:,}", "")
        every = sorted({*theirs.requests, *ours.requests})
        self._add_requests(shown, "requests", every, ratio=True)
        for name, ops in (self.store.groups or {op: [op] for op in every}).items():
            self._add_requests(shown, f"  {name}", ops, ratio=bool(self.store.groups))
        refused = f"  too many ({self.store.refused})"
        shown.add_row(refused, f"{theirs.refused:,}", f"{ours.refused:,}", "")
        add_times(shown, theirs, ours)
        return shown

    def _add_requests(self, shown: Table, name: str, ops: Sequence[str], *, ratio: bool) -> None:
        sides = (self.theirs, self.ours)
        many, few = (sum(side.requests.get(op, 0) for op in ops) for side in sides)
        shown.add_row(name, f"{many:,}", f"{few:,}", show_ratio(many, few) if ratio else "")


def run_on_bucket(
    store: BucketStore,
    bucket: Bucket,
    ground: Ground,
    conf: Mapping[str, str],
    *,
    month: int,
    weather: StoreBehaviour,
    say: Say,
) -> BucketOutcome:
    """Run all steps on a bucket; the first day of ``month`` is overwritten."""
    say("starting Spark")
    job = DriverJob.on(ground, f"{store.root}/killed", {**conf, **_SLOW}, THREADS)
    with ground.session(THREADS, conf) as session:
        return _BucketScenario(session, ground, say, store, bucket, job, weather).go(month)


class _BucketScenario(Scenario):
    """The scenario with a Hadoop client and both committers."""

    def __init__(
        self,
        session: SparkSession,
        ground: Ground,
        say: Say,
        store: BucketStore,
        bucket: Bucket,
        job: DriverJob,
        weather: StoreBehaviour,
    ) -> None:
        super().__init__(session, ground, say, through=store.through)
        self._store = store
        self._bucket = bucket
        self._emulator = bucket.emulator
        self._job = job
        self._weather = weather

    @contextmanager
    def theirs(self) -> Iterator[None]:
        """Commit with the other committer inside the block."""
        for key, value in self._store.conf.items():
            self.session.conf.set(key, value)
        try:
            yield
        finally:
            for key in self._store.conf:
                self.session.conf.unset(key)

    def go(self, month: int) -> BucketOutcome:
        """Run all steps; the first day of ``month`` is overwritten."""
        store, bucket = self._store, self._bucket
        data, rows, content = self.load()
        self.warm_up(data.where("day = 1"), store.root)
        theirs = self._write(data, store.whose.lower(), self.theirs(), store.committer)
        copied = self._copy(data.where(f"month = {month} and day <= 7")) if store.copies else None
        self.say(f"from now on {self._weather.lost} of the {store.noun}s lose their responses")
        self._emulator.strike(self._losing())
        ours = self._write(data, "ours", self.ours(), "asynccommit")
        report = report_of(ours.url)
        overwritten = self._overwrite(data, month)
        killed = self._kill(ours.files, (rows, content))
        trial = self._try_theirs(data.where("day = 1"))
        uploads = bucket.uploads
        return BucketOutcome(
            store=store,
            rows=rows,
            content=content,
            theirs=theirs,
            ours=ours,
            copied=copied,
            report=report,
            trial=trial,
            overwritten=overwritten,
            killed=killed,
            left=sum(map(bucket.left, ("ours", "killed"))),
            uploads=len([*uploads("ours/"), *uploads("killed/")]) if uploads else None,
            weather=self._weather,
            log=str(self.ground.log),
        )

    def _url(self, table: str) -> str:
        return f"{self._store.root}/{table}"

    def _write(
        self, data: DataFrame, name: str, committer: AbstractContextManager[None], who: str
    ) -> BucketSide:
        self.announce(who)
        self._emulator.forget_stats()
        url = self._url(name)
        timing = self.timed(data, url, committer)
        stats = self._emulator.stats()
        rows, content = self.read_back(url, timing)
        return BucketSide(
            url=url,
            files=len(self._bucket.files(name)),
            requests=stats["requests"],
            refused=stats["statuses"].get(self._store.refused, 0),
            lost=stats["struck"].get(f"cut {self._store.op}", 0),
            left=self._bucket.left(name),
            rows=rows,
            content=content,
            **timing._asdict(),
        )

    def _copy(self, data: DataFrame) -> Copied:
        """Write a week with plain PySpark, without committer classes."""
        self.say("writing a week of them with plain PySpark, committed by copies")
        self._emulator.forget_stats()
        timing = self.timed(data, self._url("copied"), nullcontext())
        copies = self._emulator.stats()["requests"].get("copy", 0)
        return Copied(len(self._bucket.files("copied")), copies, timing.job_commit)

    def _overwrite(self, data: DataFrame, month: int) -> Overwritten:
        """Overwrite the first day of ``month`` with one airport's flights.

        All other days are kept.
        """
        partition = f"month={month}/day=1"
        self.say(f"overwriting {partition} of it dynamically")
        url, before = self._url("ours"), self._bucket.files("ours")
        day, kept = f"month = {month} and day = 1", "origin = 'JFK'"
        with self.ours():
            begin = time.perf_counter()
            writer = data.where(f"{day} and {kept}").write.mode("overwrite")
            writer = writer.option("partitionOverwriteMode", "dynamic")
            writer.partitionBy(*self.partitions).parquet(url)
            took = time.perf_counter() - begin
        expected = flights.fingerprint(data.where(f"not ({day}) or {kept}"))
        others = _outside(before, partition)
        return Overwritten(
            partition=partition,
            seconds=took,
            replaced=len(before) - len(others),
            right=self.read(url) == expected,
            untouched=_outside(self._bucket.files("ours"), partition) == others,
        )

    def _kill(self, files: int, expected: tuple[int, str]) -> Killed:
        """Kill another driver half-way through the same write and finish its job."""
        self.say("another driver writes the same data and is killed half-way")
        self._emulator.forget_stats()
        self._emulator.strike(*self._store.hold, self._losing())
        kill_half_way(self._job, lambda: self._is_half_way(files // self._store.share))
        self._emulator.strike(self._losing())
        visible = len(self._bucket.files("killed"))
        self.say(f"killed with {visible} {self._store.visible}; its job is resumed")
        return self._finish(visible, expected)

    def _is_half_way(self, enough: int) -> bool:
        done = self._store.done(self._emulator.stats())
        return done >= enough <= len(self._bucket.files("killed"))

    def _finish(self, visible: int, expected: tuple[int, str]) -> Killed:
        """Resume a killed driver's job, which left ``visible`` files."""
        from asynccommit.spark import resume

        url, begin = self._job.url, time.perf_counter()
        with printed_to(self.ground.log):
            report = resume(url, spark=self.session)
        took = time.perf_counter() - begin
        return Killed(url, visible, took, report, self.read(url) == expected)

    def _try_theirs(self, data: DataFrame) -> str | None:
        """Return the other committer's error when every second response is lost."""
        whose = self._store.whose
        self.say(f"a small job once more, committed by {whose}, and every other response is lost")
        self._emulator.strike({**self._losing(), "probability": 1.0, "every": 2})
        with self.theirs():
            try:
                data.write.partitionBy(*self.partitions).parquet(self._url("trial"))
            except Exception as error:
                return _last_words(error)
        return None

    def _losing(self) -> Mapping[str, object]:
        return losing(self._store.op, self._weather.lost)


def is_left(name: str) -> bool:
    """Return whether a file belongs to a job."""
    return any(part in name for part in _LEFT)


def _outside(files: Mapping[str, str], partition: str) -> Mapping[str, str]:
    return {name: one for name, one in files.items() if f"/{partition}/" not in name}


def _last_words(error: Exception) -> str:
    """Return the root cause that a Java exception reports, on one line."""
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
    words = causes[-1].removeprefix("Caused by: ") if causes else str(error).partition("\n")[0]
    return words[:120]

"""Kill the driver of a local job in its commit, once with each committer.

Two drivers write the same flights at the same time, one table each. Each is killed once half of
its files are visible. Then another job writes to each table, and the commit that can be resumed is.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from rich.table import Table

from asynccommit.commit.layouts.layout import SUCCESS
from asynccommit.demo.killed_driver import DriverJob, kill_half_way
from asynccommit.demo.outcome import short_path
from asynccommit.demo.scenario import Scenario
from asynccommit.demo.watching import Counts, watched
from asynccommit.errors import AsyncCommitError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TASKS = 2
RATE = 200
"""Requests a second of our commits here, so that there is time to watch."""

THEIRS, OURS = "Spark's committer", "asynccommit"
_SETUP = "job_stage_setup"
_TRIES = 5
_LOOK = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class KilledTable:
    """A table whose driver was killed in the middle of its job commit.

    Attributes:
        path: path of the table.
        files: number of files that the tasks of the killed job wrote.
        visible: number of these that readers saw when the driver died.
        rows: number of rows that readers counted then.
        refusal: the error of the next job; empty if that was accepted.
        resume_seconds: duration of the resume; ``None`` without one.
        rows_after: number of rows in the end.
        hidden_after: number of files in the end that readers do not see.
        marked: whether the table has a ``_SUCCESS`` in the end.
        right: whether the rows in the end are exactly those of the source.
    """

    path: str
    files: int
    visible: int
    rows: int
    refusal: str
    resume_seconds: float | None
    rows_after: int
    hidden_after: int
    marked: bool
    right: bool

    @property
    def half_way(self) -> bool:
        """Return whether the driver died while a part of the files was visible."""
        return 0 < self.visible < self.files

    @property
    def lost(self) -> int:
        """Return how many files of the killed job are nowhere any more."""
        return 0 if self.right else self.files - self.visible - self.hidden_after


class CrashScenario:
    """The two killed drivers, and what can be done afterwards.

    Args:
        scenario: the session, the directories and the messages.
        data: the flights.
        source: their number and the sum of their hashes.
        terminal: stream to draw bars on; ``None`` for none.
    """

    def __init__(
        self,
        scenario: Scenario,
        data: DataFrame,
        source: tuple[int, str],
        terminal: TextIO | None,
    ) -> None:
        self._scenario = scenario
        self._say = scenario.say
        self._data = data
        self._source = source
        self._terminal = terminal

    def go(self) -> tuple[KilledTable, KilledTable]:
        """Return what happened with Spark's committer, and what with ours."""
        spark, ours = self._kill_both()
        theirs = self._after(THEIRS, spark, self._scenario.theirs(), None)
        return theirs, self._after(OURS, ours, self._scenario.ours(), self._resume)

    def _kill_both(self) -> tuple[Counts, Counts]:
        """Run both drivers and kill them; return their tables."""
        directory = self._scenario.ground.directory / "killed"
        directory.mkdir()
        self._say("two drivers write them, and are killed in the middle of the job commit")
        self._say(f"(ours commits at {RATE} renames a second, so that there is time to watch)")
        spark, ours = Counts(directory / "spark"), Counts(directory / "asynccommit")
        with (
            watched(self._terminal, self._say, {THEIRS: spark, OURS: ours}),
            ThreadPoolExecutor(2) as pool,
        ):
            limit = {"spark.asynccommit.rate": str(RATE)}
            runs = [
                pool.submit(self._kill, spark, {}, ours=False),
                pool.submit(self._kill, ours, limit, ours=True),
            ]
            for run in runs:
                run.result()
        return spark, ours

    def _kill(self, counts: Counts, conf: Mapping[str, str], *, ours: bool) -> None:
        """Run one driver and kill it in its commit.

        A commit on a local disk takes a fraction of a second: if the kill comes too late, another
        driver is started. Raises ``AsyncCommitError`` after five.
        """
        url = str(counts.table)
        job = DriverJob.on(self._scenario.ground, url, conf, threads=1, tasks=TASKS, ours=ours)
        for _ in range(_TRIES):
            with suppress(AsyncCommitError):
                kill_half_way(job, counts.half_way, _LOOK)
            counts.count_all()
            if 0 < counts.visible < counts.written:
                counts.killed = True
                return
            counts.clear()
        raise AsyncCommitError(f"no driver was killed in its job commit; their log is {job.log}")

    def _after(
        self,
        who: str,
        counts: Counts,
        committer: AbstractContextManager[None],
        finish: Callable[[str], float] | None,
    ) -> KilledTable:
        """Read a table, run the next job, finish the commit, read it again."""
        path, (rows, _) = str(counts.table), self._scenario.read(str(counts.table))
        all_rows = self._source[0]
        self._say(f"{who}: a reader counts {rows:,} of {all_rows:,} rows, and gets no error")
        refusal = self._next_job(path, committer)
        self._tell_next_job(who, refusal)
        seconds = finish(path) if finish else None
        after = self._scenario.read(path)
        return KilledTable(
            path=path,
            files=counts.written,
            visible=counts.visible,
            rows=rows,
            refusal=refusal,
            resume_seconds=seconds,
            rows_after=after[0],
            hidden_after=counts.hidden(),
            marked=(counts.table / SUCCESS).is_file(),
            right=after == self._source,
        )

    def _next_job(self, path: str, committer: AbstractContextManager[None]) -> str:
        """Append the flights of one day; return the error, or nothing."""
        day = self._data.where("day = 1").coalesce(1)
        writer = day.write.mode("append").partitionBy(*self._scenario.partitions)
        try:
            with committer:
                writer.parquet(path)
        except Exception as error:
            return str(error).partition("\n\n")[0]
        return ""

    def _tell_next_job(self, who: str, refusal: str) -> None:
        if not refusal:
            self._say(f"{who}: the next job, an append, is accepted, and writes _SUCCESS")
            return
        self._say(f"{who}: the next job, an append, is refused:")
        reason = refusal.splitlines()[0].partition(f"{_SETUP}: ")[2] or refusal
        self._tell(reason, indent="  ")

    def _tell(self, text: str, indent: str = "") -> None:
        """Say a long line, broken between words."""
        wrapper = textwrap.TextWrapper(79, indent, "  ", break_on_hyphens=False)
        for line in wrapper.wrap(text):
            self._say(line)

    def _resume(self, path: str) -> float:
        """Finish the commit by the command; return the seconds."""
        words = ["resume", short_path(path)]
        self._say(f"$ asynccommit {' '.join(words)}")
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "asynccommit", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._terminal or subprocess.PIPE,
            text=True,
            check=False,
        )
        self._tell(done.stdout.partition("\n")[0])
        if done.returncode:
            raise AsyncCommitError(f"asynccommit {' '.join(words)} ended with {done.returncode}")
        return time.monotonic() - begin


def crash_table(rows: int, spark: KilledTable, ours: KilledTable) -> Table:
    """Return what the two killed drivers left, side by side."""
    shown = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    for name in ("", THEIRS, OURS):
        shown.add_column(name)
    for name, tell in _ROWS.items():
        shown.add_row(name, *(tell(crash, rows) for crash in (spark, ours)))
    return shown


_ROWS: Mapping[str, Callable[[KilledTable, int], str]] = {
    "files that readers see": lambda it, rows: f"{it.visible:,} of {it.files:,}",
    "rows that they count": lambda it, rows: f"{it.rows:,} of {rows:,}",
    "the next job is": lambda it, rows: "refused" if it.refusal else "accepted",
    "what finishes the commit": lambda it, rows: (
        "nothing" if it.resume_seconds is None else "asynccommit resume"
    ),
    "files lost in the end": lambda it, rows: f"{it.lost:,}",
    "_SUCCESS in the end": lambda it, rows: "yes" if it.marked else "no",
    "exact to the row": lambda it, rows: "yes" if it.right else "NO",
}

"""The meter of a commit: stage times, counts and progress."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from asynccommit.commit.observers import ObservedWork, WorkEnd, observed
from asynccommit.formats.statistics import Statistics
from asynccommit.results import StageTime
from asynccommit.runtime.apart import Listener

log = logging.getLogger(__name__)

OUTERMOST = "committer_commit_job"
"""The stage that contains all other stages of a job commit."""

MAX_STAGES = 200
"""Maximum number of stages whose begin is kept."""

LOGGED_SECONDS = 1.0
"""Seconds from which a stage is logged."""

_PROGRESS_INTERVAL = 0.1
_CLOCK_EVERY = 32


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a commit.

    Attributes:
        job_id: id of the job.
        stage: current stage, by its Hadoop statistic name.
        done: number of items done in this stage.
        total: number of items in this stage; ``None`` while unknown.
        seconds: seconds since the commit began.
    """

    job_id: str
    stage: str
    done: int
    total: int | None
    seconds: float
    _ask: Callable[[], str] = field(default=str, repr=False, compare=False)

    @property
    def waiting(self) -> str:
        """Return how many requests wait at this moment, and why.

        Empty if none does. It may be read later and from any thread.
        """
        return self._ask()


OnProgress = Callable[[Progress], object]


class CommitMeter:
    """The clock and the counters of one commit, abort or look.

    Args:
        job_id: for progress reports.
        on_progress: called a few times a second, in a thread: see ``Apart``.
        warn: takes the warning that ``on_progress`` has failed.
        waiting: returns why requests wait, from any thread.
        log_fields: the ``extra`` of log records.

    Attributes:
        stage: the current stage, or the one that failed.
        seconds: stage -> the seconds that it took.
        statistics: the same for Hadoop's statistics.
        total: number of items in this stage; ``None`` while unknown.
        course: the stages that have ended, at most ``MAX_STAGES``.
    """

    def __init__(
        self,
        job_id: str,
        on_progress: OnProgress | None,
        warn: Callable[[str], None],
        waiting: Callable[[], str] = str,
        log_fields: Mapping[str, str] | None = None,
    ) -> None:
        self.stage = ""
        self.seconds: dict[str, float] = {}
        self.statistics = Statistics()
        self.total: int | None = None
        self.course: list[StageTime] = []
        self._done = 0
        self._job_id = job_id
        self._listener = Listener(
            on_progress, lambda error: warn(f"progress reporting stopped: {_reason(error)}")
        )
        self._waiting = waiting
        self._log_fields = log_fields
        self._started = _now()
        self._reported = 0.0

    @contextmanager
    def timed(self, name: str, total: int | None = None) -> Iterator[None]:
        """Time a stage, count its failure, and name it in progress reports."""
        outer, self.stage = self.stage, name
        self._done, self.total = 0, total
        begin = _now()
        self.report()
        failed = True
        try:
            with self._observed(name):
                yield
            failed = False
        finally:
            took = _now() - begin
            self.seconds[name] = self.seconds.get(name, 0.0) + took
            self.statistics.duration(name, took, failed=failed)
            if name != OUTERMOST and len(self.course) < MAX_STAGES:
                self.course.append(StageTime(name, begin - self._started, took))
            self.report()
            if took >= LOGGED_SECONDS and name != OUTERMOST:
                how = "failed after" if failed else "took"
                told = self._job_id, name, how, took
                log.info("job %s: %s %s %.1f s", *told, extra=self._log_fields)
            if not failed:
                self.stage = outer

    def _observed(self, name: str) -> AbstractContextManager[WorkEnd | None]:
        """Return the block in which observers see a stage."""
        if name == OUTERMOST:
            return nullcontext()
        return observed(ObservedWork("stage", name, self._job_id), _now)

    @contextmanager
    def counted_as(self, name: str) -> Iterator[None]:
        """Count and time one operation that is not a stage."""
        begin = _now()
        failed = True
        try:
            yield
            failed = False
        finally:
            self.statistics.duration(name, _now() - begin, failed=failed)

    def step(self, count: int = 1) -> None:
        """Count items done; report progress at most a few times a second."""
        self._done += count
        if self._listener.listens and (self._done % _CLOCK_EVERY == 0 or count > 1):
            now = _now()
            if now - self._reported >= _PROGRESS_INTERVAL:
                self.report()

    @property
    def elapsed(self) -> float:
        """Return the seconds since the commit began."""
        return _now() - self._started

    def silence(self) -> None:
        """Report no more progress."""
        self._listener.listens = False

    def report(self) -> None:
        """Report progress now."""
        if not self._listener.listens:
            return
        self._reported = _now()
        taken = self._reported - self._started
        progress = Progress(self._job_id, self.stage, self._done, self.total, taken, self._waiting)
        self._listener(progress)

    @property
    def is_telling(self) -> bool:
        """Return whether a call of ``on_progress`` has not ended."""
        return self._listener.is_busy

    async def end(self) -> None:
        """Wait until the last call of ``on_progress`` has ended."""
        await self._listener.end()


def _reason(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # from an exception whose text cannot be formatted
        return type(error).__name__


def _now() -> float:
    return asyncio.get_running_loop().time()

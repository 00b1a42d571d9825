"""Show the progress of a commit on a terminal, in a notebook or in a log.

A terminal and a notebook get a bar; anything else a line every few seconds.

with console_progress() as on_progress:
    commit_job(url, job_id, on_progress=on_progress)
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TextIO

from asynccommit.commit.meter import OUTERMOST, OnProgress, Progress
from asynccommit.progress.cell import is_off
from asynccommit.progress.notebook import in_kernel, notebook_progress
from asynccommit.progress.recent_rate import RecentRate
from asynccommit.progress.stage_names import stage_name
from asynccommit.runtime.apart import OnLoop
from asynccommit.runtime.terminal import plain, show_rate, show_seconds

EVERY = 5.0
"""Seconds between lines if there is no terminal."""


@contextmanager
def console_progress(
    stream: TextIO | None = None, *, every: float = EVERY, quiet: bool = False
) -> Iterator[OnProgress]:
    """Show progress while the block runs; yield the ``on_progress`` callback.

    The callback may be called from any thread, and for several jobs at once. A job that fails is
    shown until the block ends, so give each commit a block of its own. With
    ``ASYNCCOMMIT_PROGRESS=off`` in the environment nothing is shown.

    Args:
        stream: where to show it; by default the cell of a notebook, or standard error.
        every: seconds between two lines if ``stream`` is not a terminal.
        quiet: show nothing.
    """
    notebook = stream is None and in_kernel()
    stream = sys.stderr if stream is None else stream
    if quiet or is_off():
        yield OnLoop[Progress](lambda progress: None)
    elif notebook:
        with notebook_progress() as bars:
            yield bars
    elif stream.isatty():
        with _bars(stream) as bars:
            yield bars
    else:
        with log_progress(_writer(stream), every=every) as lines:
            yield lines


@contextmanager
def log_progress(
    say: Callable[[str], object],
    *,
    every: float = EVERY,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[OnProgress]:
    """Report every running job each ``every`` seconds, even without progress.

    Args:
        say: takes the line, on a thread of its own; for example a logger's method.
        every: seconds between two lines.
        clock: a monotonic clock in seconds.
    """
    lines = Lines(clock)
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(every):
            for line in lines.take():
                say(line)

    thread = threading.Thread(target=beat, name="asynccommit-progress", daemon=True)
    thread.start()
    try:
        yield OnLoop(lines)
    finally:
        ended.set()
        thread.join()


@dataclass(slots=True)
class _Seen:
    """The last progress of a job, and the rate of its stage."""

    progress: Progress
    heard: float
    recent: RecentRate


class Lines:
    """A collector of progress that returns it as lines on request.

    Args:
        clock: a monotonic clock in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: dict[str, _Seen] = {}

    def __call__(self, progress: Progress) -> None:
        """Record the progress of a job."""
        with self._lock:
            seen = self._jobs.get(progress.job_id)
            same = seen is not None and seen.progress.stage == progress.stage
            recent = seen.recent if seen is not None and same else RecentRate(progress.seconds)
            recent.note(progress.seconds, progress.done)
            if seen is not None and not same and progress.stage == OUTERMOST:
                del self._jobs[progress.job_id]  # back at the outermost stage: the commit has ended
            else:
                self._jobs[progress.job_id] = _Seen(progress, self._clock(), recent)

    def take(self) -> list[str]:
        """Return a line for every job that has not ended."""
        with self._lock:
            now = self._clock()
            return [_line(seen, now - seen.heard) for seen in self._jobs.values()]


def _line(seen: _Seen, silent: float) -> str:
    return describe(seen.progress, seen.recent.at(seen.progress.seconds + silent), silent)


def describe(progress: Progress, rate: float, silent: float = 0.0) -> str:
    """Return one line: job, stage, amount done, rate and remaining time.

    Args:
        progress: the last progress of the job.
        rate: items a second in the last seconds.
        silent: seconds since that progress was reported.
    """
    parts = [f"{stage_name(progress.stage)} {_amount(progress)}".rstrip()]
    if progress.done and rate > 0:
        parts.append(show_rate(rate))
        if progress.total is not None and progress.total > progress.done:
            parts.append(f"{show_seconds((progress.total - progress.done) / rate)} left")
    if waiting := progress.waiting:
        parts.append(plain(waiting))
    elif silent >= 2:
        parts.append(f"no progress for {show_seconds(silent)}")
    running = show_seconds(progress.seconds + silent)
    name = f"job {plain(progress.job_id)}, " if progress.job_id else ""
    return f"{name}{running}: {', '.join(parts)}"


def _amount(progress: Progress) -> str:
    if progress.total is None:
        return f"{progress.done:,}" if progress.done else ""
    percent = 100 * progress.done // max(progress.total, 1)
    return f"{progress.done:,} of {progress.total:,} ({percent}%)" if progress.total else ""


def _writer(stream: TextIO) -> Callable[[str], object]:
    def write(line: str) -> None:
        try:
            stream.write(f"asynccommit: {line}\n")
            stream.flush()
        except (OSError, ValueError):
            pass  # the reader is gone, which is no reason to stop a commit

    return write


@contextmanager
def _bars(stream: TextIO) -> Iterator[OnProgress]:
    from rich.console import Console

    from asynccommit.progress.bars import JobBars

    shown = JobBars(Console(file=stream))
    shown.bars.start()
    try:
        yield shown
    finally:
        with suppress(Exception):  # a closed terminal does not fail the commit
            shown.bars.stop()

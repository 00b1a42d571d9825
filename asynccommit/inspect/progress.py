"""Show the progress of a commit on a terminal or in a log.

A terminal gets a bar; anything else a line every few seconds.

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
from typing import TYPE_CHECKING, TextIO

from asynccommit.commit.meter import OUTERMOST, OnProgress, Progress
from asynccommit.inspect.terminal import plain, show_seconds

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

EVERY = 5.0
"""Seconds between lines if there is no terminal."""

STAGES = {
    OUTERMOST: "commit",
    "job_stage_load_manifests": "load manifests",
    "op_prepare_dir_ancestors": "check destinations",
    "job_stage_save_commit_record": "save the plan",
    "job_stage_settle": "check progress",
    "op_rename": "move replaced files aside",
    "job_stage_create_target_dirs": "make directories",
    "job_stage_rename_files": "rename files",
    "job_stage_optional_validate_output": "validate",
    "job_stage_decide_outcome": "decide",
    "job_stage_roll_back": "roll back",
    "job_stage_save_success_marker": "write _SUCCESS",
    "job_stage_cleanup": "clean up",
    "job_stage_abort": "abort",
    "rename_files": "move",
    "move_tree": "move",
    "delete_files": "delete",
    "delete_tree": "delete",
}
"""Hadoop's name of a stage -> the name that is shown."""


def stage_name(stage: str) -> str:
    """Return the name under which a stage is shown."""
    return STAGES.get(stage) or plain(stage).removeprefix("job_stage_").replace("_", " ")


@contextmanager
def console_progress(
    stream: TextIO | None = None, *, every: float = EVERY, quiet: bool = False
) -> Iterator[OnProgress]:
    """Show progress while the block runs; yield the ``on_progress`` callback.

    The callback may be called from any thread, and for several jobs at once. A job that fails is
    shown until the block ends, so give each commit a block of its own.

    Args:
        stream: where to show it; standard error by default.
        every: seconds between two lines if ``stream`` is not a terminal.
        quiet: show nothing.
    """
    stream = sys.stderr if stream is None else stream
    if quiet:
        yield lambda progress: None
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
        yield lines
    finally:
        ended.set()
        thread.join()


@dataclass(slots=True)
class _Seen:
    """The last progress of a job, and when its stage began."""

    progress: Progress
    heard: float
    began: float


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
            began = seen.began if seen is not None and same else progress.seconds
            if seen is not None and not same and progress.stage == OUTERMOST:
                del self._jobs[progress.job_id]  # back at the outermost stage: the commit has ended
            else:
                self._jobs[progress.job_id] = _Seen(progress, self._clock(), began)

    def take(self) -> list[str]:
        """Return a line for every job that has not ended."""
        with self._lock:
            now = self._clock()
            return [describe(s.progress, s.began, now - s.heard) for s in self._jobs.values()]


def describe(progress: Progress, began: float, silent: float = 0.0) -> str:
    """Return one line: job, stage, amount done, rate and remaining time.

    Args:
        progress: the last progress of the job.
        began: when its stage began, in seconds of the job.
        silent: seconds since that progress was reported.
    """
    parts = [f"{stage_name(progress.stage)} {_amount(progress)}".rstrip()]
    taken = progress.seconds - began
    if progress.done and taken > 0:
        rate = progress.done / taken
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
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
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars
    from rich.progress import Task as BarTask
    from rich.text import Text

    class WaitingColumn(ProgressColumn):
        """Text why requests wait, asked whenever the bar is drawn."""

        def render(self, task: BarTask) -> Text:
            return Text(plain(task.fields["progress"].waiting), style="yellow")

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeRemainingColumn(),
        WaitingColumn(),
    )
    bars = Bars(*columns, console=Console(file=stream), transient=True)
    bars.start()
    try:
        yield _Bar(bars)
    finally:
        with suppress(Exception):  # a closed terminal does not fail the commit
            bars.stop()


class _Bar:
    """One bar per job, which restarts with every stage."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._jobs: dict[str, tuple[TaskID, str, float]] = {}

    def __call__(self, progress: Progress) -> None:
        """Show the progress of a job."""
        known = self._jobs.get(progress.job_id)
        if known is not None and known[1] != progress.stage == OUTERMOST:
            self._bars.remove_task(self._jobs.pop(progress.job_id)[0])
            return
        if known is None or known[1] != progress.stage:
            if known is not None:
                self._bars.remove_task(known[0])
            task = self._bars.add_task(
                stage_name(progress.stage), total=None, rate="", progress=progress
            )
            known = self._jobs[progress.job_id] = (task, progress.stage, progress.seconds)
        taken = progress.seconds - known[2]
        rate = f"{progress.done / taken:,.0f}/s" if taken > 0 and progress.done else ""
        self._bars.update(
            known[0],
            completed=progress.done,
            total=progress.total,
            rate=rate,
            progress=progress,
        )

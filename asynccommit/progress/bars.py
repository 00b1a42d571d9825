"""Bars of the jobs under way, drawn by rich."""

from __future__ import annotations

import sys
import threading

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from asynccommit.commit.meter import OUTERMOST, Progress
from asynccommit.progress.recent_rate import RecentRate
from asynccommit.progress.stage_names import stage_name
from asynccommit.runtime.terminal import plain, show_rate, show_seconds

_ENDED = 20
"""Number of ended jobs that keep a line."""


class WaitingColumn(ProgressColumn):
    """Text why requests wait, asked whenever the bar is drawn."""

    def render(self, task: Task) -> Text:
        """Return the text of a bar."""
        return Text(plain(task.fields["progress"].waiting), style="yellow")


class JobBars:
    """One bar for each job, which restarts with every stage; any thread may call it.

    Args:
        console: where the bars are drawn, if they draw themselves.

    Attributes:
        bars: the bars of rich.
    """

    def __init__(self, console: Console | None = None) -> None:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}", markup=False),
            TextColumn("{task.fields[left]}", markup=False),
            WaitingColumn(),
        )
        # Rich would print to the terminal what the program writes to a file by standard output.
        shared = sys.stdout is not None and sys.stdout.isatty()
        self.bars = Bars(*columns, console=console, transient=True, redirect_stdout=shared)
        self._lock = threading.Lock()
        self._jobs: dict[str, tuple[TaskID, str, RecentRate]] = {}
        self._ended: list[str] = []

    def __call__(self, progress: Progress) -> None:
        """Show the progress of a job."""
        with self._lock:
            bar = self._jobs.get(progress.job_id)
            if bar is not None and bar[1] != progress.stage == OUTERMOST:
                self._end(progress)
                return
            if bar is None or bar[1] != progress.stage:
                bar = self._begin(progress, bar)
            self._update(progress, bar)

    def table(self) -> Table:
        """Return the bars, and a line for each job that has ended."""
        with self._lock:
            table = Table.grid()
            for line in self._ended:
                table.add_row(Text(line))
            if self.bars.tasks:
                table.add_row(self.bars.make_tasks_table(self.bars.tasks))
            return table

    def _begin(
        self, progress: Progress, bar: tuple[TaskID, str, RecentRate] | None
    ) -> tuple[TaskID, str, RecentRate]:
        if bar is not None:
            self.bars.remove_task(bar[0])
        task = self.bars.add_task(
            stage_name(progress.stage), total=None, rate="", left="", progress=progress
        )
        found = self._jobs[progress.job_id] = (task, progress.stage, RecentRate(progress.seconds))
        return found

    def _update(self, progress: Progress, bar: tuple[TaskID, str, RecentRate]) -> None:
        task, _, recent = bar
        recent.note(progress.seconds, progress.done)
        rate = recent.at(progress.seconds)
        left = (progress.total or 0) - progress.done
        self.bars.update(
            task,
            completed=progress.done,
            total=progress.total,
            rate=show_rate(rate) if rate else "",
            left=f"{show_seconds(left / rate)} left" if rate and left > 0 else "",
            progress=progress,
        )

    def _end(self, progress: Progress) -> None:
        """Replace the bar of a job whose commit is back in its outermost stage."""
        self.bars.remove_task(self._jobs.pop(progress.job_id)[0])
        took = show_seconds(progress.seconds)
        name = f"job {plain(progress.job_id)}" if progress.job_id else "done"
        self._ended = [*self._ended, f"{name}: finished in {took}"][-_ENDED:]

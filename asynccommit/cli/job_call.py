"""Read a command's options, find its job, and run a step on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import typer

from asynccommit.api import StorageOptions
from asynccommit.cli.arguments import destination, read_options, store_options
from asynccommit.cli.confirm import confirm, is_asked
from asynccommit.cli.find_job import RequestedJob, explained, find
from asynccommit.cli.output import Exit, Output
from asynccommit.cli.signals import stoppable
from asynccommit.commit.meter import OnProgress
from asynccommit.commit.registry import Committer
from asynccommit.inspect.discovery import FoundJob, open_layout
from asynccommit.inspect.dry_run import PlannedEffect, what_goes, what_is_left
from asynccommit.inspect.text import abort_report, what_would_go, would_do
from asynccommit.options.job import Options
from asynccommit.progress.console import console_progress
from asynccommit.results import AbortReport, JobReport
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.urls import Address

R = TypeVar("R", JobReport, AbortReport)


@dataclass(frozen=True, slots=True)
class JobCall:
    """The command line of a command on one job.

    Attributes:
        words: the command and the flags that a message repeats.
        dest: the destination.
        options: of the commit.
        storage: options of the store.
        output: where results go.
        committer: its name, if it is given.
    """

    words: tuple[str, ...]
    dest: Address
    options: Options
    storage: StorageOptions
    output: Output
    committer: str | None = None

    def find(
        self,
        job_id: str | None,
        attempt: int | None,
        wanted: Callable[[FoundJob], bool] = lambda job: True,
    ) -> FoundJob:
        """Return the job; of several, the one that ``wanted`` accepts.

        See ``find_job.find``.
        """
        verb, *flags = self.words
        requested = RequestedJob(
            verb, self.dest, job_id, attempt, tuple(flags), self.options, self.committer
        )
        return find(requested, self.output, self.storage, wanted)

    def run(self, job: FoundJob, step: Callable[[Committer, OnProgress], Awaitable[R]]) -> R:
        """Run a step on the committer of a job until it ends or a signal stops it."""
        shown = console_progress(quiet=self.output.quiet)
        with stoppable(job.layout, self.storage), shown as on_progress:
            report: R = submit(self._run(job, lambda committer: step(committer, on_progress)))
        for warning in report.warnings:
            self.output.warn(warning)
        return report

    async def _run(self, job: FoundJob, step: Callable[[Committer], Awaitable[R]]) -> R:
        # The layout implies the committer, except that a commit chooses between file_v1 and v2.
        named = self.committer if self.words[0] == "commit" else None
        async with open_layout(job.layout, self.options, self.storage, named) as committer:
            with explained(job, *self.words):
                return await step(committer)

    def roll_back(self, job: FoundJob, *, force: bool) -> None:
        """Roll back a commit, and show the result."""
        self.show_abort(
            self.run(
                job,
                lambda committer, on_progress: committer.rollback_job(
                    force=force, on_progress=on_progress
                ),
            )
        )

    def show_abort(self, report: AbortReport) -> None:
        """Show the result of an abort or rollback; exit with 3 if it was refused."""
        self.output.result(report.to_json(), abort_report(report))
        if report.kept:
            raise typer.Exit(int(Exit.REFUSED))

    def preview_abort(self, job: FoundJob, *, rollback: bool, force: bool) -> None:
        """Show what an abort or rollback would do."""
        self.preview(job, submit(what_goes(job, self.storage, rollback=rollback, force=force)))

    def confirm_abort(self, job: FoundJob, *, rollback: bool, force: bool, yes: bool) -> None:
        """Ask a person on a terminal whether to abort a job or to roll it back."""
        if is_asked(self.output, yes=yes):
            going = submit(what_goes(job, self.storage, rollback=rollback, force=force))
            self._confirm(job, going, "Roll it back" if rollback else "Delete it")

    def confirm_takeover(self, job: FoundJob, *, yes: bool) -> None:
        """Ask a person on a terminal whether to take a commit from its owner."""
        if is_asked(self.output, yes=yes):
            self._confirm(job, submit(what_is_left(job, self.storage)), "Take it over")

    def _confirm(self, job: FoundJob, going: PlannedEffect, question: str) -> None:
        # Otherwise the command says why it changes nothing.
        if not going.refused and going.view is not None:
            confirm(self.output, would_do(going, job.name), question)

    def preview(self, job: FoundJob, going: PlannedEffect) -> None:
        """Show what the command would do; exit with 3 if it would be refused."""
        self.output.result(going.to_json(), what_would_go(going, job.name))
        if going.refused:
            raise typer.Exit(int(Exit.REFUSED))


def read_call(
    words: Sequence[str],
    url: str,
    given: tuple[Sequence[str] | None, Sequence[str] | None],
    output: Output,
    *,
    outside: bool = False,
    committer: str | None = None,
) -> JobCall:
    """Read the command line of a command on one job.

    Args:
        words: the command and the flags that a message repeats.
        url: the destination.
        given: the values of ``-o`` and of ``-s``.
        output: receives warnings.
        outside: the value of ``--outside``.
        committer: the value of ``--committer``.

    Raises:
        OptionError: an option is invalid.
        UrlError: the URL is invalid.
    """
    options = read_options(given[0], output, outside=outside)
    dest, storage = destination(url), store_options(given[1])
    return JobCall(tuple(words), dest, options, storage, output, committer)

"""``asynccommit abort``."""

from __future__ import annotations

from typing import Annotated

import typer

from asynccommit.api import StorageOptions
from asynccommit.cli.arguments import (
    Attempt,
    CommitterName,
    Debug,
    DryRun,
    JobId,
    Json,
    Option,
    Outside,
    Quiet,
    Storage,
    Url,
    destination,
    pairs,
    read_options,
)
from asynccommit.cli.find_job import Meant, explained, find
from asynccommit.cli.output import Exit, Output, handled
from asynccommit.cli.signals import stoppable
from asynccommit.commit.context import OnProgress
from asynccommit.inspect.discovery import FoundJob, open_layout
from asynccommit.inspect.dry_run import what_goes
from asynccommit.inspect.progress import console_progress
from asynccommit.inspect.text import abort_report, what_would_go
from asynccommit.options.job import Options
from asynccommit.results import AbortReport
from asynccommit.runtime.loop_thread import submit


def abort(
    url: Url,
    job_id: JobId = None,
    attempt: Attempt = None,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Roll back a commit that has begun.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Proceed even if the job or the owner of its commit may be alive."
        ),
    ] = False,
    dry_run: DryRun = False,
    outside: Outside = False,
    committer: CommitterName = None,
    option: Option = None,
    storage_option: Storage = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Delete what a job left, or roll back a commit that has begun.

    Refused while the job may be alive, and once its commit has begun. With
    --rollback the commit is undone: the files it published are removed and
    the files it replaced are restored. A rollback is refused while the owner
    of the commit may be alive, and once the job is committed.
    """
    output = Output(json, quiet, debug)
    with handled(output):
        options = read_options(option, output, outside=outside)
        dest, storage = destination(url), pairs("-s", storage_option)
        words = ("--rollback",) * rollback
        meant = Meant("abort", dest, job_id, attempt, words, options, committer)
        job = find(meant, output, storage, lambda job: job.begun or not rollback)
        if dry_run:
            tell_what_goes(job, storage, output, rollback=rollback, force=force)
            return
        if rollback:  # of what seems not to have begun, too: it may be committed and half deleted
            roll_back(job, options, storage, output, force=force)
            return
        with stoppable(job.layout, storage):
            report = submit(_abort(job, options, storage, force=force))
        for warning in report.warnings:
            output.warn(warning)
        _say(report, output)


def tell_what_goes(
    job: FoundJob, storage: StorageOptions, output: Output, *, rollback: bool, force: bool
) -> None:
    """Say what would be done; ends as the verb would, if that is refused."""
    going = submit(what_goes(job, storage, rollback=rollback, force=force))
    output.result(going.to_json(), what_would_go(going, job.name))
    if going.refused:
        raise typer.Exit(int(Exit.REFUSED))


def roll_back(
    job: FoundJob,
    options: Options,
    storage: StorageOptions,
    output: Output,
    *,
    force: bool = False,
) -> None:
    """Undo a job's commit and say what was done."""
    shown = console_progress(quiet=output.quiet)
    with stoppable(job.layout, storage), shown as on_progress:
        report = submit(_roll_back(job, options, storage, on_progress, force=force))
    for warning in report.warnings:
        output.warn(warning)
    _say(report, output)


def _say(report: AbortReport, output: Output) -> None:
    output.result(report.to_json(), abort_report(report))
    if report.kept:
        raise typer.Exit(int(Exit.REFUSED))


async def _roll_back(
    job: FoundJob,
    options: Options,
    storage: StorageOptions,
    on_progress: OnProgress,
    *,
    force: bool,
) -> AbortReport:
    async with open_layout(job.layout, options, storage) as committer:
        words = ("takeover", "--rollback") if force else ("abort", "--rollback")
        with explained(job, *words):
            return await committer.rollback_job(force=force, on_progress=on_progress)


async def _abort(
    job: FoundJob, options: Options, storage: StorageOptions, *, force: bool
) -> AbortReport:
    async with open_layout(job.layout, options, storage) as committer:
        return await committer.abort_job("asynccommit abort", careful=not force)

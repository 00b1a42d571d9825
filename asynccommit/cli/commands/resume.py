"""``asynccommit resume`` and ``asynccommit takeover``: a commit that was cut short goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from asynccommit.api import StorageOptions
from asynccommit.cli.arguments import (
    Attempt,
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
from asynccommit.cli.commands.abort import roll_back, tell_what_goes
from asynccommit.cli.find_job import Meant, explained, find
from asynccommit.cli.output import Exit, Output, handled
from asynccommit.cli.signals import stoppable
from asynccommit.commit.context import OnProgress
from asynccommit.commit.hints import job_command
from asynccommit.errors import PreflightError
from asynccommit.inspect.discovery import FoundJob, open_layout
from asynccommit.inspect.dry_run import what_is_left
from asynccommit.inspect.progress import console_progress
from asynccommit.inspect.text import job_report, what_would_go
from asynccommit.options.job import Options
from asynccommit.results import JobReport
from asynccommit.runtime.loop_thread import submit


def resume(
    url: Url,
    job_id: JobId = None,
    attempt: Attempt = None,
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt", help="Finish a commit of Hadoop's own committer, which keeps no record."
        ),
    ] = False,
    outside: Outside = False,
    option: Option = None,
    storage_option: Storage = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Finish a commit that was interrupted.

    The original decision stands: an interrupted commit is completed, and an
    interrupted rollback is completed as a rollback. Refused while the process
    that owns the commit may be alive.
    """
    output = Output(json, quiet, debug)
    with handled(output):
        options = read_options(option, output, outside=outside)
        dest, storage = destination(url), pairs("-s", storage_option)
        meant = Meant("resume", dest, job_id, attempt, ("--adopt",) * adopt, options)
        job = find(meant, output, storage, lambda job: adopt is not job.begun)
        go_on(job, Call(options, storage, output, adopt=adopt))


def takeover(
    url: Url,
    job_id: JobId = None,
    attempt: Attempt = None,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Roll the commit back instead of finishing it.")
    ] = False,
    dry_run: DryRun = False,
    outside: Outside = False,
    option: Option = None,
    storage_option: Storage = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Take over a commit whose owner is dead before its lease expires.

    Finishes the commit, or rolls it back with --rollback. If the previous
    owner is alive after all, it can make no further changes and stops.
    """
    output = Output(json, quiet, debug)
    with handled(output):
        options = read_options(option, output, outside=outside)
        dest, storage = destination(url), pairs("-s", storage_option)
        meant = Meant("takeover", dest, job_id, attempt, ("--rollback",) * rollback, options)
        job = find(meant, output, storage, lambda job: job.begun)
        if dry_run and rollback:
            tell_what_goes(job, storage, output, rollback=True, force=True)
        elif dry_run:
            tell_resume(job, storage, output)
        elif rollback:
            refuse_not_begun(job)
            roll_back(job, options, storage, output, force=True)
        else:
            go_on(job, Call(options, storage, output, force=True))


@dataclass(frozen=True, slots=True)
class Call:
    """How a commit is resumed."""

    options: Options
    storage: StorageOptions
    output: Output
    adopt: bool = False
    force: bool = False


def go_on(job: FoundJob, call: Call) -> None:
    """Resume a job's commit and say what was done."""
    if not call.adopt:
        refuse_not_begun(job)
    shown = console_progress(quiet=call.output.quiet)
    with stoppable(job.layout, call.storage), shown as on_progress:
        report = submit(_resume(job, call, on_progress))
    for warning in report.warnings:
        call.output.warn(warning)
    call.output.result(report.to_json(), job_report(report))


def tell_resume(job: FoundJob, storage: StorageOptions, output: Output) -> None:
    """Say what going on with the commit would do."""
    refuse_not_begun(job)
    going = submit(what_is_left(job, storage))
    output.result(going.to_json(), what_would_go(going, job.name))
    if going.refused:
        raise typer.Exit(int(Exit.REFUSED))


def refuse_not_begun(job: FoundJob) -> None:
    """Raise ``PreflightError`` for a job whose commit has not begun."""
    if not job.present or job.begun or job.ended:
        return
    text = (
        "its commit has not begun, so there is nothing to resume or undo (a commit of Hadoop's "
        "own, which says nowhere that it has begun, is resumed with --adopt). To commit it: "
        f"{job_command('commit', job.layout, '--tasks', str(job.manifests))}"
    )
    raise PreflightError(job.layout.job_id, "job_stage_load_manifests", (), text)


async def _resume(job: FoundJob, call: Call, on_progress: OnProgress) -> JobReport:
    async with open_layout(job.layout, call.options, call.storage) as committer:
        with explained(job, "takeover" if call.force else "resume"):
            return await committer.resume_job(
                force=call.force, adopt=call.adopt, on_progress=on_progress
            )

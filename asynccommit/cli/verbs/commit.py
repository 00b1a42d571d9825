"""``asynccommit commit``."""

from __future__ import annotations

from typing import Annotated

import typer

from asynccommit.api import StorageOptions
from asynccommit.cli.arguments import (
    Attempt,
    Debug,
    JobId,
    Json,
    Option,
    Quiet,
    Storage,
    Url,
    destination,
    pairs,
    read_options,
)
from asynccommit.cli.finding import Meant, explained, find
from asynccommit.cli.output import Output, handled
from asynccommit.cli.signals import stoppable
from asynccommit.commands import job_command
from asynccommit.engine import submit
from asynccommit.errors import OptionError, PreflightError
from asynccommit.options import Mode, OnUnfinished, Options
from asynccommit.report.jobs import FoundJob, open_layout
from asynccommit.report.plain import count_of
from asynccommit.report.progress import console_progress
from asynccommit.report.text import job_report
from asynccommit.results import JobReport
from asynccommit.stages.run import OnProgress


def commit(
    url: Url,
    job_id: JobId = None,
    attempt: Attempt = None,
    tasks: Annotated[
        int | None, typer.Option(min=0, help="How many tasks must have committed.")
    ] = None,
    trust_manifests: Annotated[
        bool, typer.Option("--trust-manifests", help="Commit whatever tasks have committed.")
    ] = False,
    mode: Annotated[
        Mode, typer.Option(help="What becomes of what the destination holds.")
    ] = Mode.APPEND,
    option: Option = None,
    storage_option: Storage = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Commit a job whose tasks have committed: make their files visible.

    The tasks' commit messages are not at hand here, so say with --tasks how many there must be,
    or that every manifest which is there is to be trusted. A commit that has begun is not begun
    again: see resume.
    """
    output = Output(json, quiet, debug)
    with handled(output):
        if tasks is None and not trust_manifests and not dry_run:
            raise OptionError("say --tasks N, the number of tasks that ran, or --trust-manifests")
        options, dest = read_options(option, output), destination(url)
        storage = pairs("-s", storage_option)
        job = find(Meant("commit", dest, job_id, attempt, options=options), output, storage)
        _check(job, tasks)
        report = _run(job, options, storage, mode, quiet=quiet, dry_run=dry_run)
        for warning in report.warnings:
            output.warn(warning)
        value = {"dry_run": dry_run, **report.to_json()}
        output.result(value, job_report(report, dry_run=dry_run))


def _check(job: FoundJob, tasks: int | None) -> None:
    """Refuse what only the commit messages of the tasks, which are not here, could settle."""
    problem, remedy = "", ""
    if job.begun:
        problem = "a commit of it has begun already"
        remedy = f". To finish it: {job_command('resume', job.layout)}"
    elif job.staged:
        problem = (
            "its tasks staged files for places outside of the destination, and only their commit "
            "messages say where: run it again, or commit it from the program that ran it"
        )
    elif tasks is not None and job.present and tasks != job.manifests:
        problem = f"{count_of(job.manifests, 'task')} committed, and --tasks says {tasks:,}"
        remedy = f". To look: {job_command('commit', job.layout, '--dry-run')}"
    if problem:
        text = f"{problem}. Nothing under {job.layout.dest} was changed{remedy}"
        raise PreflightError(job.layout.job_id, "job_stage_load_manifests", (), text)


def _run(
    job: FoundJob,
    options: Options,
    storage: StorageOptions,
    mode: Mode,
    *,
    quiet: bool,
    dry_run: bool,
) -> JobReport:
    with stoppable(job.layout, storage), console_progress(quiet=quiet) as on_progress:
        return submit(_commit(job, options, storage, mode, on_progress, dry_run=dry_run))


async def _commit(
    job: FoundJob,
    options: Options,
    storage: StorageOptions,
    mode: Mode,
    on_progress: OnProgress,
    *,
    dry_run: bool,
) -> JobReport:
    async with open_layout(job.layout, options, storage) as committer:
        with explained(job, "commit"):
            if not dry_run or options.on_unfinished is OnUnfinished.REFUSE:
                await committer.check_job(mode=mode)
            if dry_run:
                return await committer.plan_job(mode=mode)
            return await committer.commit_job(mode=mode, on_progress=on_progress)

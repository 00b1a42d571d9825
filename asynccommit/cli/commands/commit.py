"""``asynccommit commit``."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from asynccommit.cli.arguments import (
    Attempt,
    CommitterName,
    Debug,
    DryRun,
    JobId,
    Json,
    Option,
    Quiet,
    Storage,
    Url,
)
from asynccommit.cli.job_call import read_call
from asynccommit.cli.output import Output, handled
from asynccommit.commit.by_rename.file_output_v2 import CommitterWarning
from asynccommit.commit.context import OnProgress
from asynccommit.commit.hints import job_command
from asynccommit.commit.registry import Committer
from asynccommit.errors import OptionError, PreflightError
from asynccommit.inspect.discovery import FoundJob
from asynccommit.inspect.terminal import count_of
from asynccommit.inspect.text import job_report
from asynccommit.options.job import Mode, OnUnfinished, Options
from asynccommit.results import JobReport


def commit(
    url: Url,
    job_id: JobId = None,
    attempt: Attempt = None,
    tasks: Annotated[
        int | None, typer.Option(min=0, help="Number of tasks that must have committed.")
    ] = None,
    trust_manifests: Annotated[
        bool, typer.Option("--trust-manifests", help="Commit whichever tasks have committed.")
    ] = False,
    mode: Annotated[
        Mode, typer.Option(help="What happens to the files already in the destination.")
    ] = Mode.APPEND,
    committer: CommitterName = None,
    option: Option = None,
    storage_option: Storage = None,
    dry_run: DryRun = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Commit a job: make the files of its committed tasks visible.

    The command line has no commit messages from the tasks. Give the number of
    tasks with --tasks, or accept every manifest with --trust-manifests. Use
    `resume` for a commit that has already begun.
    """
    output = Output(json, quiet, debug)
    with handled(output):
        if tasks is None and not trust_manifests and not dry_run:
            raise OptionError(
                "expected --tasks N, the number of tasks that ran, or --trust-manifests"
            )
        call = read_call(["commit"], url, (option, storage_option), output, committer=committer)
        job = call.find(job_id, attempt)
        _check(job, tasks)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CommitterWarning)  # the report says it
            report = call.run(job, _step(mode, call.options, dry_run=dry_run))
        value = {"dry_run": dry_run, **report.to_json()}
        output.result(value, job_report(report, dry_run=dry_run))


def _step(
    mode: Mode, options: Options, *, dry_run: bool
) -> Callable[[Committer, OnProgress], Awaitable[JobReport]]:
    """Return what is run on the committer: the commit, or the plan of it."""

    async def run(committer: Committer, on_progress: OnProgress) -> JobReport:
        if not dry_run or options.on_unfinished is OnUnfinished.REFUSE:
            await committer.check_job(mode=mode)
        if dry_run:
            return await committer.plan_job(mode=mode)
        return await committer.commit_job(mode=mode, on_progress=on_progress)

    return run


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

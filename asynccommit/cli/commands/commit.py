"""``asynccommit commit``."""

from __future__ import annotations

import warnings
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
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
    Quiet,
    Storage,
    Url,
    destination,
    pairs,
    read_options,
)
from asynccommit.cli.find_job import Meant, explained, find
from asynccommit.cli.output import Output, handled
from asynccommit.cli.signals import stoppable
from asynccommit.commit.by_rename.file_output_v2 import CommitterWarning
from asynccommit.commit.context import OnProgress
from asynccommit.commit.hints import job_command
from asynccommit.commit.registry import Committer
from asynccommit.errors import OptionError, PreflightError
from asynccommit.inspect.discovery import FoundJob, open_layout
from asynccommit.inspect.progress import console_progress
from asynccommit.inspect.terminal import count_of
from asynccommit.inspect.text import job_report
from asynccommit.options.job import Mode, OnUnfinished
from asynccommit.results import JobReport
from asynccommit.runtime.loop_thread import submit


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be done: how, whether at all, and whether setup is asked before."""

    mode: Mode
    dry_run: bool
    checked: bool


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
            raise OptionError("say --tasks N, the number of tasks that ran, or --trust-manifests")
        options, dest = read_options(option, output), destination(url)
        storage = pairs("-s", storage_option)
        meant = Meant("commit", dest, job_id, attempt, options=options, committer=committer)
        job = find(meant, output, storage)
        _check(job, tasks)
        opened = open_layout(job.layout, options, storage, committer)
        checked = not dry_run or options.on_unfinished is OnUnfinished.REFUSE
        report = _run(job, opened, _Wanted(mode, dry_run, checked), storage, quiet=quiet)
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
    opened: AbstractAsyncContextManager[Committer],
    wanted: _Wanted,
    storage: StorageOptions,
    *,
    quiet: bool,
) -> JobReport:
    with (
        warnings.catch_warnings(),
        stoppable(job.layout, storage),
        console_progress(quiet=quiet) as on_progress,
    ):
        warnings.simplefilter("ignore", CommitterWarning)  # the report says it
        return submit(_commit(job, opened, wanted, on_progress))


async def _commit(
    job: FoundJob,
    opened: AbstractAsyncContextManager[Committer],
    wanted: _Wanted,
    on_progress: OnProgress,
) -> JobReport:
    async with opened as committer:
        with explained(job, "commit"):
            if wanted.checked:
                await committer.check_job(mode=wanted.mode)
            if wanted.dry_run:
                return await committer.plan_job(mode=wanted.mode)
            return await committer.commit_job(mode=wanted.mode, on_progress=on_progress)

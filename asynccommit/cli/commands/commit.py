"""``asynccommit commit``."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from asynccommit.cli.arguments import (
    Attempt,
    CommitterName,
    DryRun,
    JobId,
    Option,
    Storage,
    Url,
    reporting,
)
from asynccommit.cli.job_call import read_call
from asynccommit.cli.output import Output
from asynccommit.commit.errors import CommitterWarning
from asynccommit.commit.hints import job_command
from asynccommit.commit.meter import OnProgress
from asynccommit.commit.registry import Committer
from asynccommit.errors import OptionError, PreflightError
from asynccommit.inspect.discovery import FoundJob
from asynccommit.inspect.text import job_report
from asynccommit.options.job import Mode, OnUnfinished, Options
from asynccommit.results import JobReport
from asynccommit.runtime.terminal import count_of


def _modes() -> list[str]:
    return ["append", "error", "overwrite", Mode.REPLACE_PARTITIONS]


@reporting
def commit(
    output: Output,
    url: Url,
    job_id: JobId = None,
    attempt: Attempt = None,
    tasks: Annotated[
        int | None,
        typer.Option(min=0, metavar="NUMBER", help="Number of tasks that must have committed."),
    ] = None,
    trust_manifests: Annotated[
        bool, typer.Option("--trust-manifests", help="Commit whichever tasks have committed.")
    ] = False,
    mode: Annotated[
        str,
        typer.Option(
            metavar="MODE",
            help="Treatment of files already in the destination: append, error, overwrite or "
            "replace_partitions.",
            autocompletion=_modes,
        ),
    ] = Mode.APPEND.value,
    committer: CommitterName = None,
    option: Option = None,
    storage_option: Storage = None,
    dry_run: DryRun = False,
) -> None:
    """Commit a job: make the files of its committed tasks visible.

    The command line has no commit messages from the tasks. Give the number of
    tasks with --tasks, or accept every manifest with --trust-manifests. Use
    `resume` for a commit that has already begun.
    """
    if tasks is None and not trust_manifests and not dry_run:
        raise OptionError("expected --tasks N, the number of tasks that ran, or --trust-manifests")
    chosen = Mode.of(mode)
    call = read_call(["commit"], url, (option, storage_option), output, committer=committer)
    job = call.find(job_id, attempt)
    _check(job, tasks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommitterWarning)  # the report says it
        report = call.run(job, _step(chosen, call.options, dry_run=dry_run))
    value = {"dry_run": dry_run, **report.to_json()}
    output.result(value, job_report(report))


def _step(
    mode: Mode, options: Options, *, dry_run: bool
) -> Callable[[Committer, OnProgress], Awaitable[JobReport]]:
    """Return the call on the committer: the commit, or its dry run."""

    async def run(committer: Committer, on_progress: OnProgress) -> JobReport:
        if not dry_run or options.on_unfinished is OnUnfinished.REFUSE:
            await committer.check_job(mode=mode, looking=dry_run)
        if dry_run:
            return await committer.plan_job(mode=mode)
        return await committer.commit_job(mode=mode, on_progress=on_progress)

    return run


def _check(job: FoundJob, tasks: int | None) -> None:
    """Refuse a job that only its tasks' commit messages could settle."""
    problem, remedy = "", ""
    if job.begun:
        problem = "its commit has already begun"
        remedy = f". To finish it: {job_command('resume', job.layout)}"
    elif job.staged:
        problem = (
            "its tasks staged files for places outside the destination, which only their commit "
            "messages name: run it again, or commit it from the program that ran it"
        )
    elif tasks is not None and job.present and tasks != job.manifests:
        problem = f"{count_of(job.manifests, 'task')} committed, but --tasks is {tasks:,}"
        remedy = f". To inspect it: {job_command('commit', job.layout, '--dry-run')}"
    if problem:
        text = f"{problem}. Nothing under {job.layout.dest} was changed{remedy}"
        raise PreflightError(job.layout.job_id, "job_stage_load_manifests", (), text)

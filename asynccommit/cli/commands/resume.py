"""``asynccommit resume`` and ``takeover``: finish a commit."""

from __future__ import annotations

from typing import Annotated

import typer

from asynccommit.cli.arguments import (
    Attempt,
    DryRun,
    JobId,
    NotAsked,
    Option,
    Outside,
    Storage,
    Url,
    reporting,
)
from asynccommit.cli.job_call import JobCall, read_call
from asynccommit.cli.output import Output
from asynccommit.commit.hints import job_command
from asynccommit.errors import PreflightError
from asynccommit.inspect.discovery import FoundJob
from asynccommit.inspect.dry_run import what_is_left
from asynccommit.inspect.text import job_report
from asynccommit.runtime.loop_thread import submit


@reporting
def resume(
    output: Output,
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
) -> None:
    """Finish a commit that was interrupted.

    The original decision stands: an interrupted commit is completed, and an
    interrupted rollback is completed as a rollback. Refused while the process
    that owns the commit may be alive.
    """
    words = ["resume"] + ["--adopt"] * adopt
    call = read_call(words, url, (option, storage_option), output, outside=outside)
    job = call.find(job_id, attempt, lambda job: adopt is not job.begun)
    if not adopt:
        _refuse_not_begun(job)
    _finish(call, job, adopt=adopt)


@reporting
def takeover(
    output: Output,
    url: Url,
    job_id: JobId = None,
    attempt: Attempt = None,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Roll the commit back instead of finishing it.")
    ] = False,
    dry_run: DryRun = False,
    unasked: NotAsked = False,
    outside: Outside = False,
    option: Option = None,
    storage_option: Storage = None,
) -> None:
    """Take over a commit whose owner is dead before its lease expires.

    Finishes the commit, or rolls it back with --rollback. If the previous
    owner is alive after all, it can make no further changes and stops.
    Asks on a terminal, unless --yes is given.
    """
    words = ["takeover"] + ["--rollback"] * rollback
    call = read_call(words, url, (option, storage_option), output, outside=outside)
    job = call.find(job_id, attempt, lambda job: job.begun)
    if dry_run and rollback:
        call.preview_abort(job, rollback=True, force=True)
        return
    _refuse_not_begun(job)
    if dry_run:
        call.preview(job, submit(what_is_left(job, call.storage)))
    elif rollback:
        call.confirm_abort(job, rollback=True, force=True, yes=unasked)
        call.roll_back(job, force=True)
    else:
        call.confirm_takeover(job, yes=unasked)
        _finish(call, job, force=True)


def _finish(call: JobCall, job: FoundJob, *, force: bool = False, adopt: bool = False) -> None:
    """Finish a commit, and show the result."""
    report = call.run(
        job,
        lambda committer, on_progress: committer.resume_job(
            force=force, adopt=adopt, on_progress=on_progress
        ),
    )
    call.output.result(report.to_json(), job_report(report))


def _refuse_not_begun(job: FoundJob) -> None:
    """Raise ``PreflightError`` for a job whose commit has not begun."""
    if not job.present or job.begun or job.ended:
        return
    text = (
        "its commit has not begun, so there is nothing to resume or roll back (a commit "
        "of Hadoop's own, which keeps no record, is resumed with --adopt). To commit it: "
        f"{job_command('commit', job.layout, '--tasks', str(job.manifests))}"
    )
    raise PreflightError(job.layout.job_id, "job_stage_load_manifests", (), text)

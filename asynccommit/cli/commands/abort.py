"""``asynccommit abort``."""

from __future__ import annotations

from typing import Annotated

import typer

from asynccommit.cli.arguments import (
    Attempt,
    CommitterName,
    DryRun,
    JobId,
    NotAsked,
    Option,
    Outside,
    Storage,
    Url,
    reporting,
)
from asynccommit.cli.job_call import read_call
from asynccommit.cli.output import Output


@reporting
def abort(
    output: Output,
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
    unasked: NotAsked = False,
    outside: Outside = False,
    committer: CommitterName = None,
    option: Option = None,
    storage_option: Storage = None,
) -> None:
    """Delete what a job left, or roll back a commit that has begun.

    Refused while the job may be alive, and once its commit has begun. With
    --rollback the commit is reverted: the files it published are removed and
    the files it replaced are restored. A rollback is refused while the owner
    of the commit may be alive, and once the job is committed. Asks on a
    terminal, unless --yes is given.
    """
    # A message that follows a forced rollback names the command that forces it.
    words = ["takeover" if rollback and force and not dry_run else "abort"]
    words += ["--rollback"] * rollback
    given = (option, storage_option)
    call = read_call(words, url, given, output, outside=outside, committer=committer)
    job = call.find(job_id, attempt, lambda job: job.begun or not rollback)
    if dry_run:
        call.preview_abort(job, rollback=rollback, force=force)
        return
    call.confirm_abort(job, rollback=rollback, force=force, yes=unasked)
    if rollback:  # also a job that seems not to have begun: it may be committed, half deleted
        call.roll_back(job, force=force)
    else:
        report = call.run(
            job,
            lambda committer, _: committer.abort_job("asynccommit abort", careful=not force),
        )
        call.show_abort(report)

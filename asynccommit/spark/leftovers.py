"""Clear a table that a killed driver left empty.

In its default mode, Spark refuses to write to an existing directory, and checks that before it
calls a commit protocol. The leftovers of such a job are cleared when the next job is made.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from asynccommit.commit.hints import command
from asynccommit.commit.registry import Committer
from asynccommit.errors import UnfinishedError
from asynccommit.results import JobState, JobStatus
from asynccommit.stores.tree import is_there

Opened = AbstractAsyncContextManager[Committer]


async def clear(committer: Committer, open_job: Callable[[JobStatus], Opened]) -> None:
    """Abort the jobs that made a destination, if all jobs under it are dead.

    The abort removes the destination if it contains nothing else.

    Args:
        committer: the committer of any job there.
        open_job: opens the committer of another job.

    Raises ``UnfinishedError`` if there is a job that is neither dead nor running, and
    ``CommitError``.
    """
    jobs = await committer.job_statuses()
    layout = committer.layout
    alive = [job for job in jobs if job.state is not JobState.DEAD]
    if alive:
        if any(job.state is JobState.RUNNING for job in alive):
            return
        said = f"job {alive[0].job_id} is {alive[0].state}: {command('status', layout.dest)}"
        raise UnfinishedError(layout.job_id, "job_stage_setup", (), said)
    makers: list[JobStatus] = []
    others: list[JobStatus] = []
    for job in jobs:
        async with open_job(job) as one:
            made = await is_there(one.store, one.layout.made_destination)
        (makers if made else others).append(job)
    for job in [*others, *makers] if makers else []:
        async with open_job(job) as one:
            await one.abort_job("its driver died", careful=True)

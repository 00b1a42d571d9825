"""Find the job that a command is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from asynccommit.api import StorageOptions
from asynccommit.cli.output import Output
from asynccommit.commit.hints import job_command
from asynccommit.commit.layouts.file_output import FileLayout
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.unsupported_committers import is_classic
from asynccommit.errors import CommitError, NotFoundError
from asynccommit.inspect.discovery import FoundJob, choose, find_jobs_at
from asynccommit.inspect.errors import FoundAttempt, NothingThereError, SeveralJobsError
from asynccommit.options.job import Options
from asynccommit.runtime.loop_thread import submit
from asynccommit.runtime.terminal import count_of
from asynccommit.stores.urls import Address

OUTSIDE = "asynccommit.resume.outside"


@dataclass(frozen=True, slots=True)
class RequestedJob:
    """The job that the command line names.

    Attributes:
        verb: the command that will be applied to it.
        dest: the destination.
        job_id: the job, if it is named.
        attempt: the job attempt, if it is named.
        flags: what else stands after the verb.
        options: tell where staging keeps pending sets.
        committer: its name, if it is given: jobs of FileOutputCommitter are found by theirs only.
    """

    verb: str
    dest: Address
    job_id: str | None
    attempt: int | None
    flags: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)
    committer: str | None = None

    @property
    def classic(self) -> bool:
        """Return whether a job of FileOutputCommitter is requested."""
        return self.committer is not None and is_classic(self.committer)


def find(
    requested: RequestedJob,
    output: Output,
    storage: StorageOptions,
    wanted: Callable[[FoundJob], bool] = lambda job: True,
) -> FoundJob:
    """Return the requested job. A job given by its id may have gone.

    Args:
        requested: identifies it.
        output: shows the job that was found.
        storage: options of the store.
        wanted: of several jobs, whether the command is for this one.

    Raises:
        NothingThereError: no job is there, and no id was given.
        SeveralJobsError: the command is for more than one.
    """
    dest, job_id, attempt = requested.dest, requested.job_id, requested.attempt
    found = submit(find_jobs_at(dest, storage, requested.options, job_id))
    try:
        if not requested.classic:
            found = list(_narrowed(found, job_id, wanted))
        job = choose(found, dest, job_id, attempt, classic=requested.classic)
    except SeveralJobsError as error:
        raise SeveralJobsError(error.jobs, f"{error}: {_example(requested, error.jobs)}") from None
    except NothingThereError:
        if job_id is None:
            raise
        if not requested.classic and any(_is_classic(job, job_id) for job in found):
            raise NothingThereError(_classic(job_id, dest)) from None
        return FoundJob((FileLayout if requested.classic else Layout)(dest, job_id, attempt or 0))
    output.note(f"found job {job.name}: {_state(job)}")
    return job


def _state(job: FoundJob) -> str:
    if job.begun:
        return "its commit has begun"
    if job.ended:
        return "its commit has ended"
    return f"{count_of(job.manifests, 'task')} committed"


def _is_classic(job: FoundJob, job_id: str) -> bool:
    return job.classic and job.layout.job_id == job_id


def _classic(job_id: str, dest: Address) -> str:
    return (
        f"job {job_id} under {dest} was written by FileOutputCommitter, and its commit has not "
        "begun: commit or abort it with --committer file_v1"
    )


def _example(requested: RequestedJob, jobs: Sequence[FoundAttempt]) -> str:
    """Return the command for the last of several jobs or attempts."""
    return job_command(requested.verb, jobs[-1].layout, *requested.flags)


@contextmanager
def explained(job: FoundJob, verb: str, *flags: str) -> Iterator[None]:
    """Add the command to type instead to errors of the block.

    Raises ``NothingThereError`` if it fails because the job is not there at all.
    """
    try:
        yield
    except CommitError as error:
        first = next(iter(error.failures), None)
        if not job.present and isinstance(first, NotFoundError):
            text = f"there is no job {job.name} under {job.layout.dest}"
            raise NothingThereError(text) from error
        if OUTSIDE in str(error):
            typed = job_command(verb, job.layout, *flags, "--outside")
            error.summary = f"{error.summary or first}: {typed}"
        raise


def _narrowed(
    found: Sequence[FoundJob], job_id: str | None, wanted: Callable[[FoundJob], bool]
) -> Sequence[FoundJob]:
    """Leave out what the verb is not for, unless that leaves nothing."""
    if job_id is not None:
        return found
    return [job for job in found if not job.classic and wanted(job)] or found

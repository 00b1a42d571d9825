"""The jobs under a destination: how far each is, and what could be done about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from asynccommit.api import StorageOptions
from asynccommit.commands import job_command
from asynccommit.committers.manifest import ManifestCommitter
from asynccommit.errors import AsyncCommitError, CommitError, NotFoundError
from asynccommit.formats.manifest import MAX_MANIFEST_BYTES, SUFFIX, decode_manifest
from asynccommit.host import this_host
from asynccommit.job import Layout
from asynccommit.options import Options
from asynccommit.parallel import for_each, walk
from asynccommit.report.jobs import (
    FoundJob,
    NothingThereError,
    children,
    find_jobs,
    find_rubbish,
    open_place,
)
from asynccommit.report.plain import count_of
from asynccommit.results import JobStatus, State
from asynccommit.stages.load import decode_entries
from asynccommit.store import Store
from asynccommit.urls import Address

_AT_ONCE = 8
"""Jobs looked at at the same time."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What a verb would do to a job, and the command; no command if there is nothing to do."""

    does: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class JobView:
    """One job attempt as ``status`` shows it.

    Attributes:
        status: what is known of it; ``None`` if its record cannot be read.
        layout: its paths.
        age: seconds since its commit began or, if it has not, since its directory changed.
        silent: seconds since the owner's last sign of life.
        problem: why it cannot be told how far it is, ``""`` if it can.
        resume: what a resume would do.
        abort: what an abort would do.
    """

    status: JobStatus | None
    layout: Layout
    age: float | None = None
    silent: float | None = None
    problem: str = ""
    resume: Advice = field(default_factory=lambda: Advice(""))
    abort: Advice = field(default_factory=lambda: Advice(""))

    @property
    def name(self) -> str:
        """The job id, and the attempt if it is not the first."""
        attempt = f", attempt {self.layout.attempt}" if self.layout.attempt else ""
        return self.layout.job_id + attempt

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        named = {"job_id": self.layout.job_id, "attempt": self.layout.attempt}
        return {
            **(named if self.status is None else self.status.to_json()),
            "age": self.age,
            "silent": self.silent,
            "problem": self.problem,
            "resume": {"does": self.resume.does, "command": self.resume.command},
            "abort": {"does": self.abort.does, "command": self.abort.command},
        }


@dataclass(frozen=True, slots=True)
class Situation:
    """What is under a destination.

    Attributes:
        dest: the destination.
        jobs: the job attempts that are or should be dealt with.
        rubbish: directories of jobs that have ended, half deleted: decoded path -> what deletes it.
        classic: ids of jobs of Hadoop's classic committer.
    """

    dest: Address
    jobs: Sequence[JobView] = ()
    rubbish: Mapping[str, str] = field(default_factory=dict)
    classic: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "destination": str(self.dest),
            "jobs": [job.to_json() for job in self.jobs],
            "rubbish": [{"path": path, "command": said} for path, said in self.rubbish.items()],
            "classic": list(self.classic),
        }


async def look_under(dest: Address, storage: StorageOptions = None) -> Situation:
    """Return what is under a destination; changes nothing.

    Raises ``NothingThereError`` if there is no such directory, and ``StoreError``.
    """
    async with open_place(dest, storage) as store:
        try:
            await store.head(dest.path)
        except NotFoundError:
            raise NothingThereError(f"there is nothing at {dest}") from None
        found = await find_jobs(store, dest)
        views: dict[str, JobView] = {}

        async def look(job: FoundJob) -> None:
            views[job.layout.attempt_dir] = await view(store, job)

        ours = [job for job in found if not job.classic]
        await for_each(ours, look, workers=_AT_ONCE)
        return Situation(
            dest,
            [views[job.layout.attempt_dir] for job in ours],
            {
                path: job_command("abort", layout)
                for path, layout in (await find_rubbish(store, dest)).items()
            },
            [job.layout.job_id for job in found if job.classic],
        )


async def view(store: Store, job: FoundJob) -> JobView:
    """Return how far a job is; what cannot be read is a problem, not an error."""
    layout = job.layout
    committer = ManifestCommitter(store, layout, Options(), this_host())
    moved = (0, 0)
    try:
        status = await committer.job_status()
        if status is None and not job.begun:
            status = JobStatus(layout.job_id, layout.attempt, State.RUNNING, tasks=job.manifests)
            moved = await _moved(store, job)
    except AsyncCommitError as error:
        causes = error.failures if isinstance(error, CommitError) else ()
        return JobView(None, layout, problem=str(next(iter(causes), error)))
    if status is None:
        return JobView(None, layout, problem="it has just ended")
    now = this_host().now()
    began = status.started_ms / 1000 or job.modified
    return JobView(
        status,
        layout,
        age=max(now - began, 0.0) if began else None,
        silent=max(now - status.seen_ms / 1000, 0.0) if status.seen_ms else None,
        resume=on_resume(status, layout, *moved),
        abort=on_abort(status, layout, moved[0]),
    )


def on_resume(status: JobStatus, layout: Layout, moved: int = 0, files: int = 0) -> Advice:
    """Return what a resume would do.

    Args:
        status: of the job.
        layout: its paths.
        moved: files of a job without a record that are not where its tasks left them.
        files: all of them, then.
    """
    resume = job_command("resume", layout)
    if status.state is State.RUNNING and moved:
        does = f"adopts it: {moved:,} of {count_of(files, 'file')} are not where tasks left them"
        return Advice(does, job_command("resume", layout, "--adopt"))
    if status.state is State.RUNNING:
        does = "nothing: its commit has not begun. If its program has died, commit or abort it"
        return Advice(does, job_command("commit", layout, "--tasks", str(status.tasks)))
    if status.state is State.COMMITTING:
        does = "refused while its owner lives; takeover does it all the same"
        return Advice(does, job_command("takeover", layout))
    if status.state is State.ROLLING_BACK:
        return Advice("finishes the rollback", resume)
    if status.state is State.COMMITTED:
        return Advice("finishes the clean-up; every file is visible", resume)
    if status.state is State.ENDED:
        return Advice("nothing")
    return Advice(f"moves {_rest(status)} and writes _SUCCESS", resume)


def on_abort(status: JobStatus, layout: Layout, moved: int = 0) -> Advice:
    """Return what an abort would do."""
    rollback = job_command("abort", layout, "--rollback")
    if status.state is State.RUNNING:
        does = f"deletes what {count_of(status.tasks, 'committed task')} and others wrote"
        if moved:
            does += f"; {count_of(moved, 'file')} that another commit moved would stay"
        return Advice(does, job_command("abort", layout))
    if status.state is State.COMMITTING:
        return Advice("keeps everything; with --rollback refused while its owner lives", rollback)
    if status.state is State.ROLLING_BACK:
        return Advice("keeps everything; with --rollback it finishes the rollback", rollback)
    if status.state in (State.COMMITTED, State.ENDED):
        return Advice("nothing: the job is committed")
    back = "what was moved" if status.done is None else count_of(status.done, "file")
    does = f"keeps everything; with --rollback it takes back {back} and restores the rest"
    return Advice(does, rollback)


def _rest(status: JobStatus) -> str:
    if status.done is None:
        return f"what is left of {count_of(status.files, 'file')}"
    return f"the other {status.files - status.done:,} of {count_of(status.files, 'file')}"


async def _moved(store: Store, job: FoundJob) -> tuple[int, int]:
    """Return how many files of manifests are not where tasks left them, and how many there are.

    A commit of ours writes its record first. So without one, somebody else's has begun: Hadoop's.
    """
    infos = await children(store, job.layout.manifests_dir)
    paths = [info.path for info in infos if info.path.endswith(SUFFIX)]
    sources: set[str] = set()

    async def read(path: str) -> None:
        data = await store.get(path, MAX_MANIFEST_BYTES)
        entries, _ = decode_entries(job.layout, decode_manifest(data, job.layout.url(path)))
        sources.update(entry.source for entry in entries)

    await for_each(paths, read, workers=min(store.traits.workers, 32))
    files = len(sources)
    try:
        async for info in walk(store, job.layout.tasks_dir):
            sources.discard(info.path)
    except NotFoundError:
        pass  # all tasks' directories are gone, and so are their files
    return len(sources), files

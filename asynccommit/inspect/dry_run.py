"""Report what an abort, a rollback or a takeover would do to a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from asynccommit.api import StorageOptions
from asynccommit.commit.context import CommitContext, Environment
from asynccommit.commit.driver.own_tasks import own_tasks
from asynccommit.inspect.discovery import FoundJob, open_stores
from asynccommit.inspect.status import JobView, view
from asynccommit.options.job import Options
from asynccommit.results import NOT_BEGUN, JobState
from asynccommit.runtime.host import this_host
from asynccommit.runtime.terminal import count_of
from asynccommit.stores.base import Store
from asynccommit.stores.tree import list_if_there, walk


@dataclass(frozen=True, slots=True)
class AffectedDirectory:
    """A directory or file of a job, with its number of files and bytes."""

    path: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PlannedEffect:
    """The effect that a verb would have.

    Attributes:
        view: how far the job is; ``None`` if nothing is left of it.
        does: what would be done.
        refused: whether the verb, as given, would be refused.
        places: the content of the job's own directories, all of which would be deleted in the end.
    """

    view: JobView | None
    does: str
    refused: bool = False
    places: Sequence[AffectedDirectory] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "dry_run": True,
            "does": self.does,
            "refused": self.refused,
            "job": None if self.view is None else self.view.to_json(),
            "places": [asdict(place) for place in self.places],
        }


async def what_goes(
    job: FoundJob, storage: StorageOptions, *, rollback: bool, force: bool
) -> PlannedEffect:
    """Return what an abort, or with ``rollback`` a rollback, would do.

    Raises ``StoreError``.
    """
    if not job.present:
        return PlannedEffect(None, "nothing: it does not exist")
    async with open_stores(job.layout, storage) as (store, pending):
        seen = await view(store, job, pending)
        status = seen.status
        if status is None:
            return PlannedEffect(seen, f"unknown: {seen.problem}", refused=True)
        places = await _places(pending, job)
    does = _as_given(seen.abort.does, rollback=rollback, force=force)
    if status.state in NOT_BEGUN:
        refused = status.state is not JobState.DEAD and not force
        return PlannedEffect(seen, does, refused, places)
    over = status.state in (JobState.COMMITTED, JobState.ENDED)
    owned = status.state is JobState.COMMITTING and not force and status.alive is not False
    return PlannedEffect(seen, does, over or owned or not rollback, places)


def _as_given(does: str, *, rollback: bool, force: bool) -> str:
    """Return what advice says of a command with these flags."""
    for flag, is_given in (("--rollback", rollback), ("--force", force)):
        before, found, after = does.partition(f"; with {flag} it ")
        does = after if is_given and found else before + found + after
    if rollback and force and does.endswith("while its owner is alive"):
        return "takes the commit from its owner and rolls it back"
    return does


async def what_is_left(job: FoundJob, storage: StorageOptions) -> PlannedEffect:
    """Return what finishing a commit would do, whoever owns it.

    Raises ``StoreError``.
    """
    async with open_stores(job.layout, storage) as (store, pending):
        seen = await view(store, job, pending)
    status = seen.status
    if status is None:
        return PlannedEffect(seen, f"unknown: {seen.problem}", refused=True)
    if status.state is not JobState.COMMITTING:
        return PlannedEffect(seen, seen.resume.does)
    done = "" if status.done is None else f"; already in place: {status.done:,}"
    return PlannedEffect(seen, f"finishes the commit of {count_of(status.files, 'file')}{done}")


async def _places(store: Store, job: FoundJob) -> list[AffectedDirectory]:
    run = CommitContext.new(Environment(store, this_host(), store), job.layout, Options())
    top = await list_if_there(store, job.layout.attempt_dir)
    found: list[AffectedDirectory] = []
    for info in [*top, *await own_tasks(run)]:
        files, size = (0, 0) if info.is_dir else (1, info.size)
        if info.is_dir:
            async for below in walk(store, info.path):
                files += not below.is_dir
                size += below.size
        found.append(AffectedDirectory(info.path, files, size))
    return sorted(found, key=lambda place: place.path)

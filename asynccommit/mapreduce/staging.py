"""Read the staging directories of MapReduce jobs without changing them.

The path is ``<root>/<user>/.staging/<job id>/``, where the root is
``yarn.app.mapreduce.am.staging-dir``, by default ``/tmp/hadoop-yarn/staging``. A job that has ended
deletes its directory: an existing one belongs to a job that is running, whose application master
died, or that was configured to keep it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

from asynccommit.errors import ManifestError, NotFoundError, StoreError
from asynccommit.mapreduce.job_files import (
    JOB_XML,
    MAX_JOB_XML,
    STAGING,
    JobConf,
    attempts_of,
    decode_job_xml,
    is_job_id,
)
from asynccommit.mapreduce.marker_store import MarkerStore, is_silent
from asynccommit.mapreduce.markers import Action, Markers, MarkerState, start_up
from asynccommit.runtime.concurrency import for_each
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Info, Store
from asynccommit.stores.tree import list_all
from asynccommit.stores.urls import Address


class StagingState(StrEnum):
    """The phase of a job's commit, as its markers show it.

    ``OPEN`` means a commit by Hadoop's application master, which sends no heartbeats.
    """

    RUNNING = "running"
    COMMITTING = "committing"
    EXPIRED = "expired"
    OPEN = "open"
    COMMITTED = "committed"
    FAILED = "failed"
    STRAY = "stray"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class StagedJob:
    """A job that has a staging directory.

    Attributes:
        place: the directory.
        job_id: id of the job.
        user: user according to the path; may be empty.
        state: phase of the commit.
        standing: content of the markers; only their existence if one cannot be read.
        conf: commit settings of its ``job.xml``.
        attempts: last attempt of the application master that left a history, 0 if there is none.
        modified: last change in the directory, seconds since the epoch.
        problems: error messages about unreadable files.
    """

    place: Address
    job_id: str
    user: str
    state: StagingState
    standing: MarkerState
    conf: JobConf = field(default_factory=JobConf)
    attempts: int = 0
    modified: float = 0.0
    problems: Sequence[str] = ()

    @property
    def would(self) -> Sequence[Action]:
        """The action of the next application master.

        If it depends on the committer, there are two: for a committer whose commit may be repeated,
        and for any other. Empty if the directory cannot be listed.
        """
        markers = self.standing.markers
        if not markers.staging:
            return ()
        if self.conf.repeatable is not None:
            return (start_up(markers, repeatable=self.conf.repeatable),)
        both = [start_up(markers, repeatable=repeatable) for repeatable in (True, False)]
        return tuple(dict.fromkeys(both))


@dataclass(slots=True)
class Staging:
    """The jobs found below a location.

    Attributes:
        place: location that was read.
        jobs: by user and id.
        warnings: locations that could not be read.
    """

    place: Address
    jobs: list[StagedJob] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


async def read_staging(store: Store, place: Address, host: Host) -> Staging:
    """Return the jobs at or below a location.

    Args:
        store: store of the location.
        place: a staging root, a user's directory, a ``.staging`` in it, or one job; name and
            content decide which.
        host: clock and id of the caller.

    Raises ``NotFoundError`` if nothing is there.
    """
    found = Staging(place)
    name = place.path.rpartition("/")[2]
    if is_job_id(name):
        found.jobs.append(await _job(store, place, host))
        return found
    jobs: list[Address] = []

    async def look(area: Address) -> None:
        try:
            entries = await list_all(store, area.path)
        except NotFoundError:
            if area == place:
                raise
        except StoreError as error:
            found.warnings.append(str(error))
        else:
            jobs.extend(area.at(info.path) for info in entries if _is_job(info))

    async def read(job: Address) -> None:
        with suppress(NotFoundError):  # the job has ended since it was listed
            found.jobs.append(await _job(store, job, host))

    areas = [place] if name == STAGING else await _areas(store, place, found)
    await for_each(areas, look, workers=store.traits.workers)
    await for_each(jobs, read, workers=store.traits.workers)
    found.jobs.sort(key=lambda job: (job.user, job.job_id))
    found.warnings.sort()
    return found


async def _areas(store: Store, place: Address, found: Staging) -> list[Address]:
    """Return the ``.staging`` directories of a user, or of all below a root."""
    entries = [info for info in await list_all(store, place.path) if info.is_dir]
    if any(info.path.rpartition("/")[2] == STAGING for info in entries):
        return [place.child(STAGING)]
    if not entries:
        found.warnings.append(f"{place} holds no directory of a user")
    return [place.at(info.path).child(STAGING) for info in entries]


def _is_job(info: Info) -> bool:
    return info.is_dir and is_job_id(info.path.rpartition("/")[2])


async def _job(store: Store, place: Address, host: Host) -> StagedJob:
    above, _, job_id = place.path.rpartition("/")
    user = above.rpartition("/")[0].rpartition("/")[2] if above.endswith(f"/{STAGING}") else ""
    try:
        entries = await list_all(store, place.path)
    except NotFoundError:
        raise
    except StoreError as error:
        unknown = MarkerState(Markers(staging=False))
        return StagedJob(
            place, job_id, user, StagingState.UNREADABLE, unknown, problems=[str(error)]
        )
    found = {info.path.rpartition("/")[2]: info for info in entries}
    problems: list[str] = []
    standing, readable = await _standing(MarkerStore(store, place.path, job_id), found, problems)
    return StagedJob(
        place,
        job_id,
        user,
        _state(standing, host) if readable else StagingState.UNREADABLE,
        standing,
        await _conf(store, found, problems),
        attempts_of(job_id, found),
        max((info.modified for info in entries), default=0.0),
        problems,
    )


async def _standing(
    place: MarkerStore, found: Mapping[str, Info], problems: list[str]
) -> tuple[MarkerState, bool]:
    """Return the state of the markers, and whether they could be read."""
    try:
        return await place.read(found), True
    except (ManifestError, StoreError) as error:
        problems.append(str(error))
    return MarkerState(place.markers(found)), False


def _state(standing: MarkerState, host: Host) -> StagingState:
    markers = standing.markers
    if not markers.started:
        return StagingState.STRAY if markers.success or markers.fail else StagingState.RUNNING
    if markers.success:
        return StagingState.COMMITTED
    if standing.is_failed:
        return StagingState.FAILED
    if standing.start is None:
        return StagingState.OPEN
    return StagingState.EXPIRED if is_silent(standing, host) else StagingState.COMMITTING


async def _conf(store: Store, found: Mapping[str, Info], problems: list[str]) -> JobConf:
    info = found.get(JOB_XML)
    if info is None:
        return JobConf()
    try:
        return decode_job_xml(await store.get(info.path, MAX_JOB_XML), info.path)
    except (ManifestError, StoreError) as error:
        problems.append(str(error))
        return JobConf()

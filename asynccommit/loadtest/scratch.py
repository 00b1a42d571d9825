"""The directories of load tests, one for each run.

Each run sets up a job in its directory, below ``owner``, which is never committed. The owner file
and the heartbeats of that job tell later runs whether the run lives. A directory without that file
may be anybody's, whatever its name, and stays.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import NamedTuple, cast

import anyio

from asynccommit.commit.hints import quoted
from asynccommit.commit.job_context import JobContext
from asynccommit.commit.registry import Committer, open_named
from asynccommit.engine.deletes import delete_tree
from asynccommit.errors import AsyncCommitError, NotFoundError, OwnedError, StoreError
from asynccommit.options.job import Cleanup, Options
from asynccommit.redact import redact
from asynccommit.runtime.concurrency import for_each
from asynccommit.runtime.host import Host
from asynccommit.stores.multipart import MultipartStore, Upload
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.traffic import traffic_of
from asynccommit.stores.tree import is_there, list_if_there
from asynccommit.stores.urls import Address

PREFIX = "_asynccommit-loadtest-"
"""Prefix of the directories of load tests."""

_OWNER, _JOB = "owner", "loadtest"
_WORKERS = 16
_REMOVAL_SECONDS = 600.0


class LoadPlace(NamedTuple):
    """A store, and the directory below which load tests run.

    Attributes:
        store: the store, with its policies.
        top: the directory.
        host: clock and ids.
    """

    store: Wrapped
    top: Address
    host: Host

    def committer(self, dest: Address, job_id: str) -> Committer:
        """Return a committer that sends its requests through the store."""
        opening = JobContext(
            dest=dest,
            job_id=job_id,
            attempt=0,
            store=self.store,
            options=Options(cleanup=Cleanup.WAIT),
            host=self.host,
            open_store=lambda address: self.store,
            traffic=partial(traffic_of, self.store),
        )
        return open_named(None, opening)

    def owner(self, directory: Address) -> Committer:
        """Return the committer of the job that tells whether a run lives."""
        return self.committer(directory.child(_OWNER), _JOB)


class OtherRuns(NamedTuple):
    """The directories of other runs, those kept with the reason."""

    removed: list[str]
    kept: dict[str, str]


class OwnDirectory:
    """The directory of this run, kept alive and deleted at the end of a block.

    Args:
        place: where it is made.

    Attributes:
        address: the directory.
        data: the directory in it for all files of the run.
        left: why it is still there after the block; ``""`` if it is deleted.
    """

    def __init__(self, place: LoadPlace) -> None:
        self.address = place.top.child(PREFIX + place.host.new_id())
        self.data = self.address.child("data")
        self.left = ""
        self._place = place

    @asynccontextmanager
    async def kept_alive(self, before_removal: Callable[[], object]) -> AsyncIterator[None]:
        """Make the directory; keep it alive in the block, and delete it then.

        The owner is deleted last, so that a run that is killed meanwhile is found dead.
        """
        owner, top, store = self._place.owner(self.address), self._place.top, self._place.store
        made_top = store.traits.directories and not await is_there(store, top.path)
        try:
            await owner.setup_job()
            async with owner.living():
                try:
                    yield
                finally:
                    before_removal()
                    await self._remove(self.data)
        except BaseException as error:
            await self._remove(self.address)
            if self.left:
                error.add_note(f"{self.address} is still there: {self.left}")
            raise
        else:
            await self._remove(self.address)
        finally:
            if made_top:
                with suppress(StoreError):  # another run may work there
                    await store.delete(top.path)

    async def _remove(self, directory: Address) -> None:
        self.left = f"not deleted within {_REMOVAL_SECONDS:g} s"
        with anyio.move_on_after(_REMOVAL_SECONDS, shield=True):
            try:
                await remove(self._place, directory)
            except AsyncCommitError as error:
                self.left = redact(str(error))
            else:
                self.left = ""


async def remove(place: LoadPlace, directory: Address) -> None:
    """Delete the directory of a run, and end the uploads to it.

    Raises ``AsyncCommitError``.
    """
    if place.store.traits.multipart is not None:
        await _end_uploads(cast(MultipartStore, place.store), directory.path)
    with suppress(NotFoundError):
        await delete_tree(place.store, directory.path)


async def remove_dead(place: LoadPlace) -> OtherRuns:
    """Delete the directories of dead runs; keep those that may be alive.

    Raises ``AsyncCommitError``.
    """
    found = OtherRuns([], {})
    for info in await list_if_there(place.store, place.top.path):
        name = info.path.rpartition("/")[2]
        if not info.is_dir or not name.startswith(PREFIX):
            continue
        directory = place.top.child(name)
        why = await _life(place, directory)
        if why:
            found.kept[str(directory)] = why
        else:
            await remove(place, directory)
            found.removed.append(str(directory))
    return found


async def _life(place: LoadPlace, directory: Address) -> str:
    """Return why a directory is not that of a dead run; empty if it is."""
    committer = place.owner(directory)
    found = await committer.job_statuses()
    jobs = [job for job in found if job.job_id == _JOB and job.owner]
    if not jobs:
        force = " --force" if found else ""
        typed = f"asynccommit rm --recursive{force} {quoted(str(directory))}"
        return f"no owner file shows that a load test made it. To delete it, use: {typed}"
    if any(job.alive is not False for job in jobs):
        return jobs[0].why or "it may be alive"
    try:  # asks the store for its time before a lease counts as over
        await committer.abort_job("its load test has died", careful=True)
    except OwnedError as error:
        return str(error)
    return ""


async def _end_uploads(store: MultipartStore, path: str) -> None:
    async def end(upload: Upload) -> None:
        with suppress(NotFoundError):
            await store.abort_upload(upload.path, upload.upload_id)

    token: str | None = None
    while True:
        page = await store.list_uploads(path, token)
        await for_each(page.entries, end, workers=_WORKERS)
        token = page.token
        if token is None:
            return

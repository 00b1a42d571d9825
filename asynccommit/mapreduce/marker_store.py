"""The markers of one job on a store: read as a whole, written once, and taken back by identity."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

from asynccommit.commit.conditions import prove_conditions
from asynccommit.errors import (
    ExistsError,
    ManifestError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    UnsupportedError,
)
from asynccommit.formats.commit_record import Owner
from asynccommit.mapreduce.markers import (
    FAIL,
    MAX_MARKER_BYTES,
    STARTED,
    SUCCESS,
    End,
    Markers,
    MarkerState,
    Start,
    decode_end,
    decode_start,
    epoch_of_sign,
    epoch_of_start,
    later_start,
)
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Info, Kind, Store
from asynccommit.stores.tree import list_all, remove_file, remove_files

_CLOCK_SKEW_SECONDS = 2.0
"""Seconds by which times of a store may be rounded."""


@dataclass(frozen=True, slots=True)
class Committed:
    """That a job is committed.

    Attributes:
        job_id: the job.
        digest: of what was committed; empty if Hadoop has committed it.
        owner: who did; ``None`` if it was Hadoop.
        already: it had been committed before, and nothing was done.
    """

    job_id: str
    digest: str
    owner: Owner | None
    already: bool = False


@dataclass(frozen=True, slots=True)
class MarkerStore:
    """The staging directory of a job.

    Attributes:
        store: any.
        path: of the directory; absolute and decoded.
        job_id: the job.
    """

    store: Store
    path: str
    job_id: str

    def at(self, name: str) -> str:
        """Return the path of a file in it."""
        return f"{self.path}/{name}"

    async def look(self) -> MarkerState:
        """Return what is known of the commit.

        Raises ``ManifestError`` for a marker that is neither Hadoop's nor ours.
        """
        try:
            listed = await list_all(self.store, self.path)
        except NotFoundError:
            return MarkerState(Markers(staging=False))
        return await self.read({info.path.rpartition("/")[2]: info for info in listed})

    async def read(self, found: Mapping[str, Info]) -> MarkerState:
        """Return what is known of the commit, from the entries of the directory by name."""
        markers = self.markers(found)
        start = await self._start(found)
        last = max(map(epoch_of_start, found), default=0)
        return MarkerState(
            markers,
            start,
            success=await self._end(SUCCESS) if markers.success else None,
            fail=await self._end(FAIL) if markers.fail else None,
            epoch=max(last, start.epoch if start else 0),
            seen=_seen(found, start),
        )

    def markers(self, found: Mapping[str, Info]) -> Markers:
        """Return which markers are among the entries of the directory."""
        return Markers(
            staging=bool(found) or self.store.traits.directories,
            started=STARTED in found,
            success=SUCCESS in found,
            fail=FAIL in found,
        )

    async def _start(self, found: Mapping[str, Info]) -> Start | None:
        """Return the start of the present owner, unless that is an application master of Hadoop's.

        One that Hadoop's has written stands for itself: claims beside it are older.
        """
        first = await self._decoded_start(STARTED) if STARTED in found else None
        if first is None:
            return None
        last = max(map(epoch_of_start, found), default=0)
        if last <= first.epoch:
            return first
        claim = await self._decoded_start(later_start(last))
        if claim is None or claim.epoch != last:
            raise ManifestError(self.at(later_start(last)), "says that it is another's claim")
        return claim

    async def _decoded_start(self, name: str) -> Start | None:
        data = await self._get(name)
        start = None if data is None else decode_start(data, self.at(name))
        self._check(name, start)
        return start

    async def _end(self, name: str) -> End | None:
        data = await self._get(name)
        end = None if data is None else decode_end(data, self.at(name))
        self._check(name, end)
        return end

    def _check(self, name: str, said: Start | End | None) -> None:
        if said is not None and said.job_id != self.job_id:
            raise ManifestError(self.at(name), f"is of another job, {said.job_id[:100]!r}")

    async def _get(self, name: str) -> bytes | None:
        try:
            return await self.store.get(self.at(name), MAX_MARKER_BYTES)
        except NotFoundError:
            return None  # gone since it was listed

    async def write(self, name: str, data: bytes) -> bool:
        """Write a file unless there is one; return whether it is there as written.

        Raises what the store says, ``OutcomeUnknownError`` if nobody can tell.
        """
        try:
            await self.store.put(self.at(name), data, overwrite=False)
        except (ExistsError, OutcomeUnknownError):
            there = await self._get(name)
            if there is None:
                raise
            return there == data
        if not self.store.traits.durable:
            await self.store.sync(self.at(name))
            await self.store.sync(self.path)
        return True

    async def claim(self, name: str, data: bytes, aside: str) -> bool:
        """Write a file that only one may write; see ``write`` and, for ``aside``, ``take_back``.

        Raises ``UnsupportedError`` where the store cannot see to that, and ``RejectedError`` where
        it says that it does and does not.
        """
        traits = self.store.traits
        if not traits.conditional_put:
            raise UnsupportedError(
                f"{traits.name} cannot refuse to write over what is there, so two application "
                "masters could both commit: stage the job on a store that can"
            )
        if not await self.write(name, data):
            return False
        try:
            await prove_conditions(self.store, self.at(name), data)
        except RejectedError:
            await self.take_back(name, data, aside)
            raise
        return True

    async def take_back(self, name: str, data: bytes, aside: str) -> None:
        """Delete a file if it holds this; another's stays.

        Args:
            name: of the file.
            data: what it must hold.
            aside: a name that nobody else uses, for the moment in which it is seen whose it was.
        """
        path, place = self.at(name), self.at(f"{name}.{aside}")
        with suppress(NotFoundError, PreconditionError):  # it is another's by now
            etag = (await self.store.head(path)).etag
            if await self._get(name) != data:
                return
            if self.store.traits.bulk_delete:
                await remove_files(self.store, [Info(path, Kind.FILE, etag=etag)])
                return
            await self.store.rename(path, place, etag=etag)
            if await self.store.get(place, MAX_MARKER_BYTES) == data:
                await self.store.delete(place)
            else:
                await self.store.rename(place, path)

    async def remove(self, names: Collection[str]) -> None:
        """Delete files that mean nothing any more, as far as that can be done."""
        for name in names:
            with suppress(StoreError):
                await remove_file(self.store, self.at(name))

    async def is_expired(self, standing: MarkerState, host: Host) -> bool:
        """Whether the owner's lease is over by the store's own time, which a new file tells.

        An application master of Hadoop's has no lease, so that one is never over.
        """
        start = standing.start
        if start is None or not is_silent(standing, host):
            return False
        probe = f"COMMIT_CLOCK.{host.new_id()}"
        try:
            await self.store.put(self.at(probe), b"", overwrite=False)
            now = (await self.store.head(self.at(probe))).modified
            since = await self.look()  # it may have said so meanwhile
        finally:
            await self.remove([probe])
        return since.start == start and now - since.seen > start.lease + _CLOCK_SKEW_SECONDS


def is_silent(standing: MarkerState, host: Host) -> bool:
    """Whether the owner's lease is over, as far as this machine's clock can tell."""
    start = standing.start
    return start is not None and host.now() - standing.seen > start.lease + _CLOCK_SKEW_SECONDS


def _seen(found: Mapping[str, Info], start: Start | None) -> float:
    """Return when the present owner gave its last sign of life."""
    if start is None:
        return found[STARTED].modified if STARTED in found else 0.0
    times = [
        info.modified
        for name, info in found.items()
        if start.epoch in (epoch_of_sign(name), epoch_of_start(name)) or name == STARTED
    ]
    return max(times, default=0.0) or start.started_ms / 1000

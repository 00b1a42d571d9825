"""Read the markers of a job, write each once, delete only our own."""

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
"""Maximum rounding error of the store's times in seconds."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The state of a job that is committed.

    Attributes:
        job_id: id of the job.
        digest: digest of the committed output; empty if Hadoop committed it.
        owner: owner that committed; ``None`` if it was Hadoop.
        already: the job had been committed before, and nothing was done.
    """

    job_id: str
    digest: str
    owner: Owner | None
    already: bool = False


@dataclass(frozen=True, slots=True)
class MarkerStore:
    """The staging directory of a job.

    Attributes:
        store: any store.
        path: path of the directory; absolute and decoded.
        job_id: id of the job.
    """

    store: Store
    path: str
    job_id: str

    def at(self, name: str) -> str:
        """Return the path of a file in the directory."""
        return f"{self.path}/{name}"

    async def look(self) -> MarkerState:
        """Return the state of the commit.

        Raises ``ManifestError`` for a marker written neither by Hadoop nor by this package.
        """
        try:
            listed = await list_all(self.store, self.path)
        except NotFoundError:
            return MarkerState(Markers(staging=False))
        return await self.read({info.path.rpartition("/")[2]: info for info in listed})

    async def read(self, found: Mapping[str, Info]) -> MarkerState:
        """Return the state of the commit, given the directory entries by name."""
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
        """Return the markers among the directory entries."""
        return Markers(
            staging=bool(found) or self.store.traits.directories,
            started=STARTED in found,
            success=SUCCESS in found,
            fail=FAIL in found,
        )

    async def _start(self, found: Mapping[str, Info]) -> Start | None:
        """Return the present owner's start; ``None`` if Hadoop's master wrote it.

        A start written by Hadoop takes precedence: claims beside it are older.
        """
        first = await self._decoded_start(STARTED) if STARTED in found else None
        if first is None:
            return None
        last = max(map(epoch_of_start, found), default=0)
        if last <= first.epoch:
            return first
        claim = await self._decoded_start(later_start(last))
        if claim is None or claim.epoch != last:
            raise ManifestError(self.at(later_start(last)), "is the claim of another process")
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

    def _check(self, name: str, marker: Start | End | None) -> None:
        if marker is not None and marker.job_id != self.job_id:
            raise ManifestError(self.at(name), f"belongs to another job, {marker.job_id[:100]!r}")

    async def _get(self, name: str) -> bytes | None:
        try:
            return await self.store.get(self.at(name), MAX_MARKER_BYTES)
        except NotFoundError:
            return None  # deleted since it was listed

    async def write(self, name: str, data: bytes) -> bool:
        """Write a file unless it exists; return whether it now has this content.

        Raises the store's errors, ``OutcomeUnknownError`` if the result is unknown.
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
        """Write a file that only one owner may write.

        See ``write`` and, for ``aside``, ``take_back``. Raises ``UnsupportedError`` if the store
        cannot ensure that, and ``RejectedError`` if it claims to and does not.
        """
        traits = self.store.traits
        if not traits.conditional_put:
            raise UnsupportedError(
                f"{traits.name} cannot create a file only if it does not exist, so two "
                "application masters could both commit: stage the job on a store that can"
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
        """Delete a file if it has the given content; another owner's file stays.

        Args:
            name: name of the file.
            data: expected content.
            aside: unique name to which the file is moved while its content is checked.
        """
        path, place = self.at(name), self.at(f"{name}.{aside}")
        with suppress(NotFoundError, PreconditionError):  # it is another owner's file by now
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
        """Delete obsolete files; errors are ignored."""
        for name in names:
            with suppress(StoreError):
                await remove_file(self.store, self.at(name))

    async def is_expired(self, standing: MarkerState, host: Host) -> bool:
        """Return whether the owner's lease is over by the store's time.

        The time comes from a new file. Hadoop's application master has no lease, so its lease is
        never over.
        """
        start = standing.start
        if start is None or not is_silent(standing, host):
            return False
        probe = f"COMMIT_CLOCK.{host.new_id()}"
        try:
            await self.store.put(self.at(probe), b"", overwrite=False)
            now = (await self.store.head(self.at(probe))).modified
            since = await self.look()  # the owner may have written a heartbeat meanwhile
        finally:
            await self.remove([probe])
        return since.start == start and now - since.seen > start.lease + _CLOCK_SKEW_SECONDS


def is_silent(standing: MarkerState, host: Host) -> bool:
    """Return whether the owner's lease is over by this machine's clock."""
    start = standing.start
    return start is not None and host.now() - standing.seen > start.lease + _CLOCK_SKEW_SECONDS


def _seen(found: Mapping[str, Info], start: Start | None) -> float:
    """Return the time of the present owner's last heartbeat."""
    if start is None:
        return found[STARTED].modified if STARTED in found else 0.0
    times = [
        info.modified
        for name, info in found.items()
        if start.epoch in (epoch_of_sign(name), epoch_of_start(name)) or name == STARTED
    ]
    return max(times, default=0.0) or start.started_ms / 1000

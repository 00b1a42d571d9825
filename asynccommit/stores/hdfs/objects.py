"""Facts about files, and files that are written aside and then renamed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from asynccommit.errors import (
    NotFoundError,
    OutcomeUnknownError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.filesystem_names import temporary_name
from asynccommit.stores.hdfs.client import HdfsRequests
from asynccommit.stores.hdfs.errors import HdfsRequest, about_zone, translate

_SENT = 6  # requests of one rename whose answers are lost
_PAUSE = 0.05  # seconds, doubled each time, before a rename whose answer was lost is sent again
_AGAIN = (OutcomeUnknownError, ThrottledError, UnavailableError)
_MARKS = 1000  # writes of unknown outcome that are remembered
_PIECE = 8 << 20  # bytes of a copy in memory
_DIRECTORY = 0o777
_PRIVATE = 0o700
_FILE = 0o666


def info_of(path: str, status: Any) -> Info:
    """Return the facts of a ``FileStatus`` of hdfs-native."""
    time, owner = status.modification_time, status.owner
    if status.isdir:
        return Info(path, Kind.DIRECTORY, 0, f"{time:x}", time / 1000, owner=owner)
    etag = f"{time:x}-{status.length:x}"
    return Info(path, Kind.FILE, status.length, etag, time / 1000, owner=owner)


class HdfsObjects:
    """Files and directories that become visible by one rename each.

    Args:
        client: sends the requests.
        new_id: returns a new unique name.
        umask: the permissions that new files and directories lack.
    """

    def __init__(self, client: HdfsRequests, new_id: Callable[[], str], umask: int) -> None:
        self._client = client
        self._new_id = new_id
        self._directory = _DIRECTORY & ~umask
        self._file = _FILE & ~umask
        # What a write of unknown outcome would have left, and its token.
        self._marks: OrderedDict[tuple[str, str | None], str] = OrderedDict()

    async def head(self, request: HdfsRequest, path: str) -> Info:
        """Return the facts about ``path``."""
        info = info_of(path, await self._client.ask(request, lambda c: c.get_file_info(path)))
        token = self._marks.get((path, info.etag)) if self._marks else None
        return info if token is None else info._replace(token=token)

    async def mkdirs(self, request: HdfsRequest, path: str, *, parents: bool = True) -> None:
        """Make a directory, unless it exists."""
        await self._client.ask(request, lambda c: c.mkdirs(path, self._directory, parents))

    async def make_private(self, request: HdfsRequest, path: str) -> None:
        """Make a directory that only its owner may enter, unless it exists."""

        async def make() -> None:
            await self._client.ask(request, lambda c: c.mkdirs(path, _PRIVATE, False))

        try:
            await make()
        except NotFoundError:
            await self.mkdirs(request, path.rpartition("/")[0] or "/")
            await make()

    async def delete(self, request: HdfsRequest, path: str, *, recursive: bool = False) -> bool:
        """Delete ``path``; return whether there was anything."""
        return bool(await self._client.ask(request, lambda c: c.delete(path, recursive)))

    async def rename(self, request: HdfsRequest, source: str, dest: str) -> None:
        """Rename by ``rename2``, which replaces only if the request may."""
        overwrite = not request.new
        await self._client.ask(request, lambda c: c.rename(source, dest, overwrite))

    async def place(
        self,
        request: HdfsRequest,
        dest: str,
        write: Callable[[Any, Any], int],
        token: str | None = None,
    ) -> Info:
        """Write a file aside, rename it to ``dest`` and return its facts.

        Args:
            request: the rename, for judging its response.
            dest: the destination.
            write: writes the content, with a blocking client and its writer; returns the length.
            token: marks the file for ``head`` if the outcome is unknown.
        """
        temp = self._beside(dest)

        def work(client: Any) -> Any:
            options = self._client.options(
                permission=self._file, overwrite=False, create_parent=False
            )
            writer = client.create(temp, options)
            self._client.close(client, writer, temp, write(client, writer))
            return client.get_file_info(temp)

        try:
            # Nothing is visible before the rename.
            info = info_of(dest, await self._client.work(HdfsRequest(request.op, dest), work))
        except StoreError:
            await self._take_back(temp)
            raise
        try:
            await self._land(request, temp, dest, info)
        except OutcomeUnknownError:
            if token is not None:
                self._mark(dest, info, token)
            raise
        return info._replace(token=token)

    async def place_directory(self, request: HdfsRequest, dest: str) -> None:
        """Make a directory aside and rename it to ``dest``, where nothing may be."""
        temp = self._beside(dest)

        def make(client: Any) -> Any:
            client.mkdirs(temp, self._directory, False)
            return client.get_file_info(temp)

        made = await self._client.ask(HdfsRequest(request.op, request.path), make)
        await self._land(request, temp, dest, info_of(dest, made))

    async def rename_known(self, request: HdfsRequest, source: str, dest: str) -> None:
        """Rename something whose identity is looked at before.

        It keeps its modification time. Once the source is gone, and something with its time is at
        the destination, it has been moved; while it is there, a second request does no harm.
        """
        info = await self.head(HdfsRequest(request.op, source), source)
        lost: StoreError | None = None
        for sent in range(1, _SENT + 1):
            try:
                await self.rename(request, source, dest)
                return
            except StoreError as error:
                failed = error
            if isinstance(failed, OutcomeUnknownError):
                lost = failed
            elif lost is None and not isinstance(failed, NotFoundError):
                raise failed
            left, there = await self._look(source), await self._look(dest)
            if left is None and there is not None:
                if _is_same(there, info):
                    return
                raise OutcomeUnknownError(
                    request.op, source, f"is gone, and {dest} is there: by this request?"
                ) from failed
            if lost is None or left != info or not isinstance(failed, _AGAIN) or sent == _SENT:
                break
            await asyncio.sleep(_PAUSE * 2**sent)
        if lost is not None and isinstance(failed, (NotFoundError, *_AGAIN)):
            raise lost  # one that was refused is known not to be done, but not the one before
        raise failed

    async def _look(self, path: str) -> Info | None:
        """Return what is at ``path``, as a rename is looked after.

        Raises ``OutcomeUnknownError`` if that cannot be said: any other error would have the whole
        rename sent again, and then its source would be missing.
        """
        request = HdfsRequest("rename", path)
        for sent in range(1, _SENT + 1):
            try:
                return await self.head(request, path)
            except NotFoundError:
                return None
            except StoreError as error:
                if sent == _SENT or not isinstance(error, _AGAIN):
                    raise OutcomeUnknownError("rename", path, f"then: {error.detail}") from error
            await asyncio.sleep(_PAUSE * 2**sent)
        raise AssertionError("the last look raises or returns")

    async def try_rename(self, folder: str, place: str) -> None:
        """Raise the error of a rename to below ``place``, and rename nothing.

        The destination is in a directory that does not exist. The NameNode finds that after it has
        compared permissions and encryption zones.
        """
        nowhere = self._beside(f"{place.rstrip('/')}/x") + "/x"
        request = HdfsRequest("probe", place)
        try:
            await self._client.ask(request, lambda c: c.rename(folder, nowhere, False))
        except NotFoundError:
            return
        except RejectedError as error:
            raise about_zone(place, error) from error

    def _beside(self, dest: str) -> str:
        return f"{dest.rpartition('/')[0]}/{temporary_name(self._new_id())}"

    async def _land(self, request: HdfsRequest, temp: str, dest: str, info: Info) -> None:
        """Rename what was written aside.

        With several NameNodes the library may send a request twice, and the second answer is then
        that there is no source. Nobody else renames a temporary file: once it is gone, it has
        arrived, unless something else is at the destination.
        """
        try:
            await self.rename(request, temp, dest)
            return
        except (NotFoundError, OutcomeUnknownError) as error:
            doubt: StoreError = error
        except StoreError:
            await self._take_back(temp)
            raise
        try:
            removed = False if await self._look(temp) is None else await self._take_back(temp)
            arrived = removed is False and _is_same(await self._look(dest), info)
        except OutcomeUnknownError:
            raise _unknown(doubt) from doubt
        if removed and isinstance(doubt, NotFoundError):
            raise doubt  # of the parent
        if removed:  # a late rename finds no source
            raise UnavailableError(doubt.op, doubt.path, doubt.detail) from doubt
        if not arrived:
            raise _unknown(doubt) from doubt

    async def _take_back(self, temp: str) -> bool | None:
        """Delete the temporary file; return whether it existed, ``None`` if that is unknown."""
        try:
            return await self.delete(HdfsRequest("delete", temp, writes=True), temp)
        except StoreError:
            return None

    def _mark(self, dest: str, info: Info, token: str) -> None:
        self._marks[dest, info.etag] = token
        if len(self._marks) > _MARKS:
            self._marks.popitem(last=False)


def _is_same(there: Info | None, info: Info) -> bool:
    """Return whether what is there is what was renamed, by time and kind."""
    return there is not None and there.etag == info.etag and there.kind is info.kind


def content_of(client: Any, path: str, limit: int) -> bytes:
    """Return the content of a file of at most ``limit`` bytes."""
    reader = client.read(path)
    size = len(reader)
    if size > limit:
        raise RejectedError("get", path, f"holds {size} bytes, more than {limit}")
    return bytes(reader.read(size)) if size else b""


def copy_of(source: str) -> Callable[[Any, Any], int]:
    """Return what copies a file to a writer, in pieces."""

    def copied(client: Any, writer: Any) -> int:
        try:
            reader = client.read(source)
        except Exception as error:
            raise translate(HdfsRequest("copy", source), error) from error
        left = size = len(reader)
        while left > 0:
            piece = reader.read(min(left, _PIECE))
            if not piece:
                raise OSError("the file became shorter while it was copied")
            writer.write(piece)
            left -= len(piece)
        make_durable(writer)
        return size

    return copied


def content(data: bytes) -> Callable[[Any, Any], int]:
    """Return what writes ``data`` to a writer."""

    def written(client: Any, writer: Any) -> int:
        if data:
            writer.write(data)
            make_durable(writer)
        return len(data)

    return written


def make_durable(writer: Any) -> None:
    """Have the DataNodes put what was written on their disks."""
    # Not supported with erasure coding, where a file lasts once it is closed.
    with suppress(NotImplementedError):
        writer.hsync()


def _unknown(doubt: StoreError) -> StoreError:
    if isinstance(doubt, OutcomeUnknownError):
        return doubt
    return OutcomeUnknownError(doubt.op, doubt.path, f"perhaps done before: {doubt.detail}")

"""Files of ADLS Gen2: status, content and atomic writes.

What is written goes to a temporary file beside its place and is moved. Its name is new for every
attempt, so a late request only affects a file that is not moved any more. If the response to the
move is lost, the temporary file is deleted, so that the move cannot happen late.

Something on the way may send a request twice. So the file is created only if it is not there, and
if a second append has changed its etag, it is moved under the new one.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any, NamedTuple

from asynccommit.errors import (
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.stores.adls.client import AdlsClient
from asynccommit.stores.adls.errors import AdlsRequest, explain
from asynccommit.stores.adls.wire import bare_etag, encode, info_of, parse_date, query
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.filesystem_names import temporary_name
from asynccommit.stores.http.base import Response
from asynccommit.stores.http.client import SMALL

_FENCES = 5  # how often it is asked what became of a file
_MOVES = 3  # how often a file is moved whose etag changes
PIECE = 8 << 20  # bytes of one append, and of what a copy holds in memory
_LARGE = 1 << 20  # bytes whose checksum would keep the event loop for a millisecond

STATUS = query(action="getStatus", upn="false")
_ACCESS = query(action="getAccessControl", upn="false")
_WORKSPACE = query(resource="filesystem")
_READ = query()
_FILE = query(resource="file")
_RENAME = query(mode="legacy")
_DELETE = query(recursive="false")
_DATA = "application/octet-stream"
_TOTAL = re.compile(r"bytes \d+-\d+/(\d+)")


class Piece(NamedTuple):
    """Some bytes of a file, and whether they are the last ones."""

    data: bytes
    last: bool


class AdlsObjects:
    """Reads, writes and moves files.

    Args:
        client: sends the requests.
        new_id: a fresh unique name.
    """

    def __init__(self, client: AdlsClient, new_id: Callable[[], str]) -> None:
        self._client = client
        self._new_id = new_id

    async def head(self, request: AdlsRequest, path: str) -> Info:
        """Return the facts about ``path``."""
        client = self._client
        root = path == "/"  # which has no status of its own
        if root and client.place.onelake:
            return await self._head_workspace(request)
        url = client.container + client.encode(request, path)
        answer = await client.ask(request, "HEAD", url, _ACCESS if root else STATUS, {})
        client.need(request, answer, 200)
        try:
            info = info_of(path, answer.headers)
        except ValueError as error:
            raise client.unread(request, error) from None
        return info._replace(kind=Kind.DIRECTORY, size=0) if root else info

    async def _head_workspace(self, request: AdlsRequest) -> Info:
        """Return the facts about a workspace, of which OneLake allows HEAD alone."""
        client = self._client
        answer = await client.ask(request, "HEAD", client.container, _WORKSPACE, {})
        client.need(request, answer, 200)
        etag = bare_etag(answer.headers.get("etag"))
        return Info("/", Kind.DIRECTORY, 0, etag, parse_date(answer.headers.get("last-modified")))

    async def read(self, request: AdlsRequest, path: str, limit: int) -> tuple[bytes, str | None]:
        """Return content and etag of a file that holds at most ``limit`` bytes."""
        client = self._client
        url = client.container + client.encode(request, path)
        # The range limit also leaves room for an error body.
        answer = await client.ask(request, "GET", url, _READ, {}, limit=max(limit, SMALL))
        client.need(request, answer, 200)
        _need_file(request, answer)
        if len(answer.body) > limit:
            raise RejectedError(
                request.op, path, f"holds {len(answer.body)} bytes, more than {limit}"
            )
        return answer.body, bare_etag(answer.headers.get("etag"))

    def ask_move(
        self, request: AdlsRequest, source: str, dest: str, etag: str | None, token: str | None
    ) -> Coroutine[Any, Any, Response]:
        """Ask for the rename of ``source`` to ``dest``, both percent-encoded.

        The response goes to ``need_moved``.
        """
        client = self._client
        headers = {"x-ms-rename-source": f"{client.source}{source}{client.tail}"}
        if request.new:
            headers["if-none-match"] = "*"
        if etag is not None:
            headers["x-ms-source-if-match"] = f'"{bare_etag(etag)}"'
        if token is not None:
            headers["x-ms-client-transaction-id"] = token
        return client.ask(request, "PUT", client.container + dest, _RENAME, headers)

    def need_moved(self, request: AdlsRequest, answer: Response) -> None:
        """Raise what the response to ``ask_move`` means, unless it is moved."""
        if answer.status != 201:
            self._client.need(request, answer)
        if "x-ms-continuation" in answer.headers:  # never seen where there are directories
            detail = f"only partly renamed{f' (to {request.dest})' if request.dest else ''}"
            raise OutcomeUnknownError(request.op, request.path, detail)

    async def place(
        self,
        request: AdlsRequest,
        dest: str,
        pieces: AsyncIterator[Piece],
        token: str | None = None,
    ) -> Info:
        """Write a temporary file, move it to ``dest`` and return its facts.

        Args:
            request: the move, for judging its response.
            dest: the destination.
            pieces: the content.
            token: marks the move.
        """
        self._client.encode(request, dest)  # for its checks
        folder = dest.rpartition("/")[0]
        await self._need_directory(request._replace(writes=False, new=False), folder)
        aside = request._replace(writes=False, new=False, aside=True)
        temp = encode(f"{self._beside(folder, new=request.new)}/{temporary_name(self._new_id())}")
        try:
            info = await self._write(aside, temp, pieces)
            info = await self._put_in_place(request, temp, dest, info, token)
        except OutcomeUnknownError:
            raise
        except StoreError:
            await self._discard(aside, temp)
            raise
        return info._replace(path=dest, token=token)

    def _beside(self, folder: str, *, new: bool) -> str:
        """Return where the temporary file of a write to ``folder`` goes.

        Creating it makes the directories above it. A new file must not recreate a directory that is
        being moved away, so it is written one level up, and its move then fails. Where that is the
        root or an item of OneLake, ``folder`` is not moved.
        """
        above = folder.rpartition("/")[0]
        return above if new and above and self._client.may_write(f"{above}/_") else folder

    async def _put_in_place(
        self, request: AdlsRequest, temp: str, dest: str, info: Info, token: str | None
    ) -> Info:
        """Move a temporary file to ``dest``, and return its facts.

        A second append has changed its etag, and nothing else.
        """
        aside = request._replace(writes=False, new=False, aside=True)
        for _ in range(_MOVES):
            try:
                refused = await self._try_move(request, temp, dest, info.etag, token)
            except OutcomeUnknownError as error:
                await self._need_moved_unheard(aside, temp, dest, info.etag, error)
                return info
            if refused is None:
                return info
            found = await self._stat(aside, temp)
            if found.size != info.size:
                break
            info = found
        assert refused is not None
        raise self._client.judge.translate(request, refused)

    async def _try_move(
        self, request: AdlsRequest, temp: str, dest: str, etag: str | None, token: str | None
    ) -> Response | None:
        """Move a temporary file; return the answer if the file has another etag.

        A second move finds no file, since the first one has moved it.
        """
        encoded = self._client.encode(request, dest)
        answer = await self.ask_move(request, temp, encoded, etag, token)
        code = "" if answer.status == 201 else explain(answer)[0]
        if code == "SourceConditionNotMet":
            return answer
        if code != "SourcePathNotFound" or not await self._has_etag(request, dest, etag):
            self.need_moved(request, answer)
        return None

    async def _need_moved_unheard(
        self,
        aside: AdlsRequest,
        temp: str,
        dest: str,
        etag: str | None,
        error: OutcomeUnknownError,
    ) -> None:
        """Settle an unanswered move; raise what it means if it has not happened."""
        moved = await self._is_moved(aside, temp, dest, etag)
        if moved is None:
            raise error
        if not moved:
            kind = ThrottledError if error.busy else UnavailableError
            raise kind(error.op, error.path, error.detail) from error

    async def draft(self, request: AdlsRequest, folder: str, pieces: AsyncIterator[Piece]) -> Info:
        """Write a hidden file in a directory, and return its facts."""
        self._client.encode(request, folder)
        aside = request._replace(aside=True)
        path = f"{folder}/{temporary_name(self._new_id())}"
        try:
            return (await self._write(aside, encode(path), pieces))._replace(path=path)
        except StoreError:
            await self._discard(aside, encode(path))
            raise

    async def reserve(self, request: AdlsRequest, folder: str) -> str:
        """Create an empty hidden file in a directory, and return its path."""
        self._client.encode(request, folder)
        path = f"{folder}/{temporary_name(self._new_id())}"
        await self._create(request._replace(aside=True), encode(path))
        return path

    async def fill(self, request: AdlsRequest, path: str, pieces: AsyncIterator[Piece]) -> Info:
        """Write the content of an empty file, and return its facts."""
        return await self._append(request, self._client.encode(request, path), pieces, None)

    async def put_block(self, request: AdlsRequest, path: str, position: int, data: bytes) -> None:
        """Append bytes that a flush will commit, with their MD5."""
        client = self._client
        url = client.container + client.encode(request, path)
        asked = query(action="append", position=position)
        headers = {"content-type": _DATA, "content-md5": await _md5(data)}
        answer = await client.ask(request, "PATCH", url, asked, headers, data)
        client.need(request, answer, 202)

    async def flush(self, request: AdlsRequest, path: str, size: int) -> Info:
        """Commit all that was appended, and return the facts about the file."""
        client = self._client
        url = client.container + client.encode(request, path)
        asked = query(action="flush", position=size, close="true")
        answer = await client.ask(request, "PATCH", url, asked, {})
        client.need(request, answer, 200)
        etag, modified = answer.headers.get("etag"), answer.headers.get("last-modified")
        return Info(path, Kind.FILE, size, bare_etag(etag), parse_date(modified))

    async def _discard(self, aside: AdlsRequest, temp: str) -> Response | None:
        """Delete a temporary file, and return the answer if there is one."""
        with suppress(StoreError):
            url = self._client.container + temp
            return await self._client.ask(aside, "DELETE", url, _DELETE, {})
        return None

    async def _is_moved(
        self, aside: AdlsRequest, temp: str, dest: str, etag: str | None
    ) -> bool | None:
        """Return whether an unanswered move has happened; if not, prevent it.

        The temporary file is deleted, so that the lost request cannot overtake its repetition. The
        result is ``None`` if the outcome cannot be determined.
        """
        gone = False
        for _ in range(_FENCES):
            if not gone and (answer := await self._discard(aside, temp)):
                if answer.status == 200:
                    return False
                # By the move, or by a deletion that was not answered.
                gone = explain(answer)[0] == "PathNotFound"
            if gone:
                with suppress(ThrottledError, UnavailableError):
                    return await self._has_etag(aside, dest, etag)
        return None

    async def _has_etag(self, request: AdlsRequest, path: str, etag: str | None) -> bool:
        look = request._replace(writes=False, new=False, aside=False)
        try:
            return (await self.head(look, path)).etag == etag
        except NotFoundError:
            return False

    async def pieces(self, request: AdlsRequest, path: str) -> AsyncGenerator[Piece, None]:
        """Yield the content of a file, all of it of one version."""
        client = self._client
        url = client.container + client.encode(request, path)
        start, total, etag = 0, 1, ""
        while start < total:
            headers = {"range": f"bytes={start}-{start + PIECE - 1}"}
            if etag:
                headers["if-match"] = etag
            answer = await client.ask(request, "GET", url, _READ, headers, limit=PIECE + SMALL)
            if answer.status == 416 and not start:
                await self._need_empty(request, path)
                return
            client.need(request, answer, 200, 206)
            _need_file(request, answer)
            data, etag = answer.body, answer.headers.get("etag", "")
            found = _TOTAL.fullmatch(answer.headers.get("content-range", ""))
            total = int(found[1]) if found else len(data)
            start += len(data)
            if not data and total:
                raise client.unread(request, ValueError("the response has no data"))
            yield Piece(data, start >= total)

    async def _write(self, aside: AdlsRequest, temp: str, pieces: AsyncIterator[Piece]) -> Info:
        """Create and write the file ``temp``, and return its facts."""
        return await self._append(aside, temp, pieces, await self._create(aside, temp))

    async def _create(self, aside: AdlsRequest, temp: str) -> Response:
        """Create a file of a new name; one that is there is of the same request."""
        created = self._client.container + temp
        answer = await self._client.ask(aside, "PUT", created, _FILE, {"if-none-match": "*"})
        if answer.status != 409 or explain(answer)[0] != "PathAlreadyExists":
            self._client.need(aside, answer, 201)
        return answer

    async def _append(
        self,
        aside: AdlsRequest,
        temp: str,
        pieces: AsyncIterator[Piece],
        answer: Response | None,
    ) -> Info:
        """Write an empty file, described by ``answer``, and return its facts."""
        client = self._client
        url = client.container + temp
        position = 0
        async for piece in pieces:
            flush = {"flush": "true"} if piece.last else {}
            append = query(action="append", position=position, **flush)
            headers = {"content-type": _DATA}
            answer = await client.ask(aside, "PATCH", url, append, headers, piece.data)
            client.need(aside, answer, 200, 202)
            position += len(piece.data)
        if answer is None or not {"etag", "last-modified"} <= answer.headers.keys():
            return (await self._stat(aside, temp))._replace(size=position)
        etag, modified = answer.headers.get("etag"), answer.headers.get("last-modified")
        return Info(aside.path, Kind.FILE, position, bare_etag(etag), parse_date(modified))

    async def _stat(self, aside: AdlsRequest, temp: str) -> Info:
        answer = await self._client.ask(aside, "HEAD", self._client.container + temp, STATUS, {})
        self._client.need(aside, answer, 200)
        return info_of(aside.path, answer.headers)

    async def _need_directory(self, request: AdlsRequest, path: str) -> None:
        """See that a directory is there: the service makes those that are missing."""
        with suppress(NotFoundError):
            if not path or (await self.head(request, path)).is_dir:
                return
        raise NotFoundError(request.op, request.path, f"there is no directory {path}")

    async def _need_empty(self, request: AdlsRequest, path: str) -> None:
        info = await self.head(request, path)
        if info.is_dir:
            raise PreconditionError(request.op, request.path, "is a directory")
        if info.size:
            raise UnavailableError(request.op, request.path, "was changed meanwhile")


async def pieces_of(data: bytes) -> AsyncIterator[Piece]:
    """Yield ``data`` in pieces that one request takes."""
    view = memoryview(data)
    for start in range(0, len(data), PIECE):
        piece = data if len(data) <= PIECE else bytes(view[start : start + PIECE])
        yield Piece(piece, start + PIECE >= len(data))


async def _md5(data: bytes) -> str:
    """Return the MD5 of a block, computed in a thread if it is large."""
    if len(data) < _LARGE:
        return _digest(data)
    return await asyncio.to_thread(_digest, data)


def _digest(data: bytes) -> str:
    return b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode("ascii")


def _need_file(request: AdlsRequest, answer: Response) -> None:
    if answer.headers.get("x-ms-resource-type") == "directory":
        raise PreconditionError(request.op, request.path, "is a directory")

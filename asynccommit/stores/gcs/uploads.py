"""Resumable uploads to Google Cloud Storage, whole or in blocks.

The bytes go to a session, in order, and its last request creates the object. The service skips
bytes that it has already, and tells a finished session how it ended, so that every request may be
repeated. Source: https://cloud.google.com/storage/docs/performing-resumable-uploads
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from asynccommit.errors import NotFoundError, RejectedError, UnavailableError
from asynccommit.stores.base import Info
from asynccommit.stores.gcs.client import GcsClient
from asynccommit.stores.gcs.errors import GcsRequest
from asynccommit.stores.gcs.wire import metadata_of
from asynccommit.stores.http.base import Response
from asynccommit.stores.streaming import Stream

DATA = "application/octet-stream"
JSON = "application/json; charset=UTF-8"
_GO_ON = 308
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
_CANCELLED = 499
_RANGE = re.compile(r"bytes=0-(\d+)")


class GcsStream(Stream):
    """A session, and the checksum of what was given to it.

    CRC32C needs google-crc32c; without it the checksum is an MD5.

    Args:
        path: of the object.
        url: path of the session's URL; whoever knows URL and query may write the object.
        query: query of the session's URL.
    """

    __slots__ = ("_crc32c", "_md5", "_summed", "query", "url")

    def __init__(self, path: str, url: str, query: str) -> None:
        super().__init__(path)
        self.url = url
        self.query = query
        self._summed = 0
        self._crc32c = 0
        self._md5 = None if _crc32c() else hashlib.md5(usedforsecurity=False)

    def add(self, start: int, data: bytes) -> None:
        """Add a block to the checksum, unless it is there already."""
        if start != self._summed:
            return
        self._summed += len(data)
        if self._md5 is not None:
            self._md5.update(data)
        else:
            self._crc32c = _crc32c().extend(self._crc32c, data)

    @property
    def hash(self) -> str:
        """The checksum, as a header has it."""
        if self._md5 is not None:
            return f"md5={b64encode(self._md5.digest()).decode('ascii')}"
        return f"crc32c={b64encode(self._crc32c.to_bytes(4, 'big')).decode('ascii')}"

    def check(self, request: GcsRequest, info: Info) -> None:
        """Raise ``UnavailableError`` if the created object has another checksum."""
        if self._md5 is not None:  # the service has compared it; listings have the other one only
            return
        found = (info.etag or "").partition("-")[2]
        if found != f"{self._crc32c:08x}":
            text = f"the object has the checksum {found}, and {self._crc32c:08x} was sent"
            raise UnavailableError(request.op, request.path, text)


class GcsUploads:
    """Sends objects in several requests.

    Args:
        client: sends the requests.
        keys: headers of the customer's encryption key, if there is one.
    """

    def __init__(self, client: GcsClient, keys: Mapping[str, str]) -> None:
        self._client = client
        self._keys = keys

    async def send(
        self, request: GcsRequest, path: str, data: bytes, token: str | None, query: str
    ) -> Response:
        """Upload a large object; return the response of its last request."""
        client, total = self._client, len(data)
        url, asked = await self._open(request, path, total, token, query)
        start, view = 0, memoryview(data)
        for _ in range(2 * (total // client.settings.chunk + 1)):
            end = min(start + client.settings.chunk, total)
            headers = {**self._keys, "content-range": f"bytes {start}-{end - 1}/{total}"}
            sent = request if end == total else request.look
            piece = bytes(view[start:end])
            answer = await client.ask(sent, "PUT", url, asked, headers, piece)
            if answer.status != _GO_ON:
                if end < total:
                    raise client.error(sent, answer)
                return answer
            start = _kept(answer)
        raise UnavailableError(request.op, path, "the upload did not end")

    async def begin(self, request: GcsRequest, path: str, query: str) -> GcsStream:
        """Open a session for blocks."""
        return GcsStream(path, *await self._open(request, path, None, None, query))

    async def put(self, request: GcsRequest, stream: GcsStream, start: int, data: bytes) -> None:
        """Send one block that is not the last."""
        stream.add(start, data)
        answer = await self._put(request, stream, start, data, "*", {})
        if answer.status != _GO_ON:
            raise self._client.error(request, answer)

    async def end(
        self, request: GcsRequest, stream: GcsStream, start: int, data: bytes
    ) -> Response:
        """Send the last block; return the response that describes the object."""
        stream.add(start, data)
        total = str(start + len(data))
        hashed = {"x-goog-hash": stream.hash}
        answer = await self._put(request, stream, start, data, total, hashed)
        if answer.status in (200, 201) or answer.status in _TRANSIENT:
            return answer
        # An earlier sending may have created the object, which the session tells.
        asked = {**self._keys, "content-range": f"bytes */{total}"}
        found = await self._client.ask(request, "PUT", stream.url, stream.query, asked)
        return found if found.status in (200, 201) else answer

    async def abort(self, request: GcsRequest, stream: GcsStream) -> None:
        """Cancel a session."""
        answer = await self._client.ask(request, "DELETE", stream.url, stream.query)
        self._client.need(request, answer, _CANCELLED, 200, 204)

    async def _put(
        self,
        request: GcsRequest,
        stream: GcsStream,
        start: int,
        data: bytes,
        total: str,
        more: Mapping[str, str],
    ) -> Response:
        """Send a block, and again what the service did not keep of it."""
        client, end = self._client, start + len(data)
        for _ in range(2 + len(data) // _QUANTUM):
            headers = {**self._keys, **more, "content-range": f"bytes {start}-{end - 1}/{total}"}
            answer = await client.ask(request, "PUT", stream.url, stream.query, headers, data)
            if answer.status == _CANCELLED:
                raise NotFoundError(request.op, stream.path, "the upload was cancelled")
            kept = _kept(answer) if answer.status == _GO_ON else end
            if kept >= end:
                return answer
            if kept < start:
                text = f"the upload has only {kept} of the first {start} bytes"
                raise RejectedError(request.op, stream.path, text)
            start, data = kept, data[kept - start :]
        raise UnavailableError(request.op, stream.path, "the block was not kept")

    async def _open(
        self, request: GcsRequest, path: str, total: int | None, token: str | None, query: str
    ) -> tuple[str, str]:
        """Return path and query that the bytes of an upload go to."""
        client = self._client
        request = request._replace(writes=False)
        headers = {**self._keys, "content-type": JSON, "x-upload-content-type": DATA}
        if total is not None:
            headers["x-upload-content-length"] = str(total)
        query = f"uploadType=resumable&{query}"
        body = metadata_of(path[1:], token)
        answer = await client.ask(request, "POST", client.place.uploads, query, headers, body)
        client.need(request, answer, 200)
        # Wherever a server says that it is: credentials go to the endpoint that was named.
        there = urlsplit(answer.headers.get("location", ""))
        pairs = [pair for pair in there.query.split("&") if not pair.startswith("userProject=")]
        if not there.path.startswith("/") or not any(pairs):
            raise client.unread(request, ValueError("the response has no upload URL"))
        return there.path, "&".join(pairs)


_QUANTUM = 1 << 18  # what the service keeps of a block that is not the last is a multiple of this


def _kept(answer: Response) -> int:
    """Return how many bytes of the object a session has."""
    found = _RANGE.fullmatch(answer.headers.get("range", ""))
    return int(found[1]) + 1 if found else 0


def _crc32c() -> Any:
    """Return the module that computes CRC32C, or ``None``."""
    try:
        return import_module("google_crc32c")
    except ImportError:
        return None

"""Blobs of a flat account: metadata, content, copies and writes.

A directory is implied by the names of blobs. An empty one is a blob without content whose metadata
say that it is a directory, as Hadoop's clients and Azure's tools write it.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from asynccommit.errors import (
    ExistsError,
    PreconditionError,
    RejectedError,
    StoreError,
    UnavailableError,
)
from asynccommit.stores.adls.errors import AdlsRequest, explain
from asynccommit.stores.adls.flat.client import FlatBlobClient
from asynccommit.stores.adls.flat.wire import (
    FOLDER,
    TOKEN,
    info_of,
    list_query,
    listed,
    metadata,
)
from asynccommit.stores.adls.wire import bare_etag, query
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.http.base import Response
from asynccommit.stores.http.client import SMALL
from asynccommit.stores.http.flat import FlatObjects, Listing

LISTING = 64 << 20  # most bytes of a page: 5,000 names of a kilobyte, with properties
NEW = {"if-none-match": "*"}
PLAIN = query()
DATA = "application/octet-stream"


class FlatBlobs(FlatObjects[AdlsRequest]):
    """Reads and writes blobs.

    Args:
        client: what sends the requests.
    """

    def __init__(self, client: FlatBlobClient) -> None:
        self._client = client

    def url(self, request: AdlsRequest, path: str) -> str:
        """Return the URL path of a blob. Raises ``RejectedError``."""
        return self._client.container + self._client.encode(request, path)

    # --- what is there -----------------------------------------------------------------------

    async def find(self, request: AdlsRequest, path: str) -> Info | None:
        client = self._client
        answer = await client.ask(request, "HEAD", self.url(request, path), PLAIN, {})
        if answer.status == 404 and explain(answer)[0] == "BlobNotFound":
            return None
        client.need(request, answer, 200)
        try:
            return info_of(path, answer.headers)
        except ValueError as error:
            raise client.unread(request, error) from None

    async def page(
        self, request: AdlsRequest, path: str, most: int, token: str | None, *, tree: bool
    ) -> Listing:
        return await self.listing(request, path, token, tree=tree, include="metadata")

    async def listing(
        self, request: AdlsRequest, path: str, token: str | None, *, tree: bool, include: str
    ) -> Listing:
        """Return one page of a listing that includes more than blobs."""
        client = self._client
        if path != "/":
            client.encode(request, path)  # for its checks: in a query it is encoded otherwise
        asked = query(**list_query(path, token, tree=tree, include=include))
        answer = await client.ask(request, "GET", client.container, asked, {}, limit=LISTING)
        client.need(request, answer, 200)
        try:
            return listed(answer.body, path, token, tree=tree)
        except ValueError as error:
            raise client.unread(request, error) from None

    async def has_empty_folder(self, request: AdlsRequest, path: str) -> bool:
        info = await self.find(request.look, path)
        return info is not None and info.is_dir

    async def need_empty(self, request: AdlsRequest) -> None:
        if await self.below(request.look, request.path, 1):
            raise ExistsError(request.op, request.path, "the directory is not empty")

    # --- content -----------------------------------------------------------------------------

    async def read(self, request: AdlsRequest, path: str, limit: int) -> bytes:
        client = self._client
        # The range limit also leaves room for an error body.
        most = max(limit, SMALL)
        answer = await client.ask(request, "GET", self.url(request, path), PLAIN, {}, limit=most)
        if answer.status == 404 and explain(answer)[0] == "BlobNotFound":
            raise await self.missing(request, path)
        client.need(request, answer, 200)
        try:
            info = info_of(path, answer.headers)
        except ValueError as error:
            raise client.unread(request, error) from None
        if info.is_dir:
            raise PreconditionError(request.op, path, "is a directory")
        if len(answer.body) > limit:
            held = f"holds {len(answer.body)} bytes, more than {limit}"
            raise RejectedError(request.op, path, held)
        return answer.body

    async def write(self, request: AdlsRequest, path: str, data: bytes, token: str | None) -> Info:
        """Make the blob at ``path`` by one request."""
        marks = {TOKEN: token} if token is not None else {}
        return await self.put(request, path, data, marks)

    async def put(
        self, request: AdlsRequest, path: str, data: bytes, marks: Mapping[str, str]
    ) -> Info:
        """Make the blob at ``path`` with metadata."""
        client = self._client
        digest = hashlib.md5(data, usedforsecurity=False).digest()
        headers = {
            "x-ms-blob-type": "BlockBlob",
            "content-type": DATA,
            "content-md5": b64encode(digest).decode("ascii"),
            **metadata(marks),
            **(NEW if request.new else {}),
        }
        answer = await client.ask(request, "PUT", self.url(request, path), PLAIN, headers, data)
        client.need(request, answer, 201)
        return self.made(request, path, len(data), answer, marks.get(TOKEN))

    def made(
        self, request: AdlsRequest, path: str, size: int, answer: Response, token: str | None
    ) -> Info:
        """Return the facts about a blob that a response tells to be made."""
        etag = bare_etag(answer.headers.get("etag"))
        if etag is None:
            raise self._client.unread(request, ValueError("the response has no ETag"))
        return Info(path, Kind.FILE, size, etag, token=token)

    async def make_directory(self, request: AdlsRequest, path: str) -> None:
        new = request._replace(new=True)
        try:
            await self.put(new, path, b"", {FOLDER: "true"})
        except (ExistsError, PreconditionError):
            info = await self.find(request.look, path)
            if info is not None and not info.is_dir:
                raise PreconditionError(request.op, path, "a file is there") from None

    # --- copies ------------------------------------------------------------------------------

    async def copy(
        self, request: AdlsRequest, etag: str | None = None, replaces: str | None = None
    ) -> None:
        """Copy ``request.path`` to ``request.dest``, if its etag matches.

        The service does it. Uncommitted blocks of the destination are discarded by that.
        """
        client, source, dest = self._client, request.path, request.dest
        origin = client.place.origin
        headers = {"x-ms-copy-source": f"{origin}{self.url(request, source)}{client.tail}"}
        if request.new:
            headers |= NEW
        if replaces is not None:
            headers["if-match"] = f'"{bare_etag(replaces)}"'
        if etag is not None:
            headers["x-ms-source-if-match"] = f'"{bare_etag(etag)}"'
        answer = await client.ask(request, "PUT", self.url(request, dest), PLAIN, headers)
        if answer.status != 202:
            raise await self._not_copied(request, answer)
        if answer.headers.get("x-ms-copy-status", "success") != "success":
            text = "the service copies it in the background: wait, and resume"
            raise UnavailableError(request.op, source, text)

    async def copied_from(self, request: AdlsRequest) -> str | None:
        """Return the path that a blob of this container was copied from."""
        client, path = self._client, request.path
        answer = await client.ask(request, "HEAD", self.url(request, path), PLAIN, {})
        client.need(request, answer, 200)
        source = urlsplit(answer.headers.get("x-ms-copy-source", "")).path
        inside = f"{client.container}/"
        return f"/{unquote(source[len(inside) :])}" if source.startswith(inside) else None

    async def _not_copied(self, request: AdlsRequest, answer: Response) -> StoreError:
        """Return the error for a copy that was refused."""
        code = explain(answer)[0]
        if code in ("BlobNotFound", "CannotVerifyCopySource"):
            return await self.missing(request, request.path)
        if answer.status == 412 and await self.find(request.look, request.path) is None:
            return await self.missing(request, request.path)
        return self._client.error(request, answer)

"""Objects of Google Cloud Storage: metadata, content and writes."""

from __future__ import annotations

import re
from typing import ClassVar
from urllib.parse import quote

import orjson

from asynccommit.errors import (
    RejectedError,
    UnavailableError,
)
from asynccommit.stores.base import Info
from asynccommit.stores.gcs.client import GcsClient
from asynccommit.stores.gcs.errors import GcsRequest, explain, says_no_bucket
from asynccommit.stores.gcs.uploads import DATA, JSON, GcsStream, GcsUploads
from asynccommit.stores.gcs.wire import (
    OBJECT,
    PLAIN,
    WHOLE,
    copied,
    info_of,
    json_of,
    list_query,
    listed,
    mark_of,
    metadata_of,
    multipart,
)
from asynccommit.stores.http.base import Response
from asynccommit.stores.http.client import SMALL
from asynccommit.stores.http.flat import FlatObjects, Listing

LISTING = 64 << 20  # most bytes of a page: 5,000 entries with names of a kilobyte take a sixth
_CALLS = 100_000  # of one rewrite: a server that never ends is left
_REWRITTEN = f"fields=done,rewriteToken{PLAIN}"
_FOUND = f"fields=name{PLAIN}"
# What is said of an object that is encrypted with another key of a caller's, or with none.
_ANOTHER_KEY = re.compile(rb"WithCustomerEncryptionKey|customerEncryptionKeyIsIncorrect")


class GcsObjects(FlatObjects[GcsRequest]):
    """Reads and writes objects.

    Args:
        client: sends the requests.

    Attributes:
        uploads: uploads in sessions.
    """

    asks_both: ClassVar[bool] = True

    def __init__(self, client: GcsClient) -> None:
        settings = client.settings
        self._client = client
        self._bucket = client.place.objects.removesuffix("/o").removeprefix(
            client.place.prefix + client.place.service
        )
        self._keys = dict(settings.write_headers)
        self.uploads = GcsUploads(client, self._keys)
        self._rewrite_keys = {**settings.write_headers, **settings.source_headers}
        key = quote(settings.kms_key_name, safe="")
        self._insert_tail = f"&kmsKeyName={key}" if key else ""
        self._rewrite_tail = f"&destinationKmsKeyName={key}" if key else ""
        if settings.rewrite_chunk:
            self._rewrite_tail += f"&maxBytesRewrittenPerCall={settings.rewrite_chunk}"

    # --- what is there -----------------------------------------------------------------------

    async def find(self, request: GcsRequest, path: str) -> Info | None:
        client = self._client
        url = client.objects + client.encode(request, path)
        answer = await client.ask(request, "GET", url, OBJECT, dict(self._keys))
        if self._has_another_key(answer):
            answer = await client.ask(request, "GET", url, OBJECT)
        if answer.status == 404 and explain(answer)[0] and not says_no_bucket(answer):
            return None
        client.need(request, answer, 200)
        return self._info(request, path, answer)

    def _has_another_key(self, answer: Response) -> bool:
        """Return whether an object has another client's key and is unreadable."""
        return bool(self._keys and answer.status == 400 and _ANOTHER_KEY.search(answer.body))

    async def is_directory(self, request: GcsRequest, path: str) -> bool:
        """Return whether ``path`` is a folder or a prefix of an object's name."""
        client = self._client
        await client.need_layout(request)
        if client.hierarchical and path != "/":
            url = f"{client.folders}{client.encode(request, path)}%2F"
            answer = await client.ask(request, "GET", url, _FOUND)
            if answer.status == 404 and explain(answer)[0] and not says_no_bucket(answer):
                return False
            client.need(request, answer, 200)
            return True
        return await super().is_directory(request, path)

    async def has_empty_folder(self, request: GcsRequest, path: str) -> bool:
        return bool(self._client.hierarchical) and await self.is_directory(request, path)

    async def page(
        self, request: GcsRequest, path: str, most: int, token: str | None, *, tree: bool
    ) -> Listing:
        client = self._client
        if path != "/":
            client.encode(request, path)  # for its checks: in a query it is encoded otherwise
        await client.need_layout(request)
        folders = bool(client.hierarchical)
        asked = list_query(path, most, token, tree=tree, hierarchical=folders)
        answer = await client.ask(request, "GET", client.place.objects, asked, limit=LISTING)
        client.need(request, answer, 200)
        try:
            return listed(answer.body, path, tree=tree)
        except ValueError as error:
            raise client.unread(request, error) from None

    # --- content -----------------------------------------------------------------------------

    async def read(self, request: GcsRequest, path: str, limit: int) -> bytes:
        return (await self.read_tagged(request, path, limit))[0]

    async def read_tagged(
        self, request: GcsRequest, path: str, limit: int
    ) -> tuple[bytes, str | None]:
        """Return content and generation of an object of at most ``limit`` bytes."""
        client = self._client
        url = client.downloads + client.encode(request, path)
        # The range limit also leaves room for an error body.
        most = max(limit, SMALL)
        answer = await client.ask(request, "GET", url, "alt=media", dict(self._keys), limit=most)
        if self._has_another_key(answer):
            answer = await client.ask(request, "GET", url, "alt=media", limit=most)
        if answer.status == 404 and not says_no_bucket(answer):
            # Downloads say no in bare text; whether that is the service's word, metadata tell.
            if await self.find(request, path) is None:
                raise await self.missing(request, path)
            raise UnavailableError(request.op, path, "was created or deleted during the request")
        client.need(request, answer, 200)
        if "x-goog-generation" not in answer.headers:
            raise client.unread(request, ValueError("the response names no generation"))
        if len(answer.body) > limit:
            held = f"holds {len(answer.body)} bytes, more than {limit}"
            raise RejectedError(request.op, path, held)
        return answer.body, answer.headers["x-goog-generation"]

    async def write(self, request: GcsRequest, path: str, data: bytes, token: str | None) -> Info:
        """Make the object at ``path``, by one request unless it is large."""
        client = self._client
        name = client.encode(request, path)
        headers = dict(self._keys)
        query = self._insert_query(request)
        if len(data) > client.settings.chunk:
            answer = await self.uploads.send(request, path, data, token, query)
        elif token is None and not request.new:
            headers["content-type"] = DATA
            query = f"uploadType=media&name={name}&{query}"
            answer = await client.ask(request, "POST", client.place.uploads, query, headers, data)
        else:
            headers["content-type"], body = multipart(metadata_of(path[1:], token), data)
            query = f"uploadType=multipart&{query}"
            answer = await client.ask(request, "POST", client.place.uploads, query, headers, body)
        return self._created(request, path, answer, len(data))

    async def begin(self, request: GcsRequest, path: str) -> GcsStream:
        """Open a session for an object whose size is not known."""
        return await self.uploads.begin(request, path, self._insert_query(request))

    async def end(self, request: GcsRequest, stream: GcsStream, start: int, data: bytes) -> Info:
        """Send the last block of a session, which creates the object."""
        answer = await self.uploads.end(request, stream, start, data)
        info = self._created(request, stream.path, answer, start + len(data))
        stream.check(request, info)
        return info

    def _insert_query(self, request: GcsRequest) -> str:
        return f"{OBJECT}{self._insert_tail}{'&ifGenerationMatch=0' if request.new else ''}"

    def _created(self, request: GcsRequest, path: str, answer: Response, size: int) -> Info:
        """Return the facts about an object that was created with ``size`` bytes."""
        self._client.need(request, answer, 200, 201)
        info = self._info(request, path, answer)
        if info.size != size:
            text = f"an object of {info.size} bytes was created"
            raise self._client.unread(request, ValueError(text))
        return info

    async def make_directory(self, request: GcsRequest, path: str) -> None:
        if self._client.hierarchical:
            await self.make_folder(request, path)
        else:
            await self.make_placeholder(request, path)

    async def make_placeholder(self, request: GcsRequest, path: str) -> None:
        """Make the placeholder ``path/`` of a directory, unless it exists."""
        client = self._client
        name = f"{client.encode(request, path)}%2F"
        query = f"uploadType=media&name={name}&ifGenerationMatch=0&{_FOUND}{self._insert_tail}"
        headers = {**self._keys, "content-type": DATA}
        answer = await client.ask(request, "POST", client.place.uploads, query, headers)
        if answer.status != 412 or not explain(answer)[0]:
            client.need(request, answer, 200, 201)

    async def make_folder(self, request: GcsRequest, path: str) -> None:
        """Make a folder and those above it; that it is there already is fine."""
        client = self._client
        body = orjson.dumps({"name": f"{path[1:]}/"})
        url, query = client.folders.removesuffix("/"), f"recursive=true&{_FOUND}"
        answer = await client.ask(request, "POST", url, query, {"content-type": JSON}, body)
        if answer.status != 409 or not explain(answer)[0]:
            client.need(request, answer, 200, 201)

    async def marked(self, request: GcsRequest, source: str) -> bytes:
        """Return the metadata for a copy of the encoded ``source``; empty if it is gone."""
        client = self._client
        answer = await client.ask(
            request.look, "GET", client.objects + source, WHOLE, dict(self._keys)
        )
        if answer.status == 404 and explain(answer)[0] and not says_no_bucket(answer):
            return b""
        client.need(request.look, answer, 200)
        try:
            return copied(answer.body, mark_of(request.path, request.generation))
        except ValueError as error:
            raise client.unread(request.look, error) from None

    async def rewrite(
        self, request: GcsRequest, source: str, dest: str, conditions: str, metadata: bytes = b""
    ) -> Response | None:
        """Copy an object; return the error response, or ``None`` on success.

        Args:
            request: the request that the copy is for.
            source: the encoded name of the object.
            dest: the encoded name of the new object.
            conditions: the end of the query.
            metadata: the metadata of the new object, if not the source's.
        """
        client = self._client
        url = f"{client.objects}{source}/rewriteTo{self._bucket}/o/{dest}"
        token = ""
        for _ in range(_CALLS):
            query = f"{_REWRITTEN}{conditions}{self._rewrite_tail}{token}"
            headers = dict(self._rewrite_keys)
            if metadata:
                headers["content-type"] = "application/json"
            answer = await client.ask(request, "POST", url, query, headers, metadata)
            if answer.status != 200:
                return answer
            more = self._rest_of(request, answer)
            if not more:
                return None
            token = f"&rewriteToken={quote(more, safe='')}"
        raise RejectedError(request.op, request.path, f"was not copied after {_CALLS:,} requests")

    def _rest_of(self, request: GcsRequest, answer: Response) -> str:
        """Return the token that continues a rewrite; empty if it is done."""
        try:
            found = json_of(answer.body)
            more = found.get("rewriteToken")
            if found.get("done") is True:
                return ""
            if isinstance(more, str) and more:
                return more
            raise ValueError("the response is not one to a rewrite")
        except ValueError as error:
            raise self._client.unread(request, error) from None

    def _info(self, request: GcsRequest, path: str, answer: Response) -> Info:
        try:
            return info_of(path, answer.body)
        except ValueError as error:
            raise self._client.unread(request, error) from None

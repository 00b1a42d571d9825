"""Uploads to a flat account: blocks that no list has named yet.

Uncommitted blocks belong to a name. Whoever puts a blob of that name, or commits a list of blocks
there, discards everybody else's; nothing else deletes them until a week after the last one. So an
upload is the blocks of one name whose ids begin alike, and its completion names only those.

Sources: https://learn.microsoft.com/rest/api/storageservices/put-block and put-block-list
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Sequence

from asynccommit.errors import (
    NotFoundError,
    PreconditionError,
    RejectedError,
    StoreError,
    UnavailableError,
)
from asynccommit.stores.adls.errors import AdlsRequest, explain
from asynccommit.stores.adls.flat.client import FlatBlobClient
from asynccommit.stores.adls.flat.objects import DATA, LISTING, NEW, FlatBlobs
from asynccommit.stores.adls.flat.wire import (
    TOKEN,
    Block,
    block_list,
    block_name,
    blocks_of,
    metadata,
    uncommitted,
)
from asynccommit.stores.adls.wire import bare_etag, query
from asynccommit.stores.base import Info
from asynccommit.stores.multipart import PartPage, Upload, UploadPage
from asynccommit.stores.parts import Part

GONE = "its blocks are gone: another writer has used the name since, or a week has passed"
_LARGE = 1 << 20  # bytes whose checksum would keep the event loop for a millisecond
_AT_ONCE = 64  # block lists that a listing asks for at a time
_NONE = 0  # number of the block that stands for an upload without bytes, and is in no list
_LATE = b"not valid in the specified time frame"  # said of a signature
_UNSAFE = re.compile(r"[^0-9A-Za-z_-]")
_OWNER, _RANDOM = 24, 16  # characters of an id


class BlockUploads:
    """Stages blocks and commits them.

    Args:
        client: what sends the requests.
        files: of the same container.
        new_id: a fresh unique name.
    """

    def __init__(self, client: FlatBlobClient, files: FlatBlobs, new_id: Callable[[], str]) -> None:
        self._client = client
        self._files = files
        self._new_id = new_id

    def begin(self, request: AdlsRequest, owner: str) -> str:
        """Return the id of a new upload, of which the service does not know yet.

        Every id has the same length: those of the blocks of one blob must. It shows people whose
        blocks they find.
        """
        self._client.encode(request, request.path)  # for its checks
        name = _UNSAFE.sub("_", owner)[-_OWNER:].rjust(_OWNER, "_")
        return f"{name}-{self._new_id().replace('-', '')[-_RANDOM:].rjust(_RANDOM, '0')}"

    async def put(self, request: AdlsRequest, upload_id: str, number: int, data: bytes) -> Part:
        """Stage a block.

        The service refuses one of no bytes, so a mark takes its place.
        """
        client, sent = self._client, data
        if not data:
            number, sent = _NONE, b"-"
        url = self._files.url(request, request.path)
        asked = query(comp="block", blockid=block_name(upload_id, number))
        headers = {"content-type": DATA, "content-md5": await _md5(sent)}
        answer = await client.ask(request, "PUT", url, asked, headers, sent)
        if explain(answer)[0] == "InvalidBlobOrBlock" and answer.status == 400:
            raise await self._other_lengths(request)
        client.need(request, answer, 201)
        return Part(f"{upload_id}.{number:05}")

    async def _other_lengths(self, request: AdlsRequest) -> StoreError:
        """Return the error for blocks of others whose ids have another length."""
        blocks = await self._blocks(request.look)
        others = sorted({one.name for one in blocks if not one.upload_id})
        text = (
            f"{len(others)} uncommitted blocks of another writer have this name, and ids of "
            f"another length, as {others[0] if others else 'some'}: give the file another name, "
            "put and delete a blob of this name, or wait a week after the last of them"
        )
        return RejectedError(request.op, request.path, text)

    async def complete(
        self,
        request: AdlsRequest,
        upload_id: str,
        parts: Sequence[Part],
        etag: str | None,
        token: str | None,
    ) -> Info:
        """Commit the blocks by a request that the service refuses if late."""
        client = self._client
        names = self._names(request, upload_id, parts)
        if not names:  # an empty list is taken whatever is there, so look first
            await self._need_there(request, upload_id)
        condition = NEW if request.new else {}
        if etag is not None:
            condition = {"if-match": f'"{bare_etag(etag)}"'}
        headers = {
            "content-type": "application/xml",
            "x-ms-blob-content-type": DATA,
            **metadata({TOKEN: token or upload_id}),
            **condition,
        }
        url, asked = self._files.url(request, request.path), {"comp": "blocklist"}
        answer = await client.ask_in_time(request, url, {**asked}, headers, block_list(names))
        if answer.status == 403 and _LATE in answer.body:
            raise UnavailableError(request.op, request.path, "the list came late, and was refused")
        if answer.status == 400 and explain(answer)[0] == "InvalidBlockList":
            await self._need_there(request, upload_id)
            text = "a block that it names is not there, or was sent again"
            raise PreconditionError(request.op, request.path, text)
        client.need(request, answer, 201)
        return self._files.made(request, request.path, 0, answer, token or upload_id)

    def _names(self, request: AdlsRequest, upload_id: str, parts: Sequence[Part]) -> list[str]:
        """Return the names of the blocks that are the parts of this upload."""
        wanted = [f"{upload_id}.{number:05}" for number in range(1, len(parts) + 1)]
        given = [part.etag for part in parts]
        if given == [f"{upload_id}.{_NONE:05}"]:
            return []
        if not parts or given != wanted:
            text = "its parts are not those that were sent, in their order"
            raise PreconditionError(request.op, request.path, text)
        return [block_name(upload_id, number) for number in range(1, len(parts) + 1)]

    async def _need_there(self, request: AdlsRequest, upload_id: str) -> None:
        if not blocks_of(await self._blocks(request.look), upload_id):
            raise NotFoundError(request.op, request.path, GONE)

    async def completed(
        self, request: AdlsRequest, parts: Sequence[Part], token: str | None
    ) -> Info | None:
        """Return the blob at ``request.path`` if it has the token of this upload."""
        info = await self._files.find(request, request.path)
        if info is None or info.is_dir:
            return None
        wanted = token or (parts[0].etag.rpartition(".")[0] if parts else "")
        return info if wanted and info.token == wanted else None

    async def parts(self, request: AdlsRequest, upload_id: str) -> PartPage:
        """Return the blocks of an upload that no list has named."""
        found = blocks_of(await self._blocks(request), upload_id)
        if not found:
            raise NotFoundError(request.op, request.path, GONE)
        if [one.number for one in found] == [_NONE]:
            return PartPage(((1, Part(f"{upload_id}.{_NONE:05}"), 0),))
        entries = [(one.number, Part(f"{upload_id}.{one.number:05}"), one.size) for one in found]
        return PartPage(tuple(entries))

    async def _blocks(self, request: AdlsRequest) -> list[Block]:
        """Return all uncommitted blocks of a name, whoever's they are."""
        client, url = self._client, self._files.url(request, request.path)
        asked = query(comp="blocklist", blocklisttype="uncommitted")
        answer = await client.ask(request, "GET", url, asked, {}, limit=LISTING)
        if answer.status == 404 and explain(answer)[0] == "BlobNotFound":
            return []
        if explain(answer)[0] == "InvalidBlobType":  # of another type, which has none
            return []
        client.need(request, answer, 200)
        try:
            return uncommitted(answer.body)
        except ValueError as error:
            raise client.unread(request, error) from None

    async def begun(self, request: AdlsRequest, token: str | None) -> UploadPage:
        """Return the uploads of one page of names.

        Each name without a blob is asked for its blocks. One that has a blob is not listed: the
        listing does not tell whether it has uncommitted blocks as well.
        """
        found = await self._files.listing(
            request, request.path, token, tree=True, include="uncommittedblobs"
        )
        names = [info for info in found.entries if not info.is_dir and not info.size]
        turn = asyncio.Semaphore(_AT_ONCE)
        asked = [self._uploads_of(request, info, turn) for info in names]
        return UploadPage(
            tuple(one for some in await asyncio.gather(*asked) for one in some), found.token
        )

    async def _uploads_of(
        self, request: AdlsRequest, info: Info, turn: asyncio.Semaphore
    ) -> list[Upload]:
        async with turn:
            blocks = await self._blocks(request._replace(path=info.path))
        ids = dict.fromkeys(one.upload_id for one in blocks if one.upload_id)
        return [Upload(info.path, upload_id, info.modified) for upload_id in ids]


async def _md5(data: bytes) -> str:
    """Return the MD5 of a block, computed in a thread if it is large."""
    if len(data) < _LARGE:
        return _digest(data)
    return await asyncio.to_thread(_digest, data)


def _digest(data: bytes) -> str:
    return b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode("ascii")

"""Azure Data Lake Storage Gen2, by its REST interface."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import aclosing
from importlib import import_module
from typing import Any

from asynccommit.errors import ExistsError, NotFoundError, PreconditionError, RejectedError
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.adls.client import MANAGED, AdlsClient
from asynccommit.stores.adls.errors import AdlsRequest, explain
from asynccommit.stores.adls.objects import AdlsObjects, pieces_of
from asynccommit.stores.adls.options import read_settings
from asynccommit.stores.adls.tokens import AzureTokens
from asynccommit.stores.adls.wire import PAGE, entries_of, query
from asynccommit.stores.base import Info, Page, Streaming, Traits
from asynccommit.stores.clients import SDK
from asynccommit.stores.http.base import Transport
from asynccommit.stores.http.client import open_transport
from asynccommit.stores.streaming import Stream
from asynccommit.stores.urls import Address

_LONGEST = 1024  # characters of the name of a blob
_AT_ONCE = 16  # blocks of one file: Hadoop's client sends as many for every processor, or fewer
_PARTS = 100_000  # requests that delete one directory: each takes away some thousand entries
_LISTING = 64 << 20  # most bytes of a page: 5,000 entries with paths of a kilobyte take a tenth

_SDK = "asynccommit.stores.adls.sdk"  # imported only if its library is asked for
_DIRECTORY = query(resource="directory")
_DELETE = query(recursive="false")
_new = tuple.__new__  # half the time of AdlsRequest(...), once for every file


class AdlsStream(Stream):
    """A hidden file to which blocks are appended, and whether all have been."""

    __slots__ = ("whole",)

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.whole = False


class AdlsStore:
    """One container of a storage account with a hierarchical namespace.

    The first request checks that: in a flat account a rename takes many requests, and the
    guarantees of this class would not hold.

    Etags have no quotes, as in Hadoop's manifests. Names that end in a dot are refused, as by
    Hadoop, because the service removes the dot.

    ``put`` and ``copy`` write a temporary file in the same directory, hidden from listings, and
    move it, so readers never see a partial file. They check the directory first, because the
    service would create it. A failure before the move has changed nothing. A copy holds 8 MiB in
    memory.

    A rename never moves a directory into another one: without ``replace`` it requires that the
    destination does not exist, and otherwise it uses the mode in which a directory replaces only an
    empty directory.

    Args:
        address: scheme and authority of the container.
        options: see ``azure_options``.
        environ: the environment, if not that of the process.
        host: clock and ids.
        transport: the HTTP transport; by default the one that ``open_transport`` finds.

    Raises:
        OptionError: an option or the address cannot be used.
        UnsupportedError: a library is missing.
    """

    def __init__(
        self,
        address: Address,
        options: Mapping[str, Any] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        host: Host | None = None,
        transport: Transport | None = None,
    ) -> None:
        host = host or this_host()
        environ = os.environ if environ is None else environ
        settings = read_settings(address, options or {}, environ=environ, now=host.now)
        place = settings.place
        # Only with tokens are permissions checked file by file, which may take several requests.
        parts = {"paginated": "true"} if isinstance(settings.credential, AzureTokens) else {}
        credential = None
        if transport is None and settings.library == SDK:
            credential, transport = import_module(_SDK).open_sdk(settings)
        transport = transport or open_transport(settings.http, prefer=settings.library)
        self._name = f"AdlsStore({place.container}@{place.host})"
        self._client = AdlsClient(settings, host, transport, credential)
        self._files = AdlsObjects(self._client, host.new_id)
        self._delete_tree = {"recursive": "true", **parts}
        self.traits = Traits(
            "Azure Data Lake Storage Gen2",
            tokens=True,
            workers=settings.workers,
            account=place.limit,
            atomic_put=True,
            tagged_get=True,
            drafts=True,
            streaming=Streaming(settings.block, _AT_ONCE),
            longest_text=_LONGEST + 1,  # a name has no slash at its beginning
            costs={"put": 4, "copy": 5, "draft": 2, "end_stream": 2},
        )

    def __repr__(self) -> str:
        return self._name

    async def head(self, path: str) -> Info:
        return await self._files.head(AdlsRequest("head", path), path)

    async def list(self, path: str, token: str | None = None) -> Page:
        request, client = AdlsRequest("list", path), self._client
        client.encode(request, path)  # for its checks: in a query it is encoded otherwise
        about = {"directory": path[1:]} if path != "/" else {}
        more = {"continuation": token} if token else {}
        asked = query(resource="filesystem", recursive="false", maxResults=PAGE, **about, **more)
        answer = await client.ask(request, "GET", client.container, asked, {}, limit=_LISTING)
        client.need(request, answer, 200)
        try:
            entries = entries_of(answer.body, path)
        except ValueError as error:
            raise client.unread(request, error) from None
        if len(entries) == 1 and entries[0].path == path:
            raise PreconditionError("list", path, "is a file")
        return Page(tuple(entries), answer.headers.get("x-ms-continuation") or None)

    async def get(self, path: str, limit: int) -> bytes:
        return (await self.get_tagged(path, limit))[0]

    async def get_tagged(self, path: str, limit: int) -> tuple[bytes, str | None]:
        return await self._files.read(AdlsRequest("get", path), path, limit)

    async def put(
        self, path: str, data: bytes, *, overwrite: bool = True, token: str | None = None
    ) -> Info:
        request = AdlsRequest("put", path, writes=True, new=not overwrite)
        return await self._files.place(request, path, pieces_of(data), token)

    async def draft(self, folder: str, data: bytes) -> Info:
        return await self._files.draft(AdlsRequest("draft", folder), folder, pieces_of(data))

    async def reserve(self, folder: str) -> str:
        return await self._files.reserve(AdlsRequest("reserve", folder), folder)

    async def fill(self, path: str, data: bytes) -> Info:
        request = AdlsRequest("fill", path, writes=True)
        return await self._files.fill(request, path, pieces_of(data))

    async def begin_stream(self, path: str, folder: str) -> AdlsStream:
        request = AdlsRequest("begin_stream", path)
        self._client.encode(request, path)
        return AdlsStream(await self._files.reserve(request, folder))

    async def put_block(self, path: str, stream: AdlsStream, start: int, data: bytes) -> None:
        request = AdlsRequest("put_block", path, writes=True)
        await self._files.put_block(request, stream.path, start, data)

    async def end_stream(self, path: str, stream: AdlsStream, start: int, data: bytes) -> Info:
        request = AdlsRequest("end_stream", path, writes=True)
        if not stream.whole:  # after a flush whose response was lost, an append would be refused
            await self._files.put_block(request, stream.path, start, data)
            stream.whole = True
        return await self._files.flush(request, stream.path, start + len(data))

    async def abort_stream(self, path: str, stream: AdlsStream) -> None:
        request, client = AdlsRequest("abort_stream", path, writes=True), self._client
        url = client.container + client.encode(request, stream.path)
        client.need(request, await client.ask(request, "DELETE", url, _DELETE, {}), 200, 202)

    async def delete(self, path: str) -> None:
        request, client = AdlsRequest("delete", path, writes=True), self._client
        url = self._below_root(request)
        answer = await client.ask(request, "DELETE", url, _DELETE, {})
        client.need(request, answer, 200, 202)

    async def delete_tree(self, path: str) -> None:
        request, client = AdlsRequest("delete_tree", path, writes=True), self._client
        url = self._below_root(request)
        more: dict[str, str] = {}
        for _ in range(_PARTS):
            asked = query(**self._delete_tree, **more)
            answer = await client.ask(request, "DELETE", url, asked, {})
            if more and answer.status == 404:  # somebody else did the rest
                return
            client.need(request, answer, 200, 202)
            token = answer.headers.get("x-ms-continuation")
            if not token:
                return
            more = {"continuation": token}
        raise RejectedError("delete_tree", path, f"was not deleted after {_PARTS:,} requests")

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        files = self._files
        request = AdlsRequest("copy", source, writes=True, new=not overwrite, dest=dest)
        async with aclosing(files.pieces(AdlsRequest("copy", source), source)) as pieces:
            await files.place(request, dest, pieces)

    async def rename(
        self,
        source: str,
        dest: str,
        *,
        replace: bool = False,
        etag: str | None = None,
        token: str | None = None,
    ) -> None:
        request = _new(AdlsRequest, ("rename", source, True, not replace, False, dest))
        encode, files = self._client.encode, self._files
        here, there = encode(request, source), encode(request, dest)
        files.need_moved(request, await files.ask_move(request, here, there, etag, token))

    async def mkdir(self, path: str) -> None:
        request, client = AdlsRequest("mkdir", path, writes=True), self._client
        if path == "/" or not client.may_write(path):
            await self._need_managed(AdlsRequest("mkdir", path))
            return
        url = client.container + client.encode(request, path)
        # Without the condition, a directory that is there would lose its properties.
        answer = await client.ask(request, "PUT", url, _DIRECTORY, {"if-none-match": "*"})
        if answer.status != 409 or explain(answer)[0] != "PathAlreadyExists":
            client.need(request, answer, 201)
            return
        kind = answer.headers.get("x-ms-existing-resource-type")
        if kind is None:  # older versions of the service do not say
            info = await self._files.head(AdlsRequest("mkdir", path), path)
            kind = info.kind.value
        if kind != "directory":
            raise PreconditionError("mkdir", path, f"a {kind} is there")

    async def mkdir_new(self, path: str, *, token: str | None = None) -> None:
        request, client = AdlsRequest("mkdir_new", path, writes=True, new=True), self._client
        if path == "/" or not client.may_write(path):
            await self._need_managed(AdlsRequest("mkdir_new", path))
            raise ExistsError("mkdir_new", path, "is always there")
        url = client.container + client.encode(request, path)
        marked = {"x-ms-client-transaction-id": token} if token is not None else {}
        answer = await client.ask(request, "PUT", url, _DIRECTORY, {"if-none-match": "*", **marked})
        client.need(request, answer, 201)

    async def sync(self, path: str) -> None:
        """Do nothing: the service responds only once data is durable."""

    async def aclose(self) -> None:
        """Close the connections, and the credential if it was made here."""
        await self._client.aclose()

    async def _need_managed(self, request: AdlsRequest) -> None:
        """See that a directory is there which nobody makes by requests."""
        try:
            info = await self._files.head(request, request.path)
        except NotFoundError:
            raise RejectedError(request.op, request.path, MANAGED) from None
        if not info.is_dir:
            raise PreconditionError(request.op, request.path, "a file is there")

    def _below_root(self, request: AdlsRequest) -> str:
        """Return the URL path to delete."""
        if request.path == "/":
            raise RejectedError(request.op, request.path, "the root cannot be deleted")
        return self._client.container + self._client.encode(request, request.path)

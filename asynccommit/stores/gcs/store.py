"""Google Cloud Storage, by its JSON interface."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    RejectedError,
    StoreError,
)
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.base import Info, Page, Streaming, Traits
from asynccommit.stores.clients import SDK
from asynccommit.stores.gcs.batch import GcsDeletions
from asynccommit.stores.gcs.client import GcsClient
from asynccommit.stores.gcs.errors import GcsRequest, explain, says_not_empty
from asynccommit.stores.gcs.moves import Moves
from asynccommit.stores.gcs.objects import LISTING, GcsObjects
from asynccommit.stores.gcs.options import read_settings
from asynccommit.stores.gcs.uploads import GcsStream
from asynccommit.stores.gcs.wire import (
    folder_query,
    folders_listed,
)
from asynccommit.stores.http.base import Response, Transport
from asynccommit.stores.http.client import open_transport
from asynccommit.stores.http.flat import LONGEST, FlatStore
from asynccommit.stores.urls import Address

_OBJECTS, _FOLDERS = "o", "f"  # what the token of a page of a whole tree begins with
_SDK = "asynccommit.stores.gcs.sdk"  # imported only if its library is asked for
_EMPTY = (b"", b"{}", b"null")


class GcsStore(FlatStore[GcsRequest]):
    """One bucket, with a hierarchical namespace or without.

    The first request finds out whether the bucket has folders. Without folders, directories are
    implied by the names of objects, and empty ones are represented by placeholders: empty objects
    whose names end in a slash, as Hadoop's connector creates them. With folders, files still create
    their folders, and a folder is renamed as a whole.

    An etag is ``<generation>-<crc32c>``. The generation identifies this object; a rename creates an
    object with another generation and the same checksum. Where the service shows no checksum, as in
    listings of objects encrypted with a customer's key, the etag is the generation alone. Arguments
    may also be etags of the JSON interface.

    A file and a directory of the same name can both exist, as in the service.

    Args:
        address: scheme and authority of the bucket.
        options: see ``gcs_options``.
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
        if transport is None and settings.library == SDK:
            credential, transport = import_module(_SDK).open_sdk(settings)
            settings = replace(settings, credential=credential)
        transport = transport or open_transport(settings.http, prefer=settings.library)
        self._settings = settings
        self._client = GcsClient(settings, host, transport, self._learn)
        self._files = GcsObjects(self._client)
        super().__init__(settings.place.bucket, self._client, self._files, settings.page)
        self._moves = Moves(self._client, self._files, self._learn_no_moves)
        self._deletions = GcsDeletions(self._client, self._learn_no_batches)
        hierarchical = bool(settings.hierarchical)
        self.traits = Traits(
            "Google Cloud Storage",
            directories=False,
            atomic_directory_rename=hierarchical,
            etag_survives_rename=False,
            content_etags=True,
            whole_listings=not settings.write_headers,
            atomic_put=True,
            recursive_delete=False,
            bulk_delete=settings.batch,
            put_tokens=True,
            tagged_get=True,
            streaming=Streaming(settings.chunk, at_once=1),
            longest_path=LONGEST + 1,  # a name has no slash at its beginning
            workers=settings.workers,
            account=settings.place.limit,
            ramp=settings.ramp_for(hierarchical),
            name_interval=1.0 if settings.ramp_for(hierarchical) else 0.0,
            costs={"mkdir": 2} if settings.move else {"mkdir": 2, "rename": 2},
        )

    def asked(self, op: str, path: str, *, writes: bool = False, new: bool = False) -> GcsRequest:
        return GcsRequest(op, path, writes, new)

    async def list_tree(self, path: str, token: str | None = None) -> Page:
        request, client = GcsRequest("list_tree", path), self._client
        if token is None or token[0] == _OBJECTS:
            rest = token and token[1:]
            found = await self._files.page(request, path, self._most, rest, tree=True)
            more = _OBJECTS + found.token if found.token else None
            if more is None and client.hierarchical:
                more = _FOLDERS
            return Page(tuple(found.entries), more)
        asked = folder_query(path, self._most, token[1:])
        url = client.folders.removesuffix("/")
        answer = await client.ask(request, "GET", url, asked, limit=LISTING)
        client.need(request, answer, 200)
        try:
            found = folders_listed(answer.body, path)
        except ValueError as error:
            raise client.unread(request, error) from None
        return Page(tuple(found.entries), _FOLDERS + found.token if found.token else None)

    async def delete(self, path: str) -> None:
        request, client = GcsRequest("delete", path, writes=True), self._client
        if path == "/":
            raise RejectedError("delete", path, "the root cannot be deleted")
        answer = await client.ask(request, "DELETE", client.objects + client.encode(request, path))
        try:
            self._need_deleted(request, answer)
        except NotFoundError:
            await self._delete_directory(request)

    async def delete_many(self, entries: Sequence[Info]) -> Sequence[StoreError | None]:
        return await self._deletions.delete(entries)

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        client, files = self._client, self._files
        request = GcsRequest("copy", source, writes=True, new=not overwrite, dest=dest)
        names = client.encode(request, source), client.encode(request, dest)
        condition = "&ifGenerationMatch=0" if request.new else ""
        answer = await files.rewrite(request, *names, condition)
        if answer is None:
            return
        error = client.error(request, answer)
        raise await files.missing(request, source) if isinstance(error, NotFoundError) else error

    async def get_tagged(self, path: str, limit: int) -> tuple[bytes, str | None]:
        return await self._files.read_tagged(GcsRequest("get", path), path, limit)

    async def begin_stream(self, path: str, folder: str) -> GcsStream:
        request = GcsRequest("begin_stream", path, writes=True, new=True)
        return await self._files.begin(request, path)

    async def put_block(self, path: str, stream: GcsStream, start: int, data: bytes) -> None:
        request = GcsRequest("put_block", path, writes=True)
        await self._files.uploads.put(request, stream, start, data)

    async def end_stream(self, path: str, stream: GcsStream, start: int, data: bytes) -> Info:
        request = GcsRequest("end_stream", path, writes=True, new=True)
        return await self._files.end(request, stream, start, data)

    async def abort_stream(self, path: str, stream: GcsStream) -> None:
        request = GcsRequest("abort_stream", path, writes=True)
        await self._files.uploads.abort(request, stream)

    async def rename(
        self,
        source: str,
        dest: str,
        *,
        replace: bool = False,
        etag: str | None = None,
        token: str | None = None,
    ) -> None:
        request = GcsRequest("rename", source, writes=True, new=not replace, dest=dest)
        await self._moves.rename(request, etag)

    # --- what requests have shown --------------------------------------------------------------

    def _learn(self, hierarchical: bool) -> None:
        ramp = self._settings.ramp_for(hierarchical)
        self.traits = replace(self.traits, atomic_directory_rename=hierarchical, ramp=ramp)

    def _learn_no_moves(self) -> None:
        self.traits = replace(self.traits, costs={**self.traits.costs, "rename": 2})

    def _learn_no_batches(self) -> None:
        self.traits = replace(self.traits, bulk_delete=1)

    # --- parts -------------------------------------------------------------------------------

    async def _delete_directory(self, request: GcsRequest) -> None:
        """Delete a directory, unless it holds something."""
        client = self._client
        name = client.encode(request, request.path)
        if client.hierarchical:
            await self._delete_folder(request, name)
            return
        await self._files.need_empty(request)
        answer = await client.ask(request, "DELETE", f"{client.objects}{name}%2F")
        self._need_deleted(request, answer)

    async def _delete_folder(self, request: GcsRequest, name: str) -> None:
        """Delete an empty folder, after the placeholder that other clients make."""
        client = self._client
        answer = await client.ask(request, "DELETE", f"{client.objects}{name}%2F")
        placeholder = answer.status != 404 or not explain(answer)[0]
        if placeholder:
            self._need_deleted(request, answer)
        answer = await client.ask(request, "DELETE", f"{client.folders}{name}%2F")
        if says_not_empty(answer):
            raise ExistsError("delete", request.path, client.judge.told(explain(answer)[1]))
        if not placeholder or answer.status != 404:
            self._need_deleted(request, answer)

    def _need_deleted(self, request: GcsRequest, answer: Response) -> None:
        # Emulators say 200 with an empty value; a page that says hello has another body.
        if answer.status != 204 and not (answer.status == 200 and answer.body.strip() in _EMPTY):
            raise self._client.error(request, answer)

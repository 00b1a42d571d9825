"""A flat account of Azure Blob Storage, by its Blob endpoint."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from asynccommit.errors import (
    NotFoundError,
    OptionError,
    OutcomeUnknownError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
    UnsupportedError,
)
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.adls.errors import AdlsRequest
from asynccommit.stores.adls.flat.client import LONGEST, FlatBlobClient
from asynccommit.stores.adls.flat.objects import PLAIN, FlatBlobs
from asynccommit.stores.adls.flat.uploads import BlockUploads
from asynccommit.stores.adls.flat.wire import PAGE
from asynccommit.stores.adls.options import AzureSettings, read_settings
from asynccommit.stores.adls.wire import bare_etag
from asynccommit.stores.base import Info, Multipart, Page, Traits
from asynccommit.stores.clients import SDK
from asynccommit.stores.http.base import Transport
from asynccommit.stores.http.client import open_transport
from asynccommit.stores.http.flat import FlatStore
from asynccommit.stores.multipart import PartPage, UploadPage
from asynccommit.stores.parts import Part
from asynccommit.stores.urls import Address
from asynccommit.version import __version__

_LARGEST = 4000 << 20  # bytes of a block
_BLOCKS = 50_000  # of a blob
_WEEK = 7 * 86_400.0
_BULK = 32  # deletions of one call, each a request
_PASSING = (ThrottledError, UnavailableError, OutcomeUnknownError)


class FlatBlobStore(FlatStore[AdlsRequest]):
    """One container of a storage account without a hierarchical namespace.

    Directories are implied by the names of blobs; an empty one is a blob whose metadata say so.
    Nothing is ever renamed: tasks stage blocks under the name of a file, and a block list makes the
    file of them. Blocks cannot be deleted, so ``abort_upload`` does nothing: they go a week after
    the last of them, or with the next blob that is put there.

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
        if settings.library == SDK or settings.client is not None:
            raise OptionError(
                "a flat account is reached without Azure's SDK: leave out client and "
                "http_library=sdk, and give credential, account_key or sas_token"
            )
        http = replace(settings.http, user_agent=f"asynccommit-blob/{__version__}")
        transport = transport or open_transport(http, prefer=settings.library)
        self._client = FlatBlobClient(settings, host, transport)
        self._files = FlatBlobs(self._client)
        name = f"{settings.place.container}@{settings.place.host}"
        super().__init__(name, self._client, self._files, PAGE)
        self._uploads = BlockUploads(self._client, self._files, host.new_id)
        self.traits = _traits(settings, self._client.late)

    def asked(self, op: str, path: str, *, writes: bool = False, new: bool = False) -> AdlsRequest:
        return AdlsRequest(op, path, writes, new)

    # --- files -------------------------------------------------------------------------------

    async def list_tree(self, path: str, token: str | None = None) -> Page:
        request = AdlsRequest("list_tree", path)
        found = await self._files.page(request, path, self._most, token, tree=True)
        return Page(tuple(found.entries), found.token)

    async def put_marker(self, path: str, metadata: Mapping[str, str]) -> Info:
        request = AdlsRequest("put_marker", path, writes=True)
        return await self._files.put(request, path, b"", metadata)

    async def mkdir(self, path: str) -> None:
        request, files = AdlsRequest("mkdir", path, writes=True), self._files
        if path == "/":
            await files.is_directory(request.look, path)
            return
        await files.make_directory(request, path)

    async def delete(self, path: str) -> None:
        request, files = AdlsRequest("delete", path, writes=True), self._files
        if path == "/":
            raise RejectedError("delete", path, "the root is not deleted")
        info = await files.find(request.look, path)
        if info is None or info.is_dir:
            await files.need_empty(request)
        if info is None:
            raise NotFoundError("delete", path, "there is no such blob")
        await self._delete(request, info.etag if info.is_dir else None)

    async def delete_many(self, entries: Sequence[Info]) -> Sequence[StoreError | None]:
        said = await asyncio.gather(*map(self._delete_listed, entries))
        if len(said) == 1 and isinstance(said[0], _PASSING):
            raise said[0]
        return said

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        request = AdlsRequest("copy", source, writes=True, new=not overwrite, dest=dest)
        await self._files.copy(request)

    async def copy_if(
        self, source: str, dest: str, etag: str, *, replaces: str | None = None
    ) -> None:
        request = AdlsRequest("copy_if", source, writes=True, dest=dest)
        await self._files.copy(request, etag, replaces)

    async def copied_from(self, path: str) -> str | None:
        return await self._files.copied_from(AdlsRequest("copied_from", path))

    async def rename(
        self,
        source: str,
        dest: str,
        *,
        replace: bool = False,
        etag: str | None = None,
        token: str | None = None,
    ) -> None:
        """Refuse: there are no renames; committers commit block lists instead."""
        raise UnsupportedError(
            f"rename {source}: a flat account has no rename, only a copy and a delete, which is "
            "not atomic; use the committers magic or staging"
        )

    # --- uploads -----------------------------------------------------------------------------

    async def create_upload(self, path: str, *, token: str | None = None, owner: str = "") -> str:
        return self._uploads.begin(AdlsRequest("create_upload", path), owner)

    async def put_part(self, path: str, upload_id: str, number: int, data: bytes) -> Part:
        request = AdlsRequest("put_part", path, writes=True)
        return await self._uploads.put(request, upload_id, number, data)

    async def complete_upload(
        self,
        path: str,
        upload_id: str,
        parts: Sequence[Part],
        *,
        overwrite: bool = True,
        etag: str | None = None,
        token: str | None = None,
    ) -> Info:
        new = etag is None and not overwrite
        request = AdlsRequest("complete_upload", path, writes=True, new=new)
        return await self._uploads.complete(request, upload_id, parts, etag, token)

    async def completed(
        self, path: str, parts: Sequence[Part], token: str | None = None
    ) -> Info | None:
        return await self._uploads.completed(AdlsRequest("completed", path), parts, token)

    async def abort_upload(self, path: str, upload_id: str) -> None:
        """Do nothing: no request deletes uncommitted blocks alone."""

    async def list_uploads(self, path: str, token: str | None = None) -> UploadPage:
        return await self._uploads.begun(AdlsRequest("list_uploads", path), token)

    async def list_parts(self, path: str, upload_id: str, token: str | None = None) -> PartPage:
        return await self._uploads.parts(AdlsRequest("list_parts", path), upload_id)

    async def learn(self, path: str) -> None:
        """Do nothing: the service is known to honour its conditions."""

    # --- parts -------------------------------------------------------------------------------

    async def _delete_listed(self, info: Info) -> StoreError | None:
        request = AdlsRequest("delete_many", info.path, writes=True)
        try:
            if info.is_dir and info.etag is None:
                await self._files.need_empty(request)
            await self._delete(request, info.etag)
        except StoreError as error:
            return error
        return None

    async def _delete(self, request: AdlsRequest, etag: str | None) -> None:
        client = self._client
        url = self._files.url(request, request.path)
        headers = {"if-match": f'"{bare_etag(etag)}"'} if etag is not None else {}
        answer = await client.ask(request, "DELETE", url, PLAIN, headers)
        client.need(request, answer, 202)


def _traits(settings: AzureSettings, late: float | None) -> Traits:
    return Traits(
        "flat Azure Blob Storage",
        directories=False,
        atomic_rename=False,
        atomic_directory_rename=False,
        rename_no_replace=False,
        rename_replaces=False,
        etag_survives_rename=False,
        conditional_rename=False,
        atomic_put=True,
        recursive_delete=False,
        bulk_delete=_BULK,
        multipart=Multipart(
            smallest=1,
            largest=_LARGEST,
            parts=_BLOCKS,
            aborts=False,
            copy_etags=False,
            expires=_WEEK,
            late=late if late is not None else settings.http.total_timeout,
        ),
        put_tokens=True,
        longest_text=LONGEST,
        workers=settings.workers,
        account=settings.place.limit,
        costs={"delete": 3, "delete_many": _BULK, "copy": 1},
    )

"""Amazon S3, and servers that speak as it does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from asynccommit.errors import (
    DeniedError,
    RejectedError,
    StoreError,
    UnsupportedError,
)
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.base import Info, Multipart, Page, Traits
from asynccommit.stores.http.base import Transport
from asynccommit.stores.http.client import open_transport
from asynccommit.stores.http.flat import LONGEST, FlatStore
from asynccommit.stores.multipart import PartPage, UploadPage
from asynccommit.stores.parts import Part
from asynccommit.stores.s3.abilities import PROBE, find_abilities, refuse_lacking
from asynccommit.stores.s3.client import S3Client
from asynccommit.stores.s3.deletes import S3Deletions
from asynccommit.stores.s3.errors import S3Request
from asynccommit.stores.s3.known_servers import KNOWN
from asynccommit.stores.s3.objects import S3Objects
from asynccommit.stores.s3.options import S3Settings, read_settings
from asynccommit.stores.s3.trial import S3Trial
from asynccommit.stores.s3.uploads import S3Uploads
from asynccommit.stores.urls import Address


class S3Store(FlatStore[S3Request]):
    """One bucket.

    Directories are implied by the names of objects; empty directories are placeholders: empty
    objects whose names end in a slash, as Hadoop creates them. Nothing is ever renamed: files are
    uploaded in parts, and appear where they belong when they are completed.

    An etag is the service's, without quotes: of two objects with the same content it may be the
    same. The writer of an object is identified by its token after a put, and by ``completed`` after
    an upload.

    A file and a directory of the same name can both exist, as in the service.

    Args:
        address: scheme and authority of the bucket.
        options: see ``s3_options``.
        environ: the environment, if not that of the process.
        host: clock and ids.
        transport: the HTTP transport; by default the one that ``open_transport`` finds.

    Raises:
        OptionError: an option or the address cannot be used.
        UnsupportedError: a library is missing.
    """

    kind_of_files: ClassVar[type[S3Objects]] = S3Objects

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
        settings = read_settings(address, options or {}, environ=environ, host=host)
        transport = transport or open_transport(settings.http, prefer=settings.library)
        self._client = S3Client(settings, host, transport, self._describe)
        self._files = self.kind_of_files(self._client)
        super().__init__(settings.place.bucket, self._client, self._files, settings.page)
        self._uploads = S3Uploads(self._client, self._files)
        self._deletions = S3Deletions(self._client, self._files)
        self._host = host
        self._describe(settings)

    def asked(self, op: str, path: str, *, writes: bool = False, new: bool = False) -> S3Request:
        return S3Request(op, path, writes, new)

    # --- files -------------------------------------------------------------------------------

    async def list_tree(self, path: str, token: str | None = None) -> Page:
        request = S3Request("list_tree", path)
        found = await self._files.page(request, path, self._most, token, tree=True)
        return Page(tuple(found.entries), found.token)

    async def put_marker(self, path: str, metadata: Mapping[str, str]) -> Info:
        return await self._files.mark(S3Request("put_marker", path, writes=True), path, metadata)

    async def delete(self, path: str) -> None:
        request, files, client = S3Request("delete", path, writes=True), self._files, self._client
        if path == "/":
            raise RejectedError("delete", path, "the root cannot be deleted")
        # The service reports success for the deletion of a missing object.
        slash = ""
        if await files.find(request.look, path) is None:
            await files.need_empty(request)
            slash = "/"
        key = client.encode(request, path) + slash
        answer = await client.ask(request, "DELETE", key)
        client.need(request, answer, 204, 200)

    async def delete_many(self, entries: Sequence[Info]) -> Sequence[StoreError | None]:
        return await self._deletions.delete(entries)

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        request = S3Request("copy", source, writes=True, new=not overwrite, dest=dest)
        await self._files.copy(request)

    async def copy_if(
        self, source: str, dest: str, etag: str, *, replaces: str | None = None
    ) -> None:
        request = S3Request("copy_if", source, writes=True, dest=dest, etag=replaces)
        await self._files.copy(request, etag)

    async def rename(
        self,
        source: str,
        dest: str,
        *,
        replace: bool = False,
        etag: str | None = None,
        token: str | None = None,
    ) -> None:
        """Refuse: S3 has no renames; its committers complete uploads instead."""
        raise UnsupportedError(
            f"rename {source}: S3 has no rename, only a copy and a delete, which is not atomic; "
            "use the committers magic or staging"
        )

    # --- uploads -----------------------------------------------------------------------------

    async def create_upload(self, path: str, *, token: str | None = None, owner: str = "") -> str:
        return await self._uploads.create(S3Request("create_upload", path, writes=True), token)

    async def put_part(self, path: str, upload_id: str, number: int, data: bytes) -> Part:
        request = S3Request("put_part", path, writes=True)
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
        request = S3Request("complete_upload", path, writes=True, new=new, etag=etag)
        return await self._uploads.complete(request, upload_id, parts)

    async def completed(
        self, path: str, parts: Sequence[Part], token: str | None = None
    ) -> Info | None:
        return await self._uploads.completed(S3Request("completed", path), parts, token)

    async def abort_upload(self, path: str, upload_id: str) -> None:
        await self._uploads.abort(S3Request("abort_upload", path, writes=True), upload_id)

    async def list_uploads(self, path: str, token: str | None = None) -> UploadPage:
        return await self._uploads.list(S3Request("list_uploads", path), token)

    async def list_parts(self, path: str, upload_id: str, token: str | None = None) -> PartPage:
        return await self._uploads.parts(S3Request("list_parts", path), upload_id, token)

    async def learn(self, path: str) -> None:
        client, now = self._client, self._host.now()
        if client.settings.proven or not client.settings.conditional:
            return
        server = f"{client.place.origin}{client.place.path}"
        found = await KNOWN.recall(server, now)
        if found is None:
            trial = self.trial(path)
            try:
                found = await find_abilities(trial)
            except DeniedError:
                return  # a job proves conditions itself
            except RejectedError as error:
                raise await trial.explained(error) from error
            refuse_lacking(found, client.place.server, path)
            await KNOWN.keep(server, now, found)
        client.settings = replace(client.settings, found=found)
        self._describe(client.settings)

    def trial(self, path: str) -> S3Trial:
        """Return the requests about a new object in the directory ``path``."""
        own = f"{path}/{PROBE}{self._host.new_id()}"
        return S3Trial(self._client, self._files, self._uploads, own)

    # --- parts -------------------------------------------------------------------------------

    def _describe(self, settings: S3Settings) -> None:
        self.traits = self.traits_of(settings)

    def traits_of(self, settings: S3Settings) -> Traits:
        """Return the capabilities, as far as they are known."""
        return _traits(settings)


def _traits(settings: S3Settings) -> Traits:
    real = settings.place.real
    return Traits(
        "S3",
        directories=False,
        atomic_rename=False,
        atomic_directory_rename=False,
        rename_no_replace=False,
        rename_replaces=False,
        etag_survives_rename=False,
        conditional_rename=False,
        conditional_put=settings.conditional,
        conditions_proven=settings.proven,
        atomic_put=True,
        recursive_delete=False,
        bulk_delete=settings.bulk,
        conditional_delete=settings.conditions != "none",
        multipart=Multipart(
            conditional=settings.conditional,
            matches=settings.matches,
            abort_tells=settings.abort_tells,
            checked=bool(settings.checksum),
        ),
        put_tokens=True,
        longest_path=LONGEST + 1,  # a key has no slash at its beginning
        workers=settings.workers,
        account=settings.place.limit,
        costs={
            "mkdir": 2,
            "delete": 2,
            "copy": 2,
            **({} if real else {"copy_if": 2}),
        },
    )

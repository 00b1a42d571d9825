"""S3 that renames: directory buckets of S3 Express One Zone, and their like."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from asynccommit.errors import DeniedError, NotFoundError, PreconditionError, StoreError
from asynccommit.runtime.host import this_host
from asynccommit.stores.base import Info, Streaming, Traits
from asynccommit.stores.http.flat import LONGEST
from asynccommit.stores.parts import Part
from asynccommit.stores.s3.checksums import composite
from asynccommit.stores.s3.errors import S3Request
from asynccommit.stores.s3.known_servers import KNOWN_RENAMES
from asynccommit.stores.s3.options import S3Settings, read_settings
from asynccommit.stores.s3.rename_probe import find_renames
from asynccommit.stores.s3.renaming_objects import RenamingObjects, bare, tagged
from asynccommit.stores.s3.store import S3Store
from asynccommit.stores.streaming import Stream
from asynccommit.stores.urls import Address

_BLOCK = 16 << 20  # 10,000 of them are 160 GB
_AT_ONCE = 4


class S3Stream(Stream):
    """An upload in parts, and those that were sent.

    Args:
        path: of the object.
        upload_id: of the upload.
        token: marks the object, so that it is known once the upload has ended.
        block: bytes of every part but the last.
    """

    __slots__ = ("block", "parts", "token", "upload_id")

    def __init__(self, path: str, upload_id: str, token: str, block: int) -> None:
        super().__init__(path)
        self.upload_id = upload_id
        self.token = token
        self.block = block
        self.parts: dict[int, Part] = {}


class S3RenamingStore(S3Store):
    """One bucket whose objects are renamed by one atomic request each.

    Directories are implied by names, as in ``S3Store``. An etag is the service's own with the
    checksum, see ``renaming_objects``. A rename may keep the version and the time of a file: no
    page says whether it does.

    Args: as of ``S3Store``.
    """

    kind_of_files = RenamingObjects

    @property
    def _renaming(self) -> RenamingObjects:
        return cast(RenamingObjects, self._files)

    async def delete_many(self, entries: Sequence[Info]) -> Sequence[StoreError | None]:
        return await super().delete_many([bare(info) for info in entries])

    async def get_tagged(self, path: str, limit: int) -> tuple[bytes, str | None]:
        return await self._renaming.read_tagged(S3Request("get", path), path, limit)

    async def rename(
        self,
        source: str,
        dest: str,
        *,
        replace: bool = False,
        etag: str | None = None,
        token: str | None = None,
    ) -> None:
        """See ``Store.rename``; ``token`` is not sent.

        A repetition under a token does nothing while the service remembers it, even if the rename
        was undone meanwhile. So each sending has a token of its own.
        """
        request = S3Request("rename", source, writes=True, new=not replace, dest=dest)
        await self._renaming.rename(request, etag, self._host.new_id())

    async def learn(self, path: str) -> None:
        """Find out whether the server renames as it must, once a day.

        Raises ``RejectedError`` that names what it lacks.
        """
        client, now = self._client, self._host.now()
        if client.settings.proven:
            return
        server = f"{client.place.origin}{client.place.path}"
        found = await KNOWN_RENAMES.recall(server, now)
        if found is None:
            try:
                found = await find_renames(self, path, self._host.new_id(), client.place.server)
            except DeniedError:
                return  # the first write of the job says so
            await KNOWN_RENAMES.keep(server, now, found)
        client.settings = replace(client.settings, found_renames=found)
        self._describe(client.settings)

    # --- files in blocks ---------------------------------------------------------------------

    async def begin_stream(self, path: str, folder: str) -> S3Stream:
        streaming = self.traits.streaming
        assert streaming is not None, "it is a trait of this store"
        token = self._host.new_id()
        upload = await self._uploads.create(S3Request("begin_stream", path), token)
        return S3Stream(path, upload, token, streaming.block)

    async def put_block(self, path: str, stream: S3Stream, start: int, data: bytes) -> None:
        request = S3Request("put_block", path)
        number = start // stream.block + 1
        stream.parts[number] = await self._uploads.put(request, stream.upload_id, number, data)

    async def end_stream(self, path: str, stream: S3Stream, start: int, data: bytes) -> Info:
        """See ``StreamingStore.end_stream``; a repetition finds what the first one made."""
        size = start + len(data)
        try:
            await self.put_block(path, stream, start, data)
            return await self._complete(path, stream, size)
        except (NotFoundError, PreconditionError):  # of them ``ExistsError`` is one
            found = await self._files.find(S3Request("end_stream", path), path)
            if found is None or found.token != stream.token:
                raise
            return found

    async def _complete(self, path: str, stream: S3Stream, size: int) -> Info:
        request = S3Request("end_stream", path, writes=True, new=True)
        parts = [stream.parts[number] for number in sorted(stream.parts)]
        condition = {"if-none-match": "*"}
        made = await self._uploads.send_completion(request, stream.upload_id, parts, condition)
        kind, checksum = composite(parts)
        sums = {f"x-amz-checksum-{kind.lower()}": checksum} if kind else {}
        return made._replace(size=size, etag=tagged(made.etag or "", sums), token=stream.token)

    async def abort_stream(self, path: str, stream: S3Stream) -> None:
        await self._uploads.send_abort(S3Request("abort_stream", path), stream.upload_id)

    # --- parts -------------------------------------------------------------------------------

    def traits_of(self, settings: S3Settings) -> Traits:
        return Traits(
            "S3 with renames",
            directories=False,
            atomic_directory_rename=False,
            etag_survives_rename=False,
            content_etags=True,
            rename_keeps_version=True,
            whole_listings=False,
            conditions_proven=settings.proven,
            learns=True,
            atomic_put=True,
            recursive_delete=False,
            bulk_delete=settings.bulk,
            put_tokens=True,
            tagged_get=True,
            streaming=Streaming(_BLOCK, _AT_ONCE),
            longest_path=LONGEST + 1,  # a key has no slash at its beginning
            workers=settings.workers,
            account=settings.place.limit,
            costs={"mkdir": 2, "delete": 2, "copy": 2},
        )


def open_s3(address: Address, options: Mapping[str, Any]) -> S3Store:
    """Open the store of a bucket: one that renames, or one that does not."""
    settings = read_settings(address, options, environ=os.environ, host=this_host())
    return (S3RenamingStore if settings.renames else S3Store)(address, options)

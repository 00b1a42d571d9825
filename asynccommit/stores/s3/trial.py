"""Send the requests that show the abilities of a server."""

from __future__ import annotations

from collections.abc import Sequence

from asynccommit.errors import RejectedError, StoreError
from asynccommit.stores.parts import Part
from asynccommit.stores.s3.client import S3Client
from asynccommit.stores.s3.errors import S3Request
from asynccommit.stores.s3.objects import S3Objects
from asynccommit.stores.s3.uploads import S3Uploads
from asynccommit.stores.s3.wire import quoted

_BARE = b"-"


class S3Trial:
    """The requests about one object; see ``Trial``.

    Args:
        client: what sends the requests.
        files: of the same bucket.
        uploads: of the same bucket.
        path: of an object that nobody else uses.
    """

    def __init__(self, client: S3Client, files: S3Objects, uploads: S3Uploads, path: str) -> None:
        self._client = client
        self._files = files
        self._uploads = uploads
        self._path = path
        self._key = client.encode(self._asked("learn"), path)

    async def put(
        self,
        data: bytes,
        *,
        new: bool = False,
        etag: str = "",
        checksum: tuple[str, str] = ("", ""),
    ) -> None:
        """See ``Trial.put``."""
        kind, value = checksum
        own = {f"x-amz-checksum-{kind.lower()}": value} if kind else self._files.checksums(data)
        headers = {**self._files.written, **own, **_condition(new, etag)}
        await self._send("put", "PUT", "", headers, data)

    async def explained(self, error: RejectedError) -> RejectedError:
        """Return the error with its remedy, if a checksum is what is refused."""
        kind = self._client.settings.checksum
        if error.op != "put" or not kind:
            return error
        try:
            await self._send("put", "PUT", "", self._files.written, _BARE)
            await self.delete()
        except StoreError:
            return error
        what = f"without the header x-amz-checksum-{kind.lower()} it is accepted"
        return RejectedError("put", error.path, f"{error.detail}; {what}: set checksum=none")

    async def exists(self) -> bool:
        """See ``Trial.exists``."""
        return await self._files.find(self._asked("head"), self._path) is not None

    async def delete(self) -> None:
        """See ``Trial.delete``."""
        await self._send("delete", "DELETE", "", {})

    async def create(self) -> str:
        """See ``Trial.create``."""
        return await self._uploads.create(self._asked("create_upload", writes=True), None)

    async def send(self, upload_id: str, data: bytes) -> Part:
        """See ``Trial.send``."""
        return await self._uploads.put(self._asked("put_part", writes=True), upload_id, 1, data)

    async def complete(
        self, upload_id: str, parts: Sequence[Part], *, new: bool = False, etag: str = ""
    ) -> None:
        """See ``Trial.complete``."""
        request = self._asked("complete_upload", writes=True)
        await self._uploads.send_completion(request, upload_id, parts, _condition(new, etag))

    async def abort(self, upload_id: str) -> None:
        """See ``Trial.abort``."""
        await self._uploads.send_abort(self._asked("abort_upload", writes=True), upload_id)

    async def show(self, upload_id: str) -> None:
        """See ``Trial.show``."""
        folder = self._path.rpartition("/")[0]
        page = await self._uploads.list(self._asked("list_uploads")._replace(path=folder), None)
        if all(upload.upload_id != upload_id for upload in page.entries):
            await self._uploads.parts(self._asked("list_parts"), upload_id, None)

    def _asked(self, op: str, *, writes: bool = False) -> S3Request:
        return S3Request(op, self._path, writes)

    async def _send(
        self, op: str, verb: str, query: str, headers: dict[str, str], body: bytes = b""
    ) -> None:
        request = self._asked(op, writes=True)
        answer = await self._client.ask(request, verb, self._key, query, headers, body)
        self._client.need(request, answer, 200, 204)


def _condition(new: bool, etag: str) -> dict[str, str]:
    """Return the header of a condition, whatever the options say."""
    if etag:
        return {"if-match": quoted(etag)}
    return {"if-none-match": "*"} if new else {}

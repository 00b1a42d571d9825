"""Multipart uploads on S3, invisible until completed."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from asynccommit.errors import DeniedError, OutcomeUnknownError, RejectedError
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.http.base import Response
from asynccommit.stores.multipart import PartPage, UploadPage
from asynccommit.stores.parts import Part, composite_etag
from asynccommit.stores.s3.checksums import composite, said_in
from asynccommit.stores.s3.client import S3Client
from asynccommit.stores.s3.errors import S3Request
from asynccommit.stores.s3.objects import LISTING, S3Objects
from asynccommit.stores.s3.wire import (
    completed_etag,
    completion,
    info_of,
    parts_listed,
    parts_query,
    quoted,
    upload_id_of,
    uploads_listed,
    uploads_query,
)
from asynccommit.stores.s3.xml import plain_etag

_DIGEST = re.compile(r"[0-9a-f]{32}", re.ASCII)
# What of an object says that its etag is no digest of its content.
_SSE = "x-amz-server-side-encryption"
_OWN_KEY = f"{_SSE}-customer-algorithm"
_ALL = "*"  # begins what asks for the next page of all the bucket's uploads


class S3Uploads:
    """Begins, feeds and ends uploads.

    Args:
        client: what sends the requests.
        files: of the same bucket.
    """

    def __init__(self, client: S3Client, files: S3Objects) -> None:
        self._client = client
        self._files = files
        self._trying = asyncio.Lock()
        self._keeps: bool | None = None  # whether the server keeps the objects of aborted keys

    async def create(self, request: S3Request, token: str | None) -> str:
        """Begin an upload of the file ``request.path``."""
        client = self._client
        key = client.encode(request, request.path)
        answer = await client.ask(request, "POST", key, "uploads", self._files.begun(token))
        client.need(request, answer, 200)
        try:
            return upload_id_of(answer.body)
        except ValueError as error:
            raise client.unread(request, error) from None

    async def put(self, request: S3Request, upload_id: str, number: int, data: bytes) -> Part:
        """Send a part."""
        client = self._client
        key = client.encode(request, request.path)
        query = f"partNumber={number}&{_named(upload_id)}"
        headers = self._files.part(data)
        answer = await client.ask(request, "PUT", key, query, headers, data)
        client.need(request, answer, 200)
        etag = answer.headers.get("etag", "")
        if not etag:
            raise client.unread(request, ValueError("the response has no etag"))
        return Part(etag, *said_in(headers))

    async def complete(self, request: S3Request, upload_id: str, parts: Sequence[Part]) -> Info:
        """Make the file of its parts."""
        client = self._client
        if not parts:
            client.refuse(
                request, ValueError("an upload without parts cannot be completed: send one part")
            )
        if request.etag is not None and not client.settings.matches:
            await self._files.need_etag(request, request.path, request.etag)
        condition = self._condition(request)
        answer = await self._ask_completion(request, upload_id, parts, condition)
        if answer.status == 501 and "if-match" in condition and not client.settings.matches:
            answer = await self._ask_completion(request, upload_id, parts, {})
        return self._made(request, answer)

    async def send_completion(
        self,
        request: S3Request,
        upload_id: str,
        parts: Sequence[Part],
        condition: Mapping[str, str],
    ) -> Info:
        """Send a completion with the header of a condition, as it is."""
        answer = await self._ask_completion(request, upload_id, parts, condition)
        return self._made(request, answer)

    async def _ask_completion(
        self,
        request: S3Request,
        upload_id: str,
        parts: Sequence[Part],
        condition: Mapping[str, str],
    ) -> Response:
        key = self._client.encode(request, request.path)
        headers = {**self._files.content, "content-type": "application/xml", **condition}
        body = completion(parts)
        return await self._client.ask(request, "POST", key, _named(upload_id), headers, body)

    def _made(self, request: S3Request, answer: Response) -> Info:
        client = self._client
        client.need(request, answer, 200)
        try:
            etag = plain_etag(answer.body) or completed_etag(answer.body)
        except ValueError as error:
            # The service says 200 before it knows, and what became of it in the body.
            raise client.late(request, answer, error) from None
        return Info(request.path, Kind.FILE, etag=etag)

    async def completed(
        self, request: S3Request, parts: Sequence[Part], token: str | None
    ) -> Info | None:
        """Return the object at ``request.path`` if it is the upload's.

        The token decides, or else the parts.
        """
        answer = await self._files.look(request, request.path, checked=token is None)
        if answer is None:
            return None
        try:
            info = info_of(request.path, answer.headers)
        except ValueError as error:
            raise self._client.unread(request, error) from None
        if token is not None:
            return info if info.token == token else None
        made = _is_made_of(answer, info.etag or "", parts)
        if made is None:
            said = (
                "neither the etag nor the checksum of the object shows whether this upload made it"
            )
            raise OutcomeUnknownError(request.op, request.path, said)
        return info if made else None

    def _condition(self, request: S3Request) -> dict[str, str]:
        """Return the header with the condition for replacing."""
        if not self._client.settings.conditional:
            return {}
        if request.etag is not None:
            return {"if-match": quoted(request.etag)}
        return {"if-none-match": "*"} if request.new else {}

    async def abort(self, request: S3Request, upload_id: str) -> None:
        """Delete an upload with its parts.

        Elsewhere than on AWS an upload whose key has an object is only aborted if the server is
        known to keep the object: S3Mock 5.2 deletes it.
        """
        client = self._client
        client.encode(request, request.path)
        if not (client.settings.keeps_objects or self._keeps):
            await self._need_safe_abort(request, upload_id)
        await self.send_abort(request, upload_id)

    async def _need_safe_abort(self, request: S3Request, upload_id: str) -> None:
        """Raise ``RejectedError`` if an abort would delete the object of the key."""
        if await self._files.look(request.look, request.path) is None:
            return
        async with self._trying:
            if self._keeps is None:
                self._keeps = await self._try_abort(request, upload_id)
        if not self._keeps:
            raise RejectedError(
                request.op,
                request.path,
                "not sent: this server deletes the object that has the key of an aborted upload, "
                "as S3Mock 5.2 does, and there is one; use another server",
            )

    async def _try_abort(self, request: S3Request, upload_id: str) -> bool:
        """Return whether an object survives the abort of an upload of its key."""
        folder = request.path.rpartition("/")[0]
        name = hashlib.sha256(upload_id.encode()).hexdigest()[:16]
        tried = request._replace(path=f"{folder}/_asynccommit-abort-{name}")
        key = self._client.encode(tried, tried.path)
        await self._files.write(tried, tried.path, b"-", None)
        await self.send_abort(tried, await self.create(tried, None))
        kept = await self._files.look(tried.look, tried.path) is not None
        answer = await self._client.ask(tried, "DELETE", key)
        self._client.need(tried, answer, 204, 200)
        return kept

    async def send_abort(self, request: S3Request, upload_id: str) -> None:
        """Send an abort, as it is."""
        client = self._client
        key = client.encode(request, request.path)
        answer = await client.ask(request, "DELETE", key, _named(upload_id))
        client.need(request, answer, 204, 200)

    async def list(self, request: S3Request, token: str | None) -> UploadPage:
        """Return one page of the uploads below ``request.path``.

        MinIO shows none below a directory, but all of the bucket if no directory is named. So
        elsewhere than on AWS a listing that shows none is taken from that of the bucket.
        """
        path, below = request.path, f"{request.path.rstrip('/')}/"
        if not (token or "").startswith(_ALL):
            page = await self._page(request, path, token)
            if page.entries or page.token or token or path == "/" or self._client.place.real:
                return page
        try:
            every = await self._page(request, "/", (token or "")[1:] or None)
        except DeniedError:
            if token:
                raise
            return UploadPage(())
        inside = [upload for upload in every.entries if upload.path.startswith(below)]
        return UploadPage(tuple(inside), every.token and f"{_ALL}{every.token}")

    async def _page(self, request: S3Request, path: str, token: str | None) -> UploadPage:
        client = self._client
        if path != "/":
            client.encode(request, path)
        query = uploads_query(path, client.settings.page, token)
        answer = await client.ask(request, "GET", None, query, limit=LISTING)
        client.need(request, answer, 200)
        try:
            return uploads_listed(answer.body, path, token)
        except ValueError as error:
            raise client.unread(request, error) from None

    async def parts(self, request: S3Request, upload_id: str, token: str | None) -> PartPage:
        """Return one page of the parts of an upload."""
        client = self._client
        key = client.encode(request, request.path)
        query = parts_query(upload_id, client.settings.page, token)
        answer = await client.ask(request, "GET", key, query, self._files.content, limit=LISTING)
        client.need(request, answer, 200)
        try:
            return parts_listed(answer.body, token)
        except ValueError as error:
            raise client.unread(request, error) from None


def _named(upload_id: str) -> str:
    return f"uploadId={quote(upload_id, safe='~')}"


def _is_made_of(answer: Response, there: str, parts: Sequence[Part]) -> bool | None:
    """Return whether an object consists of ``parts``; ``None`` if unknown.

    The etag of an object is the digest of the parts' digests with the number of parts. If a key of
    KMS or of the customer encrypts the object, only that number and the checksum, if any, can be
    compared.
    """
    digest, _, number = there.partition("-")
    if not number and _DIGEST.fullmatch(digest):
        return False  # it was written as a whole: however encrypted, one of parts has a number
    if number and number != str(len(parts)):
        return False
    kind, checksum = composite(parts)
    known_kind, known = said_in(answer.headers)
    if checksum and known_kind == kind and "-" in known:
        return known == checksum
    expected = composite_etag(parts)
    if expected == there:
        return True
    tells = expected and _DIGEST.fullmatch(digest) and _has_digest(answer)
    return False if tells else None


def _has_digest(answer: Response) -> bool:
    """Return whether the etag is a digest of the content or of its parts."""
    method = answer.headers.get(_SSE, "AES256")
    return method == "AES256" and _OWN_KEY not in answer.headers

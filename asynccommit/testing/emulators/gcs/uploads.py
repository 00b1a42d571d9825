"""Serve uploads: simple, multipart or in a session.

A session starts with the metadata and is identified by its ``upload_id``. Bytes are sent in order,
in chunks whose ``Content-Range`` gives their position. Bytes that were received before are skipped,
and of any chunk but the last one only whole multiples of 256 KiB are kept. Each response but the
last is 308 with the range received so far, by which a client that lost a response can resume. A
size in ``X-Upload-Content-Length`` must be that of the object, and ends the upload when it is
reached.

Source: https://cloud.google.com/storage/docs/performing-resumable-uploads
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from asynccommit.testing.emulators.gcs.call import GcsCall, read_object
from asynccommit.testing.emulators.gcs.fields import read_mask
from asynccommit.testing.emulators.gcs.multipart import boundary_of, malformed, split
from asynccommit.testing.emulators.gcs.object_json import (
    read_checksums,
    read_details,
    read_hashes,
    viewer,
)
from asynccommit.testing.emulators.gcs.wire import CANCELLED, NONE, TEXT, GcsResponse, json_answer
from asynccommit.testing.models.gcs.model import (
    Details,
    GcsObject,
    GcsRefusal,
    GcsService,
    Preconditions,
    refuse,
)

QUANTUM = 256 * 1024
"""Chunks are kept in multiples of this many bytes."""

_CHUNK = re.compile(r"bytes (\*|(\d+)-(\d+|\*))/(\*|\d+)").fullmatch
_MOST_UNPACKED = 128 * 1024 * 1024  # bytes of an upload that came compressed
_MOST = 1000  # maximum number of ended sessions that are remembered


class PendingUpload(NamedTuple):
    """An object to be created.

    Attributes:
        name: name of the object.
        given: metadata, as JSON.
        data: content.
        content_type: type of the content, unless the metadata has one.
        damaged: a fault changes the first byte before checksums are verified.
    """

    name: str
    given: Mapping[str, Any]
    data: bytes
    content_type: str
    damaged: bool = False


class _Session:
    """A resumable upload."""

    __slots__ = ("answer", "bucket", "call", "data", "identity", "total", "upload")

    def __init__(
        self, identity: str, call: GcsCall, upload: PendingUpload, total: int | None
    ) -> None:
        self.identity = identity
        self.call = call  # The first request, with preconditions, fields and billing project.
        self.bucket = call.bucket
        self.upload = upload
        self.data = bytearray()
        self.total = total
        self.answer: GcsResponse | None = None  # set when the session has ended


class Chunk(NamedTuple):
    """The position of a request's bytes; ``start`` is ``None`` for a status query."""

    start: int | None
    total: int | None


_QUERY = Chunk(None, None)


class UploadRoutes:
    """The upload operations.

    Args:
        service: service that stores the objects.
        scheme: scheme of the session URLs.
        new_id: creates session ids.
    """

    def __init__(self, service: GcsService, scheme: str, new_id: Callable[[], str]) -> None:
        self._service = service
        self._scheme = scheme
        self._new_id = new_id
        self._sessions: dict[str, _Session] = {}

    def clear(self) -> None:
        """Forget all sessions."""
        self._sessions.clear()

    # --- in one request ------------------------------------------------------------------------

    def read_whole(self, call: GcsCall) -> None:
        """Parse an upload in one request; see ``Route.prepare``."""
        kind = call.headers.get("content-type", "")
        if call.query.get("uploadType") == "multipart":
            call.read = _read_multipart(call, kind)
        else:
            call.read = PendingUpload(_name_of(call, {}), {}, call.body, kind)
        call.name = call.read.name
        call.names = (call.bucket, call.name)

    def insert(self, call: GcsCall) -> GcsResponse:
        """Create an object in one request."""
        return self._make(call, call.read)

    def _make(self, call: GcsCall, upload: PendingUpload, hashes: str = "") -> GcsResponse:
        given = {**upload.given, **read_hashes(hashes)}
        crc32c, md5 = read_checksums(given)
        details = read_details(given)
        if not details.get("content_type"):
            details["content_type"] = upload.content_type
        for key, field in (("kmsKeyName", "kms_key_name"), ("contentEncoding", "content_encoding")):
            if key in call.query:
                details[field] = call.query[key]
        made = self._service.insert(
            call.bucket,
            upload.name,
            _damaged(upload.data) if upload.damaged else upload.data,
            details=Details(**{name: _ for name, _ in details.items() if _ is not None}),
            preconditions=call.conditions(),
            crc32c=crc32c,
            md5=md5,
        )
        return self._shown(call, made)

    def _shown(self, call: GcsCall, made: GcsObject) -> GcsResponse:
        fields = call.query.get("fields")
        mask = None if fields is None else read_mask(fields)
        return json_answer(viewer(mask, call.origin(self._scheme))(made))

    # --- sessions ------------------------------------------------------------------------------

    def read_start(self, call: GcsCall) -> None:
        """Parse the metadata of a new session; see ``Route.prepare``."""
        given = call.json()
        kind = call.headers.get("x-upload-content-type", "")
        call.read = PendingUpload(_name_of(call, given), given, b"", kind)
        call.name = call.read.name
        call.names = (call.bucket, call.name)

    def start(self, call: GcsCall) -> GcsResponse:
        """Start a session; the response has its URL."""
        length = call.headers.get("x-upload-content-length", "")
        read_details(call.read.given)
        self._check(call)
        identity = self._new_id().replace("-", "")
        total = int(length) if length.isdigit() else None
        self._sessions[identity] = _Session(identity, call, call.read, total)
        self._forget()
        place = f"/upload/storage/v1/b/{call.bucket}/o?uploadType=resumable"
        name = quote(call.name, safe="")
        url = f"{call.origin(self._scheme)}{place}&name={name}&upload_id={identity}"
        return GcsResponse(200, {**TEXT, "Location": url, "X-GUploader-Upload-Id": identity})

    def _check(self, call: GcsCall) -> None:
        """Reject at the start an upload that would be rejected at its end."""
        if self._service.get_bucket(call.bucket).options.zonal:  # as its users report
            raise refuse("invalid", "Zonal buckets do not support resumable upload.")
        conditions = call.conditions()
        if conditions == Preconditions():
            return
        try:
            self._service.get(call.bucket, call.name, preconditions=conditions)
        except GcsRefusal as refusal:
            absent = refusal.status == 404 and conditions.generation_match in (None, 0)
            if refusal.status == 403 or absent:
                return
            raise refuse("conditionNotMet") from None

    def _forget(self) -> None:
        ended = [key for key, session in self._sessions.items() if session.answer is not None]
        for key in ended[: max(0, len(ended) - _MOST)]:
            del self._sessions[key]

    def read_chunk(self, call: GcsCall) -> None:
        """Find the session of a chunk; see ``Route.prepare``."""
        session = self._sessions.get(call.query.get("upload_id", ""))
        if session is None or session.bucket != call.bucket:
            raise refuse("notFound", "The upload session is not known, or it has expired.")
        call.read = session
        call.name = session.upload.name
        call.names = (call.bucket, call.name)

    def append(self, call: GcsCall) -> GcsResponse:
        """Add a chunk, or return the status of the session."""
        session: _Session = call.read
        if session.answer is not None:
            return session.answer
        header = call.headers.get("content-range", "")
        chunk = _read_chunk(header, len(call.body), session.total)
        total = _total(chunk, session.total)
        kept = session.data
        if chunk.start is not None:
            _check_place(chunk.start, len(call.body), len(kept), total)
            last = total is not None and chunk.start + len(call.body) >= total
            fresh = call.body[len(kept) - chunk.start :]
            beyond = 0 if last else (len(kept) + len(fresh)) % QUANTUM
            kept += fresh[: max(0, len(fresh) - beyond)]
        if total is None or len(kept) < total or chunk == _QUERY:
            return incomplete(len(kept))
        if len(kept) > total:
            raise _too_long(len(kept), total)
        return self._finish(session, call.headers.get("x-goog-hash", ""))

    def keep_until(self, call: GcsCall, most: int) -> None:
        """Truncate a chunk at a position in the object."""
        session = call.read
        if isinstance(session, _Session) and session.answer is None:
            chunk = _read_chunk(call.headers.get("content-range", ""), len(call.body))
            if chunk.start is not None and chunk.start <= len(session.data):
                end = max(0, most - chunk.start)
                session.data += call.body[len(session.data) - chunk.start : end]

    def damage(self, call: GcsCall) -> None:
        """Let the bytes of an upload that begins here come damaged."""
        if isinstance(call.read, PendingUpload):
            call.read = call.read._replace(damaged=True)

    def _finish(self, session: _Session, hashes: str) -> GcsResponse:
        begun = session.call
        self._service.admit(
            "insert", begun.bucket, session.upload.name, user_project=begun.user_project
        )
        upload = session.upload._replace(data=bytes(session.data))
        session.answer = self._make(begun, upload, hashes)
        session.data.clear()
        return session.answer

    def cancel(self, call: GcsCall) -> GcsResponse:
        """Cancel a session; later requests for it get the same response."""
        session: _Session = call.read
        if session.answer is None:
            session.answer = GcsResponse(CANCELLED, NONE)
            session.data.clear()
        return GcsResponse(CANCELLED, NONE)


def _damaged(data: bytes) -> bytes:
    return bytes([data[0] ^ 0xFF]) + data[1:] if data else b"A"


def uploaded_by(call: GcsCall) -> int:
    """Return the size of an upload including the bytes of this request."""
    if isinstance(call.read, PendingUpload):
        return len(call.read.data)
    if isinstance(call.read, _Session):
        return len(call.read.data) + len(call.body)
    return 0


def incomplete(kept: int) -> GcsResponse:
    """Return the response with the number of bytes received."""
    return GcsResponse(308, {"Range": f"bytes=0-{kept - 1}"} if kept else NONE)


def _total(chunk: Chunk, announced: int | None) -> int | None:
    """Return the size of the whole object, as far as it is known.

    An upload whose size is not the announced one fails. Source:
    https://cloud.google.com/cpp/docs/reference/storage/latest/structgoogle_1_1cloud_1_1storage_1_1UploadContentLength
    """
    if announced is None or chunk.total is None:
        return announced if chunk.total is None else chunk.total
    if chunk.total != announced:
        raise refuse(
            "badRequest",
            f"X-Upload-Content-Length announced {announced} bytes, and the upload has "
            f"{chunk.total}.",
        )
    return announced


def _check_place(start: int, size: int, kept: int, total: int | None) -> None:
    """Check that a chunk follows the bytes received, and ends in the object."""
    if start > kept:
        raise _gap(start, kept)
    if total is not None and start + size > total:
        raise _too_long(start + size, total)


def _too_long(size: int, total: int) -> GcsRefusal:
    return refuse("badRequest", f"{size} bytes were uploaded, {total} were announced.")


def _gap(start: int, kept: int) -> GcsRefusal:
    return GcsRefusal(
        503,
        "backendError",
        f"Invalid request.  According to the Content-Range header, the upload offset is {start} "
        f"byte(s), which exceeds already uploaded size of {kept} byte(s).",
    )


def _read_multipart(call: GcsCall, kind: str) -> PendingUpload:
    parts = split(call.unpacked(_MOST_UNPACKED), boundary_of(kind))
    if len(parts) != 2:
        raise malformed(f"A multipart upload has 2 parts, not {len(parts)}.")
    given = read_object(parts[0].body) if parts[0].body.strip() else {}
    return PendingUpload(
        _name_of(call, given), given, parts[1].body, parts[1].headers.get("content-type", "")
    )


def _name_of(call: GcsCall, given: Mapping[str, Any]) -> str:
    name = call.query.get("name") or given.get("name")
    if not isinstance(name, str) or not name:
        raise refuse("required", "Required", location_type="parameter", location="name")
    return name


def _read_chunk(header: str, size: int, announced: int | None = None) -> Chunk:
    """Return the position of a chunk.

    Without the header it is the whole object. A chunk without an end, ``0-*/*``, is the last one
    unless a size was announced.
    """
    if not header:
        return Chunk(0, size)
    found = _CHUNK(header)
    if found is None:
        raise refuse("badRequest", f"Failed to parse Content-Range header: {header[:100]}")
    total = None if found[4] == "*" else int(found[4])
    if found[1] == "*":
        return Chunk(None, total)
    start = int(found[2])
    if found[3] != "*" and int(found[3]) - start + 1 != size:
        detail = f"Content-Range says {header[:100]}, but the body has {size} bytes."
        raise refuse("badRequest", detail)
    if found[3] == "*" and total is None and announced is None:
        total = start + size
    return Chunk(start, total)

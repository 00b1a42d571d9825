"""Serve uploads in parts of the XML API.

Source: https://cloud.google.com/storage/docs/multipart-uploads
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from asynccommit.testing.emulators.gcs.call import GcsCall, number
from asynccommit.testing.emulators.gcs.wire import NO_CONTENT, GcsResponse
from asynccommit.testing.emulators.gcs.xml_wire import (
    UPLOADS_NAMESPACE,
    check_body,
    details_of,
    identity,
    preconditions,
    quoted_etag,
    xml_answer,
)
from asynccommit.testing.models.gcs.model import Details, GcsRefusal, GcsService, refuse

_SMALLEST = 5 * 1024 * 1024  # of each part but the last
_MOST_PARTS = 10_000
_LONGEST = 4 * 1024 * 1024  # of a list of parts


class _Upload(NamedTuple):
    """An upload that was started: its object, and the parts by number."""

    bucket: str
    name: str
    details: Details
    parts: dict[int, bytes]


class XmlUploads:
    """The operations on uploads; each method is one operation."""

    def __init__(self, service: GcsService, new_id: Callable[[], str]) -> None:
        self._service = service
        self._new_id = new_id
        self._found: dict[str, _Upload] = {}

    def clear(self) -> None:
        """Forget all uploads."""
        self._found.clear()

    def start(self, call: GcsCall) -> GcsResponse:
        """Start an upload; the response has its id."""
        self._service.get_bucket(call.bucket)
        identity = self._new_id().replace("-", "")
        self._found[identity] = _Upload(call.bucket, call.name, details_of(call.headers), {})
        shown = f"<Bucket>{escape(call.bucket)}</Bucket><Key>{escape(call.name)}</Key>"
        shown += f"<UploadId>{identity}</UploadId>"
        return xml_answer("InitiateMultipartUploadResult", shown, namespace=UPLOADS_NAMESPACE)

    def put_part(self, call: GcsCall) -> GcsResponse:
        """Keep a part, in place of one with the same number."""
        upload = self._upload(call)
        position = number(call.query, "partNumber") or 0
        if not 0 < position <= _MOST_PARTS:
            raise refuse("invalid", f"A part has a number from 1 to {_MOST_PARTS}.")
        hashes = check_body(call)
        upload.parts[position] = call.body
        return GcsResponse(200, {"ETag": _etag(call.body), **hashes})

    def complete(self, call: GcsCall) -> GcsResponse:
        """Make the object of the parts that the request lists."""
        upload = self._upload(call)
        made = self._service.insert(
            call.bucket,
            call.name,
            b"".join(_chosen(upload, call.body)),
            details=upload.details,
            preconditions=preconditions(call),
        )
        del self._found[call.query["uploadId"]]
        shown = f"<Bucket>{escape(call.bucket)}</Bucket><Key>{escape(call.name)}</Key>"
        shown += f"<ETag>{escape(quoted_etag(made))}</ETag>"
        headers = identity(made)
        return xml_answer("CompleteMultipartUploadResult", shown, headers, UPLOADS_NAMESPACE)

    def abort(self, call: GcsCall) -> GcsResponse:
        """Forget an upload and its parts."""
        self._upload(call)
        del self._found[call.query["uploadId"]]
        return NO_CONTENT

    def _upload(self, call: GcsCall) -> _Upload:
        found = self._found.get(call.query["uploadId"])
        if found is None or (found.bucket, found.name) != (call.bucket, call.name):
            raise GcsRefusal(404, "NoSuchUpload", "The requested upload was not found.")
        return found


def _chosen(upload: _Upload, body: bytes) -> list[bytes]:
    """Return the parts of a list. Raises ``GcsRefusal`` if it is invalid."""
    listed = _read_list(body)
    positions = [position for position, _ in listed]
    if not listed or positions != sorted(set(positions)):
        raise refuse("invalid", "The parts must be listed once each, in ascending order.")
    parts = []
    for position, etag in listed:
        part = upload.parts.get(position)
        if part is None or etag.strip('"') != _etag(part).strip('"'):
            raise GcsRefusal(400, "InvalidPart", f"Part {position} was not found as it is listed.")
        parts.append(part)
    if any(len(part) < _SMALLEST for part in parts[:-1]):
        raise GcsRefusal(400, "EntityTooSmall", "Each part but the last must have 5 MiB.")
    return parts


def _read_list(body: bytes) -> list[tuple[int, str]]:
    # Entities can expand a small document to a huge one; a list of parts has none.
    try:
        if b"<!" in body or len(body) > _LONGEST:
            raise ValueError
        root = ElementTree.fromstring(body)
        return [
            (int(part.findtext("{*}PartNumber") or ""), part.findtext("{*}ETag") or "")
            for part in root.iterfind("{*}Part")
        ]
    except (ElementTree.ParseError, ValueError):
        raise GcsRefusal(
            400, "MalformedCompleteMultipartUploadRequest", "The list of parts is invalid."
        ) from None


def _etag(part: bytes) -> str:
    return f'"{hashlib.md5(part, usedforsecurity=False).hexdigest()}"'

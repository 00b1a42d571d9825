"""Read the headers and build the documents of the XML API."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

from asynccommit.testing.emulators.gcs.call import GcsCall, number
from asynccommit.testing.emulators.gcs.object_json import (
    read_checksums,
    read_hashes,
    shown_hashes,
)
from asynccommit.testing.emulators.gcs.wire import XML, GcsResponse
from asynccommit.testing.models.gcs.checksums import crc32c
from asynccommit.testing.models.gcs.model import Details, GcsObject, GcsRefusal, Preconditions

META = "x-goog-meta-"
"""Begins the names of headers with the user's metadata."""

_NAMESPACE = "http://doc.s3.amazonaws.com/2006-03-01"
UPLOADS_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
"""That of documents about uploads in parts, which Google's own client looks for."""
_FIELDS = {
    "content-type": "content_type",
    "cache-control": "cache_control",
    "content-disposition": "content_disposition",
    "content-encoding": "content_encoding",
    "content-language": "content_language",
    "x-goog-storage-class": "storage_class",
}
_CODES = {
    "authError": "AuthenticationRequired",
    "backendError": "ServiceUnavailable",
    "conditionNotMet": "PreconditionFailed",
    "conflict": "Conflict",
    "forbidden": "AccessDenied",
    "internalError": "InternalError",
    "invalid": "InvalidArgument",
    "invalidParameter": "InvalidArgument",
    "notImplemented": "NotImplemented",
    "rateLimitExceeded": "SlowDown",
    "requestedRangeNotSatisfiable": "InvalidRange",
    "required": "AccessDenied",
}
"""Reason of the JSON API -> code of the XML API."""


def error_document(refusal: GcsRefusal, *, of_object: bool) -> bytes:
    """Return the document of a refusal."""
    missing = "NoSuchKey" if of_object else "NoSuchBucket"
    code = missing if refusal.reason == "notFound" else _CODES.get(refusal.reason, refusal.reason)
    message = escape(refusal.message)
    text = f"<Code>{escape(code)}</Code><Message>{message}</Message><Details>{message}</Details>"
    return f"<?xml version='1.0' encoding='UTF-8'?><Error>{text}</Error>".encode()


def xml_answer(
    root: str,
    content: str,
    headers: Mapping[str, str] | None = None,
    namespace: str = _NAMESPACE,
) -> GcsResponse:
    """Return a response with an XML document."""
    text = f"<?xml version='1.0' encoding='UTF-8'?><{root} xmlns=\"{namespace}\">{content}</{root}>"
    return GcsResponse(200, {**XML, **(headers or {})}, text.encode())


def preconditions(call: GcsCall) -> Preconditions:
    """Return the preconditions in a request's headers."""
    return Preconditions(
        number(call.headers, "x-goog-if-generation-match"),
        None,
        number(call.headers, "x-goog-if-metageneration-match"),
    )


def check_body(call: GcsCall) -> dict[str, str]:
    """Return the header with the checksums of a body.

    Raises ``GcsRefusal`` unless they are those that the request names.
    """
    given = read_hashes(call.headers.get("x-goog-hash", ""))
    if named := call.headers.get("content-md5"):
        given["md5Hash"] = named
    crc, md5 = crc32c(call.body), hashlib.md5(call.body, usedforsecurity=False).digest()
    try:
        checksums = read_checksums(given)
    except GcsRefusal:
        raise GcsRefusal(400, "InvalidDigest", "A checksum of the request is invalid.") from None
    if checksums[0] not in (None, crc) or checksums[1] not in (None, md5):
        raise GcsRefusal(400, "BadDigest", "The body has another checksum than the request names.")
    return {"X-Goog-Hash": shown_hashes(crc, md5)}


def details_of(headers: Mapping[str, str]) -> Details:
    """Return the metadata in the headers of an upload."""
    given: dict[str, Any] = {
        field: headers[name] for name, field in _FIELDS.items() if headers.get(name)
    }
    metadata = {
        name[len(META) :]: value for name, value in headers.items() if name.startswith(META)
    }
    return Details(**given, metadata=metadata)


def quoted_etag(found: GcsObject) -> str:
    """Return the ETag of the XML API: the MD5 of the content, if it has one."""
    md5 = found.content.md5
    return f'"{found.etag}"' if md5 is None else f'"{md5.hex()}"'


def identity(made: GcsObject) -> dict[str, str]:
    """Return the headers that name an object's state."""
    return {
        "ETag": quoted_etag(made),
        "X-Goog-Generation": str(made.generation),
        "X-Goog-Metageneration": str(made.metageneration),
    }

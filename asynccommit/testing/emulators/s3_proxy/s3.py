"""Parse S3 requests for a proxy, and build S3 error responses.

Source:
https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html
and https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from urllib.parse import unquote
from xml.sax.saxutils import escape

from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.s3.refusals import S3, refuse

IN_BODY = "InBody"
"""Suffix of the codes of errors that S3 reports under status 200, after the response has begun."""

_LATE_ERRORS = ("InternalError", "SlowDown")
_NO_BUCKET = re.compile(r"(?:[0-9.]+|\[.*\]|localhost|s3[.-].*|[^.]*)(?::[0-9]+)?").fullmatch
_BUCKET = re.compile(r"(.+?)\.(?:localhost|s3[.-].+)(?::[0-9]+)?").fullmatch
_OF_OBJECTS = frozenset(
    {
        *("acl", "annotation", "attributes", "encryption", "legal-hold", "renameObject"),
        *("restore", "retention", "select", "tagging", "torrent"),
    }
)
_OF_BUCKETS = frozenset(
    {
        *("accelerate", "acl", "analytics", "cors", "encryption", "intelligent-tiering"),
        *("inventory", "lifecycle", "location", "logging", "metrics", "notification"),
        *("object-lock", "ownershipControls", "policy", "policyStatus", "publicAccessBlock"),
        *("replication", "requestPayment", "session", "tagging", "versioning", "website"),
    }
)


def _refuse(
    code: str, message: str | None = None, headers: Mapping[str, str] | None = None
) -> Refusal:
    refusal = refuse(code.removesuffix(IN_BODY), message, headers)
    if code.endswith(IN_BODY):
        refusal.status = 200
    return refusal


S3_HTTP = replace(
    S3,
    codes={**S3.codes, **{f"{_}{IN_BODY}": (200, S3.codes[_][1]) for _ in _LATE_ERRORS}},
    refuse=_refuse,
)
"""The fault dialect of S3 over HTTP."""


def s3_operation(method: str, target: str, headers: Mapping[str, str]) -> str:
    """Return the name of an operation, one of ``S3_HTTP.ops``.

    Args:
        method: HTTP method.
        target: path and query, as sent.
        headers: headers with lower-case names.
    """
    bucket, key = _parts(target, headers)
    names = {pair.partition("=")[0] for pair in target.partition("?")[2].split("&")}
    if key:
        return _of_object(method, names, headers)
    if bucket:
        return _of_bucket(method, names)
    return "list_buckets" if method == "GET" else "other"


def s3_place(target: str, headers: Mapping[str, str]) -> str:
    """Return the decoded ``bucket/key`` of a request, or the bucket alone.

    For a listing, the key is its prefix.
    """
    bucket, key = _parts(target, headers)
    if not key:
        query = (pair.partition("=") for pair in target.partition("?")[2].split("&"))
        prefixes = [value for name, _, value in query if name == "prefix"]
        key = unquote("".join(prefixes[:1]).replace("+", " "))
    return f"{bucket}/{key}" if key else bucket


def _parts(target: str, headers: Mapping[str, str]) -> tuple[str, str]:
    """Return bucket and key of a request.

    The bucket is in the path or, with Amazon's host names, in ``Host``.
    """
    path = target.partition("?")[0]
    if "://" in path:  # an absolute URL, as clients send to an HTTP proxy
        path = "/" + path.partition("://")[2].partition("/")[2]
    path = unquote(path.removeprefix("/"))
    host = headers.get("host", "").lower()
    found = None if _NO_BUCKET(host) else _BUCKET(host)
    if found is not None:
        return found[1], path
    bucket, _, key = path.partition("/")
    return bucket, key


def _of_object(method: str, names: set[str], headers: Mapping[str, str]) -> str:
    if names & _OF_OBJECTS:
        return "other"
    copied = "x-amz-copy-source" in headers
    if "uploadId" in names:
        part = "copy_part" if copied else "put_part"
        found = {"GET": "list_parts", "PUT": part, "POST": "complete_upload"}
        return {**found, "DELETE": "abort_upload"}.get(method, "other")
    if method == "POST":
        return "create_upload" if "uploads" in names else "other"
    put = "copy" if copied else "put"
    return {"GET": "get", "HEAD": "head", "PUT": put, "DELETE": "delete"}.get(method, "other")


def _of_bucket(method: str, names: set[str]) -> str:
    if method == "POST":
        return "delete_many" if "delete" in names else "other"
    if method != "GET" or names & _OF_BUCKETS:
        return "bucket"
    if "uploads" in names:
        return "list_uploads"
    return "list_versions" if "versions" in names else "list"


def refusal_answer(refusal: Refusal, method: str, resource: str, request_id: str) -> bytes:
    """Return an S3 error response: XML, without a body for ``HEAD``.

    Args:
        refusal: error to report.
        method: method of the request.
        resource: resource of the request.
        request_id: id of this response.
    """
    lines = {"Code": refusal.code, "Message": refusal.message, "Resource": f"/{resource}"}
    inside = "".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in lines.items())
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error>{inside}'
    body = "" if method == "HEAD" else f"{body}<RequestId>{request_id}</RequestId></Error>"
    data = body.encode("utf-8", "replace")
    headers = {
        "Content-Type": "application/xml",
        "Content-Length": str(len(data)),
        "x-amz-request-id": request_id,
        **refusal.headers,
    }
    head = f"HTTP/1.1 {refusal.status} {_phrase(refusal.status)}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{head}\r\n".encode("latin-1") + data


def _phrase(status: int) -> str:
    return "Slow Down" if status == 503 else HTTPStatus(status).phrase

"""Parse a request to a directory bucket: bucket, key, operation, body.

Source of the way to name a bucket:
https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-express-Regions-and-Zones.html
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, unquote_to_bytes

from asynccommit.testing.models.s3.refusals import EXPRESS_WRITES, refuse

_HOSTED = re.compile(r"([a-z0-9][a-z0-9-]*--x-s3)\.", re.ASCII)
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,16})(?:;[^\r\n]*)?\r\n")

# Method, whether a key is named, parameter that tells -> operation. The first that fits counts.
_OPS: tuple[tuple[str, bool, str, str], ...] = (
    ("GET", False, "session", "session"),
    ("GET", False, "uploads", "list_uploads"),
    ("GET", False, "list-type", "list"),
    ("HEAD", False, "", "bucket"),
    ("POST", False, "delete", "delete_many"),
    ("PUT", True, "renameObject", "rename"),
    ("PUT", True, "partNumber", "put_part"),
    ("PUT", True, "", "put"),
    ("HEAD", True, "", "head"),
    ("GET", True, "uploadId", "list_parts"),
    ("GET", True, "", "get"),
    ("POST", True, "uploads", "create_upload"),
    ("POST", True, "uploadId", "complete_upload"),
    ("DELETE", True, "uploadId", "abort_upload"),
    ("DELETE", True, "", "delete"),
)


class ExpressCall(NamedTuple):
    """A parsed request.

    Attributes:
        op: name of the operation in faults and statistics.
        method: in capitals.
        path: as on the wire, without the query.
        query: parameters by name, decoded; those without a value are empty.
        text: the query as on the wire.
        bucket: name of the bucket.
        key: decoded key of the object; empty for the bucket.
        headers: by lower-case name.
        body: as it was sent.
    """

    op: str
    method: str
    path: str
    query: Mapping[str, str]
    text: str
    bucket: str
    key: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def place(self) -> str:
        """Key, or prefix of a listing, for fault rules."""
        return self.key or self.query.get("prefix", "")

    @property
    def writes(self) -> bool:
        """Return whether the request may change stored data."""
        return self.op in EXPRESS_WRITES

    @property
    def data(self) -> bytes:
        """The content of the body, which may have come in chunks."""
        if "aws-chunked" not in self.headers.get("content-encoding", ""):
            return self.body
        return _unchunked(self.body)


def read_call(
    method: str, target: str, headers: Mapping[str, str], body: bytes, *, strict: bool = False
) -> ExpressCall:
    """Parse a request.

    ``strict`` refuses paths that name the bucket, even where the host is an address and cannot.
    Raises ``Refusal``.
    """
    path, _, text = target.partition("?")
    bucket, rest = _place(path, headers.get("host", ""), strict=strict)
    key, query = _decoded(rest), _query(text)
    for verb, named, parameter, op in _OPS:
        if method == verb and named is bool(key) and (not parameter or parameter in query):
            if "x-amz-copy-source" in headers:
                op = {"put": "copy", "put_part": "copy_part"}.get(op, op)
            return ExpressCall(op, method, path, query, text, bucket, key, headers, body)
    raise refuse("MethodNotAllowed")


def _place(path: str, host: str, *, strict: bool) -> tuple[str, str]:
    """Return the bucket, and the encoded key.

    The clients of AWS name the bucket by the path if the host is an address: to an address no name
    can be prepended. The service has no such hosts.
    """
    if hosted := _HOSTED.match(host):
        return hosted[1], path[1:]
    if strict or not _is_address(host):
        raise refuse("InvalidRequest", "Path-style requests are not supported.")
    bucket, _, rest = path[1:].partition("/")
    return unquote(bucket), rest


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.rpartition(":")[0].strip("[]") or host)
    except ValueError:
        return False
    return True


def _decoded(text: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise refuse("InvalidArgument", "The key is not UTF-8.") from None


def _query(text: str) -> dict[str, str]:
    found = {}
    for pair in filter(None, text.split("&")):
        name, _, value = pair.partition("=")
        found[unquote(name)] = unquote(value.replace("+", " "))
    return found


def _unchunked(body: bytes) -> bytes:
    """Return the content of a body in chunks.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html
    """
    parts, at = list[bytes](), 0
    while head := _CHUNK.match(body, at):
        size = int(head[1], 16)
        if size == 0:
            return b"".join(parts)
        parts.append(body[head.end() : head.end() + size])
        at = head.end() + size + 2
    raise refuse("InvalidRequest", "The body is not in chunks.")

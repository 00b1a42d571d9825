"""Parse and build Blob Batch requests: up to 256 deletes in one body."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from asynccommit.testing.emulators.adls.call import AdlsCall
from asynccommit.testing.emulators.server import ServerRequest
from asynccommit.testing.models.adls.account import Refusal

_MOST = 256  # requests of one batch
_LARGEST = 4 * 1024 * 1024  # bytes of one batch
_BOUNDARY = re.compile(r';\s*boundary=(?:"([^"]+)"|([^\s;]+))', re.IGNORECASE)
_LINE_END = re.compile(rb"\r?\n")
_EMPTY_LINE = re.compile(rb"\r?\n\r?\n")


class BlobBatchPart(NamedTuple):
    """One request of a batch, and the id by which its answer is found."""

    content_id: str
    request: ServerRequest


def read_batch(call: AdlsCall) -> list[BlobBatchPart]:
    """Return the requests of a batch. Raises ``Refusal`` if it is invalid."""
    found = _BOUNDARY.search(call.headers.get("content-type", ""))
    body = call.request.body
    if found is None:
        raise _malformed("Content-Type names no boundary")
    if len(body) > _LARGEST:
        raise Refusal(413, "RequestBodyTooLarge", "The batch is too large.")
    mark = b"--" + (found[1] or found[2]).encode("latin-1")
    pieces = (b"\r\n" + body).split(b"\n" + mark)[1:]
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise _malformed("the last part does not end")
    if len(pieces) - 1 > _MOST:
        raise Refusal(
            400, "ExceedsMaxBatchRequestCount", f"The batch has more than {_MOST} requests."
        )
    return [_part(call, piece) for piece in pieces[:-1]]


def _part(call: AdlsCall, piece: bytes) -> BlobBatchPart:
    head, _, inner = _cut(piece.lstrip(b"\r\n"))
    line, _, rest = inner.lstrip(b"\r\n").partition(b"\n")
    words = line.split()
    if len(words) < 2:
        raise _malformed("a part contains no request")
    request = ServerRequest()
    request.method, request.target = words[0].decode("latin-1").upper(), _target(words[1])
    request.headers = {"host": call.headers.get("host", ""), **_headers(_cut(rest)[0])}
    return BlobBatchPart(_headers(head).get("content-id", ""), request)


def _target(target: bytes) -> bytes:
    """Return the path and query of a request that may be a whole URL."""
    if target.startswith(b"/"):
        return target
    scheme, colon, rest = target.partition(b"://")
    if not colon or scheme not in (b"http", b"https"):
        raise _malformed("a request has no path")
    return b"/" + rest.partition(b"/")[2]


def _cut(data: bytes) -> tuple[bytes, bytes, bytes]:
    found = _EMPTY_LINE.search(data)
    if found is None:
        return data, b"", b""
    return data[: found.start()], found[0], data[found.end() :]


def _headers(head: bytes) -> dict[str, str]:
    pairs = (line.decode("latin-1").partition(":") for line in _LINE_END.split(head) if line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _malformed(detail: str) -> Refusal:
    return Refusal(400, "InvalidInput", f"One of the request inputs is not valid: {detail}.")


def write_batch(answers: Iterable[tuple[str, bytes]], boundary: str) -> bytes:
    """Return the answers to the requests of a batch as one body."""
    chunks = []
    for content_id, answer in answers:
        head = f"--{boundary}\r\nContent-Type: application/http\r\n"
        head += f"Content-ID: {content_id}\r\n" if content_id else ""
        chunks.append(head.encode("latin-1", "replace") + b"\r\n" + answer + b"\r\n")
    return b"".join(chunks) + f"--{boundary}--\r\n".encode()

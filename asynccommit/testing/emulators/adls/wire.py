"""Build the responses of an ADLS Gen2 account."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Any
from xml.sax.saxutils import escape

from asynccommit.testing.emulators.adls.call import AdlsCall
from asynccommit.testing.emulators.server import ServerRequest
from asynccommit.testing.models.adls.account import Filesystem, Node, Refusal
from asynccommit.testing.models.adls.nodes import cipher_of

_FILETIME_OF_EPOCH = 116_444_736_000_000_000  # ticks of 100 ns from 1601 to 1970
_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}
_BODILESS = (204, 304)


class AdlsWire:
    """A response builder with a clock and unique request ids.

    ``now`` is the clock; ``run`` makes the ids unique.

    ``run`` is the first 24 characters of a UUID and its hyphens. ``scheme`` is that of the URLs in
    responses.
    """

    def __init__(self, now: Callable[[], float], run: str, scheme: str) -> None:
        self.scheme = scheme
        self._now = now
        self._run = run
        self._count = 0
        self._second = -1
        self._date = ""

    def answer(
        self, call: AdlsCall, status: int, lines: str = "", body: bytes = b"", length: int = 0
    ) -> bytes:
        """Return a whole response; ``lines`` are its own headers with line ends.

        ``length`` is the Content-Length of a response to HEAD, whose body is not sent.
        """
        head = self.head(call.request, status)
        headers = call.request.headers
        if "x-ms-encryption-key" in headers and "x-ms-encryption-key-sha256" in headers:
            lines += f"x-ms-encryption-key-sha256: {headers['x-ms-encryption-key-sha256']}\r\n"
        size = length if call.request.method == "HEAD" else len(body)
        text = f"{head}{lines}{call.more}Content-Length: {size}\r\n\r\n"
        return text.encode("latin-1", "replace") + body

    def head(self, request: ServerRequest, status: int, reason: str = "") -> str:
        """Return the status line and the common headers.

        The reason phrase of an error is the service's message: Hadoop's client shows it, and a
        response to HEAD has no other.
        """
        self._count += 1
        headers = request.headers
        own = "" if request.keep_alive else "Connection: close\r\n"
        if "x-ms-version" in headers:
            own += f"x-ms-version: {headers['x-ms-version']}\r\n"
        if headers.get("x-ms-return-client-request-id", "").lower() == "true":
            own += f"x-ms-client-request-id: {headers.get('x-ms-client-request-id', '')}\r\n"
        line = f"HTTP/1.1 {status} {one_line(reason)}\r\n" if reason else _LINES[status]
        return (
            f"{line}Server: asynccommit\r\nDate: {self._today()}\r\n"
            f"x-ms-request-id: {self.last_id}\r\n{own}"
        )

    @property
    def last_id(self) -> str:
        """The request id of the last response."""
        return f"{self._run}{self._count:012x}"

    def _today(self) -> str:
        second = int(self._now())
        if second != self._second:
            self._second, self._date = second, formatdate(second, usegmt=True)
        return self._date

    def refusal(self, request: ServerRequest, refusal: Refusal, *, blob: bool = False) -> bytes:
        """Return an error in the format of the requested endpoint."""
        code = BLOB_CODES.get(refusal.code, refusal.code) if blob else refusal.code
        lines = self.head(request, refusal.status, refusal.message)
        lines += "".join(f"{name}: {value}\r\n" for name, value in refusal.headers.items())
        lines += f"x-ms-error-code: {code}\r\n"
        body = b""
        if request.method != "HEAD" and refusal.status not in _BODILESS:
            moment = f"{datetime.fromtimestamp(self._now(), UTC):%Y-%m-%dT%H:%M:%S.%f}0Z"
            text = f"{refusal.message}\nRequestId:{self.last_id}\nTime:{moment}"
            detail = getattr(refusal, "detail", "")
            kind, body = (_xml_error if blob else _json_error)(code, text, detail)
            lines += f"Content-Type: {kind}\r\n"
        if refusal.status not in _BODILESS:
            lines += f"Content-Length: {len(body)}\r\n"
        return f"{lines}\r\n".encode("latin-1", "replace") + body


def _json_error(code: str, message: str, detail: str) -> tuple[str, bytes]:
    error: dict[str, Any] = {"code": code, "message": message}
    if detail:
        error["detail"] = {"AuthenticationErrorDetail": detail}
    body = json.dumps({"error": error}, ensure_ascii=False)
    return "application/json;charset=utf-8", body.encode()


def _xml_error(code: str, message: str, detail: str) -> tuple[str, bytes]:
    more = f"<AuthenticationErrorDetail>{xml_text(detail)}</AuthenticationErrorDetail>"
    body = (
        f'\ufeff<?xml version="1.0" encoding="utf-8"?><Error><Code>{code}</Code>'
        f"<Message>{xml_text(message)}</Message>{more if detail else ''}</Error>"
    )
    return "application/xml", body.encode()


# The blob endpoint's names of the same errors.
BLOB_CODES = {
    "PathNotFound": "BlobNotFound",
    "PathAlreadyExists": "BlobAlreadyExists",
    "FilesystemNotFound": "ContainerNotFound",
    "FilesystemAlreadyExists": "ContainerAlreadyExists",
    "FilesystemBeingDeleted": "ContainerBeingDeleted",
    "DirectoryNotEmpty": "DirectoryIsNotEmpty",
    "LeaseNotPresent": "LeaseNotPresentWithBlobOperation",
    "LeaseIdMismatch": "LeaseIdMismatchWithBlobOperation",
}


def one_line(text: str) -> str:
    """Return ``text`` for a header; control characters become question marks."""
    return text if text.isprintable() else "".join(_ if _ >= " " else "?" for _ in text)


def xml_text(text: str) -> str:
    """Return ``text`` for XML; invalid characters become question marks."""
    return escape("".join(_ if _ >= " " or _ in "\t\n\r" else "?" for _ in text))


@lru_cache(maxsize=4096)
def _http_second(second: int) -> str:
    return formatdate(second, usegmt=True)


def http_date(moment: float) -> str:
    """Format a time for HTTP, in whole seconds."""
    return _http_second(int(moment))


def identity(node: Node) -> str:
    """Return the headers ETag and Last-Modified."""
    return f'ETag: "{node.etag}"\r\nLast-Modified: {http_date(node.modified)}\r\n'


def paths_json(entries: Iterable[tuple[str, Node]]) -> bytes:
    """Return a listing as JSON.

    Every value is a string, the etag is unquoted, and only directories have ``isDirectory``.
    """
    return json.dumps({"paths": [_path_json(*_) for _ in entries]}, ensure_ascii=False).encode()


def _path_json(name: str, node: Node) -> Mapping[str, str]:
    entry = {
        "contentLength": str(node.size),
        "creationTime": str(_FILETIME_OF_EPOCH + int(node.created * 10_000_000)),
        "etag": node.etag,
        "group": node.group,
        "lastModified": http_date(node.modified),
        "name": name,
        "owner": node.owner,
        "permissions": node.permissions,
    }
    cipher = cipher_of(node)
    encryption = {
        "EncryptionScope": cipher.scope,
        "EncryptionContext": cipher.context,
        "CustomerProvidedKeySha256": cipher.key,
    }
    if node.extra is not None and node.extra.expires is not None:
        ticks = int(node.extra.expires * 10_000_000)
        entry["expiryTime"] = str(_FILETIME_OF_EPOCH + ticks)
    entry |= {name: value for name, value in encryption.items() if value is not None}
    return {**entry, "isDirectory": "true"} if node.is_dir else entry


def filesystem_identity(found: Filesystem) -> str:
    """Return the headers ETag and Last-Modified of a filesystem."""
    return f'ETag: "{found.etag}"\r\nLast-Modified: {http_date(found.modified)}\r\n'


def filesystems_json(found: Iterable[Filesystem]) -> bytes:
    """Return a listing of filesystems."""
    entries = [
        {"name": _.name, "etag": _.etag, "lastModified": http_date(_.modified)} for _ in found
    ]
    return json.dumps({"filesystems": entries}).encode()

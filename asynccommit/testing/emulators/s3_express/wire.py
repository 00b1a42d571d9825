"""Write the responses of a directory bucket as bytes and XML.

Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import formatdate
from http import HTTPStatus
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote

from asynccommit.stores.s3.xml import HEAD, SPACE, escape
from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.s3.objects import S3Object

NONE: Mapping[str, str] = MappingProxyType({})
_XML = MappingProxyType({"content-type": "application/xml"})
_BODILESS = (204, 304)


class ExpressResponse(NamedTuple):
    """A response, with lower-case header names."""

    status: int
    headers: Mapping[str, str] = NONE
    body: bytes = b""


def document(root: str, *content: str, headers: Mapping[str, str] = NONE) -> ExpressResponse:
    """Return a response with an XML document."""
    text = f'{HEAD}<{root} xmlns="{SPACE}">{"".join(content)}</{root}>'
    return ExpressResponse(200, {**_XML, **headers}, text.encode())


def element(name: str, *content: str) -> str:
    """Return an element whose content is XML already."""
    return f"<{name}>{''.join(content)}</{name}>"


def texts(**values: object) -> str:
    """Return an element for each value that is not ``None``."""
    shown = {name: value for name, value in values.items() if value is not None}
    return "".join(f"<{name}>{escape(str(value))}</{name}>" for name, value in shown.items())


def refused(refusal: Refusal) -> ExpressResponse:
    """Return the response of a refusal."""
    said = texts(Code=refusal.code, Message=refusal.message, RequestId="0")
    body = f"{HEAD}<Error>{said}</Error>".encode()
    lower = {name.lower(): value for name, value in refusal.headers.items()}
    return ExpressResponse(refusal.status, {**_XML, **lower}, body)


def encoded(name: str, kind: str) -> str:
    """Return a key in a listing, as ``encoding-type`` asks for."""
    return quote(name, safe="/~") if kind == "url" else name


def iso(seconds: float) -> str:
    """Return a time as documents have it."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.000Z"


def described(found: S3Object, *, checked: bool) -> dict[str, str]:
    """Return the headers that describe an object."""
    return {
        "content-type": "binary/octet-stream",
        **found.metadata,
        "etag": f'"{found.etag}"',
        "last-modified": formatdate(found.modified, usegmt=True),
        "accept-ranges": "bytes",
        "x-amz-storage-class": "EXPRESS_ONEZONE",
        **(checksum_headers(found) if checked else {}),
    }


def checksum_headers(found: S3Object) -> dict[str, str]:
    """Return the header with the checksum of an object, if it has one."""
    if not found.checksum:
        return {}
    kind = "COMPOSITE" if "-" in found.checksum else "FULL_OBJECT"
    name = f"x-amz-checksum-{found.algorithm.lower()}"
    return {name: found.checksum, "x-amz-checksum-type": kind}


def checksum_texts(algorithm: str, checksum: str) -> str:
    """Return the element with a checksum, if there is one."""
    return texts(**{f"Checksum{algorithm}": checksum}) if checksum else ""


def written(answer: ExpressResponse, *, bodiless: bool, keep_alive: bool) -> bytes:
    """Return a response as bytes."""
    status, headers, body = answer
    phrase = HTTPStatus(status).phrase
    lines = [f"HTTP/1.1 {status} {phrase}", *_lines(headers.items())]
    lines += ["x-amz-request-id: EMULATED", "server: AmazonS3"]
    if status not in _BODILESS and "content-length" not in headers:
        lines.append(f"content-length: {len(body)}")
    if not keep_alive:
        lines.append("connection: close")
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    return head if bodiless or status in _BODILESS else head + body


def _lines(headers: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{name}: {value}" for name, value in headers]

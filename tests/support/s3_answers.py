"""Answers of S3, written out, for stores whose transport a test answers."""

from __future__ import annotations

from typing import Any

from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.http.base import Response
from asynccommit.stores.s3.store import S3Store
from asynccommit.stores.urls import parse_url
from tests.support.gcs_store import Direct, Sent

SECRET = "hunter2/the+password"
HERE: dict[str, Any] = {"key": "AKIDEXAMPLE", "secret": SECRET, "region": "eu-west-1"}

__all__ = ["Direct", "Sent"]


def new_s3(transport: Direct, *, host: Host | None = None, **options: Any) -> S3Store:
    """Return a store on AWS's own service, whose requests go to ``transport``."""
    told = {name: value for name, value in {**HERE, **options}.items() if value != ""}
    address = parse_url("s3://data/")
    return S3Store(address, told, environ={}, host=host or this_host(), transport=transport)


def answering(*answers: Response) -> Direct:
    """Return a transport that gives these answers, one after the other, and then the last one."""
    direct, left = Direct(), list(answers)
    direct.before = lambda _: left.pop(0) if len(left) > 1 else left[0]
    return direct


def error(
    code: str, status: int, message: str = "said", more: str = "", **headers: str
) -> Response:
    """Return an answer that says no."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, {"x-amz-request-id": "R", **named}, error_body(code, message, more))


def error_body(code: str, message: str = "said", more: str = "") -> bytes:
    """Return the body of an answer that says no."""
    text = f"<Error><Code>{code}</Code><Message>{message}</Message>{more}</Error>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode()


def bare(status: int, **headers: str) -> Response:
    """Return an answer without a body, as to a HEAD."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, {"x-amz-request-id": "R", **named}, b"")


def found(etag: str, **headers: str) -> Response:
    """Return the answer to a HEAD of an object of five bytes."""
    return bare(200, etag=f'"{etag}"', content_length="5", **headers)

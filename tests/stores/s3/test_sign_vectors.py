"""Signatures of Amazon's published test vectors; see tests/fixtures/sigv4/README.md."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from posixpath import normpath
from typing import NamedTuple
from urllib.parse import quote

import pytest

from asynccommit.stores.s3.sign import DayKey, SigningKeys, canonical, shape_of

_FOLDER = Path(__file__).parents[2] / "fixtures" / "sigv4"
VECTORS: dict[str, dict[str, str]] = json.loads((_FOLDER / "vectors.json").read_text())
KEYS = SigningKeys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
# The request has no token: a client adds the one of its credentials.
TOKENS = {
    "get-vanilla-with-session-token": (
        "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"
    )
}


class Raw(NamedTuple):
    """A request as one would send it."""

    verb: str
    path: str
    query: str
    headers: dict[str, str]
    body: str


def read(text: str) -> Raw:
    """Return the request of a vector; a header that is there twice has both values."""
    head, _, body = text.partition("\n\n")
    first, *lines = head.replace("\n ", " ").strip().split("\n")
    verb, _, rest = first.removesuffix(" HTTP/1.1").partition(" ")
    path, _, query = rest.partition("?")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        name = name.lower()
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return Raw(verb, path, query, headers, body)


def encoded(path: str) -> str:
    """Return a path as every service but S3 has it: without dots, and encoded."""
    clean = normpath(path).replace("//", "/")
    slash = "/" if path.endswith("/") and clean != "/" else ""
    return quote(clean + slash, safe="/~")


@pytest.mark.parametrize("name", VECTORS)
def test_the_published_vectors_are_signed_as_published(name: str) -> None:
    """Canonical request, its digest and the header are those of Amazon's test suite."""
    vector = VECTORS[name]
    verb, path, query, headers, body = read(vector["req"])
    if name in TOKENS:
        headers["x-amz-security-token"] = TOKENS[name]
    shape = shape_of(tuple(header for header in headers if header != "host"))
    assert shape is not None
    digest = sha256(body.encode()).hexdigest()
    sent = quote(query, safe="=&%~")

    request = canonical(verb, encoded(path), sent, headers, shape, digest)
    key = DayKey(KEYS, "20150830", "us-east-1", "service")
    header = key.authorization("20150830T123600Z", shape.signed, request)

    assert request == vector["creq"]
    assert sha256(request.encode()).hexdigest() == vector["sts"].rpartition("\n")[2]
    assert header == vector["authz"]

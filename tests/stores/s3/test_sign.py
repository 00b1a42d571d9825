"""Signatures of requests to S3: those of the published examples, and those that botocore makes."""

from __future__ import annotations

import calendar
import logging
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import Any
from unittest import mock
from urllib.parse import quote

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.stores.s3.sign import UNSIGNED, DayKey, Signer, SigningKeys

KEYS = SigningKeys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
SERVER = "examplebucket.s3.amazonaws.com"
DAY = calendar.timegm((2013, 5, 24, 0, 0, 0))


def sign(
    verb: str,
    path: str,
    query: str = "",
    headers: dict[str, str] | None = None,
    body: bytes = b"",
    *,
    plain: bool = True,
    keys: SigningKeys = KEYS,
    server: str = SERVER,
    now: float = DAY,
) -> dict[str, str]:
    """Return the headers of a signed request."""
    found = dict(headers or {})
    Signer(server, "us-east-1", plain=plain).sign(keys, verb, path, query, found, body, now)
    return found


# Source: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
EXAMPLES: dict[str, tuple[tuple[Any, ...], str]] = {
    "get an object": (
        ("GET", "/test.txt", "", {"range": "bytes=0-9"}),
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    ),
    "put an object": (
        (
            "PUT",
            "/test%24file.text",
            "",
            {"date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
            b"Welcome to Amazon S3.",
        ),
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
    ),
    "get a lifecycle": (
        ("GET", "/", "lifecycle"),
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
    ),
    "list a bucket": (
        ("GET", "/", "max-keys=2&prefix=J"),
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_published_examples(name: str) -> None:
    """The examples of AWS's documentation get the signatures that it gives."""
    request, expected = EXAMPLES[name]

    assert sign(*request)["authorization"].endswith(f"Signature={expected}")


def of_botocore(
    verb: str,
    url: str,
    headers: dict[str, str],
    body: bytes,
    keys: SigningKeys,
    *,
    plain: bool,
    now: int,
) -> str:
    """Return what botocore writes into the header ``authorization``."""

    class Chosen(auth.S3SigV4Auth):  # type: ignore[misc]
        """It hashes small bodies over TLS too, if nothing else is a checksum of them."""

        def _should_sha256_sign_payload(self, request: Any) -> bool:
            return plain

    request = AWSRequest(verb, url, headers, body)
    when = datetime.fromtimestamp(now, UTC)
    with mock.patch.object(auth, "get_current_datetime", return_value=when):
        given = Credentials(keys.access, keys.secret, keys.token or None)
        Chosen(given, "s3", "us-east-1").add_auth(request)
    return str(request.headers["authorization"])


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"))
SEGMENTS = st.lists(st.one_of(st.sampled_from(["", ".", "..", "a b", "+", "%2F", "\u1234"]), TEXT))
NAMES = st.sampled_from(
    [
        *("if-match", "content-md5", "content-type", "range", "x-amz-acl", "x-amz-z"),
        *("X-Amz-Z", "Range"),
        *sorted(auth.SIGNED_HEADERS_BLACKLIST),
    ]
)
VALUES = st.one_of(
    st.from_regex(r"[!-~]{1,20}", fullmatch=True),
    st.sampled_from(["", "a,b", "a, a", " a  b\t c ", "\u00e9"]),
)
PAIRS = st.tuples(st.sampled_from(["prefix", "uploadId", "a", "a-b", "a.b", "z-1"]), TEXT)
SERVERS = ["127.0.0.1:9000", "s3.example.com", "Bucket.s3.example.com", "[::1]:9000"]


@given(
    segments=SEGMENTS,
    pairs=st.lists(PAIRS, max_size=4),
    flag=st.booleans(),
    headers=st.dictionaries(NAMES, VALUES, max_size=5),
    body=st.binary(max_size=40),
    keys=st.builds(SigningKeys, TEXT, TEXT, st.sampled_from(["", "session/token+=="])),
    server=st.sampled_from(SERVERS),
    plain=st.booleans(),
    now=st.integers(0, 4_000_000_000),
)
def test_botocore_signs_the_same(
    segments: list[str],
    pairs: list[tuple[str, str]],
    flag: bool,
    headers: dict[str, str],
    body: bytes,
    keys: SigningKeys,
    server: str,
    plain: bool,
    now: int,
) -> None:
    """Whatever key, query, headers and body: the signature is the one that botocore makes."""
    path = "/bucket/" + quote("/".join(segments), safe="/~")
    texts = [f"{name}={quote(value, safe='~')}" for name, value in pairs]
    query = "&".join([*texts, *(["uploads"] if flag else [])])
    url = f"{'http' if plain else 'https'}://{server}{path}{f'?{query}' if query else ''}"

    ours = sign("PUT", path, query, headers, body, plain=plain, keys=keys, server=server, now=now)

    theirs = of_botocore("PUT", url, dict(headers), body, keys, plain=plain, now=now)
    assert ours["authorization"] == theirs


@given(headers=st.lists(st.dictionaries(NAMES, VALUES, max_size=3), max_size=8))
def test_what_a_signer_remembers_of_headers_changes_no_signature(
    headers: list[dict[str, str]],
) -> None:
    """One signer signs requests in a row as new ones would."""
    signer = Signer(SERVER, "us-east-1", plain=True)
    for each in headers:
        kept = dict(each)
        signer.sign(KEYS, "PUT", "/f", "", kept, b"", DAY)
        assert kept == sign("PUT", "/f", headers=each)


def test_many_kinds_of_headers_are_signed() -> None:
    """More sets of names than a signer remembers are signed all the same."""
    signer = Signer(SERVER, "us-east-1", plain=True)
    for number in [*range(300), 0]:
        headers = {f"x-amz-meta-{number}": "a"}
        expected = sign("PUT", "/f", headers=headers)
        signer.sign(KEYS, "PUT", "/f", "", headers, b"", DAY)
        assert headers == expected


def test_the_body_is_signed_where_nothing_else_protects_it() -> None:
    """Over TLS the body is not hashed once more; over plain http it is."""
    assert sign("PUT", "/f", body=b"data", plain=False)["x-amz-content-sha256"] == UNSIGNED
    assert sign("PUT", "/f", body=b"data")["x-amz-content-sha256"].startswith("3a6eb0790f39ac87")


def test_a_new_day_and_new_keys_get_a_key_of_their_own() -> None:
    """What is kept from one request to the next never outlives day or keys."""
    signer = Signer(SERVER, "us-east-1", plain=True)
    other = SigningKeys(KEYS.access, "another")
    asked = [(KEYS, DAY), (other, DAY), (KEYS, DAY + 86400), (KEYS, DAY)]
    kept = []
    for keys, now in asked:
        headers: dict[str, str] = {}
        signer.sign(keys, "GET", "/f", "", headers, b"", now)
        kept.append(headers)

    assert kept == [sign("GET", "/f", keys=keys, now=now) for keys, now in asked]
    assert kept[2]["x-amz-date"] == time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(DAY + 86400))


WITHOUT = """
import random, sys
sys.modules["botocore"] = None
from asynccommit.errors import UnsupportedError
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.urls import parse_url
for options in ({}, {"key": "k", "secret": "s"}, {"anon": True}):
    try:
        open_store(parse_url("s3://data/"), StoreSettings(random.Random(), options=options))
    except UnsupportedError as error:
        print(error)
"""


def test_without_botocore_it_is_said_what_to_install() -> None:
    """A store on S3 is refused when it is opened, whatever its credentials."""
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False, timeout=120
    )

    assert ran.stderr == ""
    assert ran.stdout.count("pip install 'asynccommit[s3]'") == 3


def test_keys_show_no_secret() -> None:
    """Neither secret nor token is in what is shown of keys."""
    assert repr(SigningKeys("AKIDEXAMPLE", "hunter2", "tok")) == "Keys(AKID...)"
    assert "hunter2" not in f"{[SigningKeys('AKID', 'hunter2', 'tok')]}"


def test_a_signer_shows_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    """Neither a signer nor the key of a day shows it, and nothing is logged, whoever signs."""
    caplog.set_level(logging.DEBUG)
    keys = SigningKeys("AKIDEXAMPLE", "hunter2", "tok")
    signer = Signer(SERVER, "us-east-1", plain=True)
    for headers in ({"range": "a"}, {"Range": "a"}):
        signer.sign(keys, "PUT", "/f", "", headers, b"", DAY)

    assert repr(signer) == f"Signer({SERVER}, us-east-1)"
    assert repr(DayKey(keys, "20260101", "us-east-1")) == (
        "DayKey(20260101/us-east-1/s3/aws4_request)"
    )
    assert caplog.text == ""

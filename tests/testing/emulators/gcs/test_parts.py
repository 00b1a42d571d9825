"""What of the JSON API needs no server: selections, bodies of many parts, errors, times."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.emulators.gcs.call import decode, parse_query
from asynccommit.testing.emulators.gcs.fields import read_mask, select
from asynccommit.testing.emulators.gcs.multipart import boundary_of, split
from asynccommit.testing.emulators.gcs.object_json import quoted
from asynccommit.testing.emulators.gcs.wire import GcsWire, error_answer, rfc3339
from asynccommit.testing.models.gcs.model import GcsRefusal, GcsService, refuse
from tests.testing.emulators.gcs.client import multipart


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a", {"a": {"b": 1, "c": 2}}),
        ("a/b", {"a": {"b": 1}}),
        ("a(b,c),l/n", {"a": {"b": 1, "c": 2}, "l": [{"n": 1}, {"n": 2}]}),
        ("a/b,a/c", {"a": {"b": 1, "c": 2}}),
        ("a,a/b", {"a": {"b": 1, "c": 2}}),
        ("l(n)", {"l": [{"n": 1}, {"n": 2}]}),
        ("*", {"a": {"b": 1, "c": 2}, "l": [{"n": 1, "m": 3}, {"n": 2}], "s": "x"}),
        ("s/x", {"s": "x"}),
        ("none", {}),
    ],
)
def test_fields_select(text: str, expected: Any) -> None:
    """Members, members of members, of each entry of a list; all of what has none."""
    whole = {"a": {"b": 1, "c": 2}, "l": [{"n": 1, "m": 3}, {"n": 2}], "s": "x"}

    assert select(whole, read_mask(text)) == expected


@given(st.text(alphabet="ab,/()*", min_size=1, max_size=30))
def test_fields_are_read_or_refused(text: str) -> None:
    """Whatever comes."""
    with suppress(GcsRefusal):
        select({"a": {"b": [1, {"a": 2}]}}, read_mask(text))


def test_fields_that_are_nested_too_deep() -> None:
    """They are refused like others that cannot be read."""
    for text in ("a(" * 1000, "a/" * 1000):
        with pytest.raises(GcsRefusal):
            read_mask(text)


_BODIES = st.lists(st.binary(max_size=40), min_size=1, max_size=4)


@given(_BODIES, st.sampled_from([b"\r\n", b"\n"]), st.booleans())
def test_parts_come_out_as_they_went_in(bodies: list[bytes], end: bytes, preamble: bool) -> None:
    """Whatever bytes they have, with either kind of line end."""
    bodies = [body.replace(b"--frontier", b"") for body in bodies]
    whole = (b"hello" + end) * preamble
    for number, body in enumerate(bodies):
        whole += b"--frontier" + end + b"X-Number: %d" % number + end + end + body + end
    whole += b"--frontier--" + end

    parts = split(whole, b"frontier")

    assert [part.body for part in parts] == bodies
    assert [part.headers for part in parts] == [{"x-number": str(_)} for _ in range(len(bodies))]


@given(st.binary(max_size=60).map(lambda data: data.replace(b"x", b"--b")))
def test_bodies_are_read_or_refused(data: bytes) -> None:
    """Whatever comes."""
    with suppress(GcsRefusal):
        split(b"--b\r\n" + data, b"b")


@pytest.mark.parametrize("header", ["", "multipart/mixed", "application/json; boundary=b"])
def test_boundary_that_is_not_told(header: str) -> None:
    """400."""
    with pytest.raises(GcsRefusal, match="boundary"):
        boundary_of(header)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_names_survive_their_quoting(name: str) -> None:
    """Every name, as one segment."""
    segment = quoted(name)

    assert segment.isascii()
    assert "/" not in segment
    assert decode(segment) == name
    assert parse_query(f"a={segment}&b=")["a"] == name


@given(st.text(max_size=20), st.text(max_size=20))
def test_targets_are_answered(path: str, query: str) -> None:
    """Whatever comes; nothing is an error of the emulator's own."""
    app = GcsApp(GcsService(now=lambda: 1e9, new_id=lambda: "id"))
    target = f"/storage/v1/b/{path}?{query}".encode().decode("latin-1")

    for method in ("GET", "POST", "PUT", "DELETE"):
        answer = app.answer(method, target, {"host": "x"}, b"")
        assert 200 <= answer.status < 500


def test_requests_are_classified() -> None:
    """By operation and place, without happening."""
    service = GcsService(now=lambda: 1e9, new_id=lambda: "id")
    app = GcsApp(service)
    name = "/storage/v1/b/data/o/a%2Fb"
    body = multipart({"name": "x/y"}, b"")
    headers = {"content-type": "multipart/related; boundary=b"}
    upload = "/upload/storage/v1/b/data/o?uploadType"

    assert app.classify("POST", f"{name}/moveTo/o/c", {}) == ("move", "data/a/b")
    assert app.classify("GET", f"{name}?alt=media", {}) == ("read", "data/a/b")
    assert app.classify("GET", "/storage/v1/b/data/o?prefix=a/", {}) == ("list", "data/a/")
    assert app.classify("POST", f"{upload}=multipart", headers, body) == ("insert", "data/x/y")
    assert app.classify("GET", "/storage/v1/b/data", {}) == ("bucket", "data")
    assert app.classify("POST", f"/resumable{upload}=resumable&name=z", {}) == ("upload", "data/z")
    with pytest.raises(GcsRefusal):
        app.classify("GET", "/elsewhere", {})


def test_plus_is_a_space_in_queries_alone() -> None:
    """As forms write it."""
    assert parse_query("a=x+y&permissions=1&permissions=2") == {"a": "x y", "permissions": "1,2"}
    assert decode("x+y") == "x+y"


@pytest.mark.parametrize(
    "moment, text",
    [
        (0.0, "1970-01-01T00:00:00.000Z"),
        (1709658548.5, "2024-03-05T17:09:08.500Z"),
        (1709658548.9996, "2024-03-05T17:09:08.999Z"),
    ],
)
def test_times(moment: float, text: str) -> None:
    """RFC 3339, to the millisecond."""
    assert rfc3339(moment) == text


def test_errors_are_written_as_the_service_writes_them() -> None:
    """Domain, reason and location; headers of their own; as text to a download."""
    refusal = refuse("authError", location_type="header", location="Authorization")
    limited = refuse("rateLimitExceeded", "slowly", headers={"Retry-After": "2"})

    assert error_answer(refusal).body == (
        b'{"error":{"code":401,"message":"Invalid Credentials","errors":[{"message":'
        b'"Invalid Credentials","domain":"global","reason":"authError","locationType":"header",'
        b'"location":"Authorization"}]}}'
    )
    assert error_answer(limited).headers["Retry-After"] == "2"
    assert b'"domain":"usageLimits"' in error_answer(limited).body
    assert error_answer(limited, media=True).body == b"slowly"


def test_bytes_of_an_answer() -> None:
    """What a name brings into a header cannot end it."""
    wire = GcsWire(lambda: 0.0, "run")
    answer = error_answer(refuse("notFound", headers={"X": "a\r\nb: c"}))

    assert wire.write(answer, keep_alive=False).startswith(
        b"HTTP/1.1 404 Not Found\r\nX-GUploader-UploadID: run1\r\n"
        b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nServer: asynccommit\r\n"
        b"Content-Type: application/json; charset=UTF-8\r\nX: a??b: c\r\nConnection: close\r\n"
    )

"""Many requests in one: how they are read, what each is answered, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest

from asynccommit.testing.models.fault_rules import (
    AFTER,
    AGAIN,
    BEFORE,
    CUT,
    CUT_BEFORE,
    LATE,
    SLOW,
    TWICE,
    Fault,
)
from asynccommit.testing.models.latency import Latency
from tests.testing.emulators.gcs.client import Answer, GcsClient, parts_of, segment


def _delete(name: str, query: str = "", version: str = " HTTP/1.1") -> str:
    return f"DELETE /storage/v1/b/data/o/{segment(name)}{query}{version}"


async def test_each_part_has_its_own_outcome(gcs: GcsClient) -> None:
    """In the order of the asking; the whole is answered 200."""
    generation = await gcs.make("a/b")
    await gcs.make("c")
    answers = await gcs.batch(
        [
            _delete("a/b", f"?ifGenerationMatch={generation}"),
            _delete("c", f"?ifGenerationMatch={generation}"),
            _delete("none"),
            "GET /storage/v1/b/data/o/c?fields=name HTTP/1.1",
            "GET http://127.0.0.1/storage/v1/b/data/o/c?fields=name HTTP/1.1",
            "NONSENSE",
            "GET /elsewhere HTTP/1.1",
        ]
    )

    statuses = [status for status, _ in answers]
    assert statuses == [204, 412, 404, 200, 200, 400, 404]
    assert answers[3][1] == answers[4][1] == b'{"name":"c"}'
    assert b"No such object: data/none" in answers[2][1]
    assert await gcs.names() == ["c"]


async def test_two_slashes_before_the_path(gcs: GcsClient) -> None:
    """Google's library for Java asks so, and is answered."""
    body = b"--b\r\nContent-Type: application/http\r\n\r\nGET /storage/v1/b/data\r\n\r\n--b--"
    headers = {"Content-Type": "multipart/mixed; boundary=b"}
    answer = await gcs.send("POST", "//batch/storage/v1", body, headers)

    assert answer.status == 200
    assert b"HTTP/1.1 200 OK" in answer.body


async def test_form_of_the_answer(gcs: GcsClient) -> None:
    """Each part is a whole answer of HTTP, and names the request that it is to."""
    await gcs.make("a")
    answer = await gcs.send_batch([_delete("a")])
    boundary = answer.headers["content-type"].partition("multipart/mixed; boundary=")[2]

    assert answer.body.decode() == (
        f"--{boundary}\r\nContent-Type: application/http\r\nContent-ID: <response-id+0>\r\n\r\n"
        f"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n\r\n--{boundary}--\r\n"
    )


async def test_parts_with_bodies_and_bare_line_feeds(gcs: GcsClient) -> None:
    """As other clients write them; a part without an id is answered without one."""
    await gcs.make("a")
    body = (
        "\n--==x==\nContent-Type: application/http\n\n"
        "PATCH /storage/v1/b/data/o/a HTTP/1.1\nContent-Type: application/json\n\n"
        '{"contentType": "a/b"}\n--==x==\nContent-Type: application/http\n\n'
        "DELETE /storage/v1/b/data/o/b HTTP/1.1\naccept: application/json\n"
        "\n--==x==--"
    )
    headers = {"Content-Type": 'multipart/mixed; boundary="==x=="'}
    answer = await gcs.send("POST", "/batch/storage/v1", body.encode(), headers)

    assert [status for status, _ in parts_of(answer)] == [200, 404]
    assert b"Content-ID" not in answer.body
    assert (await gcs.get("a")).json["contentType"] == "a/b"


@pytest.mark.parametrize(
    "body, kind, reason",
    [
        (b"", "multipart/mixed; boundary=b", "badRequest"),
        (b"--b--", "multipart/mixed; boundary=b", "badRequest"),
        (b"--b\r\n\r\nDELETE /x HTTP/1.1", "multipart/mixed; boundary=b", "badRequest"),
        (b"--b\r\n\r\nDELETE /x HTTP/1.1\r\n--b--", "application/json", "badRequest"),
        (b"--b\r\n\r\nDELETE /x HTTP/1.1\r\n--b--", "multipart/mixed", "badRequest"),
    ],
)
async def test_batches_that_are_none(gcs: GcsClient, body: bytes, kind: str, reason: str) -> None:
    """They are refused as a whole."""
    answer = await gcs.send("POST", "/batch/storage/v1", body, {"Content-Type": kind})

    assert answer.brief == (400, reason)


async def test_most_that_a_batch_may_hold(gcs: GcsClient) -> None:
    """100 requests, and 10 MB."""
    most = await gcs.send_batch([_delete("x")] * 100)
    more = await gcs.send_batch([_delete("x")] * 101)
    large = await gcs.send_batch([_delete("x") + "\r\nX: " + "x" * 10_000_000])

    assert (most.status, more.status, large.status) == (200, 400, 413)


@pytest.mark.parametrize(
    "request_line",
    [
        "GET /storage/v1/b/data/o/a?alt=media HTTP/1.1",
        "POST /upload/storage/v1/b/data/o?uploadType=media&name=x HTTP/1.1",
        "POST /batch/storage/v1 HTTP/1.1",
    ],
)
async def test_uploads_and_downloads_are_not_for_batches(gcs: GcsClient, request_line: str) -> None:
    """Nor are batches."""
    await gcs.make("a")

    assert [status for status, _ in await gcs.batch([request_line])] == [400]


async def test_headers_of_the_batch_are_those_of_its_parts(gcs: GcsClient) -> None:
    """Unless a part has its own."""
    gcs.emulator.keyring.tokens = {"good"}
    await gcs.send(
        "POST",
        "/upload/storage/v1/b/data/o?uploadType=media&name=a",
        b"x",
        {"Authorization": "Bearer good"},
    )
    own = "\r\nAuthorization: Bearer bad"
    answers = await gcs.batch([_delete("a") + own, _delete("a")], Authorization="Bearer good")

    assert [status for status, _ in answers] == [401, 204]


# --- weather ---------------------------------------------------------------------------------


async def test_parts_are_counted_and_struck_one_by_one(gcs: GcsClient) -> None:
    """Some are refused before, some answered wrongly after they were done."""
    for name in ("a", "b", "c"):
        await gcs.make(name)
    gcs.emulator.clear_stats()
    gcs.emulator.weather.add(Fault(BEFORE, op="delete", path="data/a$", times=1))
    gcs.emulator.weather.add(Fault(AFTER, op="delete", path="data/b$", times=1))

    answers = await gcs.batch([_delete(name) for name in ("a", "b", "c")])

    assert [status for status, _ in answers] == [429, 503, 204]
    assert b"rateLimitExceeded" in answers[0][1]
    assert await gcs.names() == ["a"]
    assert gcs.emulator.stats()["requests"] == {"batch": 1, "delete": 3, "list": 1}
    assert gcs.emulator.stats()["struck"] == {"before delete": 1, "after delete": 1}


@pytest.mark.parametrize("kind, left", [(CUT, []), (CUT_BEFORE, ["a"])])
async def test_part_whose_answer_is_lost(gcs: GcsClient, kind: str, left: list[str]) -> None:
    """It is answered 503, done or not; the others are answered as ever."""
    for name in ("a", "b"):
        await gcs.make(name)
    gcs.emulator.weather.add(Fault(kind, op="delete", path="data/a$"))
    answers = await gcs.batch([_delete("a"), _delete("b")])

    assert [status for status, _ in answers] == [503, 204]
    assert await gcs.names() == left


async def test_batch_that_is_cut_off(gcs: GcsClient) -> None:
    """What is done is done, and nobody hears it."""
    await gcs.make("a")
    gcs.emulator.weather.add(Fault(CUT, op="batch"))

    with pytest.raises((ConnectionError, EOFError)):
        await gcs.batch([_delete("a")])
    await gcs.close()

    assert await gcs.names() == []


async def test_part_that_is_late(gcs: GcsClient) -> None:
    """The others are done at once, the answer says that it failed, and then it happens."""
    for name in ("a", "b"):
        await gcs.make(name)
    delay = Latency.from_json({"seconds": 0.1})
    late = Fault(LATE, op="delete", path="data/a$", delay=delay, reply="refusal")
    gcs.emulator.weather.add(late)
    answers = await gcs.batch([_delete("a"), _delete("b")])
    at_once = await gcs.names()
    gcs.emulator.weather.add(Fault(SLOW, op="list", delay=Latency.from_json({"seconds": 0.3})))
    await gcs.names()

    assert [status for status, _ in answers] == [503, 204]
    assert at_once == ["a"]
    assert await gcs.names() == []


@pytest.mark.parametrize("kind, status", [(TWICE, 404), (AGAIN, 204)])
async def test_part_is_executed_twice(gcs: GcsClient, kind: str, status: int) -> None:
    """The answer in the batch is that of the second execution, or of the first."""
    for name in ("a", "b"):
        await gcs.make(name)
    gcs.emulator.weather.add(Fault(kind, op="delete", path="data/a$", delay=Latency(first=0.0)))
    answers = await gcs.batch([_delete("a"), _delete("b")])

    assert [answer for answer, _ in answers] == [status, 204]
    assert await gcs.names() == []


@pytest.mark.parametrize("kind, status, left", [(BEFORE, 429, ["a"]), (AFTER, 503, [])])
async def test_batch_is_struck_as_a_whole(
    gcs: GcsClient, kind: str, status: int, left: list[str]
) -> None:
    """Before all of its parts, or after them."""
    await gcs.make("a")
    gcs.emulator.weather.add(Fault(kind, op="batch"))
    answer: Answer = await gcs.send_batch([_delete("a")])
    error: dict[str, Any] = answer.json["error"]

    assert (answer.status, error["code"]) == (status, status)
    assert await gcs.names() == left

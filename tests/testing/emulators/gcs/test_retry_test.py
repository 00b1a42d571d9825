"""The Retry Test API of Google's storage-testbench, as scripts of faults use it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from asynccommit.testing.emulators.gcs.retry_test import ScriptedFault, read_fault
from asynccommit.testing.emulators.gcs.uploads import QUANTUM
from asynccommit.testing.models.gcs.checksums import crc32c, encode_crc32c
from tests.testing.emulators.gcs.client import MULTIPART, GcsClient, multipart

EMULATOR = "x-goog-emulator-instructions"
LIST, GET = "storage.objects.list", "storage.objects.get"
INSERT, MOVE = "storage.objects.insert", "storage.objects.move"


async def _test(gcs: GcsClient, method: str, *faults: str) -> dict[str, str]:
    """Make a retry test, and return the header that names it."""
    given = {"instructions": {method: list(faults)}}
    made = await gcs.send_json("POST", "/retry_test", given)
    assert made.status == 200, made
    return {"x-retry-test-id": made.json["id"]}


async def test_faults_strike_one_after_the_other(gcs: GcsClient) -> None:
    """Then no more; other methods and requests without the header meet none."""
    headers = await _test(gcs, LIST, "return-503", "return-429")
    place = f"/retry_test/{headers['x-retry-test-id']}"
    first = await gcs.ask("GET", "o", headers=headers)
    plain = await gcs.ask("GET", "o")
    other = await gcs.ask("GET", "", headers=headers)
    between = (await gcs.send("GET", place)).json
    second = await gcs.ask("GET", "o", headers=headers)
    third = await gcs.ask("GET", "o", headers=headers)
    after = (await gcs.send("GET", place)).json

    assert (first.status, second.status, third.status) == (503, 429, 200)
    assert first.json["error"]["message"] == "Retry Test: Caused a 503"
    assert (plain.status, other.status) == (200, 200)
    assert between["instructions"] == {LIST: ["return-429"]}
    assert (between["completed"], after["completed"]) == (False, True)
    assert between["transport"] == "HTTP"


async def test_tests_are_listed_and_forgotten(gcs: GcsClient) -> None:
    """Who names one that there is not is told so."""
    headers = await _test(gcs, LIST, "return-503")
    place = f"/retry_test/{headers['x-retry-test-id']}"
    listed = (await gcs.send("GET", "/retry_tests")).json["retry_test"]
    deleted = await gcs.send("DELETE", place)

    assert [test["id"] for test in listed] == [headers["x-retry-test-id"]]
    assert deleted.status == 200
    assert (await gcs.send("GET", place)).status == 404
    assert (await gcs.ask("GET", "o", headers=headers)).status == 404
    assert (await gcs.send("GET", "/retry_tests")).json == {"retry_test": []}


@pytest.mark.parametrize(
    "given",
    [
        {"instructions": {"storage.nothing": ["return-503"]}},
        {"instructions": {LIST: ["explode"]}},
        {"instructions": {LIST: ["return-503"]}, "transport": "SMTP"},
        {"instructions": [LIST]},
        {},
        5,
    ],
)
async def test_tests_that_are_none(gcs: GcsClient, given: Any) -> None:
    """400."""
    assert (await gcs.send_json("POST", "/retry_test", given)).status == 400


async def test_faults_of_another_transport(gcs: GcsClient) -> None:
    """They do not strike here."""
    given = {"instructions": {LIST: ["return-503"]}, "transport": "GRPC"}
    made = (await gcs.send_json("POST", "/retry_test", given)).json

    answer = await gcs.ask("GET", "o", headers={"x-retry-test-id": made["id"]})

    assert answer.status == 200


async def test_refused_before_the_effect(gcs: GcsClient) -> None:
    """Also methods that the testbench does not know."""
    await gcs.make("a")
    headers = await _test(gcs, MOVE, "return-503")
    answers = [(await gcs.ask("POST", "o/a/moveTo/o/b", headers=headers)).status for _ in range(2)]

    assert answers == [503, 200]


async def test_connection_is_reset(gcs: GcsClient) -> None:
    """The client is told that it was, and nothing has happened."""
    await gcs.make("a")
    headers = await _test(gcs, MOVE, "return-reset-connection")

    with pytest.raises(ConnectionResetError):
        await gcs.ask("POST", "o/a/moveTo/o/b", headers=headers)
    await gcs.close()

    assert await gcs.names() == ["a"]


@pytest.mark.parametrize(
    "fault, size, got",
    [
        ("return-broken-stream", 3000, 4),
        ("return-broken-stream-after-2K", 3000, 2048),
        ("return-broken-stream-after-2K", 1000, None),
    ],
)
async def test_stream_breaks(gcs: GcsClient, fault: str, size: int, got: int | None) -> None:
    """After so many bytes; what is shorter comes whole, and the fault waits."""
    data = bytes(range(250)) * (size // 250)
    await gcs.make("a", data)
    headers = await _test(gcs, GET, fault)

    if got is None:
        assert (await gcs.media("a", headers=headers)).body == data
    else:
        with pytest.raises(asyncio.IncompleteReadError) as error:
            await gcs.media("a", headers=headers)
        assert error.value.partial == data[:got]
        await gcs.close()
        assert (await gcs.media("a", headers=headers)).body == data
    left = (await gcs.send("GET", "/retry_tests")).json["retry_test"][0]
    assert left["completed"] == (got is not None)


async def test_upload_is_refused_from_a_size_on(gcs: GcsClient) -> None:
    """A smaller one is not."""
    headers = await _test(gcs, INSERT, "return-503-after-2K")
    target = "/upload/storage/v1/b/data/o?uploadType=media&name=a"
    statuses = [
        (await gcs.send("POST", target, bytes(size), headers)).status for size in (1000, 3000, 3000)
    ]

    assert statuses == [200, 503, 200]


async def test_session_keeps_what_came_before_the_fault(gcs: GcsClient) -> None:
    """The client asks how far it is, and goes on from there."""
    headers = await _test(gcs, INSERT, "return-503-after-256K")
    target = "/upload/storage/v1/b/data/o?uploadType=resumable&name=a"
    url = (await gcs.send("POST", target, b"", headers)).headers["location"]
    url = url[url.index("/upload") :]
    data = bytes(range(256)) * 2048
    whole = {"Content-Range": f"bytes 0-{len(data) - 1}/{len(data)}", **headers}
    refused = await gcs.send("PUT", url, data, whole)
    asked = await gcs.send("PUT", url, b"", {"Content-Range": "bytes */*", **headers})
    rest = {"Content-Range": f"bytes {QUANTUM}-{len(data) - 1}/{len(data)}", **headers}
    done = await gcs.send("PUT", url, data[QUANTUM:], rest)

    assert refused.status == 503
    assert asked.headers["range"] == f"bytes=0-{QUANTUM - 1}"
    assert done.status == 200
    assert (await gcs.media("a")).body == data


async def test_last_answer_of_a_session_comes_short(gcs: GcsClient) -> None:
    """It is done; the client asks again, and is told."""
    headers = await _test(gcs, INSERT, "return-broken-stream-final-chunk-after-5B")
    target = "/upload/storage/v1/b/data/o?uploadType=resumable&name=a"
    url = (await gcs.send("POST", target, b"", headers)).headers["location"]
    url = url[url.index("/upload") :]
    short = await gcs.send("PUT", url, b"hello", headers)
    again = await gcs.send("PUT", url, b"", {"Content-Range": "bytes */5", **headers})

    assert (short.status, len(short.body)) == (200, 5)
    assert again.json["size"] == "5"


@pytest.mark.parametrize("fault", ["stall-for-0s", "stall-for-0s-after-1K"])
async def test_stalls_end(gcs: GcsClient, fault: str) -> None:
    """The whole comes then."""
    await gcs.make("a", bytes(3000))
    headers = await _test(gcs, GET, fault)

    assert (await gcs.media("a", headers=headers)).body == bytes(3000)
    assert (await gcs.media("a", headers=headers)).body == bytes(3000)


@pytest.mark.parametrize("kind", ["emulator", "testbench"])
async def test_one_request_asks_for_its_fault(gcs: GcsClient, kind: str) -> None:
    """By a header alone; what it does not know it passes over."""
    header = f"x-goog-{kind}-instructions"
    data = bytes(1000)
    await gcs.make("a", data)
    refused = await gcs.media("a", headers={header: "return-503"})
    corrupted = await gcs.media("a", headers={header: "return-corrupted-data"})
    unknown = await gcs.media("a", headers={header: "sing"})

    assert refused.status == 503
    assert len(corrupted.body) == 1000
    assert corrupted.body != data
    assert unknown.body == data


DOWNLOAD_FAULTS = ["return-503-after-256K", "break-after-256K"]


@pytest.mark.parametrize("fault", DOWNLOAD_FAULTS)
async def test_header_breaks_a_download_and_its_retries(gcs: GcsClient, fault: str) -> None:
    """From the start it breaks at 256 KiB; what continues is refused twice, then answered."""
    data = bytes(range(256)) * 2048
    await gcs.make("a", data)
    statuses = []
    with pytest.raises(asyncio.IncompleteReadError) as error:
        await gcs.media("a", headers={EMULATOR: fault})
    await gcs.close()
    for suffix in ("/retry-1", "/retry-2", "/retry-3", ""):
        headers = {EMULATOR: f"{fault}{suffix}", "Range": "bytes=262144-"}
        statuses.append((await gcs.media("a", headers=headers)).status)

    assert error.value.partial == data[:QUANTUM]
    assert statuses == [503, 503, 206, 206]


@pytest.mark.parametrize("kind", ["media", "session"])
@pytest.mark.parametrize("data", [b"hello", b""], ids=["bytes", "empty"])
async def test_upload_comes_damaged(gcs: GcsClient, kind: str, data: bytes) -> None:
    """Without a checksum other bytes are stored; with one the upload is refused."""
    target = "/upload/storage/v1/b/data/o?name=a&uploadType="
    headers = {EMULATOR: "inject-upload-data-error", "Content-Type": "a/b"}
    if kind == "media":
        made = await gcs.send("POST", f"{target}media", data, headers)
    else:
        begun = await gcs.send("POST", f"{target}resumable", b"", headers)
        url = "/" + begun.headers["location"].split("/", 3)[3]
        made = await gcs.send("PUT", url, data, {EMULATOR: "inject-upload-data-error"})
    given = {"name": "b", "crc32c": encode_crc32c(crc32c(data))}
    body = multipart(given, data)
    checked = await gcs.send("POST", f"{target}multipart", body, {**headers, **MULTIPART})

    assert made.status == 200
    assert (await gcs.media("a")).body not in (data, b"")
    assert (checked.status, await gcs.names()) == (400, ["a"])


async def test_buckets_that_cannot_be_reached(gcs: GcsClient) -> None:
    """A listing that may be partial names them apart; another one leaves the fault waiting."""
    gcs.emulator.service.create_bucket("other")
    place = "/storage/v1/b?project=p"
    gone = "projects/_/buckets/other"
    headers = await _test(gcs, "storage.buckets.list", f"return-unreachable-buckets-{gone}")
    whole = (await gcs.send("GET", place, headers=headers)).json
    partial = (await gcs.send("GET", f"{place}&returnPartialSuccess=true", headers=headers)).json
    after = (await gcs.send("GET", f"{place}&returnPartialSuccess=true", headers=headers)).json

    assert [_["name"] for _ in whole["items"]] == ["data", "other"]
    assert [_["name"] for _ in partial["items"]] == ["data"]
    assert partial["unreachable"] == [gone]
    assert "unreachable" not in after


@pytest.mark.parametrize("fault", ["redirect-send-token-t", "return-503-if-dp-enforced"])
async def test_faults_of_grpc_alone(gcs: GcsClient, fault: str) -> None:
    """They are accepted for that transport, and refused for HTTP with the reason."""
    given = {"instructions": {INSERT: [fault]}}
    grpc = await gcs.send_json("POST", "/retry_test", {**given, "transport": "GRPC"})
    http = await gcs.send_json("POST", "/retry_test", given)

    assert (grpc.status, http.status) == (200, 400)
    assert "for gRPC alone" in http.json["error"]["message"]


@pytest.mark.parametrize(
    "text, fault",
    [
        ("return-503", ScriptedFault("status", 503)),
        ("return-503-after-256K", ScriptedFault("status", 503, 262_144)),
        ("return-503-after-256K/retry-2", ScriptedFault("status", 503, 262_144)),
        ("return-503-after-256K/retry-3", None),
        ("return-reset-connection", ScriptedFault("reset")),
        ("return-broken-stream-after-1K", ScriptedFault("broken", after=1024)),
        ("stall-for-10s-after-12K", ScriptedFault("stall", after=12_288, seconds=10.0)),
        ("inject-upload-data-error", ScriptedFault("injected")),
        ("return-unreachable-buckets-a,b", ScriptedFault("unreachable", names=("a", "b"))),
        ("return-no-metadata", None),
        ("stall-always", ScriptedFault("stall", seconds=10.0)),
        ("stall-at-256KiB", ScriptedFault("stall", after=262_144, seconds=10.0)),
        ("return-50", None),
        ("return-503-after-K", None),
        ("", None),
    ],
)
def test_faults_are_read(text: str, fault: ScriptedFault | None) -> None:
    """As the testbench writes them."""
    assert read_fault(text) == fault

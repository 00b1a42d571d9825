"""Google's SDK through the Retry Test API: what its makers test it with, asked of the emulator.

A test is made by POST, and requests that name it meet its faults one after the other. The cases
are those of the conformance tests for clients: kinds of requests, and faults they must survive.
"""

from __future__ import annotations

import io
import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread
from tests.witness.gcs import names, open_client, write

QUARTER = 256 * 1024
DATA = bytes(range(256)) * 4 * 1024

Request = Callable[[Any], Any]


def api(gcs: GcsEmulatorThread, method: str, path: str, body: Any = None) -> Any:
    """Ask the Retry Test API."""
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(f"{gcs.endpoint}{path}", data, method=method)
    with urllib.request.urlopen(asked) as answer:
        return json.load(answer)


@contextmanager
def scripted(gcs: GcsEmulatorThread, method: str, *faults: str) -> Iterator[Any]:
    """Yield a client whose requests meet faults; at the end all of these must have struck."""
    made = api(gcs, "POST", "/retry_test", {"instructions": {method: list(faults)}})
    with open_client(gcs.endpoint, extra_headers={"x-retry-test-id": made["id"]}) as client:
        yield client
    left = api(gcs, "GET", f"/retry_test/{made['id']}")
    api(gcs, "DELETE", f"/retry_test/{made['id']}")
    assert left["completed"], left


def prepare(bucket: Any) -> Any:
    """Write what the requests are about, and return its blob."""
    return write(bucket, "file", DATA)


READS: dict[str, Request] = {
    "storage.buckets.get": lambda client: client.get_bucket("data"),
    "storage.buckets.list": lambda client: list(client.list_buckets()),
    "storage.buckets.getIamPolicy": lambda client: client.bucket("data").get_iam_policy(),
    "storage.buckets.testIamPermissions": lambda client: client.bucket("data").test_iam_permissions(
        ["storage.objects.get"]
    ),
    "storage.buckets.insert": lambda client: client.create_bucket("new"),
    "storage.buckets.delete": lambda client: client.bucket("tree").delete(),
    "storage.objects.list": lambda client: list(client.list_blobs("data")),
    "storage.objects.get": lambda client: client.bucket("data").blob("file").reload(),
}


def writes(blob: Any, *, safe: bool) -> dict[str, Request]:
    """Return requests that change something: ``safe`` ones name what they expect to find."""
    generation = {"if_generation_match": blob.generation} if safe else {}
    metageneration = {"if_metageneration_match": 1} if safe else {}
    free = {"if_generation_match": 0} if safe else {}

    def of(client: Any, name: str = "file") -> Any:
        return client.bucket("data").blob(name)

    def change(client: Any, how: str) -> None:
        found = of(client)
        found.metadata = {"k": "v"}
        getattr(found, how)(**metageneration)

    return {
        "storage.objects.compose": lambda client: of(client, "new").compose([blob], **free),
        "storage.objects.copy": lambda client: client.bucket("data").copy_blob(
            blob, client.bucket("data"), "new", **free
        ),
        "storage.objects.rewrite": lambda client: of(client, "new").rewrite(blob, **free),
        "storage.objects.move": lambda client: client.bucket("data").move_blob(blob, "new", **free),
        "storage.objects.delete": lambda client: of(client).delete(**generation),
        "storage.objects.insert": lambda client: of(client, "new").upload_from_string(b"1", **free),
        "storage.objects.patch": lambda client: change(client, "patch"),
        "storage.objects.update": lambda client: change(client, "update"),
    }


PASSING = [("return-503", "return-reset-connection"), ("return-reset-connection", "return-408")]
SAFE = [
    *("compose", "copy", "rewrite", "move", "delete", "insert", "patch", "update"),
]
# Since its release 3 the SDK repeats these also if they name nothing.
BOLD = ["delete", "insert", "patch"]


@pytest.mark.parametrize("faults", PASSING)
@pytest.mark.parametrize("method", READS)
def test_always_repeatable(
    gcs: GcsEmulatorThread, bucket: Any, method: str, faults: tuple[str, ...]
) -> None:
    """What changes nothing, or nothing twice, is asked until it is answered."""
    prepare(bucket)
    with scripted(gcs, method, *faults) as client:
        READS[method](client)


@pytest.mark.parametrize("faults", PASSING)
@pytest.mark.parametrize("verb", SAFE)
def test_repeatable_by_its_condition(
    gcs: GcsEmulatorThread, bucket: Any, verb: str, faults: tuple[str, ...]
) -> None:
    """What names the generation that it expects is asked until it is answered."""
    request = writes(prepare(bucket), safe=True)[f"storage.objects.{verb}"]
    with scripted(gcs, f"storage.objects.{verb}", *faults) as client:
        request(client)

    assert names(bucket) == {"delete": [], "move": ["new"]}.get(
        verb, ["file"] if verb in ("patch", "update") else ["file", "new"]
    )


@pytest.mark.parametrize("fault", ["return-503", "return-reset-connection"])
@pytest.mark.parametrize("verb", [verb for verb in SAFE if verb not in BOLD])
def test_not_repeatable(gcs: GcsEmulatorThread, bucket: Any, verb: str, fault: str) -> None:
    """What names none is asked once, and nothing of it has happened."""
    request = writes(prepare(bucket), safe=False)[f"storage.objects.{verb}"]
    with (
        scripted(gcs, f"storage.objects.{verb}", fault) as client,
        pytest.raises(Exception, match=r"503|aborted"),
    ):
        request(client)

    assert names(bucket) == ["file"]


@pytest.mark.parametrize("verb", BOLD)
def test_repeated_though_it_names_nothing(gcs: GcsEmulatorThread, bucket: Any, verb: str) -> None:
    """Some that name none are asked again all the same."""
    request = writes(prepare(bucket), safe=False)[f"storage.objects.{verb}"]
    with scripted(gcs, f"storage.objects.{verb}", "return-503", "return-503") as client:
        request(client)


@pytest.mark.parametrize("status", [400, 401])
@pytest.mark.parametrize("verb", SAFE)
def test_errors_that_do_not_pass(
    gcs: GcsEmulatorThread, bucket: Any, verb: str, status: int
) -> None:
    """What is wrong with the request itself is asked once."""
    request = writes(prepare(bucket), safe=True)[f"storage.objects.{verb}"]
    with (
        scripted(gcs, f"storage.objects.{verb}", "return-503", f"return-{status}") as client,
        pytest.raises(Exception, match=r"400|refreshed"),
    ):
        request(client)

    assert names(bucket) == ["file"]


@pytest.mark.parametrize(
    "faults",
    [
        ("return-reset-connection", "return-503"),
        ("return-408",),
        ("return-503-after-256K",),
        ("return-503-after-8192K", "return-408"),
    ],
)
def test_uploads_in_sessions(gcs: GcsEmulatorThread, bucket: Any, faults: tuple[str, ...]) -> None:
    """A session goes on from what there is, wherever it was broken off."""
    data = DATA * 9
    with scripted(gcs, "storage.objects.insert", *faults) as client:
        blob = client.bucket("data").blob("new", chunk_size=2 * 1024 * 1024)
        blob.upload_from_file(io.BytesIO(data), size=len(data), if_generation_match=0)

    assert bucket.blob("new").download_as_bytes() == data


def test_answer_to_an_upload_that_is_cut_short(gcs: GcsEmulatorThread, bucket: Any) -> None:
    """Half an answer is no answer to the SDK, nor is it asked for again; the object is there."""
    fault = "return-broken-stream-final-chunk-after-10B"
    with scripted(gcs, "storage.objects.insert", fault) as client:
        blob = client.bucket("data").blob("new", chunk_size=2 * 1024 * 1024)
        with pytest.raises(ValueError, match="Unterminated string"):
            blob.upload_from_file(io.BytesIO(DATA))

    assert bucket.blob("new").download_as_bytes() == DATA


@pytest.mark.parametrize(
    "faults",
    [
        ("return-broken-stream", "return-broken-stream"),
        ("return-broken-stream-after-256K",),
        ("return-503", "return-broken-stream"),
        ("return-reset-connection", "return-429"),
    ],
)
@pytest.mark.parametrize("chunk", [None, 2 * QUARTER])
def test_downloads(
    gcs: GcsEmulatorThread, bucket: Any, chunk: int | None, faults: tuple[str, ...]
) -> None:
    """A download goes on behind what has come, and its checksum is right."""
    prepare(bucket)
    with scripted(gcs, "storage.objects.get", *faults) as client:
        blob = client.bucket("data").blob("file", chunk_size=chunk)
        assert blob.download_as_bytes() == DATA


def test_download_that_is_corrupted(gcs: GcsEmulatorThread, bucket: Any) -> None:
    """Bytes that are not those that were stored are noticed, by the checksum in the headers."""
    prepare(bucket)
    asks = {"x-goog-emulator-instructions": "return-corrupted-data"}
    with (
        open_client(gcs.endpoint, extra_headers=asks) as client,
        pytest.raises(Exception, match="Checksum mismatch"),
    ):
        client.bucket("data").blob("file").download_as_bytes()


def test_retry_tests_are_made_listed_and_forgotten(gcs: GcsEmulatorThread) -> None:
    """The API's own verbs; a method or a fault that is none is refused."""
    wanted = {"storage.objects.get": ["return-503"], "storage.objects.move": ["return-429"]}
    made = api(gcs, "POST", "/retry_test", {"instructions": wanted})
    listed = api(gcs, "GET", "/retry_tests")["retry_test"]
    api(gcs, "DELETE", f"/retry_test/{made['id']}")

    assert [test["instructions"] for test in listed] == [wanted]
    assert api(gcs, "GET", "/retry_tests") == {"retry_test": []}
    for wrong in ({"storage.objects.got": ["return-503"]}, {"storage.objects.get": ["explode"]}):
        with pytest.raises(Exception, match="400"):
            api(gcs, "POST", "/retry_test", {"instructions": wrong})

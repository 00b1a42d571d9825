"""What Google's SDK makes of faults, and this package of the same: why a commit has its engine.

The SDK tries again what it takes for safe to repeat, and then reports the second answer. A move
whose first answer was lost is reported as a source that was not found.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator, GcsEmulatorThread
from tests.witness.gcs import asked, fault_of, names, strike, write

REFUSED = ("before", "busy", "cut_before")
LOST = ("after", "cut")
KINDS = (*REFUSED, *LOST)
SEEN: dict[str, dict[str, Any]] = {
    "before": {},
    "busy": {"kind": "before", "code": "backendError"},
    "cut_before": {},
    "after": {},
    "cut": {},
}
"""Name of a fault -> how it is told, if not by its name alone."""


def requests_of(bucket: Any) -> dict[str, tuple[str, Callable[[], Any]]]:
    """Return name -> operation and request, each about the object ``d/a`` that is there."""
    blob = write(bucket, "d/a", b"12345")
    named, new = bucket.blob("d/a"), bucket.blob("d/b")
    generation = blob.generation
    as_it_is = {"if_source_generation_match": generation, "if_generation_match": 0}
    free = {"if_generation_match": 0}

    def patch(**wanted: int) -> None:
        blob.metadata = {"k": "v"}
        blob.patch(**wanted)

    return {
        "move": ("move", lambda: bucket.move_blob(blob, "d/b")),
        "move as it is": ("move", lambda: bucket.move_blob(blob, "d/b", **as_it_is)),
        "copy": ("rewrite", lambda: bucket.copy_blob(blob, bucket, "d/b")),
        "copy if free": ("rewrite", lambda: bucket.copy_blob(blob, bucket, "d/b", **free)),
        "compose": ("compose", lambda: new.compose([blob])),
        "compose if free": ("compose", lambda: new.compose([blob], **free)),
        "insert": ("insert", lambda: new.upload_from_string(b"1")),
        "insert if free": ("insert", lambda: new.upload_from_string(b"1", **free)),
        "delete": ("delete", named.delete),
        "delete as it is": ("delete", lambda: named.delete(if_generation_match=generation)),
        "patch": ("patch", patch),
        "patch as it is": ("patch", lambda: patch(if_metageneration_match=1)),
        "read": ("read", named.download_as_bytes),
        "list": ("list", lambda: list(bucket.list_blobs())),
        "get": ("get", named.reload),
    }


# What the SDK never sends twice unless a generation is named.
ONCE = ["move", "copy", "compose"]
TWICE = [
    *("move as it is", "copy if free", "compose if free", "insert", "insert if free"),
    *("delete", "delete as it is", "patch", "patch as it is", "read", "list", "get"),
]
# Sent twice, and done by the first: what the second is answered.
MISTAKEN = {
    "move as it is": 404,
    "copy if free": 412,
    "compose if free": 412,
    "insert if free": 412,
    "delete": 404,
    "delete as it is": 404,
    "patch as it is": 412,
}
LEFT = {"move": ["d/b"], "delete": [], "patch": ["d/a"], "read": ["d/a"], "list": ["d/a"]}
"""First word of a request -> what is there once it is done; both otherwise."""


def left_by(name: str) -> list[str]:
    """Return the objects there are once a request is done."""
    return LEFT.get(name.split()[0], ["d/a"] if name == "get" else ["d/a", "d/b"])


def send(gcs: GcsEmulatorThread, bucket: Any, name: str, kind: str) -> tuple[int, int | None]:
    """Send a request under a fault; return how often it was sent, and the status of the error."""
    op, request = requests_of(bucket)[name]
    before = asked(gcs).get(op, 0)
    strike(gcs, **{"kind": kind, "op": op, **SEEN[kind]})
    status: int | None = None
    try:
        request()
    except Exception as error:
        status = int(getattr(error, "code", 0))
    return asked(gcs)[op] - before, status


@pytest.mark.parametrize("name", TWICE)
@pytest.mark.parametrize("kind", REFUSED)
def test_request_that_did_not_happen(
    gcs: GcsEmulatorThread, bucket: Any, name: str, kind: str
) -> None:
    """What was refused or never arrived is sent again, and done."""
    assert send(gcs, bucket, name, kind) == (2, None)
    assert names(bucket) == left_by(name)


@pytest.mark.parametrize("name", TWICE)
@pytest.mark.parametrize("kind", LOST)
def test_request_that_happened_and_whose_answer_was_lost(
    gcs: GcsEmulatorThread, bucket: Any, name: str, kind: str
) -> None:
    """It is sent again, and what the SDK reports is the answer to that: an error, often."""
    assert send(gcs, bucket, name, kind) == (2, MISTAKEN.get(name))
    assert names(bucket) == left_by(name)


@pytest.mark.parametrize("name", ONCE)
@pytest.mark.parametrize("kind", KINDS)
def test_request_that_the_sdk_does_not_repeat(
    gcs: GcsEmulatorThread, bucket: Any, name: str, kind: str
) -> None:
    """Without a generation it is sent once: the error does not tell whether it happened."""
    status = {"before": 429, "busy": 503, "after": 503}.get(kind, 0)

    assert send(gcs, bucket, name, kind) == (1, status)
    assert names(bucket) == (left_by(name) if kind in LOST else ["d/a"])


def test_request_that_is_refused_again_and_again(gcs: GcsEmulatorThread, bucket: Any) -> None:
    """The SDK does not give up for two minutes: a short while is asked of it here."""
    write(bucket, "d/a")
    strike(gcs, "before", "get", times=20)
    blob = bucket.blob("d/a")
    blob.reload()

    assert asked(gcs)["get"] == 21


def test_upload_in_a_session_that_is_cut(gcs: GcsEmulatorThread, bucket: Any) -> None:
    """Of a session the SDK asks how far it is, and goes on from there."""
    data = bytes(range(256)) * 4096
    for kind in ("cut", "after", "before", "cut_before"):
        strike(gcs, kind, "upload", skip=1)
        blob = bucket.blob(f"large/{kind}", chunk_size=256 * 1024)
        with blob.open("wb", chunk_size=256 * 1024) as file:
            file.write(data)
        assert blob.download_as_bytes() == data


def test_batch_that_is_lost(gcs: GcsEmulatorThread, client: Any, bucket: Any) -> None:
    """The SDK never sends a batch again: its error does not tell what of it happened."""
    for kind in ("before", "after", "cut"):
        for number in range(3):
            write(bucket, f"{kind}/{number}")
        strike(gcs, kind, "batch")
        with pytest.raises(Exception, match=r"429|503|aborted"), client.batch():
            for number in range(3):
                bucket.delete_blob(f"{kind}/{number}")

    assert names(bucket) == ["before/0", "before/1", "before/2"]
    assert asked(gcs)["batch"] == 3


@pytest.mark.usefixtures("in_a_hurry")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["data", "tree"])
async def test_rename_by_this_package_under_the_same_faults(
    gcs_here: GcsEmulator, place: str, kind: str
) -> None:
    """It asks who has renamed, and finds that it was itself; the etag tells the content."""
    options = {"endpoint_url": gcs_here.endpoint, "token": "anon"}
    settings = StoreSettings(rng=random.Random(0), options=options)
    store = open_store(parse_url(f"gs://{place}/"), settings)
    try:
        before = await store.put("/d/a", b"12345")
        gcs_here.weather.add(fault_of(**{"kind": kind, "op": "move", **SEEN[kind]}))
        await store.rename("/d/a", "/d/b", etag=before.etag)
        found = await store.list("/d")
    finally:
        await store.aclose()

    (after,) = found.entries
    assert after.path == "/d/b"
    assert str(before.etag).split("-")[1] == str(after.etag).split("-")[1]
    assert gcs_here.weather.requests["move"] <= 2

"""What Google's documentation says, page by page.

Each test names the page. Where a page leaves something open the model's comments say *inferred*;
such things are tested beside the module that decides them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from asynccommit.testing.models.gcs.bucket import WEEK
from asynccommit.testing.models.gcs.model import (
    IF_ABSENT,
    ComposeSource,
    Details,
    GcsLimits,
    ListQuery,
    Preconditions,
)
from asynccommit.testing.models.gcs.quotas import FLAT
from tests.testing.models.gcs.model import BUCKET, Bench, refused


def test_generation_and_metageneration() -> None:
    """https://cloud.google.com/storage/docs/metadata#generation-number.

    New content is a new generation whose metageneration is 1; new metadata is a new
    metageneration of the same generation.
    """
    bench = Bench()
    bench.put("a")
    patched = bench.patch(BUCKET, "a", {"cache_control": "x"})
    replaced = bench.insert(BUCKET, "a", b"new")

    assert patched.metageneration == 2
    assert (replaced.generation > patched.generation, replaced.metageneration) == (True, 1)


def test_objects_are_immutable() -> None:
    """https://cloud.google.com/storage/docs/objects#immutability.

    Until an upload is done the old content is served, then the new; who holds the old one keeps
    it.
    """
    bench = Bench()
    old = bench.insert(BUCKET, "a", b"old")
    bench.put("a", data=b"new")

    assert old.content.data == b"old"
    assert bench.data("a") == b"new"


def test_everything_is_seen_at_once() -> None:
    """https://cloud.google.com/storage/docs/consistency.

    Read after write, after update and after delete, and lists of buckets' objects.
    """
    bench = Bench()
    bench.put("a")
    assert bench.names() == ["a"]
    bench.move(BUCKET, "a", "b")
    assert bench.names() == ["b"]
    bench.patch(BUCKET, "b", {"cache_control": "x"})
    assert bench.get(BUCKET, "b").details.cache_control == "x"
    bench.delete(BUCKET, "b")
    assert bench.names() == []


def test_a_retried_upload_is_safe_with_a_generation() -> None:
    """https://cloud.google.com/storage/docs/request-preconditions.

    Of two equal requests the second finds that the generation is another one.
    """
    bench = Bench()
    bench.insert(BUCKET, "a", b"1", preconditions=IF_ABSENT)
    with refused(412, "conditionNotMet"):
        bench.insert(BUCKET, "a", b"1", preconditions=IF_ABSENT)
    now = Preconditions(generation_match=bench.get(BUCKET, "a").generation)
    bench.insert(BUCKET, "a", b"2", preconditions=now)
    with refused(412, "conditionNotMet"):
        bench.insert(BUCKET, "a", b"2", preconditions=now)


def test_move_replaces_and_keeps_the_replaced() -> None:
    """https://cloud.google.com/storage/docs/json_api/v1/objects/move.

    What is replaced becomes noncurrent or soft-deleted.
    """
    for options, query in (
        ({"versioning": True}, ListQuery(versions=True)),
        ({"soft_delete": WEEK}, ListQuery(soft_deleted=True)),
    ):
        bench = Bench(**options)
        bench.put("a")
        replaced = bench.put("b")
        bench.move(BUCKET, "a", "b")

        assert replaced in [found.generation for found in bench.list(BUCKET, query).items]


def test_compose() -> None:
    """https://cloud.google.com/storage/docs/composite-objects.

    Up to 32 parts, any number in all; a CRC32C but no MD5; parts may go afterwards.
    """
    bench = Bench()
    bench.put("a", data=b"123456789")
    bench.compose(BUCKET, "b", [ComposeSource("a")] * 32)
    made = bench.compose(BUCKET, "c", [ComposeSource("b")] * 32)
    bench.delete(BUCKET, "a")
    bench.delete(BUCKET, "b")

    assert made.content.components == 1024
    assert made.content.md5 is None
    assert bench.data("c") == b"123456789" * 1024


def test_rewrite_in_one_call_or_many() -> None:
    """https://cloud.google.com/storage/docs/json_api/v1/objects/rewrite.

    A token until it is done, then the resource; total size and what is written are told.
    """
    bench = Bench(limits=GcsLimits(rewrite_bytes=5))
    bench.put("a", data=b"123456789")
    first = bench.rewrite(BUCKET, "a", BUCKET, "b")
    last = bench.rewrite(BUCKET, "a", BUCKET, "b", token=first.token)

    assert (first.rewritten, first.total, first.object) == (5, 9, None)
    assert (last.rewritten, last.token) == (9, "")
    assert last.object is not None


def test_a_bucket_s_first_rates() -> None:
    """https://cloud.google.com/storage/docs/request-rate.

    About 1,000 writes and 5,000 reads a second, whatever the objects.
    """
    bench = Bench(quotas=FLAT)
    counts = {"move": 0, "get": 0}
    for op in counts:
        for number in range(20_000):
            bench.clock.now += 0.00005
            try:
                bench.admit(op, BUCKET, f"{op}-{number}")
            except Exception as no:
                assert getattr(no, "status", 0) == 429  # noqa: PT017
            else:
                counts[op] += 1

    assert counts["move"] == pytest.approx(1100, rel=0.01)
    assert counts["get"] == pytest.approx(5500, rel=0.01)


CALLS: dict[str, Callable[[Bench], object]] = {
    "insert": lambda bench: bench.put("new"),
    "overwrite": lambda bench: bench.put("a"),
    "get": lambda bench: bench.get(BUCKET, "a"),
    "read": lambda bench: bench.read(BUCKET, "a"),
    "list": lambda bench: bench.list(BUCKET),
    "layout": lambda bench: bench.storage_layout(BUCKET),
    "patch": lambda bench: bench.patch(BUCKET, "a", {}),
    "delete": lambda bench: bench.delete(BUCKET, "a"),
    "compose": lambda bench: bench.compose(BUCKET, "new", [ComposeSource("a")]),
    "rewrite": lambda bench: bench.rewrite(BUCKET, "a", BUCKET, "new"),
    "copy": lambda bench: bench.copy_object(BUCKET, "a", BUCKET, "new"),
    "move": lambda bench: bench.move(BUCKET, "a", "new"),
    "restore": lambda bench: bench.restore(BUCKET, "gone", gone(bench)),
    "get bucket": lambda bench: bench.get_bucket(BUCKET),
    "create bucket": lambda bench: bench.create_bucket("other"),
    "patch bucket": lambda bench: bench.patch_bucket(BUCKET, {}),
    "list buckets": lambda bench: bench.list_buckets(),
    "delete bucket": lambda bench: bench.delete_bucket("empty"),
}


def gone(bench: Bench) -> int:
    """Return the generation of the soft-deleted object."""
    return bench._buckets[BUCKET].soft_deleted["gone"][0].generation


@pytest.mark.parametrize(
    "call,needed",
    [
        ("insert", {"objects.create"}),
        ("overwrite", {"objects.create", "objects.delete"}),
        ("get", {"objects.get"}),
        ("read", {"objects.get"}),
        ("list", {"objects.list"}),
        ("layout", {"objects.list"}),
        ("patch", {"objects.update"}),
        ("delete", {"objects.delete"}),
        ("compose", {"objects.create", "objects.get"}),
        ("rewrite", {"objects.create", "objects.get"}),
        ("copy", {"objects.create", "objects.get"}),
        ("move", {"objects.create", "objects.move"}),
        ("restore", {"objects.create", "objects.restore"}),
        ("get bucket", {"buckets.get"}),
        ("create bucket", {"buckets.create"}),
        ("patch bucket", {"buckets.update"}),
        ("list buckets", {"buckets.list"}),
        ("delete bucket", {"buckets.delete"}),
    ],
)
def test_each_method_needs_its_permissions(call: str, needed: set[str]) -> None:
    """https://cloud.google.com/storage/docs/access-control/iam-json.

    Without any one of them the method is refused, and nothing else is needed.
    """
    everything = {
        *(f"storage.objects.{verb}" for verb in ("create", "delete", "get", "list", "move")),
        *("storage.objects.update", "storage.objects.restore"),
        *(f"storage.buckets.{verb}" for verb in ("create", "delete", "get", "list", "update")),
    }
    allowed = {f"storage.{permission}" for permission in needed}
    fresh = Bench(soft_delete=WEEK)
    fresh.create_bucket("empty")
    fresh.put("a", "gone")
    fresh.delete(BUCKET, "gone")
    for missing in allowed:
        bench = fresh.copy()
        bench.denied = {missing}
        with refused(403, "forbidden", missing):
            CALLS[call](bench)
    bench = fresh.copy()
    bench.denied = everything - allowed
    CALLS[call](bench)


def test_custom_metadata_survives_moves_and_copies() -> None:
    """https://cloud.google.com/storage/docs/metadata#custom-metadata."""
    bench = Bench()
    bench.insert(BUCKET, "a", b"", details=Details(metadata={"k": "v"}))
    bench.rewrite(BUCKET, "a", BUCKET, "b")
    bench.move(BUCKET, "a", "c")

    for name in ("b", "c"):
        assert dict(bench.get(BUCKET, name).details.metadata) == {"k": "v"}

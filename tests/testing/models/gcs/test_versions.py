"""What becomes of objects that are replaced and deleted, and which must not be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from asynccommit.testing.models.gcs.bucket import WEEK
from asynccommit.testing.models.gcs.model import ComposeSource, Details, ListQuery, Retention
from tests.testing.models.gcs.model import BUCKET, Bench, refused


def generations(bench: Bench, **query: Any) -> list[int]:
    """Return the generations that a listing shows."""
    return [found.generation for found in bench.list(BUCKET, ListQuery(**query)).items]


def test_nothing_is_kept_by_itself() -> None:
    """Without versioning and soft delete the old generation is gone."""
    bench = Bench()
    first = bench.put("a")
    second = bench.put("a")

    assert generations(bench, versions=True) == [second]
    with refused(404, "notFound", "No such object: data/a"):
        bench.get(BUCKET, "a", generation=first)


def test_versioning_keeps_what_was_live() -> None:
    """Replaced or deleted without a generation: https://cloud.google.com/storage/docs/object-versioning."""
    bench = Bench(versioning=True)
    first, second = bench.put("a"), bench.put("a")
    bench.clock.now += 1
    bench.delete(BUCKET, "a")

    assert generations(bench) == []
    assert generations(bench, versions=True) == [first, second]
    assert bench.get(BUCKET, "a", generation=second).deleted == bench.clock.now
    with refused(404, "notFound"):
        bench.get(BUCKET, "a")
    with refused(409, "conflict"):
        bench.delete_bucket(BUCKET)


def test_a_given_generation_is_deleted_for_good() -> None:
    """Live or not: it does not become noncurrent."""
    bench = Bench(versioning=True)
    first, second, third = bench.put("a"), bench.put("a"), bench.put("a")
    bench.delete(BUCKET, "a", generation=third)
    bench.delete(BUCKET, "a", generation=first)

    assert generations(bench, versions=True) == [second]
    bench.delete(BUCKET, "a", generation=second)
    assert generations(bench, versions=True) == []
    assert bench.get_bucket(BUCKET).noncurrent == {}
    with refused(404, "notFound"):
        bench.delete(BUCKET, "a", generation=second)


def test_soft_delete_keeps_what_was_deleted_for_a_time() -> None:
    """Replaced too: https://cloud.google.com/storage/docs/soft-delete. Then it is gone for good."""
    bench = Bench(soft_delete=WEEK)
    first, second = bench.put("a"), bench.put("a")
    bench.clock.now += 10
    bench.delete(BUCKET, "a")

    assert generations(bench) == generations(bench, versions=True) == []
    assert generations(bench, soft_deleted=True) == [first, second]
    kept = bench.get(BUCKET, "a", generation=second, soft_deleted=True)
    assert (kept.deleted, kept.purged) == (bench.clock.now, bench.clock.now + WEEK)
    bench.clock.now += WEEK - 10
    assert generations(bench, soft_deleted=True) == [second]
    with refused(404, "notFound"):
        bench.get(BUCKET, "a", generation=first, soft_deleted=True)
    with refused(400, "required"):
        bench.get(BUCKET, "a", soft_deleted=True)


def test_versioning_goes_before_soft_delete() -> None:
    """Live objects become noncurrent; a noncurrent one that is deleted becomes soft-deleted."""
    bench = Bench(soft_delete=WEEK, versioning=True)
    first, second = bench.put("a"), bench.put("a")
    assert generations(bench, soft_deleted=True) == []
    bench.delete(BUCKET, "a", generation=first)

    assert generations(bench, soft_deleted=True) == [first]
    assert generations(bench, versions=True) == [second]


def test_restored_is_a_new_generation() -> None:
    """With the old content: https://cloud.google.com/storage/docs/json_api/v1/objects/restore."""
    bench = Bench(soft_delete=WEEK)
    said = Details(content_type="text/plain")
    first = bench.insert(BUCKET, "a", b"one", details=said)
    bench.put("a", data=b"two")
    bench.clock.now += 1
    restored = bench.restore(BUCKET, "a", first.generation)

    assert bench.data("a") == b"one"
    assert restored.details.content_type == "text/plain"
    assert restored.generation > first.generation
    assert (restored.metageneration, restored.created) == (1, bench.clock.now)
    assert (restored.deleted, restored.purged) == (None, None)
    assert len(generations(bench, soft_deleted=True)) == 2
    with refused(404, "notFound"):
        bench.restore(BUCKET, "a", restored.generation)


def test_a_move_keeps_no_trace_of_its_source() -> None:
    """Soft delete does not apply to it; what it replaces is kept (both documented)."""
    bench = Bench(soft_delete=WEEK)
    bench.put("a", "b")
    replaced = bench.get(BUCKET, "b").generation
    bench.move(BUCKET, "a", "b")

    assert bench.names(soft_deleted=True) == ["b"]
    assert generations(bench, soft_deleted=True) == [replaced]


CHANGES: dict[str, Callable[[Bench], object]] = {
    "delete": lambda bench: bench.delete(BUCKET, "a"),
    "insert": lambda bench: bench.put("a"),
    "move from": lambda bench: bench.move(BUCKET, "a", "c"),
    "move to": lambda bench: bench.move(BUCKET, "b", "a"),
    "rewrite": lambda bench: bench.rewrite(BUCKET, "b", BUCKET, "a"),
    "copy": lambda bench: bench.copy_object(BUCKET, "b", BUCKET, "a"),
    "compose": lambda bench: bench.compose(BUCKET, "a", [ComposeSource("b")]),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "details,reason,said",
    [
        (Details(temporary_hold=True), "objectUnderActiveHold", "under active Temporary hold"),
        (Details(event_based_hold=True), "objectUnderActiveHold", "under active Event-Based hold"),
        (
            Details(retention=Retention("Unlocked", 1_800_000_000)),
            "retentionPolicyNotMet",
            "until 2027-01-15T08:00:00+00:00",
        ),
    ],
)
def test_held_objects_stay(change: str, details: Details, reason: str, said: str) -> None:
    """No change takes them away, and the refusal says why; they may be read and copied."""
    bench = Bench(versioning=True)
    bench.put("b", data=b"b")
    held = bench.insert(BUCKET, "a", b"a", details=details)
    with refused(403, reason, said):
        CHANGES[change](bench)

    assert bench.get(BUCKET, "a") is held
    assert bench.names() == ["a", "b"]
    copied = bench.rewrite(BUCKET, "a", BUCKET, "c").object
    assert copied is not None
    assert copied.details == bench.get(BUCKET, "b").details


def test_a_hold_is_released() -> None:
    """By saying so; then it may be deleted."""
    bench = Bench(default_event_based_hold=True)
    bench.put("a")
    bench.patch(BUCKET, "a", {"event_based_hold": False})
    bench.delete(BUCKET, "a")

    assert bench.names() == []


def test_the_bucket_s_retention() -> None:
    """Counts from the creation of each object, and the longer one counts."""
    bench = Bench(retention=100.0)
    bench.put("a")
    found = bench.get_bucket(BUCKET)
    until = bench.clock.now + 100
    assert found.retained_until(bench.get(BUCKET, "a")) == until
    own = bench.patch(BUCKET, "a", {"retention": Retention("Unlocked", until + 5)})
    assert found.retained_until(own) == until + 5
    bench.clock.now += 104
    with refused(403, "retentionPolicyNotMet", "is subject to bucket's retention policy"):
        bench.delete(BUCKET, "a")
    bench.clock.now += 1
    bench.delete(BUCKET, "a")

"""Moves and rewrites: what they keep, what they demand, and how far one call goes."""

from __future__ import annotations

import pytest

from asynccommit.testing.models.gcs.copies import MIB
from asynccommit.testing.models.gcs.model import (
    IF_ABSENT,
    BucketOptions,
    Details,
    GcsLimits,
    GcsObject,
    Preconditions,
    Rewrite,
)
from tests.testing.models.gcs.model import BUCKET, Bench, refused

SAID = Details(content_type="text/plain", metadata={"k": "v"}, storage_class="STANDARD")


def said(bench: Bench, name: str, data: bytes = b"abc") -> GcsObject:
    """Make an object of which something is said, changed once, and return it."""
    bench.insert(BUCKET, name, data, details=SAID)
    return bench.patch(BUCKET, name, {"cache_control": "no-store"})


def test_a_move_is_one_step() -> None:
    """https://cloud.google.com/storage/docs/json_api/v1/objects/move: what is new, what is kept."""
    bench = Bench()
    before = said(bench, "a")
    bench.clock.now += 5
    after = bench.move(BUCKET, "a", "d/b")

    assert bench.names() == ["d/b"]
    assert bench.get(BUCKET, "d/b") is after
    assert after.generation > before.generation
    assert after.metageneration == 1
    assert after.created == after.updated == bench.clock.now
    assert after.content is before.content
    assert after.details == before.details
    assert after.details.metadata == {"k": "v"}


def test_a_move_replaces_unless_told() -> None:
    """Generation 0 of the destination forbids it, and then nothing has happened."""
    bench = Bench()
    bench.put("a", data=b"a")
    bench.put("b", data=b"b")
    with refused(412, "conditionNotMet"):
        bench.move(BUCKET, "a", "b", preconditions=IF_ABSENT)
    assert (bench.data("a"), bench.data("b")) == (b"a", b"b")
    bench.move(BUCKET, "a", "b")

    assert bench.names() == ["b"]
    assert bench.data("b") == b"a"


def test_a_move_of_another_generation_is_refused() -> None:
    """Source preconditions: the stranger's object stays where it is."""
    bench = Bench()
    mine = bench.put("a")
    bench.put("a", data=b"stranger's")
    wanted = Preconditions(generation_match=mine)
    with refused(412, "conditionNotMet"):
        bench.move(BUCKET, "a", "b", source_preconditions=wanted)

    assert bench.names() == ["a"]
    assert bench.data("a") == b"stranger's"


def test_a_move_of_nothing() -> None:
    """404 names the object, whatever is at the destination; so does a move that was done."""
    bench = Bench()
    bench.put("a")
    bench.move(BUCKET, "a", "b", preconditions=IF_ABSENT)
    with refused(404, "notFound", "No such object: data/a"):
        bench.move(BUCKET, "a", "b", preconditions=IF_ABSENT)


def test_names_of_a_move_must_differ() -> None:
    """And be names."""
    bench = Bench()
    bench.put("a")
    with refused(400, "invalid", "different"):
        bench.move(BUCKET, "a", "a")
    with refused(400, "invalid"):
        bench.move(BUCKET, "a", "b\n")

    assert bench.names() == ["a"]


def test_servers_without_moves() -> None:
    """Answer as to any path they do not know; the rewrite road is there."""
    bench = Bench(moves=False)
    bench.put("a")
    with refused(404, "notFound") as caught:
        bench.move(BUCKET, "a", "b")

    assert caught.value.message == "Not Found"
    assert bench.rewrite(BUCKET, "a", BUCKET, "b").object is not None


def test_a_rewrite_makes_a_copy() -> None:
    """In one call within a location; details are the source's, or those that are given."""
    bench = Bench()
    before = said(bench, "a")
    done = bench.rewrite(BUCKET, "a", BUCKET, "b")
    other = bench.rewrite(BUCKET, "a", BUCKET, "c", details=Details(content_type="x/y"))

    assert done.object is not None
    assert other.object is not None
    assert (done.rewritten, done.total, done.token) == (3, 3, "")
    assert done.object.details == before.details
    assert done.object.metageneration == 1
    assert done.object.content is before.content
    assert (other.object.details.content_type, dict(other.object.details.metadata)) == ("x/y", {})
    assert bench.names() == ["a", "b", "c"]
    assert bench.copy_object(BUCKET, "a", BUCKET, "d").details == before.details


def test_an_empty_object_is_rewritten_at_once() -> None:
    """However few bytes a call copies."""
    bench = Bench(limits=GcsLimits(rewrite_bytes=1))
    bench.put("a")

    assert bench.rewrite(BUCKET, "a", BUCKET, "b").object is not None


def test_a_rewrite_of_several_calls() -> None:
    """Each goes on from its token; nothing is at the destination until the last."""
    bench = Bench(limits=GcsLimits(rewrite_bytes=4))
    bench.put("a", data=b"0123456789")
    steps: list[Rewrite] = []
    while not steps or steps[-1].token:
        assert bench.names() == ["a"]
        token = steps[-1].token if steps else ""
        steps.append(bench.rewrite(BUCKET, "a", BUCKET, "b", token=token))

    assert [(step.rewritten, step.total) for step in steps] == [(4, 10), (8, 10), (10, 10)]
    assert steps[-1].object is bench.get(BUCKET, "b")
    assert bench.data("b") == b"0123456789"


def test_other_locations_take_several_calls_if_told() -> None:
    """``maxBytesRewrittenPerCall`` counts where bytes are moved, and is in whole MiB."""
    bench = Bench()
    bench.create_bucket("far", BucketOptions(location="EU"))
    bench.put("a", data=bytes(2 * MIB + 1))

    assert bench.rewrite(BUCKET, "a", BUCKET, "b", max_bytes=MIB).object is not None
    assert bench.rewrite(BUCKET, "a", "far", "a").object is not None
    assert bench.rewrite(BUCKET, "a", "far", "a", max_bytes=MIB).rewritten == MIB
    for max_bytes in (0, 5, MIB + 1):
        with refused(400, "invalid"):
            bench.rewrite(BUCKET, "a", "far", "a", max_bytes=max_bytes)


def test_preconditions_hold_for_every_call() -> None:
    """Of the destination and the source; what came between is not overwritten."""
    bench = Bench(limits=GcsLimits(rewrite_bytes=4))
    generation = bench.put("a", data=b"0123456789")
    first = bench.rewrite(BUCKET, "a", BUCKET, "b", preconditions=IF_ABSENT)
    bench.put("b", data=b"stranger's")
    with refused(412, "conditionNotMet"):
        bench.rewrite(BUCKET, "a", BUCKET, "b", token=first.token, preconditions=IF_ABSENT)
    with refused(412, "conditionNotMet"):
        wanted = Preconditions(generation_match=generation + 1)
        bench.rewrite(BUCKET, "a", BUCKET, "c", source_preconditions=wanted)

    assert bench.data("b") == b"stranger's"


def test_a_token_is_of_one_rewrite() -> None:
    """Of its names and its generation; once that is gone the rewrite cannot go on."""
    bench = Bench(limits=GcsLimits(rewrite_bytes=4))
    generation = bench.put("a", data=b"0123456789")
    token = bench.rewrite(BUCKET, "a", BUCKET, "b").token
    for wrong in ("?", "YQ==", token[:-4]):
        with refused(400, "invalid", "Invalid rewrite token"):
            bench.rewrite(BUCKET, "a", BUCKET, "b", token=wrong)
    with refused(400, "invalid"):
        bench.rewrite(BUCKET, "a", BUCKET, "c", token=token)
    with refused(400, "invalid"):
        bench.rewrite(BUCKET, "a", BUCKET, "b", token=token, generation=generation + 1)
    bench.put("a", data=b"other bytes")
    with refused(404, "notFound"):
        bench.rewrite(BUCKET, "a", BUCKET, "b", token=token)

    assert bench.names() == ["a"]


def test_an_old_generation_is_copied() -> None:
    """Where the bucket keeps it."""
    bench = Bench(versioning=True)
    old = bench.put("a", data=b"old")
    bench.put("a", data=b"new")
    bench.rewrite(BUCKET, "a", BUCKET, "b", generation=old)

    assert bench.data("b") == b"old"
    with refused(404, "notFound"):
        bench.rewrite(BUCKET, "a", BUCKET, "c", generation=old - 1)


@pytest.mark.parametrize(
    "permission,move,rewrite",
    [
        ("storage.objects.move", True, False),
        ("storage.objects.get", False, True),
        ("storage.objects.create", True, True),
        ("storage.objects.delete", True, True),
    ],
)
def test_permissions(permission: str, move: bool, rewrite: bool) -> None:
    """https://cloud.google.com/storage/docs/access-control/iam-json; deleting what is replaced."""
    bench = Bench()
    bench.put("a", "b", "c", "d")
    bench.denied.add(permission)
    if rewrite:
        with refused(403, "forbidden", permission):
            bench.rewrite(BUCKET, "a", BUCKET, "b")
    if move:
        with refused(403, "forbidden", permission):
            bench.move(BUCKET, "c", "d")
    else:
        bench.move(BUCKET, "c", "d")

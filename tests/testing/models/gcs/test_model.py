"""Objects of one bucket: made, read, changed, composed and deleted."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from asynccommit.testing.models.gcs.model import (
    IF_ABSENT,
    ComposeSource,
    Details,
    GcsLimits,
    GcsRefusal,
    Preconditions,
    Retention,
)
from tests.testing.models.gcs.model import BUCKET, Bench, refused


def test_an_object_is_as_it_was_made() -> None:
    """Data, checksums, details, times; its generation is the time in microseconds."""
    bench = Bench()
    details = Details(content_type="text/plain", metadata={"asynccommit-token": "t"})
    made = bench.insert(BUCKET, "a/b", b"abc", details=details)

    assert bench.get(BUCKET, "a/b") is made
    assert (made.bucket, made.name, made.size, made.crc32c) == (BUCKET, "a/b", 3, 0x364B3FB7)
    assert (made.generation, made.metageneration) == (int(bench.clock.now * 1e6), 1)
    assert made.created == made.updated == bench.clock.now
    assert (made.details.content_type, dict(made.details.metadata)) == (
        "text/plain",
        {"asynccommit-token": "t"},
    )
    assert made.details.storage_class == "STANDARD"


def test_generations_grow_though_the_clock_does_not() -> None:
    """No two are equal, of any names; a clock that goes back does not make them smaller."""
    bench = Bench()
    found = [bench.put("a"), bench.put("b"), bench.put("a")]
    bench.clock.now -= 100
    found.append(bench.put("c"))

    assert found == sorted(set(found))


def test_data_is_shared_and_never_copied() -> None:
    """One upload is one bytes object wherever it goes."""
    bench = Bench()
    data = b"x" * 1000
    bench.put("a", data=data)
    bench.rewrite(BUCKET, "a", BUCKET, "b")
    bench.move(BUCKET, "a", "c")

    assert bench.data("b") is data
    assert bench.data("c") is data
    assert bench.copy().read(BUCKET, "c")[1] is data


def test_put_if_absent() -> None:
    """Generation 0: one of many wins, the others are told 412."""
    bench = Bench()
    won = 0
    for writer in range(8):
        try:
            bench.insert(BUCKET, "a", bytes([writer]), preconditions=IF_ABSENT)
            won += 1
        except GcsRefusal as no:
            assert no.status == 412  # noqa: PT017

    assert won == 1
    assert bench.data("a") == b"\0"


def test_a_refused_insert_has_done_nothing() -> None:
    """Neither made the object nor folders, nor replaced anything."""
    bench = Bench(hns=True, soft_delete=9.0)
    bench.put("a", data=b"old")
    with refused(412, "conditionNotMet"):
        bench.insert(BUCKET, "d/b", b"", preconditions=Preconditions(generation_match=5))
    with refused(412, "conditionNotMet"):
        bench.insert(BUCKET, "a", b"new", preconditions=IF_ABSENT)
    with refused(400, "invalid"):
        bench.insert(BUCKET, "a", b"new", crc32c=1)
    with refused(400, "invalid"):
        bench.insert(BUCKET, "d\n", b"new")

    assert bench.names() == ["a"]
    assert bench.data("a") == b"old"
    assert bench.folder_names() == bench.names(soft_deleted=True) == []


def test_checksums_are_checked() -> None:
    """Those that are given; the refusal tells both."""
    bench = Bench()
    md5 = hashlib.md5(b"abc", usedforsecurity=False).digest()
    bench.insert(BUCKET, "a", b"abc", crc32c=0x364B3FB7, md5=md5)
    with refused(400, "invalid", 'Provided CRC32C "AAAAAA==" doesn\'t match calculated CRC32C'):
        bench.insert(BUCKET, "b", b"abc", crc32c=0)
    with refused(400, "invalid", "Provided MD5 hash"):
        bench.insert(BUCKET, "b", b"abc", md5=bytes(16))

    assert bench.names() == ["a"]


@pytest.mark.parametrize(
    "start,end,wanted",
    [
        (0, None, b"abcdef"),
        (2, None, b"cdef"),
        (2, 4, b"cd"),
        (2, 99, b"cdef"),
        (-2, None, b"ef"),
        (-99, None, b"abcdef"),
    ],
)
def test_ranges(start: int, end: int | None, wanted: bytes) -> None:
    """From, to, and from the end."""
    bench = Bench()
    bench.put("a", data=b"abcdef")

    assert bench.read(BUCKET, "a", start, end)[1] == wanted


@pytest.mark.parametrize("start,end,data", [(3, None, b"abc"), (0, 1, b""), (-1, None, b"")])
def test_ranges_that_there_are_not(start: int, end: int | None, data: bytes) -> None:
    """416 where nothing could be answered; the whole of an empty object can."""
    bench = Bench()
    bench.put("a", data=data)
    with refused(416, "requestedRangeNotSatisfiable"):
        bench.read(BUCKET, "a", start, end)

    assert bench.data("a") == data


def test_reads_with_preconditions() -> None:
    """412 and 304, of data as of metadata."""
    bench = Bench()
    generation = bench.put("a", data=b"abc")
    bench.read(BUCKET, "a", preconditions=Preconditions(generation_match=generation))
    with refused(304, "notModified"):
        bench.read(BUCKET, "a", preconditions=Preconditions(generation_not_match=generation))
    with refused(412, "conditionNotMet"):
        bench.get(BUCKET, "a", preconditions=IF_ABSENT)


@pytest.mark.parametrize("name", ["b", "a/", "a/b", ""])
def test_what_is_not_there(name: str) -> None:
    """404 names the object, of whatever is done with it; a missing bucket is named so."""
    bench = Bench()
    bench.put("a")
    for call in (bench.get, bench.read, bench.delete):
        with refused(404, "notFound", f"No such object: data/{name}"):
            call(BUCKET, name)
        with refused(404, "notFound", "The specified bucket does not exist."):
            call("other", name)
    with refused(404, "notFound"):
        bench.patch(BUCKET, name, {})
    with refused(404, "notFound", "bucket does not exist"):
        bench.rewrite(BUCKET, "a", "other", "a")


# --- changing what is said ------------------------------------------------------------------------


def test_a_patch_counts_the_metageneration() -> None:
    """The generation, content and creation stay."""
    bench = Bench()
    first = bench.insert(BUCKET, "a", b"abc", details=Details(metadata={"k": "v", "x": "y"}))
    bench.clock.now += 5
    changes: dict[str, Any] = {"metadata": {"k": None, "n": "new"}, "content_type": "x/y"}
    second = bench.patch(BUCKET, "a", changes)

    assert (second.generation, second.metageneration) == (first.generation, 2)
    assert (second.created, second.updated) == (first.created, bench.clock.now)
    assert dict(second.details.metadata) == {"x": "y", "n": "new"}
    assert second.details.content_type == "x/y"
    assert second.content is first.content
    assert second.etag != first.etag
    assert dict(first.details.metadata) == {"k": "v", "x": "y"}


def test_a_patch_resets() -> None:
    """By ``None``; the storage class goes back to the bucket's."""
    bench = Bench()
    details = Details("text/plain", {"k": "v"}, storage_class="NEARLINE", temporary_hold=True)
    bench.insert(BUCKET, "a", b"", details=details)
    reset = {"content_type": None, "metadata": None, "storage_class": None, "temporary_hold": None}
    found = bench.patch(BUCKET, "a", reset).details

    assert (found.content_type, dict(found.metadata)) == ("", {})
    assert (found.storage_class, found.temporary_hold) == ("STANDARD", False)


def test_an_update_replaces_all() -> None:
    """What is not given is reset, but for what an object cannot be without."""
    bench = Bench()
    details = Details("text/plain", {"k": "v"}, "no-store", storage_class="NEARLINE")
    bench.insert(BUCKET, "a", b"", details=details)
    found = bench.patch(BUCKET, "a", {"metadata": {"n": "m"}}, replace=True).details

    assert dict(found.metadata) == {"n": "m"}
    assert (found.content_type, found.cache_control) == ("", "")
    assert found.storage_class == "NEARLINE"


def test_a_patch_with_preconditions() -> None:
    """Of the generation and the metageneration."""
    bench = Bench()
    bench.put("a")
    bench.patch(BUCKET, "a", {}, preconditions=Preconditions(metageneration_match=1))
    with refused(412, "conditionNotMet"):
        bench.patch(BUCKET, "a", {}, preconditions=Preconditions(metageneration_match=1))
    with refused(400, "invalid"):
        bench.patch(BUCKET, "a", {"colour": "red"})


def test_noncurrent_objects_are_patched() -> None:
    """By their generation; they stay noncurrent."""
    bench = Bench(versioning=True)
    old, new = bench.put("a"), bench.put("a")
    bench.patch(BUCKET, "a", {"cache_control": "x"}, generation=old)

    found = bench.get(BUCKET, "a", generation=old)
    assert (found.details.cache_control, found.metageneration) == ("x", 2)
    assert found.deleted is not None
    assert bench.get(BUCKET, "a").generation == new
    assert bench.patch(BUCKET, "a", {}, generation=new).deleted is None


def test_deletes_by_generation_can_be_repeated() -> None:
    """The second finds nothing, and never deletes what came after."""
    bench = Bench()
    first = bench.put("a")
    wanted = Preconditions(generation_match=first)
    bench.delete(BUCKET, "a", preconditions=wanted)
    with refused(404, "notFound"):
        bench.delete(BUCKET, "a", preconditions=wanted)
    bench.put("a")
    with refused(412, "conditionNotMet"):
        bench.delete(BUCKET, "a", preconditions=wanted)

    assert bench.names() == ["a"]


# --- composing ------------------------------------------------------------------------------------


def test_parts_become_one() -> None:
    """In the order that is given, a part twice if named twice; they stay."""
    bench = Bench()
    bench.put("a", data=b"a")
    bench.put("b", data=b"b")
    made = bench.compose(BUCKET, "c", [ComposeSource("b"), ComposeSource("a"), ComposeSource("b")])
    again = bench.compose(
        BUCKET, "c", [ComposeSource("c"), ComposeSource("a")], details=Details("x/y")
    )

    assert bench.names() == ["a", "b", "c"]
    assert bench.data("c") == b"baba"
    assert (made.content.components, made.content.md5) == (3, None)
    assert (again.content.components, again.details.content_type) == (4, "x/y")


def test_parts_are_looked_at() -> None:
    """Each must be there, of its generation; there must be some, and not too many."""
    bench = Bench()
    generation = bench.put("a")
    bench.compose(BUCKET, "b", [ComposeSource("a", generation, generation)] * 32)
    for sources in ([], [ComposeSource("a")] * 33):
        with refused(400, "invalid", "source components"):
            bench.compose(BUCKET, "b", sources)
    with refused(404, "notFound", "data/x"):
        bench.compose(BUCKET, "b", [ComposeSource("a"), ComposeSource("x")])
    with refused(412, "conditionNotMet"):
        bench.compose(BUCKET, "b", [ComposeSource("a", generation_match=generation - 1)])
    with refused(412, "conditionNotMet"):
        bench.compose(BUCKET, "b", [ComposeSource("a")], preconditions=IF_ABSENT)


def test_limits_can_change() -> None:
    """At any time, as can what is denied."""
    bench = Bench(limits=GcsLimits(page=1))
    bench.put("a", "b")
    assert [items for items, _ in bench.pages()] == [["a"], ["b"]]
    bench.limits = GcsLimits()

    assert [items for items, _ in bench.pages()] == [["a", "b"]]


def test_an_object_s_own_retention_is_set_and_lifted() -> None:
    """By a patch."""
    bench = Bench()
    bench.put("a")
    until = bench.clock.now + 10
    bench.patch(BUCKET, "a", {"retention": Retention("Unlocked", until)})
    with refused(403, "retentionPolicyNotMet"):
        bench.delete(BUCKET, "a")
    bench.patch(BUCKET, "a", {"retention": None})
    bench.delete(BUCKET, "a")

"""Folders: made by themselves and by request, deleted when empty, renamed at one moment."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from asynccommit.testing.models.gcs.model import GcsLimits, Preconditions
from tests.testing.models.gcs.model import BUCKET, Bench, refused

SLOW = GcsLimits(operation_seconds=10.0)


def bench_of(*names: str, limits: GcsLimits | None = None) -> Bench:
    """Return a service whose bucket has folders and holds these objects."""
    bench = Bench(hns=True, limits=limits)
    for name in names:
        bench.put(name, data=name.encode())
    return bench


def test_objects_bring_their_folders() -> None:
    """All that are missing; they stay when the object goes (both documented)."""
    bench = bench_of("a/b/c", "a/d", "e/")
    bench.delete(BUCKET, "a/b/c")

    assert bench.folder_names() == ["a/", "a/b/", "e/"]


def test_moves_bring_folders_too() -> None:
    """As the page of ``moveTo`` says; copies alike."""
    bench = bench_of("a")
    bench.rewrite(BUCKET, "a", BUCKET, "r/a")
    bench.move(BUCKET, "a", "m/n/a")

    assert bench.folder_names() == ["m/", "m/n/", "r/"]


def test_a_folder_is_made() -> None:
    """With or without a slash at its end; once, and its parents only if asked."""
    bench = bench_of()
    with refused(412, "conditionNotMet", "parent folder does not exist"):
        bench.insert_folder(BUCKET, "a/b")
    made = bench.insert_folder(BUCKET, "a/b/", recursive=True)

    assert made == bench.get_folder(BUCKET, "a/b")
    assert (made.name, made.metageneration, made.created) == ("a/b/", 1, bench.clock.now)
    assert bench.folder_names() == ["a/", "a/b/"]
    for recursive in (True, False):
        with refused(409, "conflict", "already exists"):
            bench.insert_folder(BUCKET, "a/b", recursive=recursive)
    with refused(400, "invalid"):
        bench.insert_folder(BUCKET, "a\n")


def test_a_folder_may_have_the_name_of_an_object() -> None:
    """They differ by the slash."""
    bench = bench_of("a")
    bench.insert_folder(BUCKET, "a")

    assert bench.names(delimiter="/", include_folders_as_prefixes=True) == ["a", "a/"]


def test_a_folder_is_deleted_when_it_is_empty() -> None:
    """https://cloud.google.com/storage/docs/json_api/v1/folders/delete."""
    bench = bench_of("a/b/c")
    for name in ("a", "a/b"):
        with refused(409, "conflict", "not empty"):
            bench.delete_folder(BUCKET, name)
    bench.delete(BUCKET, "a/b/c")
    with refused(412, "conditionNotMet"):
        bench.delete_folder(BUCKET, "a/b", Preconditions(metageneration_match=2))
    bench.delete_folder(BUCKET, "a/b", Preconditions(metageneration_match=1))
    bench.delete_folder(BUCKET, "a/")

    assert bench.folder_names() == []
    with refused(404, "notFound", "folder does not exist"):
        bench.delete_folder(BUCKET, "a")
    with refused(404, "notFound"):
        bench.get_folder(BUCKET, "a")


def test_folders_are_listed() -> None:
    """All below a prefix, or with a delimiter those beside each other; in pages."""
    bench = bench_of("a/b/c/x", "a/d/x", "e/x")

    assert bench.folder_names() == ["a/", "a/b/", "a/b/c/", "a/d/", "e/"]
    assert bench.folder_names(prefix="a/b") == ["a/b/", "a/b/c/"]
    assert bench.folder_names(delimiter="/") == ["a/", "e/"]
    assert bench.folder_names(prefix="a/", delimiter="/") == ["a/", "a/b/", "a/d/"]
    assert bench.folder_names(start_offset="a/b/c", end_offset="e") == ["a/b/c/", "a/d/"]
    first = bench.list_folders(BUCKET, page_size=3)
    rest = bench.list_folders(BUCKET, page_token=first.token)
    assert [len(first.items), len(rest.items), rest.token] == [3, 2, ""]
    with refused(400, "invalid"):
        bench.list_folders(BUCKET, delimiter="b")


FOLDER_CALLS: list[Callable[[Bench], object]] = [
    lambda bench: bench.insert_folder(BUCKET, "a"),
    lambda bench: bench.get_folder(BUCKET, "a"),
    lambda bench: bench.list_folders(BUCKET),
    lambda bench: bench.delete_folder(BUCKET, "a"),
    lambda bench: bench.rename_folder(BUCKET, "a", "b"),
]


@pytest.mark.parametrize("call", FOLDER_CALLS)
def test_flat_buckets_have_no_folders(call: Callable[[Bench], object]) -> None:
    """Each call is refused, and objects bring none."""
    bench = Bench()
    bench.put("a/b")
    with refused(412, "conditionNotMet", "hierarchical namespace"):
        call(bench)


# --- renaming -------------------------------------------------------------------------------------


def test_a_rename_takes_all_below_along() -> None:
    """Objects keep content and generation, folders their times of creation."""
    bench = bench_of("a/b/c", "a/d", "ab/x", "p/q")
    before = bench.get(BUCKET, "a/b/c")
    bench.clock.now += 5
    operation = bench.rename_folder(BUCKET, "a/", "p/new")

    assert operation.done
    assert (operation.source, operation.dest, operation.refusal) == ("a/", "p/new/", None)
    assert operation.folder == bench.get_folder(BUCKET, "p/new")
    assert bench.names() == ["ab/x", "p/new/b/c", "p/new/d", "p/q"]
    assert bench.folder_names() == ["ab/", "p/", "p/new/", "p/new/b/"]
    after = bench.get(BUCKET, "p/new/b/c")
    assert (after.generation, after.content) == (before.generation, before.content)
    assert bench.get_folder(BUCKET, "p/new").created == bench.clock.now - 5
    assert bench.get_operation(BUCKET, operation.id) == operation


def test_a_rename_takes_effect_at_one_moment() -> None:
    """Until then all is read where it was; it ends without anybody asking."""
    bench = bench_of("a/b", limits=SLOW)
    operation = bench.rename_folder(BUCKET, "a", "c")

    assert not operation.done
    assert bench.get_folder(BUCKET, "a").pending == operation.id
    bench.clock.now += 9.9
    assert bench.names() == ["a/b"]
    bench.clock.now += 0.1
    assert bench.names() == ["c/b"]
    ended = bench.get_operation(BUCKET, operation.id)
    assert (ended.done, ended.ended) == (True, bench.clock.now)
    assert bench.get_folder(BUCKET, "c").pending == ""


WRITES: list[Callable[[Bench], object]] = [
    lambda bench: bench.put("a/new"),
    lambda bench: bench.put("c/new"),
    lambda bench: bench.delete(BUCKET, "a/b"),
    lambda bench: bench.move(BUCKET, "a/b", "x"),
    lambda bench: bench.move(BUCKET, "o", "c/o"),
    lambda bench: bench.patch(BUCKET, "a/b", {}),
    lambda bench: bench.insert_folder(BUCKET, "c"),
    lambda bench: bench.delete_folder(BUCKET, "a/d"),
    lambda bench: bench.rename_folder(BUCKET, "a/d", "x"),
    lambda bench: bench.rename_folder(BUCKET, "o2", "c"),
]


@pytest.mark.parametrize("write", WRITES)
def test_no_writes_while_a_rename_is_under_way(write: Callable[[Bench], object]) -> None:
    """Neither below the source nor the destination; elsewhere all goes on (documented)."""
    bench = bench_of("a/b", "a/d/e", "o", "o2/x", limits=SLOW)
    bench.rename_folder(BUCKET, "a", "c")
    with refused(409, "conflict", "rename that is under way"):
        write(bench)
    bench.put("a", "ab", "other/x")
    bench.read(BUCKET, "a/b")
    bench.clock.now += 10

    assert bench.names(prefix="c/") == ["c/b", "c/d/e"]


def test_a_rename_that_cannot_be_is_refused_at_once() -> None:
    """No source, something at the destination, no parent there, into itself."""
    bench = bench_of("a/b/c", "d/e")
    with refused(404, "notFound"):
        bench.rename_folder(BUCKET, "x", "y")
    with refused(409, "conflict", "'d/' already exists"):
        bench.rename_folder(BUCKET, "a", "d")
    with refused(412, "conditionNotMet", "parent folder"):
        bench.rename_folder(BUCKET, "a", "x/y")
    for dest in ("a", "a/b/c"):
        with refused(400, "invalid"):
            bench.rename_folder(BUCKET, "a", dest)
    with refused(412, "conditionNotMet"):
        bench.rename_folder(BUCKET, "a", "y", Preconditions(metageneration_match=2))

    assert bench.list_operations(BUCKET) == ([], "")
    assert bench.names() == ["a/b/c", "d/e"]


def test_a_rename_is_cancelled_in_time() -> None:
    """Nothing is moved, and the operation says why; an ended one stays as it is."""
    bench = bench_of("a/b", limits=SLOW)
    first = bench.rename_folder(BUCKET, "a", "c")
    bench.cancel_operation(BUCKET, first.id)
    bench.cancel_operation(BUCKET, first.id)
    bench.clock.now += 20
    ended = bench.get_operation(BUCKET, first.id)

    assert ended.done
    assert ended.refusal is not None
    assert ended.refusal.reason == "cancelled"
    assert bench.names() == ["a/b"]
    assert bench.get_folder(BUCKET, "a").pending == ""
    second = bench.rename_folder(BUCKET, "a", "c")
    bench.clock.now += 20
    bench.cancel_operation(BUCKET, second.id)
    assert bench.names() == ["c/b"]


def test_operations_are_listed() -> None:
    """The oldest first, in pages; one that never was is not found."""
    bench = bench_of("a/b")
    bench.rename_folder(BUCKET, "a", "b")
    bench.rename_folder(BUCKET, "b", "c")
    first, token = bench.list_operations(BUCKET, page_size=1)
    rest, end = bench.list_operations(BUCKET, token)

    assert [found.dest for found in first + rest] == ["b/", "c/"]
    assert end == ""
    with refused(404, "notFound"):
        bench.get_operation(BUCKET, "never")


@pytest.mark.parametrize(
    "call,permission",
    [
        (FOLDER_CALLS[0], "storage.folders.create"),
        (FOLDER_CALLS[1], "storage.folders.get"),
        (FOLDER_CALLS[2], "storage.folders.list"),
        (FOLDER_CALLS[3], "storage.folders.delete"),
        (FOLDER_CALLS[4], "storage.folders.rename"),
        (FOLDER_CALLS[4], "storage.folders.create"),
    ],
)
def test_permissions(call: Callable[[Bench], object], permission: str) -> None:
    """Each call needs its own: https://cloud.google.com/storage/docs/access-control/iam-json."""
    bench = bench_of("a/b")
    bench.denied.add(permission)
    with refused(403, "forbidden", permission):
        call(bench)

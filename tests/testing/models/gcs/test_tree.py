"""A bucket as the checks of jobs see it."""

from __future__ import annotations

from asynccommit.testing.models.gcs.model import GcsLimits
from asynccommit.testing.models.invariants import Item, bucket_item, bucket_tree
from tests.testing.models.gcs.model import BUCKET, Bench


def test_files_placeholders_and_folders() -> None:
    """Files with their bytes and CRC32C, the others as directories; in order of paths."""
    bench = Bench(hns=True)
    bench.put("b/c", data=b"123456789")
    bench.put("d/")
    bench.insert_folder(BUCKET, "a")

    file = Item(b"123456789", "e3069283")
    assert bucket_tree(bench, BUCKET) == {"/a": Item(), "/b": Item(), "/b/c": file, "/d": Item()}
    assert list(bucket_tree(bench, BUCKET)) == ["/a", "/b", "/b/c", "/d"]


def test_flat_buckets_have_no_directories_but_placeholders() -> None:
    """A parent that nobody made is none; a file hides a placeholder of its name."""
    bench = Bench()
    bench.put("b/c", "d/", "e", "e/")

    assert bucket_tree(bench, BUCKET) == {
        "/b/c": Item(b"", "00000000"),
        "/d": Item(),
        "/e": Item(b"", "00000000"),
    }


def test_an_etag_survives_a_move() -> None:
    """Of one object and of a whole tree, though generations change."""
    bench = Bench(hns=True)
    bench.put("a/x", data=b"x")
    before = bucket_tree(bench, BUCKET)["/a/x"]
    bench.move(BUCKET, "a/x", "b/x")
    bench.rename_folder(BUCKET, "b", "c")

    assert bucket_tree(bench, BUCKET)["/c/x"] == before


def test_one_path_is_looked_up() -> None:
    """As the whole tree has it, for each path and for none; renames that are due have happened."""
    bench = Bench(hns=True, limits=GcsLimits(operation_seconds=1))
    bench.put("a/x", "b/", "c")
    bench.rename_folder(BUCKET, "a", "d")
    bench.clock.now += 1
    tree = bucket_tree(bench, BUCKET)

    assert set(tree) == {"/b", "/c", "/d", "/d/x"}
    for path in (*tree, "/a", "/a/x", "/"):
        assert bucket_item(bench, BUCKET, path) == tree.get(path)

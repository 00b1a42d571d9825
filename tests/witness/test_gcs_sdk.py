"""Objects by google-cloud-storage: write, read, change, copy, move, delete."""

from __future__ import annotations

import io
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.cloud.storage import transfer_manager

from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread
from tests.witness.gcs import HARD_NAMES, answer_of, asked, names, sdk, write

QUARTER = 256 * 1024


def test_small_object(bucket: Any) -> None:
    """What an upload answers is what is there: sizes, checksums, times, what was said of it."""
    started = datetime.now(UTC) - timedelta(seconds=1)
    blob = bucket.blob("d/file")
    blob.metadata = {"colour": "blue é"}
    blob.cache_control = "no-store"
    blob.content_language = "en"
    blob.upload_from_string(b"hello", content_type="text/x-test", checksum="crc32c")
    found = bucket.get_blob("d/file")

    assert found._properties == {**blob._properties, **found._properties}
    assert (found.size, found.crc32c) == (5, "mnG7TA==")
    assert found.md5_hash == "XUFAKrxLKna5cZ2REBfFkg=="
    assert (found.metadata, found.cache_control) == ({"colour": "blue é"}, "no-store")
    assert (found.content_language, found.content_type) == ("en", "text/x-test")
    assert started < found.time_created <= found.updated <= datetime.now(UTC)
    assert (found.metageneration, found.storage_class) == (1, "STANDARD")


@pytest.mark.parametrize("checksum", ["md5", "crc32c", "auto", None])
def test_checksums_of_uploads(bucket: Any, checksum: str | None) -> None:
    """Whichever checksum the SDK sends is right, of small objects and of large ones."""
    small, large = bucket.blob("small"), bucket.blob("large", chunk_size=QUARTER)
    small.upload_from_string(b"12345", checksum=checksum)
    large.upload_from_file(io.BytesIO(b"." * 700_000), checksum=checksum)

    assert small.download_as_bytes(checksum=checksum) == b"12345"
    assert len(large.download_as_bytes(checksum=checksum)) == 700_000


@pytest.mark.parametrize("checksum", ["md5Hash", "crc32c"])
def test_checksum_that_is_wrong(bucket: Any, checksum: str) -> None:
    """An upload whose checksum is another's is refused, and nothing is there."""
    blob = bucket.blob("d/file")
    blob._properties[checksum] = {"md5Hash": "1B2M2Y8AsgTpgAmY7PhCfg==", "crc32c": "AAAAAA=="}[
        checksum
    ]
    blob._changes.add(checksum)
    with pytest.raises(Exception, match="400"):
        blob.upload_from_string(b"12345", checksum=None)

    assert not blob.exists()


@pytest.mark.parametrize("known", [True, False])
def test_object_in_chunks(gcs: GcsEmulatorThread, bucket: Any, known: bool) -> None:
    """A large object arrives chunk by chunk, its size told before or found at the end."""
    data = os.urandom((32 if known else 3) * QUARTER + 1)
    blob = bucket.blob("large", chunk_size=2**20 if known else QUARTER)
    # The SDK sends up to 8 MiB at once, if it knows the size.
    blob.upload_from_file(io.BytesIO(data), size=len(data) if known else None)

    assert blob.download_as_bytes() == data
    assert asked(gcs)["upload"] == (1 + 9 if known else 1 + 4)


def test_object_in_chunks_of_the_very_size(bucket: Any) -> None:
    """A stream that ends with a chunk is ended by a request without bytes."""
    data = os.urandom(2 * QUARTER)
    with bucket.blob("large", chunk_size=QUARTER).open("wb") as file:
        file.write(data)

    assert bucket.get_blob("large").size == len(data)
    with bucket.blob("large").open("rb", chunk_size=QUARTER) as file:
        file.seek(QUARTER - 1)
        assert file.read(2) == data[QUARTER - 1 : QUARTER + 1]


def test_empty_object(bucket: Any) -> None:
    """An object without bytes is one, however it is uploaded."""
    bucket.blob("small").upload_from_string(b"")
    with bucket.blob("large").open("wb"):
        pass

    assert [blob.size for blob in bucket.list_blobs()] == [0, 0]
    assert bucket.blob("large").download_as_bytes() == b""


@pytest.mark.parametrize(
    "start, end, data",
    [(0, 0, b"0"), (3, 5, b"345"), (7, None, b"789"), (-3, None, b"789"), (8, 100, b"89")],
)
def test_ranges(bucket: Any, start: int, end: int | None, data: bytes) -> None:
    """A range of an object is read, from either end, and no more than there is."""
    blob = write(bucket, "file", b"0123456789")

    assert blob.download_as_bytes(start=start, end=end) == data


def test_range_beyond_the_end(bucket: Any) -> None:
    """A range that begins where there is nothing is refused."""
    blob = write(bucket, "file", b"0123456789")
    with pytest.raises(Exception, match="416"):
        blob.download_as_bytes(start=10)


def test_download_in_chunks(gcs: GcsEmulatorThread, bucket: Any) -> None:
    """A large object is read range by range, and each is of the same generation."""
    data = os.urandom(3 * QUARTER + 1)
    write(bucket, "large", data)
    blob = bucket.blob("large", chunk_size=QUARTER)

    assert blob.download_as_bytes() == data
    assert asked(gcs)["read"] == 4


def test_transfer_manager(bucket: Any) -> None:
    """Many objects are uploaded and downloaded by several threads at one time."""
    manager = sdk("transfer_manager")
    pairs = [(io.BytesIO(b"." * number), bucket.blob(f"d/{number:02}")) for number in range(20)]
    options = {"worker_type": manager.THREAD, "max_workers": 4}
    uploaded = manager.upload_many(pairs, raise_exception=True, **options)
    targets = [(blob, io.BytesIO()) for _, blob in pairs]
    downloaded = manager.download_many(targets, raise_exception=True, **options)

    assert uploaded == downloaded == [None] * 20
    assert [len(target.getvalue()) for _, target in targets] == list(range(20))


@pytest.mark.parametrize("name", HARD_NAMES)
@pytest.mark.parametrize("kind", ["data", "tree"])
def test_names(client: Any, kind: str, name: str) -> None:
    """A name with any characters is the same in an upload, a listing, a move and a read."""
    bucket = client.bucket(kind)
    blob = write(bucket, f"dir {name}/{name}")
    listed = names(bucket)
    moved = bucket.move_blob(blob, f"dir {name}/{name} moved")
    copied = bucket.copy_blob(moved, bucket, f"{name} copied")

    assert listed == [f"dir {name}/{name}"]
    assert sorted(names(bucket)) == sorted([f"dir {name}/{name} moved", f"{name} copied"])
    assert moved.download_as_bytes() == copied.download_as_bytes() == b"1"


def test_metadata(bucket: Any) -> None:
    """A patch changes what it names, and an update says all anew; each is a metageneration."""
    blob = bucket.blob("file")
    blob.metadata = {"a": "1", "b": "2"}
    blob.content_type = "text/plain"
    blob.upload_from_string(b"1")
    blob.metadata = {"a": None, "c": "3"}
    blob.patch()
    patched, again = bucket.get_blob("file"), bucket.get_blob("file")
    again.metadata = {"d": "4"}
    again.update()
    updated = bucket.get_blob("file")

    assert (patched.metageneration, updated.metageneration) == (2, 3)
    assert updated.generation == patched.generation == blob.generation
    assert (patched.metadata, updated.metadata) == ({"b": "2", "c": "3"}, {"d": "4"})
    assert updated.time_created < updated.updated


def test_custom_time_and_class(bucket: Any) -> None:
    """An object's own time and its storage class are set and kept."""
    blob = write(bucket, "file")
    moment = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    blob.custom_time = moment
    blob.patch()
    blob.update_storage_class("COLDLINE")
    found = bucket.get_blob("file")

    assert (found.custom_time, found.storage_class) == (moment, "COLDLINE")


@pytest.mark.parametrize("kind", ["data", "tree"])
def test_compose(client: Any, kind: str) -> None:
    """Objects are put together; what comes of it has no MD5, and counts its components."""
    bucket = client.bucket(kind)
    parts = [write(bucket, f"parts/{number}", b"%d" % number) for number in range(3)]
    whole = bucket.blob("whole")
    whole.compose(parts, if_generation_match=0)
    twice = bucket.blob("twice")
    twice.content_type = "text/x-test"
    twice.compose([whole, whole])
    twice.reload()

    assert twice.download_as_bytes() == b"012012"
    assert (twice.component_count, twice.content_type) == (6, "text/x-test")
    assert (whole.component_count, whole.md5_hash) == (3, None)


@pytest.mark.parametrize("kind", ["data", "tree", "versions"])
def test_compose_that_deletes_its_sources(client: Any, kind: str) -> None:
    """The sources go in the same step, except one that the whole replaces."""
    bucket = client.bucket(kind)
    whole = write(bucket, "whole", b"0")
    parts = [write(bucket, f"parts/{number}", b"%d" % number) for number in (1, 2)]
    whole.compose([whole, *parts, parts[0]], delete_source_objects=True)

    assert names(bucket) == ["whole"]
    assert whole.download_as_bytes() == b"0121"
    kept = [blob.name for blob in bucket.list_blobs(prefix="parts/", versions=True)]
    assert kept == (["parts/1", "parts/2"] if kind == "versions" else [])


def test_compose_that_may_not_delete(bucket: Any) -> None:
    """A source under a hold refuses the whole, and nothing has changed."""
    held = write(bucket, "held")
    held.temporary_hold = True
    held.patch()
    free = write(bucket, "free")
    with pytest.raises(Exception, match="403"):
        bucket.blob("whole").compose([free, held], delete_source_objects=True)
    assert names(bucket) == ["free", "held"]

    bucket.blob("whole").compose([free, held], delete_source_objects=False)
    assert names(bucket) == ["free", "held", "whole"]
    held.temporary_hold = False
    held.patch()


def test_copy(client: Any, bucket: Any) -> None:
    """A copy has the content and what was said of it, in the same bucket or in another."""
    blob = bucket.blob("a")
    blob.metadata = {"k": "v"}
    blob.upload_from_string(b"12345", content_type="text/x-test")
    copied = bucket.copy_blob(blob, client.bucket("tree"), "d/b")

    assert (copied.metadata, copied.content_type) == ({"k": "v"}, "text/x-test")
    assert (copied.crc32c, copied.size) == (blob.crc32c, 5)
    assert copied.generation > blob.generation
    assert copied.download_as_bytes() == b"12345"


def test_rewrite_in_several_calls(gcs: GcsEmulatorThread, client: Any, bucket: Any) -> None:
    """A large object is rewritten a megabyte at a time, and is there when the last is done."""
    write(bucket, "large", b"." * 2_500_000)
    limits = {"rewrite_bytes": 1 << 20}
    gcs.do(lambda running: running.set_pages(limits))
    other = client.create_bucket("elsewhere", location="asia-east1").blob("large")
    token: str | None = None
    steps: list[tuple[int, int, bool]] = []
    while not steps or token:
        token, done, size = other.rewrite(bucket.blob("large"), token=token)
        steps.append((done, size, other.exists()))

    assert steps == [
        (1 << 20, 2_500_000, False),
        (2 << 20, 2_500_000, False),
        (2_500_000, 2_500_000, True),
    ]


@pytest.mark.parametrize("kind", ["data", "tree"])
def test_move(client: Any, kind: str) -> None:
    """A moved object is another generation of the same content; its times are new."""
    bucket = client.bucket(kind)
    blob = bucket.blob("d/a")
    blob.metadata = {"k": "v"}
    blob.upload_from_string(b"12345", content_type="text/x-test")
    blob.reload()
    moved = bucket.move_blob(blob, "e/b")

    assert names(bucket) == ["e/b"]
    assert moved.generation > blob.generation
    assert (moved.metageneration, moved.crc32c, moved.md5_hash, moved.size) == (
        1,
        blob.crc32c,
        blob.md5_hash,
        5,
    )
    assert (moved.metadata, moved.content_type) == ({"k": "v"}, "text/x-test")
    assert moved.updated > blob.updated


def test_rename_by_the_older_way(gcs: GcsEmulatorThread, bucket: Any) -> None:
    """The SDK's ``rename_blob`` is a copy and a deletion: two requests, and no move."""
    blob = write(bucket, "a", b"12345")
    renamed = bucket.rename_blob(blob, "b")

    assert (names(bucket), renamed.download_as_bytes()) == (["b"], b"12345")
    assert {**asked(gcs), "move": 0}.items() >= {"rewrite": 1, "delete": 1, "move": 0}.items()


def test_delete(bucket: Any) -> None:
    """What is deleted is gone, and a second deletion finds nothing."""
    blob = write(bucket, "a")
    blob.delete()
    with pytest.raises(Exception, match="No such object: data/a") as caught:
        blob.delete()

    assert answer_of(caught.value) == (404, "notFound")
    assert not blob.exists()


def test_upload_of_chunks_at_the_same_time(bucket: Any, tmp_path: Path) -> None:
    """Google's transfer manager uploads a large file in parts, each with its checksum."""
    data = bytes(range(256)) * (12 * 1024 * 1024 // 256)
    (tmp_path / "file").write_bytes(data)
    transfer_manager.upload_chunks_concurrently(
        str(tmp_path / "file"),
        bucket.blob("a"),
        chunk_size=5 * 1024 * 1024,
        worker_type=transfer_manager.THREAD,
        max_workers=3,
    )

    assert bucket.blob("a").download_as_bytes() == data

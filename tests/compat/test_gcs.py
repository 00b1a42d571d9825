"""Google's Hadoop connector against the emulator: what it asks for, and what it tells of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.gcs_hadoop import Gcs, etag_of
from tests.support.hadoop import HadoopError

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(180)]

HARD = "/a b/p=100%25/é 日本/x+y&z#?[1] 😀"
UNCHECKED = {"fs.gs.create.items.conflict.check.enable": "false"}
hierarchical = pytest.mark.parametrize("gcs", [True], indirect=True, ids=["hns"])


@pytest.fixture
def gcs(google: Gcs, request: pytest.FixtureRequest) -> Iterator[Gcs]:
    """Yield the JVM, in a bucket of this test's own, in fair weather."""
    yield google.use_bucket_of(request.node.nodeid, hns=hasattr(request, "param"))
    google.emulator.do(lambda running: running.weather.clear())


def call(gcs: Gcs, name: str, *args: Any) -> Any:
    """Call a method of Hadoop's filesystem; texts that begin with a slash are paths."""
    values = [gcs.path(arg) if str(arg).startswith("/") else arg for arg in args]
    with gcs.errors():
        return getattr(gcs.filesystem(), name)(*values)


def names(gcs: Gcs, path: str) -> dict[str, int]:
    """Return what a listing says: names and sizes, -1 for a directory."""
    return {
        str(status.getPath().getName()): -1 if status.isDirectory() else int(status.getLen())
        for status in call(gcs, "listStatus", path)
    }


def write(gcs: Gcs, path: str, data: bytes) -> None:
    """Write a file as Hadoop does: create and close."""
    gcs.write(Path(path), data)


def refused(gcs: Gcs, name: str, *args: Any) -> str:
    """Return the class of the exception that a call ends in."""
    with pytest.raises(HadoopError) as caught:
        call(gcs, name, *args)
    return caught.value.java_class


def spent(gcs: Gcs, before: dict[str, int]) -> dict[str, int]:
    """Return the requests since ``before``."""
    after = gcs.bucket.counts()
    return {op: n - before.get(op, 0) for op, n in after.items() if n > before.get(op, 0)}


def test_mkdirs(gcs: Gcs) -> None:
    """Of a new directory only the last name becomes an object, which ends in a slash."""
    assert call(gcs, "mkdirs", f"{HARD}/d")
    assert call(gcs, "mkdirs", f"{HARD}/d")
    assert call(gcs, "mkdirs", HARD)
    assert names(gcs, HARD) == {"d": -1}
    assert set(gcs.bucket.objects()) == {f"{HARD}/d/"[1:], f"{HARD}/"[1:]}


def test_mkdirs_where_a_file_is(gcs: Gcs) -> None:
    """A file is neither replaced by a directory nor gets children, as far as the connector sees."""
    write(gcs, "/file", b"1")

    assert refused(gcs, "mkdirs", "/file") == "FileAlreadyExistsException"
    assert refused(gcs, "create", "/file/d/e", True) == "FileAlreadyExistsException"
    assert refused(gcs, "create", "/file", False) == "FileAlreadyExistsException"
    assert gcs.bucket.tree() == {"file": b"1"}


def test_write_and_overwrite(gcs: Gcs) -> None:
    """What is written is read, and no directory is made for it; each version is another object."""
    write(gcs, f"{HARD}/file", b"one and two")
    first = gcs.bucket.objects()[f"{HARD}/file"[1:]]
    write(gcs, f"{HARD}/file", b"three")

    assert gcs.read(Path(f"{HARD}/file")) == b"three"
    assert names(gcs, HARD) == {"file": 5}
    assert set(gcs.bucket.objects()) == {f"{HARD}/file"[1:]}
    assert gcs.bucket.objects()[f"{HARD}/file"[1:]].generation > first.generation


def test_write_that_is_flushed(gcs: Gcs) -> None:
    """What is flushed is there at once, and what follows is composed with it.

    So every Parquet file of Spark 4.0 comes to be: Parquet 1.15 flushes before it closes.
    """
    name = f"{HARD}/file"[1:]
    with gcs.errors():
        stream = gcs.filesystem().create(gcs.path(f"{HARD}/file"), True)
        stream.write(b"one")
        stream.hflush()
        flushed = gcs.bucket.tree()[name]
        stream.write(b" and two")
        stream.hflush()
        stream.close()

    assert flushed == b"one"
    assert gcs.bucket.tree() == {name: b"one and two"}
    assert gcs.bucket.objects()[name].content.components == 3
    assert gcs.read(Path(f"{HARD}/file")) == b"one and two"


def test_file_of_many_chunks(gcs: Gcs, tmp_path: Path) -> None:
    """A file of several upload requests arrives whole, and is read whole."""
    data = os.urandom(3_000_003)
    (tmp_path / "sent").write_bytes(data)
    local = gcs.new("org.apache.hadoop.fs.Path", f"file:{tmp_path}")
    with gcs.errors():
        client = gcs.filesystem({"fs.gs.outputstream.upload.chunk.size": "1m"})
        sent = gcs.new("org.apache.hadoop.fs.Path", local, "sent")
        client.copyFromLocalFile(sent, gcs.path("/large"))
        back = gcs.new("org.apache.hadoop.fs.Path", local, "back")
        client.copyToLocalFile(False, gcs.path("/large"), back, True)
        client.close()

    assert gcs.bucket.tree() == {"large": data}
    assert (tmp_path / "back").read_bytes() == data


def test_status_has_no_etag(gcs: Gcs) -> None:
    """Hadoop's status of a file tells no etag, so the manifests of its committer have none."""
    write(gcs, "/d/file", b"12345")
    one, [two] = call(gcs, "getFileStatus", "/d/file"), call(gcs, "listStatus", "/d")
    source = gcs.java("java.lang.Class").forName("org.apache.hadoop.fs.EtagSource")

    assert [source.isInstance(status) for status in (one, two)] == [False, False]
    assert not call(gcs, "hasPathCapability", "/", "fs.capability.etags.available")
    assert call(gcs, "getFileChecksum", "/d/file") is None


def test_checksum(gcs: Gcs) -> None:
    """Asked for CRC32C, Hadoop says the one that the object has."""
    write(gcs, "/file", b"12345")
    client = gcs.filesystem({"fs.gs.checksum.type": "CRC32C"})
    with gcs.errors():
        found = client.getFileChecksum(gcs.path("/file"))
        client.close()

    assert str(found.getAlgorithmName()) == "COMPOSITE-CRC32C"
    assert bytes(found.getBytes()).hex() == etag_of(gcs.bucket.objects()["file"]).split("-")[1]


def test_rename_file(gcs: Gcs) -> None:
    """A file is moved by one request, and is another object then; nothing is copied."""
    write(gcs, f"{HARD}/a", b"1")
    source = gcs.bucket.objects()[f"{HARD}/a"[1:]]
    before = gcs.bucket.counts()
    assert call(gcs, "rename", f"{HARD}/a", f"{HARD}/b")

    moved = gcs.bucket.objects()[f"{HARD}/b"[1:]]
    assert (moved.crc32c, moved.generation > source.generation) == (source.crc32c, True)
    assert names(gcs, HARD) == {"b": 1}
    asked = spent(gcs, before)
    assert (asked["move"], "rewrite" in asked, "delete" in asked) == (1, False, False)


def test_rename_directory(gcs: Gcs) -> None:
    """A directory is renamed file by file."""
    for number in range(3):
        write(gcs, f"{HARD}/d{number}/a", b"1")
    before = gcs.bucket.counts()
    assert call(gcs, "rename", HARD, "/x")

    assert gcs.bucket.tree() == {f"x/d{number}/a": b"1" for number in range(3)}
    assert spent(gcs, before)["move"] == 3


@hierarchical
def test_folders(gcs: Gcs) -> None:
    """Told to leave folders alone, it works on a hierarchical bucket, and leaves folders behind."""
    assert call(gcs, "mkdirs", f"{HARD}/d")
    write(gcs, f"{HARD}/d/a", b"1")
    assert names(gcs, HARD) == {"d": -1}
    assert call(gcs, "rename", HARD, "/x")
    assert gcs.bucket.tree() == {"x/d/a": b"1"}
    assert call(gcs, "delete", "/x", True)
    assert not call(gcs, "exists", "/x")
    assert gcs.bucket.tree() == {}
    assert {"x/", "x/d/"} <= gcs.bucket.folders()


def test_rename_that_is_refused(gcs: Gcs) -> None:
    """Onto a file, of nothing, to nowhere, into itself: false, and nothing has changed."""
    write(gcs, "/d/a", b"1")
    write(gcs, "/d/b", b"22")
    pairs = [("/d/a", "/d/b"), ("/nowhere", "/d/c"), ("/d/a", "/nowhere/a"), ("/d", "/d/e")]

    assert [call(gcs, "rename", *pair) for pair in pairs] == [False] * 4
    assert names(gcs, "/d") == {"a": 1, "b": 2}


def test_delete(gcs: Gcs) -> None:
    """A tree goes when asked for by name; the directory above stays, by an object of its own."""
    write(gcs, "/d/e/file", b"1")

    assert "Exception" in refused(gcs, "delete", "/d", False)
    assert call(gcs, "delete", "/d/e/file", False)
    assert set(gcs.bucket.objects()) == {"d/e/"}
    assert call(gcs, "delete", "/d/e", True)
    assert set(gcs.bucket.objects()) == {"d/"}
    assert call(gcs, "delete", "/d", True)
    assert not call(gcs, "delete", "/d", True)
    assert gcs.bucket.objects() == {}


def test_list_in_pages(gcs: Gcs) -> None:
    """Pages of five bring every name once; a listing of nothing is an error."""
    for number in range(12):
        gcs.bucket.put(f"/d/{number:02}/file", b"1")
    before = gcs.bucket.count("list")
    with gcs.errors():
        small = gcs.filesystem({"fs.gs.list.max.items.per.call": "5"})
        found = [str(status.getPath().getName()) for status in small.listStatus(gcs.path("/d"))]
        small.close()

    assert sorted(found) == [f"{number:02}" for number in range(12)]
    assert gcs.bucket.count("list") - before == 3
    assert refused(gcs, "listStatus", "/nowhere") == "FileNotFoundException"
    assert not call(gcs, "exists", "/nowhere")


def test_requests_of_a_file(gcs: Gcs) -> None:
    """A file costs a request for each directory above it and five more; three without the check."""
    before = gcs.bucket.counts()
    write(gcs, "/a/b/c/file", b"1")
    checked = spent(gcs, before)
    with gcs.errors():
        client = gcs.filesystem(UNCHECKED)
        before = gcs.bucket.counts()
        stream = client.create(gcs.path("/a/b/c/other"), True)
        stream.write(b"1")
        stream.close()
        client.close()

    assert checked == {"get": 4, "list": 1, "upload": 2}
    assert spent(gcs, before) == {"get": 1, "upload": 2}


@pytest.mark.rotate("kind")
@pytest.mark.parametrize("kind", ["cut", "before"])
def test_requests_that_fail(gcs: Gcs, kind: str) -> None:
    """Refusals and lost connections cost requests only, of every kind that a file needs."""
    for op in ("insert", "get", "list", "upload"):
        gcs.bucket.strike(kind=kind, op=op, times=1)
    assert call(gcs, "mkdirs", "/d/e")
    write(gcs, "/d/e/a", b"12345")

    assert names(gcs, "/d/e") == {"a": 5}
    assert gcs.read(Path("/d/e/a")) == b"12345"
    assert [gcs.bucket.struck(f"{kind} {op}") for op in ("insert", "get", "upload")] == [1, 1, 1]


@pytest.mark.rotate("kind")
@pytest.mark.parametrize("kind", ["after", "cut"])
def test_move_whose_answer_is_lost(gcs: Gcs, kind: str) -> None:
    """It happened, and the connector, which asks again, says that it did not."""
    write(gcs, "/d/a", b"1")
    gcs.bucket.strike(kind=kind, op="move", times=1)

    assert not call(gcs, "rename", "/d/a", "/d/b")
    assert gcs.bucket.tree() == {"d/b": b"1"}

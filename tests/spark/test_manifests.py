"""The manifests that tasks write in Java, as Python and as Hadoop's own classes read them."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from py4j.protocol import Py4JJavaError

from asynccommit.formats.manifest import TaskManifest, decode_manifest
from asynccommit.spark.bridge import BRIDGE
from asynccommit.stores.local import files
from asynccommit.stores.urls import decode_uri
from tests.support.spark import answered_by

KEPT = "/-_.!~*'()@&=+$,;:"
HADOOPS = "org.apache.hadoop.mapreduce.lib.output.committer.manifest.files.TaskManifest"


@pytest.fixture
def written(spark: Any, frame: Any, table: Path) -> list[Path]:
    """Return the manifests of a job, kept where the job left them until the test ends."""
    manifests: list[Path] = []

    def keep(request: str) -> str:
        tasks = json.loads(request)["tasks"]
        manifests.extend(Path(decode_uri(task["manifest"]).path) for task in tasks)
        return json.dumps({"ok": True})

    with answered_by(spark, keep):
        frame.write.partitionBy("p").parquet(str(table))
    return manifests


def manifest_at(path: Path) -> TaskManifest:
    """Return what is in a manifest."""
    return decode_manifest(path.read_bytes(), str(path))


def test_files_have_the_etags_of_the_local_store(written: list[Path]) -> None:
    """What a task says in Java identifies a file is what Python finds."""
    entries = [entry for path in written for entry in manifest_at(path).files]

    assert len(entries) == 6
    for entry in entries:
        found = files.head(decode_uri(entry.source).path)
        assert (entry.etag, entry.size) == (found.etag, found.size)


def listed(top: Path) -> tuple[list[Path], list[Path]]:
    """Return files and directories below ``top`` in the order of Hadoop's listings."""
    files_found: list[Path] = []
    directories: list[Path] = []
    with os.scandir(top) as entries:
        here = [Path(entry.path) for entry in entries if not entry.name.endswith(".crc")]
    files_found += [path for path in here if not path.is_dir()]
    for path in here:
        if path.is_dir():
            inner = listed(path)
            files_found += inner[0]
            directories += [path, *inner[1]]
    return files_found, directories


def plant(table: Path) -> None:
    """Leave links, which only other writers make, and an empty directory in task attempts."""
    for attempt in table.glob("_temporary/*/00/tasks/*"):
        with suppress(FileExistsError):
            (attempt / "empty" / "inner").mkdir(parents=True)
            (attempt / "empty" / "link").symlink_to(__file__)
            (attempt / "nowhere").symlink_to("missing")


@pytest.mark.parametrize("links", [False, True])
def test_manifests_have_the_order_and_the_names_of_hadoops_listings(
    spark: Any, table: Path, links: bool
) -> None:
    """Files come before directories, these one by one with all below; links are their targets."""
    kept: list[tuple[dict[str, Any], Path]] = []

    def keep(request: str) -> str:
        for task in json.loads(request)["tasks"]:
            path = Path(decode_uri(task["manifest"]).path)
            manifest = json.loads(path.read_text())
            base = Path(decode_uri(manifest["taskAttemptDir"]).path)
            kept.append((manifest, base))
            expect(manifest, base, table)
        return json.dumps({"ok": True})

    def slowly(rows: Any) -> Any:
        for row in rows:
            if links:
                plant(table)
            yield row

    names = ["a%20b", "\u00fc [1]{2}", "x+y&z", "a/b:c", "q^|`", "\u4e2d\u6587", "\U0001f600"]
    rows = [(number, name, number % 2) for number in range(8) for name in names]
    frame = spark.createDataFrame(
        spark.sparkContext.parallelize(rows, 2).mapPartitions(slowly), "id int, p string, q int"
    )
    with answered_by(spark, keep):
        frame.write.partitionBy("p", "q").parquet(str(table))

    assert len(kept) == 2


def expect(manifest: Any, base: Path, table: Path) -> None:
    """Compare a manifest with what is in the attempt's directory."""
    found, directories = listed(base)
    entries = manifest["files"]
    there = [path for path in found if path.exists()]

    assert [decode_uri(entry["s"]).path for entry in entries] == [str(path) for path in there]
    assert [entry["d"] for entry in entries] == [
        f"file:{uri_path(table / path.relative_to(base))}" for path in there
    ]
    assert [entry["s"] for entry in entries] == [f"file://{uri_path(path)}" for path in there]
    assert [entry["z"] for entry in entries] == [path.stat().st_size for path in there]
    assert manifest["directories"] == [
        {
            "d": f"file:{uri_path(table / path.relative_to(base))}",
            "t": 1,
            "l": len(path.relative_to(base).parts),
        }
        for path in directories
    ]


def uri_path(path: Path) -> str:
    """Return a path as Java's URIs have it: other letters than ASCII stay as they are."""
    return "".join(c if c > "\x7f" or c in KEPT else quote(c) for c in str(path))


def test_hadoop_reads_them(spark: Any, written: list[Path]) -> None:
    """Hadoop's class, where Spark has it, loads them, etags included."""
    jvm = spark._jvm
    try:
        jvm.java.lang.Class.forName(HADOOPS)
    except Py4JJavaError:
        pytest.skip("this Spark does not bring Hadoop's committer")
    local = jvm.org.apache.hadoop.fs.FileSystem.getLocal(jvm.org.apache.hadoop.conf.Configuration())
    for path in written:
        ours = manifest_at(path)
        place = jvm.org.apache.hadoop.fs.Path(jvm.java.io.File(str(path)).toURI())
        read = getattr(jvm, HADOOPS).serializer().load(local, place)
        read.validate()

        theirs = read.getFilesToCommit()
        assert [(one.getSource(), one.getEtag(), one.getSize()) for one in theirs] == [
            (entry.source, entry.etag, entry.size) for entry in ours.files
        ]


def test_they_have_no_checksums(written: list[Path]) -> None:
    """Nothing else is beside them, and other users may read them as Hadoop lets them."""
    folder = written[0].parent

    assert sorted(folder.iterdir()) == sorted(written)
    assert {path.stat().st_mode & 0o777 for path in written} == {0o644}


def test_changed_file_is_not_committed(spark: Any, frame: Any, table: Path) -> None:
    """A file that changed after its task, and kept its size, fails the job; it names the file."""

    def change(request: str) -> str:
        for path in table.glob("_temporary/*/00/tasks/*/p=1/*.parquet"):
            path.write_bytes(path.read_bytes()[::-1])
        return BRIDGE.apply(request)

    with answered_by(spark, change), pytest.raises(Exception, match=r"p=1/part-0"):
        frame.write.partitionBy("p").parquet(str(table))

    assert not (table / "_SUCCESS").exists()

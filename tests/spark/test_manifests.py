"""The manifests that tasks write in Java, as Python and as Hadoop's own classes read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from asynccommit.formats.manifest import TaskManifest, decode_manifest
from asynccommit.spark.bridge import BRIDGE
from asynccommit.stores.local import files
from asynccommit.stores.urls import decode_uri
from tests.support.spark import answered_by

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

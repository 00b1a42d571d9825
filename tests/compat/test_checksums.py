"""Checksum files of Hadoop's LocalFileSystem: ours never leaves one that does not fit its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit import sync
from tests.support.hadoop import Hadoop, HadoopError, read_tree

pytestmark = pytest.mark.jvm

JOB = "5b0a7a0e-3f0c-4f37-9e41-1f5f2b5a7c22"
REPLACE = {"mapreduce.manifest.committer.delete.target.files": "true"}


def sidecar(path: Path) -> Path:
    """Return where Hadoop keeps the checksums of a file."""
    return path.parent / f".{path.name}.crc"


def test_hadoop_refuses_a_stale_checksum(hadoop: Hadoop, tmp_path: Path) -> None:
    """Why it matters: a file that was replaced under its checksum cannot be read by Hadoop."""
    path = tmp_path / "part-0"
    hadoop.write(path, b"old")
    path.write_bytes(b"new content")

    with pytest.raises(HadoopError, match="ChecksumException"):
        hadoop.read(path)


def test_commit_job_of_files_with_checksums(hadoop: Hadoop, tmp_path: Path) -> None:
    """Files that tasks wrote through Hadoop, checksums beside them, are read by Hadoop after."""
    job = hadoop.job(tmp_path / "t", JOB).setup()
    task = job.task(0).setup()
    hadoop.write(task.work_path / "p=1" / "part-0", b"data")
    task.commit()
    report = sync.job(tmp_path / "t", JOB).commit()

    assert report.files == 1
    assert read_tree(tmp_path / "t") == {"p=1/part-0": b"data"}
    assert hadoop.read(tmp_path / "t" / "p=1" / "part-0") == b"data"


def test_commit_job_replaces_a_file_with_a_checksum(hadoop: Hadoop, tmp_path: Path) -> None:
    """A file that Hadoop wrote and our job replaced is read by Hadoop with the new content."""
    dest = tmp_path / "t"
    hadoop.write(dest / "p=1" / "part-0", b"old")
    assert sidecar(dest / "p=1" / "part-0").exists()
    hadoop.job(dest, JOB).run([{"p=1/part-0": b"new content"}])
    sync.job(dest, JOB, options=REPLACE).commit()

    assert hadoop.read(dest / "p=1" / "part-0") == b"new content"


def test_commit_job_replaces_a_marker_with_a_checksum(hadoop: Hadoop, tmp_path: Path) -> None:
    """A marker that Hadoop wrote and ours replaced is read by Hadoop."""
    dest = tmp_path / "t"
    hadoop.job(dest, "earlier").run([{"part-0": b"0"}]).commit()
    assert sidecar(dest / "_SUCCESS").exists()
    # The tasks are written straight away: Hadoop's setupJob would delete the marker.
    with sync.open_job(dest, job_id=JOB) as job, job.task(0) as task:
        Path(task.path("part-1")).write_bytes(b"1")

    assert hadoop.success(dest / "_SUCCESS")["jobId"] == JOB


def test_commit_job_of_a_replaced_manifest_with_a_checksum(hadoop: Hadoop, tmp_path: Path) -> None:
    """Files with checksums in a task's directory are no files of the task when it is read again."""
    dest = tmp_path / "t"
    job = hadoop.job(dest, JOB).setup()
    with sync.job(dest, JOB).task(0) as task:
        hadoop.write(Path(task.directory) / "part-0", b"data")
    assert task.commit is not None
    late = task.commit.task_id
    manifest = dest / "_temporary" / JOB / "00" / "manifests" / f"{late}-manifest.json"
    hadoop.write(manifest, b"{}")
    report = sync.job(dest, JOB).commit([task.commit])

    assert (report.files, len(report.warnings)) == (1, 1)
    assert job.dest == dest
    assert hadoop.read(dest / "part-0") == b"data"

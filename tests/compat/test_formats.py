"""Manifests and markers: each side reads what the other wrote, and sees the same values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asynccommit import sync
from asynccommit.errors import ManifestError
from asynccommit.formats.course import COURSE, decode_course
from asynccommit.formats.manifest import (
    DirEntry,
    FileEntry,
    TaskManifest,
    decode_manifest,
    encode_manifest,
)
from asynccommit.formats.statistics import Statistics
from asynccommit.formats.success import COMMITTER, SuccessData, decode_success, encode_success
from asynccommit.stores.urls import encode_path
from tests.support.hadoop import Hadoop, HadoopError

pytestmark = pytest.mark.jvm

FIXTURES = Path(__file__).parent.parent / "fixtures" / "hadoop_manifest"
MANIFESTS = sorted(path.name for path in FIXTURES.glob("task_manifest_*.json"))
MARKERS = sorted(path.name for path in FIXTURES.glob("*.json") if path.name not in MANIFESTS)
LONGS = st.integers(0, 2**62)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
IDS = st.text(st.characters(categories=("L", "N"), include_characters="_-"), min_size=1)
URIS = TEXTS.map(lambda text: f"file:/{encode_path(text)}")


def as_hadoop(manifest: TaskManifest) -> dict[str, Any]:
    """Return a manifest of ours as the values that Hadoop's class would hold."""
    return {
        "extraData": dict(manifest.extra_data),
        "type": "org.apache.hadoop.mapreduce.lib.output.committer.manifest.files.TaskManifest/1",
        "version": 1,
        "jobId": manifest.job_id,
        "jobAttemptNumber": manifest.job_attempt,
        "taskID": manifest.task_id,
        "taskAttemptID": manifest.task_attempt_id,
        "taskAttemptDir": manifest.task_attempt_dir,
        "files": [
            {"s": entry.source, "d": entry.dest, "z": entry.size}
            | ({} if entry.etag is None else {"e": entry.etag})
            for entry in manifest.files
        ],
        "directories": [{"d": d, "t": t, "l": level} for d, t, level in manifest.directories],
        "iostatistics": manifest.statistics.to_json(),
    }


def success_as_hadoop(data: SuccessData) -> dict[str, Any]:
    """Return a marker of ours as the values that Hadoop's class would hold."""
    value = {
        "name": "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1",
        "timestamp": data.timestamp_ms,
        "success": data.success,
        "hostname": data.hostname,
        "committer": data.committer,
        "description": data.description,
        "jobId": data.job_id,
        "jobIdSource": data.job_id_source,
        "metrics": dict(data.metrics),
        "diagnostics": dict(data.diagnostics),
        "filenames": list(data.filenames),
        "iostatistics": data.statistics.to_json(),
        "state": data.state,
        "stage": data.stage,
    }
    return {key: item for key, item in value.items() if item is not None}


def full(value: dict[str, Any]) -> dict[str, Any]:
    """Complete what Hadoop holds by the registered statistics that were left out, all zero."""
    zeros: dict[str, Any] = Statistics().to_json()
    found = value.get("iostatistics") or {}
    return {**value, "iostatistics": {name: zeros[name] | found.get(name, {}) for name in zeros}}


@pytest.mark.parametrize("name", MANIFESTS)
def test_decode_manifest_of_hadoop_samples(hadoop: Hadoop, name: str) -> None:
    """A manifest that Hadoop wrote has the same values here as in Hadoop's own class."""
    path = FIXTURES / name

    assert as_hadoop(decode_manifest(path.read_bytes(), name)) == full(hadoop.manifest(path))


@pytest.mark.parametrize("name", MARKERS)
def test_decode_success_of_hadoop_samples(hadoop: Hadoop, name: str) -> None:
    """A marker or summary that Hadoop wrote has the same values here as in Hadoop's own class."""
    path = FIXTURES / name
    expected = full(hadoop.success(path))
    del expected["date"]

    assert success_as_hadoop(decode_success(path.read_bytes(), name)) == expected


def statistics() -> Statistics:
    """Return statistics that use every kind of value."""
    made = Statistics()
    made.count("committer_files_committed", 3)
    made.gauge("stage.setup.free.memory", 7)
    made.sample("committer_task_file_size", 11)
    made.duration("op_rename", 0.25)
    made.duration("op_delete", 1.5, failed=True)
    return made


MANIFEST_OF = st.builds(
    TaskManifest,
    job_id=IDS,
    job_attempt=st.integers(0, 99),
    task_id=IDS,
    task_attempt_id=IDS,
    task_attempt_dir=URIS,
    files=st.lists(
        st.builds(FileEntry, URIS, URIS, LONGS, st.none() | TEXTS),
        max_size=5,
        unique_by=lambda entry: entry.dest,
    ),
    directories=st.lists(st.builds(DirEntry, URIS, st.integers(0, 4), st.integers(1, 99))),
    statistics=st.sampled_from([Statistics(), statistics()]),
    extra_data=st.dictionaries(TEXTS, TEXTS, max_size=3),
)


@given(MANIFEST_OF, st.booleans())
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_encode_manifest_loads_in_hadoop(
    hadoop: Hadoop, tmp_path: Path, manifest: TaskManifest, whole: bool
) -> None:
    """Whatever manifest we write, TaskManifest loads, validates and sees the same values."""
    path = tmp_path / "task-manifest.json"
    path.write_bytes(encode_manifest(manifest, full=whole))

    assert full(hadoop.manifest(path)) == as_hadoop(manifest)


def test_encode_manifest_without_zeros_is_small(hadoop: Hadoop, tmp_path: Path) -> None:
    """The short form leaves 18 KB of zeros out, and Hadoop fills nothing else in."""
    path = tmp_path / "task-manifest.json"
    path.write_bytes(encode_manifest(TaskManifest("j", 0, "t", "a", "file:/d")))

    assert len(path.read_bytes()) < 1000
    assert hadoop.manifest(path)["files"] == []


SUCCESS_OF = st.builds(
    SuccessData,
    timestamp_ms=st.integers(0, 4_000_000_000_000),
    success=st.booleans(),
    hostname=TEXTS,
    committer=TEXTS,
    job_id=IDS,
    job_id_source=IDS,
    description=st.none() | TEXTS,
    metrics=st.dictionaries(TEXTS, LONGS, max_size=3),
    diagnostics=st.dictionaries(TEXTS, TEXTS, max_size=3),
    filenames=st.lists(URIS, max_size=3),
    statistics=st.sampled_from([Statistics(), statistics()]),
    state=st.none() | TEXTS,
    stage=st.none() | TEXTS,
)


@given(SUCCESS_OF, st.booleans())
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_encode_success_loads_in_hadoop(
    hadoop: Hadoop, tmp_path: Path, data: SuccessData, whole: bool
) -> None:
    """Whatever marker we write, ManifestSuccessData loads, validates and sees the same values."""
    path = tmp_path / "_SUCCESS"
    path.write_bytes(encode_success(data, full=whole))
    loaded = full(hadoop.success(path))
    del loaded["date"]

    assert loaded == success_as_hadoop(data)


def test_marker_with_the_course_of_a_commit_loads_in_hadoop(hadoop: Hadoop, tmp_path: Path) -> None:
    """The course of a commit is one more diagnostic to Hadoop, which returns it unchanged."""
    with sync.open_job(tmp_path / "t") as job, job.task(0) as task:
        for number in range(50):
            task.put(f"day={number % 7}/part-{number}", b"x" * number)

    loaded = full(hadoop.success(tmp_path / "t/_SUCCESS"))

    course = decode_course(loaded["diagnostics"][COURSE], "_SUCCESS")
    assert (course.files, course.bytes) == (50, sum(range(50)))
    assert sum(one.files for one in course.timeline.partitions) == 50


def test_encode_success_is_printed_by_hadoop(hadoop: Hadoop, tmp_path: Path) -> None:
    """``mapred successfile`` prints our marker: who, when, which job, diagnostics, statistics."""
    path = tmp_path / "_SUCCESS"
    data = SuccessData(
        timestamp_ms=1_790_000_000_000,
        success=True,
        hostname="driver-0",
        committer=COMMITTER,
        job_id="job-é-1",
        job_id_source="spark.sql.sources.writeJobUUID",
        diagnostics={"principal": "alice", "stage": "committer_commit_job"},
        statistics=statistics(),
    )
    path.write_bytes(encode_success(data))
    printed = hadoop.print_success(path)

    assert "succeeded: true" in printed
    assert f"created: {data.date}" in printed
    assert "hostname: driver-0" in printed
    assert f"committer: {COMMITTER}" in printed
    assert "jobId: job-é-1" in printed
    assert "principal = alice" in printed
    assert "op_rename.mean" in printed


@pytest.mark.parametrize(
    "broken",
    [
        *(b"", b"{", b"[]", b'{"files": null}', b'{"type": "other"}', b'{"version": 2}'),
        b'{"files": [{"s": "file:/s", "d": "", "z": 1}]}',
        b'{"files": [{"s": "file:/s", "z": 1}]}',
        b'{"files": [{"s": "file:/s", "d": "file:/d", "z": -1}]}',
        b'{"files": [{"s": "file:/s", "d": "file:/d"}, {"s": "file:/t", "d": "file:/d"}]}',
    ],
)
def test_decode_manifest_refuses_what_hadoop_refuses(
    hadoop: Hadoop, tmp_path: Path, broken: bytes
) -> None:
    """A manifest that Hadoop's class refuses is refused here too, by a named error."""
    path = tmp_path / "task-manifest.json"
    path.write_bytes(broken)

    with pytest.raises(HadoopError):
        hadoop.manifest(path)
    with pytest.raises(ManifestError):
        decode_manifest(broken, str(path))


def test_decode_manifest_accepts_what_hadoop_accepts(hadoop: Hadoop, tmp_path: Path) -> None:
    """Unknown fields, quoted numbers, absent defaults, a nameless directory: as in Hadoop."""
    lenient = b"""{"jobId": "j", "taskID": "t", "taskAttemptID": "a", "new": {"x": [1]},
        "files": [{"s": "file:/s", "d": "file:/d", "z": "12", "new": 1}, {"s": "s", "d": "d"}],
        "directories": [{"t": 9, "l": "2"}]}"""
    path = tmp_path / "task-manifest.json"
    path.write_bytes(lenient)
    here, there = decode_manifest(lenient, str(path)), hadoop.manifest(path)

    assert [(entry.source, entry.dest, entry.size) for entry in here.files] == [
        (entry["s"], entry["d"], entry["z"]) for entry in there["files"]
    ]
    assert [entry.level for entry in here.directories] == [
        entry["l"] for entry in there["directories"]
    ]

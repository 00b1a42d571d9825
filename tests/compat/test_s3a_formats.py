"""Pending files, sets, markers and names of S3A: each side reads what the other wrote.

Hadoop's classes are of two releases, since the form of etags changed between them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asynccommit.errors import ManifestError, OptionError, UrlError
from asynccommit.formats.magic_paths import final_path, is_magic
from asynccommit.formats.pending import PendingCommit, decode_pending, encode_pending
from asynccommit.formats.pending_set import PendingSet, decode_pending_set, encode_pending_set
from asynccommit.formats.statistics import Statistics
from asynccommit.formats.success import SuccessData, decode_success, encode_s3a_success
from asynccommit.formats.unique_names import add_uuid
from asynccommit.options.uploads import EtagForm
from asynccommit.stores.parts import Part
from asynccommit.stores.urls import Address
from tests.support.hadoop import HadoopError
from tests.support.s3a_classes import FORMS, NEW, S3aClasses, start_s3a, why_not

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(180)]

FIXTURES = Path(__file__).parent.parent / "fixtures"
KEY = "t/p=a b/é 😀/x+y&z#?.csv"


@pytest.fixture(scope="module", params=FORMS)
def s3a(request: pytest.FixtureRequest) -> Iterator[S3aClasses]:
    """Run one JVM with the classes of a release; skips where they cannot be had."""
    if reason := why_not():
        pytest.skip(reason)
    with start_s3a(request.param, "-Xmx256m") as started:
        yield started


def other(form: EtagForm) -> EtagForm:
    """Return the form that a release does not know."""
    return EtagForm.OBJECTS if form is EtagForm.STRINGS else EtagForm.STRINGS


def as_hadoop(commit: PendingCommit, form: EtagForm) -> dict[str, Any]:
    """Return a commit of ours as the values that Hadoop's class would hold."""
    strings = [part.etag for part in commit.parts]
    objects = [
        {
            "etag": part.etag,
            "checksumAlgorithm": part.algorithm or None,
            "checksum": part.checksum or None,
        }
        for part in commit.parts
    ]
    return {
        "version": 2,
        "filename": commit.filename,
        "uri": commit.uri,
        "uploadId": commit.upload_id,
        "bucket": commit.bucket,
        "destinationKey": commit.key,
        "created": commit.created,
        "saved": commit.created,
        "jobId": commit.job_id,
        "taskId": commit.task_id,
        "text": commit.text,
        "etags": strings if form is EtagForm.STRINGS else objects,
        "extraData": dict(commit.extra),
        "length": commit.length,
        "iostatistics": Statistics().to_json(full=False),
        "partCount": len(commit.parts),
    }


def undated(value: dict[str, Any]) -> dict[str, Any]:
    """Return what Hadoop holds without the date for people."""
    return {key: item for key, item in value.items() if key != "date"}


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
SOME = TEXTS.filter(bool)
KEYS = st.lists(
    SOME.map(lambda text: text.replace("/", "-")).filter(lambda text: text not in (".", "..")),
    min_size=1,
    max_size=3,
).map("/".join)
PARTS = st.builds(
    Part,
    st.from_regex(r'"[0-9a-f]{32}"|[0-9a-f]{32}', fullmatch=True),
    st.just(""),
    st.just(""),
) | st.builds(Part, st.just('"e"'), st.sampled_from(["CRC32", "CRC32C", "SHA256"]), st.just("AA=="))


@st.composite
def commits(draw: st.DrawFn) -> PendingCommit:
    """Draw a commit whose URI is that of its key."""
    key = draw(KEYS)
    return PendingCommit(
        bucket="bucket",
        key=key,
        upload_id=draw(st.from_regex(r"[A-Za-z0-9._~é-]{1,12}", fullmatch=True)),
        parts=tuple(draw(st.lists(PARTS, min_size=1, max_size=4))),
        length=draw(st.integers(0, 2**62)),
        uri=Address("s3a", "bucket", f"/{key}").encode(),
        job_id=draw(TEXTS),
        task_id=draw(TEXTS),
        text=draw(TEXTS),
        created=draw(st.integers(0, 4_000_000_000_000)),
        extra=draw(st.dictionaries(TEXTS, TEXTS, max_size=2)),
    )


@given(commits())
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pending_loads_in_hadoop(s3a: S3aClasses, tmp_path: Path, commit: PendingCommit) -> None:
    """Whatever commit we write, Hadoop loads, validates and sees the same values."""
    path = tmp_path / "x.pending"
    path.write_bytes(encode_pending(commit, s3a.form))

    assert undated(s3a.pending(path)) == as_hadoop(commit, s3a.form)


@given(st.lists(commits(), max_size=3, unique_by=lambda commit: commit.key), TEXTS)
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pending_set_loads_in_hadoop(
    s3a: S3aClasses, tmp_path: Path, found: list[PendingCommit], job_id: str
) -> None:
    """Whatever set we write, Hadoop loads, validates and sees the same values."""
    path = tmp_path / "task.pendingset"
    pending = PendingSet(job_id, tuple(found), Statistics(counters={"op": 2}, means={"m": (1, 5)}))
    path.write_bytes(encode_pending_set(pending, s3a.form))
    loaded = s3a.pending_set(path)

    assert [undated(commit) for commit in loaded.pop("commits")] == [
        as_hadoop(commit, s3a.form) for commit in found
    ]
    assert loaded == {
        "version": 3,
        "jobId": job_id,
        "iostatistics": pending.statistics.to_json(full=False),
    }


def parts_of(s3a: S3aClasses) -> tuple[Part, ...]:
    """Return parts with all that a release can write of them."""
    if s3a.form is EtagForm.STRINGS:
        return (Part('"e1"'), Part("e2"))
    return (Part('"e1"', "CRC32C", "AAAAAA=="), Part("e2"))


def test_pending_of_hadoop(s3a: S3aClasses) -> None:
    """A commit that Hadoop writes has all its values here."""
    made = s3a.new_pending(
        KEY,
        parts_of(s3a),
        **{"Length": 7, "JobId": "job-1", "TaskId": "attempt-1", "Text": "partition: p=1"},
        ExtraData={"k": "v"},
    )
    expected = PendingCommit(
        bucket="bucket",
        key=KEY,
        upload_id="upload-1",
        parts=parts_of(s3a),
        length=7,
        uri=Address("s3a", "bucket", f"/{KEY}").encode(),
        job_id="job-1",
        task_id="attempt-1",
        text="partition: p=1",
        created=1_700_000_000_123,
        filename="/x.pending",
        extra={"k": "v"},
    )

    assert decode_pending(s3a.bytes_of(made), "/x.pending") == expected


def test_pending_is_written_alike(s3a: S3aClasses) -> None:
    """What Hadoop writes and what we write of it is the same, the date for people too."""
    data = s3a.bytes_of(s3a.new_pending(KEY, parts_of(s3a), Length=7))
    commit = replace(decode_pending(data, "x"), filename=None)

    assert json.loads(encode_pending(commit, s3a.form)) == json.loads(data)


def test_pending_set_of_hadoop(s3a: S3aClasses) -> None:
    """A set that Hadoop writes has all its commits here, and is written alike."""
    made = [s3a.new_pending(key, parts_of(s3a), JobId="job-1") for key in ("a", "b/c")]
    data = s3a.bytes_of(s3a.new_pending_set("job-1", made))
    found = decode_pending_set(data, "x")

    assert (found.job_id, [commit.key for commit in found.commits]) == ("job-1", ["a", "b/c"])
    assert json.loads(encode_pending_set(found, s3a.form)) == json.loads(data)


def test_each_release_has_one_form(s3a: S3aClasses, tmp_path: Path) -> None:
    """A release refuses the other's form of etags, though the version is the same."""
    form = other(s3a.form)
    sample = FIXTURES / f"s3a_v2_{form.value.removesuffix('s')}_etags/part-00000.parquet.pending"
    path = tmp_path / "x.pending"
    commit = decode_pending(sample.read_bytes(), "x")

    with pytest.raises(HadoopError):
        s3a.pending(sample)
    path.write_bytes(encode_pending(commit, form))
    with pytest.raises(HadoopError):
        s3a.pending(path)
    path.write_bytes(encode_pending(commit, s3a.form))
    assert s3a.pending(path)["partCount"] == 2


GOOD = {
    "version": 2,
    "uri": "s3a://b/k",
    "uploadId": "u",
    "bucket": "b",
    "destinationKey": "k",
    "length": 1,
}


def pending_text(s3a: S3aClasses, **change: Any) -> bytes:
    """Return a pending file with other values; ``...`` leaves one out."""
    etags = ["e"] if s3a.form is EtagForm.STRINGS else [{"etag": "e"}]
    value = {**GOOD, "etags": etags, **change}
    return json.dumps({key: item for key, item in value.items() if item is not ...}).encode()


@pytest.mark.parametrize(
    "change",
    [
        {"version": 1},
        {"version": 3},
        {"version": "x"},
        {"uri": ""},
        {"uri": ...},
        {"uploadId": ...},
        {"uploadId": ""},
        {"bucket": None},
        {"destinationKey": ""},
        {"etags": ...},
        {"etags": None},
        {"etags": [""]},
        {"etags": [{"etag": ""}]},
        {"etags": "e"},
        {"length": -1},
        {"length": 2**63},
        {"length": "x"},
        {"extraData": []},
    ],
    ids=str,
)
def test_what_hadoop_refuses_is_refused(
    s3a: S3aClasses, tmp_path: Path, change: dict[str, Any]
) -> None:
    """A pending file that Hadoop's class refuses is refused here too, by a named error."""
    path = tmp_path / "x.pending"
    path.write_bytes(pending_text(s3a, **change))

    with pytest.raises(HadoopError):
        s3a.pending(path)
    with pytest.raises(ManifestError):
        decode_pending(path.read_bytes(), "x")


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"version": ...},
        {"version": "2"},
        {"length": ...},
        {"length": " 5 "},
        {"later": [1]},
        {"jobId": ""},
        {"extraData": None},
        {"created": 5},
    ],
    ids=str,
)
def test_what_hadoop_accepts_is_accepted(
    s3a: S3aClasses, tmp_path: Path, change: dict[str, Any]
) -> None:
    """Defaults, quoted numbers and unknown fields are what they are for Hadoop."""
    path = tmp_path / "x.pending"
    path.write_bytes(pending_text(s3a, **change))
    here, there = decode_pending(path.read_bytes(), "x"), s3a.pending(path)

    assert (here.length, here.created, here.job_id) == (
        there["length"],
        there["created"],
        there["jobId"],
    )


@pytest.mark.parametrize(
    "change",
    [{"etags": []}, {"destinationKey": "a/../b"}, {"destinationKey": "/k"}, {"created": -1}],
    ids=str,
)
def test_what_only_we_refuse(s3a: S3aClasses, tmp_path: Path, change: dict[str, Any]) -> None:
    """Hadoop lets pass an upload without parts, and keys that lead elsewhere; we do not."""
    path = tmp_path / "x.pending"
    path.write_bytes(pending_text(s3a, **change))

    assert s3a.pending(path)["bucket"] == "b"
    with pytest.raises(ManifestError):
        decode_pending(path.read_bytes(), "x")


def test_the_last_of_two_keys_counts(s3a: S3aClasses, tmp_path: Path) -> None:
    """Of a key that is there twice both sides take the last value."""
    path = tmp_path / "x.pending"
    path.write_bytes(pending_text(s3a)[:-1] + b',"destinationKey":"other"}')

    assert s3a.pending(path)["destinationKey"] == "other"
    assert decode_pending(path.read_bytes(), "x").key == "other"


@pytest.mark.parametrize(
    "value",
    [
        {"version": 2},
        {"version": 3, "commits": [{}]},
        {"version": 3, "commits": "both"},
        {"version": 3, "jobId": ["x"]},
    ],
    ids=str,
)
def test_sets_that_hadoop_refuses(s3a: S3aClasses, tmp_path: Path, value: dict[str, Any]) -> None:
    """Another version, a broken commit, one key twice: refused by both."""
    if value.get("commits") == "both":
        value = value | {"commits": [json.loads(pending_text(s3a))] * 2}
    path = tmp_path / "task.pendingset"
    path.write_text(json.dumps(value))

    with pytest.raises(HadoopError):
        s3a.pending_set(path)
    with pytest.raises(ManifestError):
        decode_pending_set(path.read_bytes(), "x")


def test_marker_loads_in_hadoop(s3a: S3aClasses, tmp_path: Path) -> None:
    """Our ``_SUCCESS`` is one for S3A, with the names of files as its tools compare them."""
    path = tmp_path / "_SUCCESS"
    data = SuccessData(
        timestamp_ms=1_700_000_000_123,
        success=True,
        hostname="driver-0",
        committer="magic",
        job_id="uuid-1",
        job_id_source="spark.sql.sources.writeJobUUID",
        description="é",
        metrics={"files_created": 3},
        diagnostics={"fs.s3a.committer.threads": "8"},
        filenames=["t/a", f"/{KEY}"],
        statistics=Statistics(counters={"op": 2}),
    )
    path.write_bytes(encode_s3a_success(data))
    loaded = s3a.s3a_success(path)

    assert loaded["committer"] == "magic"
    assert (loaded["jobId"], loaded["jobIdSource"]) == ("uuid-1", data.job_id_source)
    assert loaded["filenames"] == ["/t/a", f"/{KEY}"]
    assert (loaded["metrics"], loaded["diagnostics"]) == (data.metrics, data.diagnostics)
    assert loaded["iostatistics"]["counters"] == {"op": 2}
    assert (loaded["date"], loaded["timestamp"]) == (data.date, data.timestamp_ms)


def test_marker_of_hadoop(s3a: S3aClasses) -> None:
    """A ``_SUCCESS`` that S3A's class writes is read here."""
    made = s3a.new("org.apache.hadoop.fs.s3a.commit.files.SuccessData")
    made.setTimestamp(1_700_000_000_123)
    made.setCommitter("partitioned")
    made.setJobId("uuid-1")
    made.setFilenames(["/t/a"])
    found = decode_success(s3a.bytes_of(made), "_SUCCESS")

    assert (found.committer, found.job_id, found.filenames) == ("partitioned", "uuid-1", ["/t/a"])


PATHS = [
    "/",
    "/t/a",
    "/__magic_job-1/a",
    "/t/__magic_job-1/a",
    "/t/__magic_job-1/x/y/a",
    "/t/__magic_job-1/job-1/00/tasks/1/__base/a",
    "/t/__magic_job-1/job-1/00/tasks/1/__base/p=1/q=2/a b",
    "/t/__magic_job-1/__base/a/__base/b",
    "/t/__magic_job-1/a/__magic_job-2/__base/b",
    "/t/__base/u/__magic_job-1/a",
    "/t/__base/u/__magic_job-1/__base/a",
    "/t/__magic/job-1/__base/a",
    "/t/x__magic_job-1/a",
    "/t/__magic_job-/a",
    "/t/__magic_job-1/__base_/a",
]


@pytest.mark.parametrize("path", PATHS)
def test_magic_paths(s3a: S3aClasses, path: str) -> None:
    """Both sides agree which paths are magic, and where a file goes that is written there."""
    assert is_magic(path) == s3a.is_magic(path)
    assert final_path(path) == s3a.final_path(path)


@pytest.mark.parametrize(
    "path",
    ["/t/__magic_job-1", "/t/__magic_job-1/", "/t/__magic_job-1/a/__base", "/__magic_job-1/__base"],
)
def test_magic_paths_of_no_file(s3a: S3aClasses, path: str) -> None:
    """What both call magic and no file is an error on both sides."""
    assert is_magic(path)
    assert s3a.is_magic(path)
    with pytest.raises(HadoopError):
        s3a.final_path(path)
    with pytest.raises(UrlError):
        final_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "part-0000",
        "part-0001.gz.csv",
        "p=1.5/part-0001.csv",
        "p=1.5/part-0001",
        "/a/b.c/d",
        ".hidden",
        "a/.hidden.x",
        "part-UUID.csv",
        "UUID/part.csv",
        "a b/é.csv",
    ],
)
def test_unique_names(s3a: S3aClasses, path: str) -> None:
    """Both sides put the job's id at the same place of a name."""
    assert add_uuid(path, "UUID") == s3a.add_uuid(path, "UUID")


@pytest.mark.parametrize("path,uuid", [("", "UUID"), ("a", ""), ("a/", "UUID")])
def test_unique_names_of_nothing(s3a: S3aClasses, path: str, uuid: str) -> None:
    """Without a name or an id both sides refuse."""
    with pytest.raises(HadoopError):
        s3a.add_uuid(path, uuid)
    with pytest.raises(OptionError):
        add_uuid(path, uuid)


@pytest.mark.parametrize("s3a", [NEW], indirect=True)
@pytest.mark.parametrize("algorithm", ["CRC32", "CRC32C", "SHA1", "SHA256", "CRC64NVME"])
def test_checksums_that_hadoop_sends(s3a: S3aClasses, algorithm: str) -> None:
    """Of the checksums of a part, Hadoop leaves the newest kind out when it completes an upload."""
    found = s3a.java("org.apache.hadoop.fs.s3a.commit.files.UploadEtag")
    made = s3a.new("org.apache.hadoop.fs.s3a.commit.files.UploadEtag", "e", algorithm, "AA==")
    text = str(found.toCompletedPart(made, 3).toString())

    assert "PartNumber=3" in text
    assert ("AA==" in text) == (algorithm != "CRC64NVME")

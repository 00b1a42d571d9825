"""The commit record: round trips, and every field that is refused when it is damaged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import ManifestError
from asynccommit.formats.commit_plan import PlanChunk, chunk_object
from asynccommit.formats.commit_record import (
    CommitRecord,
    Owner,
    decode_record,
    digest_of,
    encode_record,
)
from asynccommit.formats.fields import MAX_LONG, MAX_TIME

PATH = "/t/_temporary/job_1/00/commit-record.json"
RECORD = CommitRecord(
    job_id="job_1",
    attempt=1,
    started_ms=1_795_000_000_000,
    owner=Owner("owner-1", "driver-0", "alice", "7.8.boot.9"),
    lease=60.0,
    files=3,
    bytes=12,
    manifests="sha256:all",
    tasks={"task_1": "attempt_1", "task_2": "attempt_2"},
    mode="append",
    key="2026-01-01",
    options={"outside": True, "rate": 3, "name": "x", "none": None},
    made_destination=True,
    plan_id="plan-1",
    plan=("sha256:" + "0a" * 32, "sha256:" + "1b" * 32),
    outside=("/elsewhere/p=1",),
)
CHUNK = PlanChunk(
    "plan-1",
    0,
    directories=["day=1"],
    aside=[("_SUCCESS", "file", "0x1")],
    files=[("tasks/a/day=1/f", "day=1/f", 12, None)],
)
WITH_CHUNK = replace(RECORD, plan=(), chunk=CHUNK)
WITH_WORKERS = replace(RECORD, index="sha256:" + "2c" * 32, grant=20.0)
GOOD: dict[str, Any] = orjson.loads(encode_record(RECORD))

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=10)
some = texts.filter(bool)
ids = st.from_regex(r"[a-z0-9_é日]{1,20}", fullmatch=True)
names = st.text(st.characters(exclude_characters="\x00/"), min_size=1, max_size=6)
segments = names.filter(lambda text: text not in (".", ".."))
counts = st.integers(0, MAX_LONG)
records = st.builds(
    CommitRecord,
    job_id=ids,
    attempt=counts,
    started_ms=st.integers(0, MAX_TIME),
    owner=st.builds(Owner, some, some, some, texts),
    lease=st.floats(0.001, 1e6),
    files=counts,
    bytes=counts,
    manifests=some,
    tasks=st.dictionaries(ids, ids, max_size=3),
    mode=some,
    key=st.none() | some,
    options=st.dictionaries(texts, texts | counts | st.booleans() | st.none(), max_size=3),
    made_destination=st.booleans(),
    plan_id=ids,
    plan=st.lists(st.binary(min_size=32, max_size=32).map(lambda b: f"sha256:{b.hex()}")).map(
        tuple
    ),
    outside=st.lists(st.lists(segments, min_size=1).map(lambda p: "/" + "/".join(p))).map(tuple),
)


def refused(value: Any) -> str:
    """Return the reason why a record with this content is refused."""
    with pytest.raises(ManifestError) as caught:
        decode_record(orjson.dumps(value), PATH)
    assert caught.value.path == PATH
    return caught.value.reason


def whole(record: CommitRecord) -> bool:
    """Whether no text of a record holds two halves of a character in a row."""
    return all(text == text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
               for text in record.outside)  # fmt: skip


@given(records.filter(whole))
def test_round_trip(record: CommitRecord) -> None:
    """What is written reads back, also names of files that are no UTF-8."""
    assert decode_record(encode_record(record), PATH) == record


def test_round_trip_with_the_plan() -> None:
    """A record that contains its plan has a type of its own, which earlier readers refuse."""
    data = encode_record(WITH_CHUNK)

    assert orjson.loads(data)["type"] == "asynccommit.CommitRecord/3"
    assert orjson.loads(encode_record(RECORD))["type"] == "asynccommit.CommitRecord/2"
    there = decode_record(data, PATH).chunk
    assert there is not None
    assert chunk_object(there) == chunk_object(CHUNK)
    assert encode_record(decode_record(data, PATH)) == data


def test_round_trip_with_workers() -> None:
    """A record of a commit with workers has a type of its own, and leaves tasks to the index."""
    data = encode_record(WITH_WORKERS)

    assert orjson.loads(data)["type"] == "asynccommit.CommitRecord/4"
    assert decode_record(data, PATH) == replace(WITH_WORKERS, tasks={}, plan=())


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"index": None}, "index is null or missing"),
        ({"index": "sha256:0"}, "index is not a digest"),
        ({"workers": None}, "workers"),
        ({"workers": {}}, "workers.grant is null or missing"),
        ({"workers": {"grant": 0}}, "workers.grant is not a duration"),
        ({"workers": {"grant": 301}}, "workers.grant is more than 300 seconds"),
    ],
)
def test_damaged_facts_about_workers_are_refused(change: dict[str, Any], reason: str) -> None:
    """Nobody waits for longer than a grant may last."""
    assert reason in refused(orjson.loads(encode_record(WITH_WORKERS)) | change)


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"chunk": None}, "chunk is null or missing"),
        ({"chunk": {}}, "chunk.type"),
        ({"planId": "plan-2"}, "chunk.plan is 'plan-1', not 'plan-2'"),
        ({"type": "asynccommit.CommitRecord/4"}, "index is"),
        ({"type": "asynccommit.CommitRecord/5"}, "type is"),
    ],
)
def test_a_damaged_plan_is_refused(change: dict[str, Any], reason: str) -> None:
    """The plan in a record is checked as one in a file is."""
    value = orjson.loads(encode_record(WITH_CHUNK)) | change
    assert reason in refused(value)


def test_rows_of_the_plan_are_checked() -> None:
    """A row that leads out of the tasks' directories is named."""
    value = orjson.loads(encode_record(WITH_CHUNK))
    value["chunk"]["files"][0][0] = "../victim"
    assert "chunk.files[0].s" in refused(value)


def test_readers_ignore_what_they_do_not_know() -> None:
    """A field of a later version changes nothing."""
    data = orjson.dumps(GOOD | {"later": [1], "owner": GOOD["owner"] | {"rank": 2}})

    assert decode_record(data, PATH) == RECORD


@pytest.mark.rotate("value", keep=2)
@pytest.mark.parametrize("key", [key for key in GOOD if key not in ("key", "options")])
@pytest.mark.parametrize("value", [..., None, 1.5, [[]], -1, {"": 1}])
def test_a_damaged_field_is_named(key: str, value: Any) -> None:
    """A field that is missing or of another type is refused by its name."""
    if (key, value) == ("lease", 1.5):
        return
    changed = GOOD | {key: value}
    if value is ...:
        del changed[key]

    assert key in refused(changed)


@pytest.mark.parametrize("key", list(GOOD["owner"]))
@pytest.mark.parametrize("value", [..., None, 1, "a\0b"])
def test_a_damaged_field_of_the_owner_is_named(key: str, value: Any) -> None:
    """The owner is read as strictly."""
    owner = GOOD["owner"] | {key: value}
    if value is ...:
        del owner[key]

    assert refused(GOOD | {"owner": owner}).startswith(f"owner.{key} ")


@pytest.mark.parametrize(
    "key,value,reason",
    [
        ("type", "asynccommit.CommitRecord/1", "type is 'asynccommit.CommitRecord/1', not "),
        ("jobId", "a/b", "jobId is 'a/b', not a plain name"),
        ("jobId", "..", "jobId is '..', not a plain name"),
        ("planId", "../x", "planId is '../x', not a plain name"),
        ("attempt", True, "attempt is a boolean, not an integer"),
        ("attempt", "1", "attempt is the string '1', not an integer"),
        ("files", -1, "files is less than 0"),
        ("bytes", MAX_LONG + 1, f"bytes is more than {MAX_LONG}"),
        ("started", MAX_TIME + 1, f"started is more than {MAX_TIME}"),
        ("lease", 0, "lease is not a duration"),
        ("lease", True, "lease is a boolean, not a number"),
        ("lease", 1e300, "lease is not a duration"),
        ("tasks", {"t": "../x"}, "tasks.'t' holds '../x', not a plain name"),
        ("tasks", {"t": ""}, "tasks.'t' holds '', not a plain name"),
        ("tasks", {"..": "a"}, "tasks.'..' holds '..', not a plain name"),
        ("tasks", {"t": 1}, "tasks.'t' is a number, not a string"),
        ("key", 1, "key is a number, not a string"),
        ("options", {"a": 1.5}, "options.'a' is a float"),
        ("options", {"a": []}, "options.'a' is a list"),
        ("options", [], "options is a list, not an object"),
        ("plan", ["sha256:0"], "plan[0] is the string 'sha256:0', not a digest"),
        ("plan", [GOOD["plan"][0], 1], "plan[1] is a number, not a digest"),
        *(
            ("outside", [path], "outside[0] is ")
            for path in ("a", "", "/", "//a", "/a/", "/a/../b", "/./a", "/a\0b", None)
        ),
    ],
)
def test_what_cannot_be_true_is_refused(key: str, value: Any, reason: str) -> None:
    """Numbers out of range, names that are paths and paths that are none are refused."""
    assert refused(GOOD | {key: value}).startswith(reason)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{", b"[]", b"null", b"\xff", b'"\\ud800"', b'{"a": NaN, "b": "\\ud800"}'),
        b"[" * 100_000 + b'"\\ud800"',
        b'{"\\ud800": ' + b"9" * 5000 + b"}",
        '{"type": "\\ud800"}'.encode("utf-16"),
    ],
)
def test_what_is_no_record_is_refused(data: bytes) -> None:
    """Content that is cut, no JSON, or nested without end is refused as such."""
    with pytest.raises(ManifestError) as caught:
        decode_record(data, PATH)
    assert caught.value.path == PATH


@given(st.binary(max_size=200) | st.binary(max_size=50).map(lambda data: data + b'"\\ud800"'))
def test_any_bytes_give_a_manifest_error(data: bytes) -> None:
    """Bytes that are no record are refused in no other way."""
    with pytest.raises(ManifestError):
        decode_record(data, PATH)


@pytest.mark.parametrize(
    "fields",
    [
        {"job_id": "a/b"},
        {"job_id": "\ud800"},
        {"files": -1},
        {"files": 2**70},
        {"lease": float("nan")},
        {"lease": float("inf")},
        {"outside": ("/\ud83d\ude80",)},
        {"options": {"a": object()}},
    ],
)
def test_what_could_not_be_read_is_not_written(fields: dict[str, Any]) -> None:
    """A record that nobody could read is refused before anything depends on it."""
    values = {name: getattr(RECORD, name) for name in RECORD.__slots__}

    with pytest.raises(ManifestError, match=r"commit-record\.json"):
        encode_record(CommitRecord(**values | fields))


def test_digest_depends_on_tasks_attempts_and_manifests() -> None:
    """The digest is the same in any order, and another for anything else."""
    tasks, digests = {"a": "a1", "b": "b1"}, {"a": "x", "b": "y"}

    same = digest_of(dict(reversed(tasks.items())), digests)
    others = [
        digest_of(tasks | {"b": "b2"}, digests),
        digest_of(tasks, digests | {"b": "z"}),
        digest_of({"a": "a1"}, digests),
    ]

    assert digest_of(tasks, digests) == same
    assert len({same, *others}) == 4

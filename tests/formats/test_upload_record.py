"""What a job commit of uploads leaves: round trips, and every field that is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import ManifestError
from asynccommit.formats.commit_owner import Outcome
from asynccommit.formats.commit_record import Owner
from asynccommit.formats.fields import MAX_LONG, MAX_TIME
from asynccommit.formats.upload_record import (
    IntendedUpload,
    SetRow,
    UploadIntent,
    UploadOutcome,
    UploadRecord,
    decode_upload_intent,
    decode_upload_outcome,
    decode_upload_record,
    digest_of_sets,
    encode_upload_intent,
    encode_upload_outcome,
    encode_upload_record,
)

PATH = "/t/__magic_job-1/commit-record.json"
DIGEST = "sha256:" + "0a" * 32
SETS = (SetRow("task_1.pendingset", DIGEST, 2), SetRow("task_2.pendingset", DIGEST, 1))
RECORD = UploadRecord(
    job_id="job_1",
    uuid="uuid-1",
    attempt=1,
    committer="magic",
    mode="append",
    owner=Owner("owner-1", "driver-0", "alice", "7.8"),
    started_ms=1_795_000_000_000,
    files=3,
    bytes=12,
    sets=SETS,
    digest=digest_of_sets(SETS),
    plan_id="plan-1",
    plan=(DIGEST,),
    key="2026-01-01",
    options={"validate": True, "none": None},
    made_destination=True,
)
OUTCOME = UploadOutcome(Outcome.COMMITTED, "plan-1", "owner-1", 1_795_000_000_000)
INTENT = UploadIntent(
    "job_1", "attempt_1", (IntendedUpload("out/a", "u1"), IntendedUpload("out/b", "u2")), 5
)

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=10)
some = texts.filter(bool)
ids = st.from_regex(r"[a-z0-9_é日]{1,20}", fullmatch=True)
segments = st.text("ab. é", min_size=1, max_size=4).filter(lambda text: text not in (".", ".."))
digests = st.binary(min_size=32, max_size=32).map(lambda data: f"sha256:{data.hex()}")
rows = st.lists(
    st.builds(SetRow, ids, digests, st.integers(0, 9)), max_size=4, unique_by=lambda row: row.name
).map(tuple)


@st.composite
def records(draw: st.DrawFn) -> UploadRecord:
    """Draw a record whose sums are right."""
    sets = draw(rows)
    return UploadRecord(
        job_id=draw(ids),
        uuid=draw(ids),
        attempt=draw(st.integers(0, 99)),
        committer=draw(some),
        mode=draw(some),
        owner=draw(st.builds(Owner, some, some, some, texts)),
        started_ms=draw(st.integers(0, MAX_TIME)),
        files=sum(row.uploads for row in sets),
        bytes=draw(st.integers(0, MAX_LONG)),
        sets=sets,
        digest=digest_of_sets(sets),
        plan_id=draw(ids),
        plan=tuple(draw(st.lists(digests, max_size=3))),
        key=draw(st.none() | some),
        options=draw(st.dictionaries(texts, texts | st.booleans() | st.none(), max_size=3)),
        made_destination=draw(st.booleans()),
    )


intents = st.builds(
    UploadIntent,
    job_id=ids,
    task_attempt=ids,
    uploads=st.lists(
        st.builds(IntendedUpload, st.lists(segments, min_size=1).map("/".join), ids), max_size=3
    ).map(tuple),
    created_ms=st.integers(0, MAX_TIME),
)


@given(records())
def test_record_round_trip(record: UploadRecord) -> None:
    """A record reads back as it was written."""
    assert decode_upload_record(encode_upload_record(record), PATH) == record


@given(st.builds(UploadOutcome, st.sampled_from(Outcome), texts, some, st.integers(0, MAX_TIME)))
def test_outcome_round_trip(outcome: UploadOutcome) -> None:
    """An outcome reads back as it was written."""
    assert decode_upload_outcome(encode_upload_outcome(outcome), PATH) == outcome


@given(intents)
def test_intent_round_trip(intent: UploadIntent) -> None:
    """An intent reads back as it was written."""
    assert decode_upload_intent(encode_upload_intent(intent), PATH) == intent


@given(rows)
def test_digest_of_sets(sets: tuple[SetRow, ...]) -> None:
    """The order of the sets is nothing to their digest, any change of one is."""
    digest = digest_of_sets(sets)

    assert digest_of_sets(reversed(sets)) == digest
    assert digest_of_sets([*sets, SetRow("/", DIGEST, 0)]) != digest
    if sets:
        assert digest_of_sets([sets[0]._replace(uploads=10), *sets[1:]]) != digest


READERS: list[tuple[Callable[[bytes, str], object], dict[str, Any]]] = [
    (decode_upload_record, orjson.loads(encode_upload_record(RECORD))),
    (decode_upload_outcome, orjson.loads(encode_upload_outcome(OUTCOME))),
    (decode_upload_intent, orjson.loads(encode_upload_intent(INTENT))),
]
FIELDS = [
    pytest.param(decode, good, key, id=f"{decode.__name__.removeprefix('decode_upload_')}-{key}")
    for decode, good in READERS
    for key in good
    if key not in ("key", "options")
]


@pytest.mark.rotate("value", keep=2)
@pytest.mark.parametrize("value", [..., None, 1.5, [[]], -1, {"": 1}, "a\0b", 2**64])
@pytest.mark.parametrize("decode,good,key", FIELDS)
def test_a_damaged_field_is_named(
    decode: Callable[[bytes, str], object], good: dict[str, Any], key: str, value: Any
) -> None:
    """A field that is missing or of another type is refused by its name, in each file."""
    changed = good | {key: value}
    if value is ...:
        del changed[key]
    data = orjson.dumps(changed) if value != 2**64 else _huge(good, key)
    with pytest.raises(ManifestError, match=key) as caught:
        decode(data, PATH)

    assert caught.value.path == PATH


def _huge(good: dict[str, Any], key: str) -> bytes:
    marked = orjson.dumps(good | {key: "?"})
    return marked.replace(b'"?"', str(2**64).encode())


@pytest.mark.parametrize("decode,good", READERS)
def test_readers_ignore_what_they_do_not_know(
    decode: Callable[[bytes, str], object], good: dict[str, Any]
) -> None:
    """A field of a later version changes nothing."""
    assert decode(orjson.dumps(good | {"later": [1]}), PATH) == decode(orjson.dumps(good), PATH)


RECORDED = READERS[0][1]


@pytest.mark.parametrize(
    "change,reason",
    [
        ({"type": "asynccommit.CommitRecord/2"}, "type is 'asynccommit.CommitRecord/2', not "),
        ({"uuid": "../x"}, "uuid is '../x', not a plain name"),
        ({"planId": "a/b"}, "planId is 'a/b', not a plain name"),
        ({"sets": []}, "digest is not that of the sets"),
        ({"digest": DIGEST}, "digest is not that of the sets"),
        ({"files": 4}, "files is not the number of uploads in the sets"),
        ({"sets": [["../t", DIGEST, 1]]}, "sets[0] is not a name, a digest and a number"),
        ({"sets": [["", DIGEST, 1]]}, "sets[0] is not a name, a digest and a number"),
        ({"sets": [["t", "sha256:0", 1]]}, "sets[0] is not a name, a digest and a number"),
        ({"sets": [["t", DIGEST, -1]]}, "sets[0] is not a name, a digest and a number"),
        ({"sets": [["t", DIGEST, True]]}, "sets[0] is not a name, a digest and a number"),
        ({"sets": [["t", DIGEST, 1, 2]]}, "sets[0] is not a name, a digest and a number"),
        ({"sets": [list(SETS[0])] * 2}, "sets lists a set twice"),
        ({"plan": ["x"]}, "plan[0] is the string 'x', not a digest"),
        ({"options": {"a": []}}, "options.'a' is a list"),
        ({"key": 1}, "key is a number, not a string"),
    ],
)
def test_a_wrong_record_says_why(change: dict[str, Any], reason: str) -> None:
    """What a resume would trust has to fit together."""
    with pytest.raises(ManifestError) as caught:
        decode_upload_record(orjson.dumps(RECORDED | change), PATH)
    assert caught.value.reason.startswith(reason)


@pytest.mark.parametrize(
    "row",
    [
        ["../x", "u"],
        ["/x", "u"],
        ["x/", "u"],
        ["", "u"],
        ["x", ""],
        ["x", "a\nb"],
        ["x", 1],
        ["x"],
        ["x", "u", "y"],
        "xu",
        None,
    ],
)
def test_a_wrong_intent_says_which_row(row: Any) -> None:
    """An upload that could not be aborted is refused with its place."""
    data = orjson.dumps(READERS[2][1] | {"uploads": [["a", "u"], row]})
    with pytest.raises(ManifestError, match=r"uploads\[1\] is not a key and an upload id"):
        decode_upload_intent(data, PATH)


def test_an_unknown_outcome() -> None:
    """There are two ways for a commit to end."""
    data = orjson.dumps(READERS[1][1] | {"outcome": "maybe"})
    with pytest.raises(ManifestError, match="the string 'maybe', not committed or rollback"):
        decode_upload_outcome(data, PATH)


def test_what_could_not_be_read_is_not_written() -> None:
    """A writer hears of a mistake at once."""
    with pytest.raises(ManifestError, match="taskAttempt is 'a/b'"):
        encode_upload_intent(UploadIntent("job_1", "a/b", (), 0))

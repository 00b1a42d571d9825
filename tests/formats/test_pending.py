"""One pending upload: samples, round trips in both forms of etags, and all that is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import ManifestError
from asynccommit.formats.fields import MAX_LONG, MAX_TIME
from asynccommit.formats.pending import (
    MAX_KEY_BYTES,
    MAX_PARTS,
    MAX_PENDING_BYTES,
    PendingCommit,
    decode_pending,
    encode_pending,
)
from asynccommit.options.uploads import EtagForm
from asynccommit.stores.parts import Part
from asynccommit.stores.urls import Address

FIXTURES = Path(__file__).parent.parent / "fixtures"
PATH = "/t/__magic_job-1/job-1/00/tasks/a/__base/k.pending"
COMMIT = PendingCommit(
    bucket="bucket",
    key="out/k",
    upload_id="upload-1",
    parts=(Part('"e1"', "CRC32C", "AAAAAA=="), Part('"e2"', "CRC32C", "BBBBBB==")),
    length=7,
    uri="s3a://bucket/out/k",
    job_id="job-1",
    task_id="attempt-1",
    text="partition: p=1",
    created=1_700_000_000_000,
    filename=PATH,
    extra={"k": "v"},
)
GOOD: dict[str, Any] = orjson.loads(encode_pending(COMMIT))

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=10)
some = texts.filter(bool)
segments = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00/"), min_size=1, max_size=9
).filter(lambda text: text not in (".", ".."))
keys = st.lists(segments, min_size=1, max_size=4).map("/".join)
etags = st.from_regex(r'"[0-9a-f]{32}"|[0-9a-f]{32}|"é-x"', fullmatch=True)
checked = st.builds(Part, etags, st.sampled_from(["CRC32", "SHA256", "CRC64NVME"]), st.just("AA=="))
commits = st.builds(
    PendingCommit,
    bucket=some,
    key=keys,
    upload_id=st.from_regex(r"[A-Za-z0-9._~é-]{1,12}", fullmatch=True),
    parts=st.lists(etags.map(Part) | checked, min_size=1, max_size=4).map(tuple),
    length=st.integers(0, MAX_LONG),
    uri=keys.map(lambda key: Address("s3a", "bucket", f"/{key}").encode()),
    job_id=texts,
    task_id=texts,
    text=texts,
    created=st.integers(0, MAX_TIME),
    filename=st.just(PATH),
    extra=st.dictionaries(texts, texts, max_size=3),
)


def refused(value: Any) -> str:
    """Return the reason why a file with this content is refused."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(ManifestError) as caught:
        decode_pending(data, PATH)
    assert caught.value.path == PATH
    return caught.value.reason


@pytest.mark.parametrize(
    "form, part",
    [("string", Part('"etag1"')), ("object", Part('"etag1"', "CRC32C", "AAAAAA=="))],
)
def test_samples_of_hadoop_load(form: str, part: Part) -> None:
    """A file as each release writes it has all its values; the file name is where it was read."""
    path = FIXTURES / f"s3a_v2_{form}_etags" / "part-00000.parquet.pending"
    commit = decode_pending(path.read_bytes(), PATH)

    assert commit.parts[0] == part
    assert replace(commit, parts=()) == PendingCommit(
        bucket="example",
        key="results/latest/year=2024/part-00000.parquet",
        upload_id="UPLOADID1",
        parts=(),
        length=12345,
        uri="s3a://example/results/latest/year=2024/part-00000.parquet",
        created=1_700_000_000_000,
        filename=PATH,
        extra={"k": "v"},
    )


@pytest.mark.parametrize("form", EtagForm)
def test_samples_of_hadoop_are_written_alike(form: EtagForm) -> None:
    """What is read is written with the same keys in the same order, and the same values."""
    folder = FIXTURES / f"s3a_v2_{form.value.removesuffix('s')}_etags"
    sample = (folder / "part-00000.parquet.pending").read_bytes()
    commit = replace(decode_pending(sample, PATH), filename=None)
    written, expected = json.loads(encode_pending(commit, form)), json.loads(sample)
    del written["iostatistics"], expected["iostatistics"]

    assert list(written.items()) == list(expected.items())


@given(commits)
def test_round_trip_with_objects(commit: PendingCommit) -> None:
    """Etag objects keep all there is, quotes and checksums too."""
    assert decode_pending(encode_pending(commit, EtagForm.OBJECTS), PATH) == commit


@given(commits)
def test_round_trip_with_strings(commit: PendingCommit) -> None:
    """Etags as strings keep all but the checksums, which that form cannot hold."""
    bare = replace(commit, parts=tuple(Part(part.etag) for part in commit.parts))

    assert decode_pending(encode_pending(commit, EtagForm.STRINGS), PATH) == bare


def test_both_forms_in_one_file() -> None:
    """A reader looks at each etag by itself."""
    found = decode_pending(orjson.dumps(GOOD | {"etags": ["a", {"etag": "b"}]}), PATH)

    assert found.parts == (Part("a"), Part("b"))


def test_what_may_be_absent() -> None:
    """The fields that complete no upload have Hadoop's defaults, and later fields are ignored."""
    needed = ("uri", "uploadId", "bucket", "destinationKey", "etags")
    value = {key: GOOD[key] for key in needed} | {"later": [1]}
    found = decode_pending(orjson.dumps(value), PATH)

    assert (found.length, found.created, found.extra) == (0, 0, {})
    assert (found.job_id, found.task_id, found.text) == ("", "", "")


@pytest.mark.parametrize("key", ["jobId", "taskId", "text", "extraData", "filename", "created"])
def test_nulls(key: str) -> None:
    """A null where nothing is needed is the default, as in Hadoop."""
    assert decode_pending(orjson.dumps(GOOD | {key: None}), PATH).key == COMMIT.key


@pytest.mark.rotate("value", keep=2)
@pytest.mark.parametrize("key", ["uri", "uploadId", "bucket", "destinationKey", "etags"])
@pytest.mark.parametrize("value", [..., None, "", 1, {"a": 1}, "a\0b", [None], [""]])
def test_a_damaged_field_is_named(key: str, value: Any) -> None:
    """A field without which nothing can be completed is refused by its name."""
    changed = GOOD | {key: value}
    if value is ...:
        del changed[key]

    assert key in refused(changed)


@pytest.mark.parametrize(
    "key,value,reason",
    [
        ("version", 1, "version is 1, not 2: another release wrote it"),
        ("version", 3, "version is 3, not 2: another release wrote it"),
        ("version", "two", "version is the string 'two', not an integer"),
        ("version", 2.0, "version is a float, not an integer"),
        ("version", True, "version is a boolean, not an integer"),
        ("destinationKey", "/a", "destinationKey is '/a', not a plain relative path"),
        ("destinationKey", "a/", "destinationKey is 'a/', not a plain relative path"),
        ("destinationKey", "a//b", "destinationKey is 'a//b', not a plain relative path"),
        ("destinationKey", "a/../b", "destinationKey is 'a/../b', not a plain relative path"),
        ("destinationKey", "./b", "destinationKey is './b', not a plain relative path"),
        ("destinationKey", "é" * 513, f"destinationKey is longer than {MAX_KEY_BYTES} bytes"),
        ("etags", [], "etags is empty: an upload without parts cannot be completed"),
        ("etags", {}, "etags is an object, not a list"),
        ("etags", ["e"] * (MAX_PARTS + 1), "etags holds 10001 parts, more than 10000"),
        ("etags", ["e", ""], "etags[1] is empty"),
        ("etags", ['""'], "etags[0] is empty"),
        ("etags", ["e", None], "etags[1] is null or missing, not an etag"),
        ("etags", [["e"]], "etags[0] is a list, not an etag"),
        ("etags", [{}], "etags[0] is empty"),
        ("etags", [{"etag": ""}], "etags[0] is empty"),
        ("etags", [{"etag": 1}], "etags[0] is an object, not an etag"),
        ("etags", ["a\r\nb"], "etags[0] holds a control character"),
        ("etags", [{"etag": "e", "checksum": "A"}], "etags[0] does not have both a checksum an"),
        ("etags", ["e", {"etag": "e", "checksumAlgorithm": "A"}], "etags[1] does not have b"),
        (
            "etags",
            [{"etag": "e", "checksumAlgorithm": "A", "checksum": 1}],
            "etags[0] does not have both a checksum and its algorithm, as plain text",
        ),
        (
            "etags",
            [{"etag": "e", "checksumAlgorithm": "A", "checksum": "a\n"}],
            "etags[0] does not have both a checksum and its algorithm, as plain text",
        ),
        ("etags", [{"etag": "e", "checksum": [1]}], "etags[0] does not have both a checksum an"),
        ("uploadId", "a\nb", "uploadId holds a control character"),
        ("length", -1, "length is -1, less than 0"),
        ("length", 2**63, "length is a number, not an integer"),
        ("length", 10**400, "not valid JSON"),
        ("length", 1.5, "length is a float, not an integer"),
        ("created", -1, "created is -1, less than 0"),
        ("created", MAX_TIME + 1, f"created is {MAX_TIME + 1}, later than the year 9999"),
        ("extraData", {"a": 1}, "extraData.'a' is a number, not a string"),
        ("extraData", [], "extraData is a list, not an object"),
        ("jobId", 1, "jobId is a number, not a string"),
        ("bucket", "a\ud800b", "not valid JSON"),
    ],
)
def test_a_wrong_field_says_why(key: str, value: Any, reason: str) -> None:
    """Each rule names the field and what it found."""
    assert refused(GOOD | {key: value}).startswith(reason)


@pytest.mark.parametrize(
    "data,reason",
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[]", "the content is a list, not an object"),
        (b"null", "the content is null or missing, not an object"),
        (b'{"a":' * 2000 + b"1" + b"}" * 2000, "not valid JSON"),
        (b"\xff\xfe{}", "not valid JSON"),
        (b" " * (MAX_PENDING_BYTES + 1), f"holds {MAX_PENDING_BYTES + 1} bytes, more "),
    ],
)
def test_hostile_files(data: bytes, reason: str) -> None:
    """What is no object, too deep or too large is refused before anything is made of it."""
    assert refused(data).startswith(reason)


def test_as_many_parts_as_there_may_be() -> None:
    """10,000 parts are read; the limit is that of S3."""
    data = orjson.dumps(GOOD | {"etags": ["e"] * MAX_PARTS})

    assert len(decode_pending(data, PATH).parts) == MAX_PARTS


def test_the_last_of_two_keys_counts() -> None:
    """Of a key that is there twice the last value is taken, as Hadoop does."""
    data = encode_pending(COMMIT)
    twice = data[:-1] + b',"destinationKey":"out/other"}'

    assert decode_pending(twice, PATH).key == "out/other"


@pytest.mark.parametrize(
    "change,reason",
    [
        ({"parts": ()}, "etags is empty"),
        ({"parts": (Part(""),)}, "etags[0] is empty"),
        ({"key": "a/../b"}, "destinationKey is 'a/../b'"),
        ({"uri": "s3a://bucket/a b"}, "uri cannot be written: "),
        ({"uri": "a/b"}, "uri cannot be written: "),
        ({"length": -1}, "length is -1"),
        ({"text": "\ud800"}, "not valid JSON"),
    ],
)
def test_what_could_not_be_read_is_not_written(change: dict[str, Any], reason: str) -> None:
    """A writer hears of a mistake at once, not the job commit."""
    with pytest.raises(ManifestError) as caught:
        encode_pending(replace(COMMIT, **change))
    assert caught.value.reason.startswith(reason)


@pytest.mark.parametrize(
    "millis,date",
    [
        (0, "Thu Jan 01 00:00:00 UTC 1970"),
        (1_700_000_000_999, "Tue Nov 14 22:13:20 UTC 2023"),
        (MAX_TIME, "Fri Dec 31 23:59:59 UTC 9999"),
    ],
)
def test_date_is_javas(millis: int, date: str) -> None:
    """The date for people is as Java shows it, in English wherever this runs."""
    assert json.loads(encode_pending(replace(COMMIT, created=millis)))["date"] == date

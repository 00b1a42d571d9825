"""The task manifest: Hadoop's samples, round trips, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import ManifestError
from asynccommit.formats.manifest import (
    CREATED_DIR,
    DIR,
    DirEntry,
    FileEntry,
    TaskManifest,
    decode_manifest,
    encode_manifest,
)
from asynccommit.formats.statistics import Statistics
from asynccommit.stores.urls import decode_uri

SAMPLES = Path(__file__).parent.parent / "fixtures" / "hadoop_manifest"
MANIFESTS = sorted(SAMPLES.glob("task_manifest_*.json"))
GOOD: dict[str, Any] = {
    "jobId": "job_1",
    "taskID": "task_1",
    "taskAttemptID": "attempt_1",
    "taskAttemptDir": "file:/t/_temporary",
    "files": [
        {"s": "file:/t/_temporary/a", "d": "file:/t/a", "z": 1},
        {"s": "file:/t/_temporary/b", "d": "file:/t/b", "z": 2, "e": "0x8D"},
    ],
    "directories": [{"d": "file:/t/p=1", "t": 3, "l": 1}],
}

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=10)
uris = texts.map(lambda text: f"file:/{text}")
ids = st.from_regex(r"[a-z0-9_é日]{1,20}", fullmatch=True)
files = st.lists(
    st.builds(FileEntry, uris, uris, st.integers(0, 2**63 - 1), st.none() | texts.filter(bool)),
    unique_by=lambda entry: entry.dest,
    max_size=5,
)
manifests = st.builds(
    TaskManifest,
    job_id=ids,
    job_attempt=st.integers(0, 1000),
    task_id=ids,
    task_attempt_id=ids,
    task_attempt_dir=uris,
    files=files,
    directories=st.lists(st.builds(DirEntry, uris, st.integers(0, 4), st.integers(1, 9))),
    statistics=st.just(Statistics(counters={"op_rename": 2}, means={"m": (1, 5)})),
    extra_data=st.dictionaries(texts, texts, max_size=2),
)


def decode(value: Any) -> TaskManifest:
    """Read the manifest with this content."""
    return decode_manifest(orjson.dumps(value), "file:/m.json")


def refused(value: Any) -> str:
    """Return the reason why this content is refused."""
    with pytest.raises(ManifestError) as caught:
        decode(value)
    assert caught.value.path == "file:/m.json"
    return caught.value.reason


def with_file(**fields: Any) -> dict[str, Any]:
    """Return the good manifest with its second file changed; ``...`` removes a field."""
    entry = {key: v for key, v in (GOOD["files"][1] | fields).items() if v is not ...}
    return GOOD | {"files": [GOOD["files"][0], entry]}


@pytest.mark.parametrize("sample", MANIFESTS, ids=lambda path: path.stem)
def test_samples_of_hadoop_load(sample: Path) -> None:
    """Every manifest that Hadoop wrote is read, and its places decode."""
    value = json.loads(sample.read_bytes())
    manifest = decode_manifest(sample.read_bytes(), str(sample))
    assert [(f.source, f.dest, f.size, f.etag) for f in manifest.files] == [
        (f["s"], f["d"], f["z"], f.get("e")) for f in value["files"]
    ]
    assert [(d.dest, d.status, d.level) for d in manifest.directories] == [
        (d["d"], d["t"], d["l"]) for d in value["directories"]
    ]
    for file in manifest.files:
        assert decode_uri(file.dest).same_store(decode_uri(file.source))


@pytest.mark.parametrize("sample", MANIFESTS, ids=lambda path: path.stem)
def test_samples_of_hadoop_are_written_alike(sample: Path) -> None:
    """A sample that is read and written in full has the same fields in the same order."""
    value = json.loads(sample.read_bytes())
    manifest = decode_manifest(sample.read_bytes(), str(sample))
    written = json.loads(encode_manifest(manifest, full=bool(value["iostatistics"]["counters"])))
    assert written == value
    assert list(written) == list(value)
    assert [list(file) for file in written["files"]] == [list(file) for file in value["files"]]


@given(manifests, st.booleans())
def test_round_trip(manifest: TaskManifest, full: bool) -> None:
    """What is written reads back."""
    assert decode_manifest(encode_manifest(manifest, full=full), "m") == manifest


def test_written_form_is_indented_raw_and_unterminated() -> None:
    """Non-ASCII stays raw, a missing etag is left out, and no newline ends the file."""
    file = FileEntry("file:/s/é", "file:/d/日本", 3)
    data = encode_manifest(TaskManifest("j", 0, "t", "a", "file:/s", [file]))
    assert '\n      "d": "file:/d/日本"'.encode() in data
    assert b'"e"' not in data
    assert data.endswith(b"}")


def test_written_form_without_files_is_small() -> None:
    """Statistics that are zero are written on demand only; Hadoop always spends 18 KB."""
    manifest = TaskManifest("j", 0, "t", "a", "file:/s")
    assert len(encode_manifest(manifest)) < 600
    assert len(encode_manifest(manifest, full=True)) > 10_000


def test_encode_refuses_what_is_no_unicode() -> None:
    """A lone surrogate is a named error rather than one of the JSON library."""
    with pytest.raises(ManifestError, match=r"t-manifest\.json: cannot be written"):
        encode_manifest(TaskManifest("j", 0, "t", "a", "file:/\ud800"))


@given(st.binary(max_size=200))
def test_any_bytes_give_a_manifest_error(data: bytes) -> None:
    """Bytes that are no manifest are refused as such and in no other way."""
    with pytest.raises(ManifestError):
        decode_manifest(data, "m")


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*"sdzetlkx"]), inner, max_size=4)
    ),
    max_leaves=6,
)
FIELDS = [*GOOD, "type", "version", "extraData", "iostatistics", "jobAttemptNumber"]


@given(st.dictionaries(st.sampled_from(FIELDS), json_values))
def test_any_values_give_a_manifest_or_a_manifest_error(fields: dict[str, Any]) -> None:
    """Fields of any type are read or refused, and what is read has the promised types."""
    try:
        manifest = decode(GOOD | fields)
    except ManifestError:
        return
    for file in manifest.files:
        assert type(file.source) is type(file.dest) is str
        assert file.source
        assert file.dest
        assert type(file.size) is int
        assert 0 <= file.size < 2**63
        assert file.etag is None or file.etag
    for directory in manifest.directories:
        assert 0 <= directory.status <= CREATED_DIR
    assert decode_manifest(encode_manifest(manifest), "m") == manifest


@given(st.lists(json_values, max_size=4))
def test_any_file_entries_give_a_manifest_or_a_manifest_error(entries: list[Any]) -> None:
    """The quick way and the careful way refuse the same entries."""
    value = GOOD | {"files": entries}
    careful = value | {"extraData": {"k": "\\u0000"}}
    read: list[Any] = []
    for way in (value, careful):
        try:
            read.append(decode(way).files)
        except ManifestError as error:
            read.append([error.reason])
    assert read[0] == read[1]


@given(st.integers(0, 10_000))
def test_truncated_file_is_refused(cut: int) -> None:
    """A file that was not written to its end is never read in part."""
    data = MANIFESTS[0].read_bytes()
    with pytest.raises(ManifestError):
        decode_manifest(data[: min(cut, len(data) - 1)], "m")


def test_optional_fields_may_be_missing_and_others_are_ignored() -> None:
    """The defaults are those of Hadoop, at every level."""
    value = {"jobId": "j", "taskID": "t", "taskAttemptID": "a", "new": {"x": 1}}
    assert decode(value) == TaskManifest("j", 0, "t", "a", "", [], [])
    manifest = decode(value | {"files": [{"s": "s", "d": "d", "new": 1}]})
    assert manifest.files == [FileEntry("s", "d", 0, None)]


@pytest.mark.parametrize("size, read", [("12", 12), (" -0 ", 0), (None, 0), (2**63 - 1, 2**63 - 1)])
def test_size_is_read_as_jackson_reads_it(size: object, read: int) -> None:
    """Integers in quoted strings count, and null is the default."""
    assert decode(with_file(z=size)).files[1].size == read


@pytest.mark.parametrize(
    "fields, reason",
    [
        ({"s": ...}, "files[1].s is null or missing, not a string"),
        ({"s": ""}, "files[1].s is empty"),
        ({"s": 5}, "files[1].s is a number, not a string"),
        ({"d": None}, "files[1].d is null or missing, not a string"),
        ({"d": ""}, "files[1].d is empty"),
        ({"d": "file:/t/\x00"}, "files[1].d holds NUL or a lone surrogate"),
        ({"d": "file:/t/a"}, "files[1].d is the same as that of files[0]: 'file:/t/a'"),
        ({"z": -1}, "files[1].z is -1, less than 0"),
        ({"z": True}, "files[1].z is a boolean, not an integer"),
        ({"z": 1.0}, "files[1].z is a float, not an integer"),
        ({"z": 2**63}, "files[1].z is a number, not an integer"),
        ({"z": "1e3"}, "files[1].z is the string '1e3', not an integer"),
        ({"z": "٣"}, "files[1].z is the string '٣', not an integer"),
        ({"e": 7}, "files[1].e is a number, not a string"),
    ],
)
def test_wrong_file_entry_is_named(fields: dict[str, Any], reason: str) -> None:
    """The reason has the index of the entry, the field and what is wrong."""
    assert refused(with_file(**fields)) == reason


@pytest.mark.parametrize("etag", [None, "", ...])
def test_missing_etag_is_none(etag: object) -> None:
    """Null and empty etags mean that there is none."""
    assert decode(with_file(e=etag)).files[1].etag is None


@pytest.mark.parametrize(
    "fields, reason",
    [
        ({"files": None}, "files is null or missing, not a list"),
        ({"files": {}}, "files is an object, not a list"),
        ({"files": [None]}, "files[0] is null or missing, not an object"),
        ({"files": ["x"]}, "files[0] is the string 'x', not an object"),
        ({"type": None}, "type is null or missing"),
        ({"type": "x"}, "type is 'x', not 'org.apache"),
        ({"version": 5}, "version is not 1"),
        ({"version": None}, "version is not 1"),
        ({"version": True}, "version is not 1"),
        ({"version": 1.0}, "version is not 1"),
        ({"jobAttemptNumber": -1}, "jobAttemptNumber is -1"),
        ({"extraData": None}, "extraData is null"),
        ({"extraData": {"k": 1}}, "extraData.'k' is a number"),
        ({"taskAttemptDir": 1}, "taskAttemptDir is a number"),
        ({"directories": None}, "directories is null"),
        ({"directories": [3]}, "directories[0] is a number"),
        ({"directories": [{"d": 3}]}, "directories[0].d is a number"),
        ({"directories": [{"d": "x", "t": []}]}, "directories[0].t is a list"),
    ],
)
def test_wrong_field_is_named(fields: dict[str, Any], reason: str) -> None:
    """A field of a wrong type or value is refused by its name."""
    assert refused(GOOD | fields).startswith(reason)


@pytest.mark.parametrize("field", ["jobId", "taskID", "taskAttemptID"])
@pytest.mark.parametrize("value", [None, "", ".", "..", "a/b", "/a", "a\x00", "a\nb", 5, []])
def test_id_that_is_no_plain_name_is_refused(field: str, value: object) -> None:
    """Ids become names of files and directories, so they must not lead elsewhere."""
    assert refused(GOOD | {field: value}).startswith(field)


def test_version_may_be_quoted() -> None:
    """A quoted version is one, as for every number."""
    assert decode(GOOD | {"version": "1"}).job_id == "job_1"


@pytest.mark.parametrize(
    "entry, read",
    [
        ({}, DirEntry("", 0, 0)),
        ({"d": None, "t": "3", "l": None}, DirEntry("", DIR, 0)),
        ({"d": "file:/x", "t": 99, "l": 2}, DirEntry("file:/x", 0, 2)),
        ({"d": "file:/x", "t": -1}, DirEntry("file:/x", 0, 0)),
    ],
)
def test_directory_entry_is_read_with_tolerance(entry: dict[str, Any], read: DirEntry) -> None:
    """As in Hadoop a directory may lack everything, and an unknown status is unknown."""
    assert decode(GOOD | {"directories": [entry]}).directories == [read]


def test_wrong_statistics_do_not_matter() -> None:
    """Statistics are for people: nothing in them makes a manifest bad."""
    assert decode(GOOD | {"iostatistics": [1]}).statistics == Statistics()


@pytest.mark.parametrize(
    "data, reason",
    [
        (b"", "empty: "),
        (b"[]", "the content is a list"),
        (b"{", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b'{"jobId": "\\ud800"}', "not valid JSON"),
        (b"[" * 5000 + b"]" * 5000, "not valid JSON"),
        (b'{"version": ' + b"[" * 1000 + b"]" * 1000 + b"}", "version is not 1"),
    ],
)
def test_what_is_no_manifest_is_refused(data: bytes, reason: str) -> None:
    """Empty, cut, nested and foreign content has a reason of its own."""
    with pytest.raises(ManifestError) as caught:
        decode_manifest(data, "m")
    assert caught.value.reason.startswith(reason)


def test_text_that_looks_like_nul_takes_the_careful_way() -> None:
    r"""A backslash before ``u0000`` is no NUL, and the file is read all the same."""
    assert decode(with_file(e="\\u0000")).files[1].etag == "\\u0000"

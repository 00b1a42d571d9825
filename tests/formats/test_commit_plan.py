"""The chunks of a plan: round trips, and every row and field that is refused."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import ManifestError
from asynccommit.formats import commit_plan
from asynccommit.formats.commit_plan import KINDS, PlanChunk, decode_chunk, encode_chunk
from asynccommit.formats.fields import MAX_LONG

PATH = "/t/_temporary/job_1/00/commit-plan-p/00003.json"
CHUNK = PlanChunk(
    "p",
    3,
    directories=["day=1", "/elsewhere/day=2"],
    aside=[("day=1/old", "file", "0x1"), ("day=2", "directory", None)],
    replaced=[("day=3", "directory", None), ("/elsewhere/x", "other", "0x4")],
    units=["day=3", "day=4"],
    old=[("day=3/a", 4, "0x2"), ("day=3/b", 0, None)],
    files=[
        ("tasks/attempt_1/day=1/part-0", "day=1/part-0", 12, "0x3"),
        ("absolute/x/part-1", "/elsewhere/day=2/.hidden...", 0, None),
    ],
)
GOOD: dict[str, Any] = orjson.loads(encode_chunk(CHUNK))

names = st.text(st.characters(exclude_characters="\x00/"), min_size=1, max_size=6)
segments = names.filter(lambda text: text not in (".", ".."))
relative = st.lists(segments, min_size=1, max_size=4).map("/".join)
places = relative | relative.map(lambda path: f"/{path}")
sources = st.builds(str.__add__, st.sampled_from(["tasks/", "absolute/"]), relative)
sizes = st.integers(0, MAX_LONG)
etags = st.none() | st.text(min_size=1, max_size=6)
chunks = st.builds(
    PlanChunk,
    plan_id=st.from_regex(r"[a-z0-9-]{1,20}", fullmatch=True),
    index=st.integers(0, 10_000),
    directories=st.lists(places, max_size=3),
    aside=st.lists(st.tuples(places, st.sampled_from(sorted(KINDS)), etags), max_size=3),
    replaced=st.lists(st.tuples(places, st.sampled_from(sorted(KINDS)), etags), max_size=3),
    units=st.lists(places, max_size=3),
    old=st.lists(st.tuples(places, sizes, etags), max_size=3),
    files=st.lists(st.tuples(sources, places, sizes, etags), max_size=3),
)


def decode(value: Any) -> PlanChunk:
    """Read the chunk with this content."""
    return decode_chunk(json.dumps(value).encode(), PATH, "p", 3)


def refused(value: Any) -> str:
    """Return the reason why a chunk with this content is refused."""
    with pytest.raises(ManifestError) as caught:
        decode(value)
    assert caught.value.path == PATH
    return caught.value.reason


def is_text(chunk: PlanChunk) -> bool:
    """Whether no name holds the two halves of a character one after the other."""
    values = [getattr(chunk, name) for name in chunk.__slots__]
    return not re.search("[\ud800-\udbff][\udc00-\udfff]", json.dumps(values, ensure_ascii=False))


@given(chunks.filter(is_text))
def test_round_trip(chunk: PlanChunk) -> None:
    """What is written reads back, also names that are no UTF-8."""
    assert decode_chunk(encode_chunk(chunk), PATH, chunk.plan_id, chunk.index) == chunk


def test_the_written_form_is_plain() -> None:
    """Rows are arrays in one line, and text is raw."""
    data = encode_chunk(PlanChunk("p", 0, files=[("tasks/é", "日", 1, None)]))

    assert b"\n" not in data
    assert '"files":[["tasks/é","日",1,null]]'.encode() in data


@pytest.mark.parametrize("name", ["caf\udce9", "\udc80\udcff", "\ud800", "🚀\udcff", "\\ud800"])
def test_names_that_are_no_utf_8_are_kept(name: str) -> None:
    """A name with bytes that are no text is escaped and reads back."""
    files = [(f"tasks/{name}", f"d/{name}", 1, name)]
    chunk = PlanChunk("p", 0, [name], [], [], [], [], files)
    data = encode_chunk(chunk)

    assert b"\\ud" in data
    assert decode_chunk(data, PATH, "p", 0) == chunk


def test_an_empty_chunk_is_one() -> None:
    """A plan that changes nothing has a chunk without rows."""
    assert decode_chunk(encode_chunk(PlanChunk("p", 0)), PATH, "p", 0) == PlanChunk(
        "p", 0, [], [], [], [], [], []
    )


def test_readers_ignore_what_they_do_not_know() -> None:
    """A field of a later version changes nothing."""
    assert decode(GOOD | {"later": [1]}) == CHUNK


# --- what is refused -------------------------------------------------------------------------

BAD_PATHS = [
    *("", "/", "a//b", "a/", "//a", "a\0b"),
    *(".", "..", "a/.", "a/..", "./a", "../a", "a/../b", ".b/../c"),
]
BAD: dict[str, list[Any]] = {
    "s": [*BAD_PATHS, "/tasks/a", "tasks/", "tasks/../x", 1, None, []],
    "d": [*BAD_PATHS, "/..", "/a/", "///", "//", "/.", "/a/./b", 1, None, True, {}, ["a"]],
    "size": [-1, MAX_LONG + 1, 2**70, 1.0, True, "1", None, []],
    "etag": ["", 1, False, [], {}],
    "kind": ["", "link", 1, None, [], "File"],
}
COLUMNS = {
    "aside": ("d", "kind", "etag"),
    "replaced": ("d", "kind", "etag"),
    "old": ("d", "size", "etag"),
    "files": ("s", "d", "size", "etag"),
}
CASES = [
    (table, column, value)
    for table, columns in COLUMNS.items()
    for column in columns
    for value in BAD[column]
]


@pytest.mark.rotate("value", keep=2)
@pytest.mark.parametrize("table,column,value", CASES)
def test_a_damaged_field_is_named(table: str, column: str, value: Any) -> None:
    """A field that is not what it must be is named with its row, in reading and in writing."""
    row = list(GOOD[table][1])
    row[COLUMNS[table].index(column)] = value

    reason = refused(GOOD | {table: [GOOD[table][0], row]})

    assert reason.startswith(f"{table}[1].{column} is ")
    written: Any = {name: getattr(CHUNK, name) for name in CHUNK.__slots__}
    written[table] = [written[table][0], tuple(row)]
    with pytest.raises(ManifestError, match=rf"commit-plan-p/00003\.json: {table}\[1\]\.{column}"):
        encode_chunk(PlanChunk(**written))


@pytest.mark.parametrize("table", ["directories", "units"])
@pytest.mark.parametrize("value", BAD["d"])
def test_a_damaged_place_is_named(table: str, value: Any) -> None:
    """Places without anything else are checked like others."""
    assert refused(GOOD | {table: ["fine", value]}).startswith(f"{table}[1] is ")


@pytest.mark.parametrize("table", COLUMNS)
@pytest.mark.parametrize("row", [[], None, "abcd", {}, 1, ["a"], ["a"] * 5])
def test_what_is_no_row_is_named(table: str, row: Any) -> None:
    """A row of another length or kind is named."""
    width = len(COLUMNS[table])

    reason = refused(GOOD | {table: [GOOD[table][0], row]})

    assert reason == f"{table}[1] is not a row of {width} fields"


@pytest.mark.parametrize("table", ["directories", "aside", "replaced", "units", "old", "files"])
@pytest.mark.parametrize("value", [..., None, {}, "x", 1])
def test_a_table_must_be_there(table: str, value: Any) -> None:
    """A table that is missing or no list is refused: a plan is never shorter than it was."""
    changed = GOOD | {table: value}
    if value is ...:
        del changed[table]

    assert refused(changed).startswith(f"{table} is ")


@pytest.mark.parametrize(
    "key,value,reason",
    [
        ("type", "asynccommit.CommitPlan/2", "type is 'asynccommit.CommitPlan/2', not "),
        ("type", 1, "type is a number, not a string"),
        ("plan", "q", "plan is 'q', not 'p'"),
        ("plan", "../p", "plan is '../p', not a plain name"),
        ("index", 4, "index is 4, not 3"),
        ("index", "3", "index is the string '3', not an integer"),
        ("index", -3, "index is less than 0"),
    ],
)
def test_a_chunk_of_another_plan_is_refused(key: str, value: Any, reason: str) -> None:
    """A chunk says which one it is, and no other takes its place."""
    assert refused(GOOD | {key: value}).startswith(reason)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"\xff", b"[" * 100_000 + b'"\\ud800"', b'{"a":"\\ud800","b":NaN}']
)
def test_what_is_no_chunk_is_refused(data: bytes) -> None:
    """Content that is cut, no JSON, or nested without end is refused as such."""
    with pytest.raises(ManifestError, match=PATH):
        decode_chunk(data, PATH, "p", 3)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_manifest_error(data: bytes) -> None:
    """Bytes that are no chunk are refused in no other way."""
    with pytest.raises(ManifestError):
        decode_chunk(data, PATH, "p", 3)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@given(st.sampled_from(sorted(GOOD)), json_values)
def test_any_value_of_a_field_is_read_or_named(key: str, value: Any) -> None:
    """Whatever is in a field, it is read or refused with its name."""
    try:
        decode(GOOD | {key: value})
    except ManifestError as error:
        reason = error.reason
    else:
        return
    assert reason.startswith((key, "not valid JSON"))


def test_a_chunk_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is larger than a reader asks for is neither written nor read."""
    data = encode_chunk(CHUNK)
    monkeypatch.setattr(commit_plan, "MAX_CHUNK_BYTES", len(data) - 1)

    with pytest.raises(ManifestError, match="more than"):
        encode_chunk(CHUNK)
    with pytest.raises(ManifestError, match="more than"):
        decode_chunk(data, PATH, "p", 3)


def test_two_halves_of_a_character_are_not_written() -> None:
    """A name that would read back as another one is refused; no filesystem has such names."""
    with pytest.raises(ManifestError, match="surrogate pair"):
        encode_chunk(PlanChunk("p", 0, ["\ud83d\ude80"]))

"""The plan of a commit of uploads: round trips, and the row and field of all that is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import ManifestError
from asynccommit.formats import upload_plan
from asynccommit.formats.fields import MAX_LONG
from asynccommit.formats.pending import MAX_PARTS
from asynccommit.formats.upload_plan import (
    OldRow,
    TaskRow,
    UploadChunk,
    UploadRow,
    decode_upload_chunk,
    encode_upload_chunk,
)
from asynccommit.stores.parts import Part

PATH = "/t/__magic_job-1/job-1/00/commit-plan-p-00000.json"
CHUNK = UploadChunk(
    "p",
    0,
    tasks=[TaskRow("task_1", "attempt_1"), TaskRow("task_2", "")],
    aside=[OldRow("_SUCCESS", 0, None), OldRow("p=1/a", 3, "etag")],
    old=[OldRow("p=1/old", 5, "etag")],
    uploads=[UploadRow("p=1/a", "u1", 7, (Part('"e1"', "CRC32C", "AA=="), Part('"e2"')), "t-1")],
)
GOOD: dict[str, Any] = orjson.loads(encode_upload_chunk(CHUNK))

sizes = st.integers(0, MAX_LONG)
segments = st.text("ab. é", min_size=1, max_size=4).filter(lambda text: text not in (".", ".."))
places = st.lists(segments, min_size=1, max_size=3).map("/".join)
ids = st.from_regex(r"[a-z0-9_é日.-]{1,12}", fullmatch=True).filter(
    lambda text: text not in (".", "..")
)
parts = st.builds(lambda etag: Part(etag), ids) | st.builds(Part, ids, ids, ids)
olds = st.lists(st.builds(OldRow, places, sizes, st.none() | ids), max_size=3)
chunks = st.builds(
    UploadChunk,
    plan_id=ids,
    index=st.integers(0, 99_999),
    tasks=st.lists(st.builds(TaskRow, ids, st.just("") | ids), max_size=3),
    aside=olds,
    old=olds,
    uploads=st.lists(
        st.builds(
            UploadRow,
            places,
            ids,
            sizes,
            st.lists(parts, min_size=1).map(tuple),
            st.from_regex(r"[0-9a-f-]{0,36}", fullmatch=True),
        ),
        max_size=3,
    ),
)


def refused(value: Any) -> str:
    """Return the reason why a chunk with this content is refused."""
    with pytest.raises(ManifestError) as caught:
        decode_upload_chunk(json.dumps(value).encode(), PATH, "p", 0)
    assert caught.value.path == PATH
    return caught.value.reason


@given(chunks, st.booleans())
def test_round_trip(chunk: UploadChunk, checked: bool) -> None:
    """What is written reads back, whether or not it was checked when it was written."""
    data = encode_upload_chunk(chunk, uploads_checked=checked)

    assert decode_upload_chunk(data, PATH, chunk.plan_id, chunk.index) == chunk


def test_format() -> None:
    """The JSON is what the module says; a part without a checksum is its etag."""
    assert GOOD == {
        "type": "asynccommit.UploadPlan/1",
        "plan": "p",
        "index": 0,
        "tasks": [["task_1", "attempt_1"], ["task_2", ""]],
        "aside": [["_SUCCESS", 0, None], ["p=1/a", 3, "etag"]],
        "old": [["p=1/old", 5, "etag"]],
        "uploads": [["p=1/a", "u1", 7, [['"e1"', "CRC32C", "AA=="], '"e2"'], "t-1"]],
    }


def test_readers_ignore_what_they_do_not_know() -> None:
    """A field of a later version changes nothing."""
    assert decode_upload_chunk(orjson.dumps(GOOD | {"later": [1]}), PATH, "p", 0) == CHUNK


@pytest.mark.rotate("value", keep=2)
@pytest.mark.parametrize("key", list(GOOD))
@pytest.mark.parametrize("value", [..., None, 1.5, [[]], -1, {"": 1}, "a\0b", ["a"]])
def test_a_damaged_field_is_named(key: str, value: Any) -> None:
    """A field that is missing or of another type is refused by its name."""
    changed = GOOD | {key: value}
    if value is ...:
        del changed[key]

    assert refused(changed).startswith(key)


LONG = ["e"] * (MAX_PARTS + 1)
BAD_PARTS: list[Any] = [
    *([], None, "e", {}, [""], [1], [None], ["e\n"], [{}], [[]], [["e"]], LONG),
    *([["e", "A"]], [["e", "A", ""]], [["", "A", "x"]], [["e", "A", 1]]),
    [["e", "A", "x", "y"]],
]


@pytest.mark.parametrize(
    "key,row,reason",
    [
        *(
            ("uploads", [place, "u", 1, ["e"], ""], "uploads[1].place is ")
            for place in ("", "/a", "a/", "a//b", "../a", "a/./b", "a\0b", 1, None, ["a"])
        ),
        (
            "uploads",
            ["a", "", 1, ["e"], ""],
            "uploads[1].id is the string '', not the id of an up",
        ),
        (
            "uploads",
            ["a", "u\n", 1, ["e"], ""],
            "uploads[1].id is the string 'u\\n', not the id o",
        ),
        ("uploads", ["a", 5, 1, ["e"], ""], "uploads[1].id is a number, not the id of an upload"),
        ("uploads", ["a", "u", -1, ["e"], ""], "uploads[1].size is a number, not a size"),
        ("uploads", ["a", "u", 2**63, ["e"], ""], "uploads[1].size is a number, not a size"),
        ("uploads", ["a", "u", True, ["e"], ""], "uploads[1].size is a boolean, not a size"),
        *(("uploads", ["a", "u", 1, parts, ""], "uploads[1].parts is ") for parts in BAD_PARTS),
        *(
            ("uploads", ["a", "u", 1, ["e"], token], "uploads[1].token is ")
            for token in (None, 1, " ", "a b", "a\n", "a" * 65, ["a"])
        ),
        ("uploads", ["a", "u", 1], "uploads[1] is not a row of 5 fields"),
        ("uploads", "abcd", "uploads[1] is not a row of 5 fields"),
        ("old", ["a", 1], "old[1] is not a row of 3 fields"),
        ("old", ["../a", 1, "e"], "old[1].place is the string '../a', not a plain path"),
        ("old", ["a", "1", "e"], "old[1].size is the string '1', not a size"),
        ("old", ["a", 1, ""], "old[1].etag is the string '', not an etag or null"),
        ("aside", ["a", 1.0, None], "aside[2].size is a float, not a size"),
        ("tasks", ["../t", "a"], "tasks[2].task is the string '../t', not a plain name"),
        ("tasks", ["", "a"], "tasks[2].task is the string '', not a plain name"),
        ("tasks", ["..", "a"], "tasks[2].task is the string '..', not a plain name"),
        ("tasks", ["t", "a/b"], "tasks[2].attempt is the string 'a/b', not a plain name or em"),
        ("tasks", ["t", None], "tasks[2].attempt is null or missing, not a plain name or empty"),
    ],
)
def test_a_wrong_row_is_named(key: str, row: Any, reason: str) -> None:
    """Whatever is wrong in a table, the message names the row and the field."""
    assert refused(GOOD | {key: [*GOOD[key], row]}).startswith(reason)


@pytest.mark.parametrize(
    "plan_id,index,reason",
    [("q", 0, "plan is 'p', not 'q'"), ("p", 1, "index is 0, not 1")],
)
def test_the_chunk_of_another_plan(plan_id: str, index: int, reason: str) -> None:
    """A chunk belongs to one plan, at one place."""
    with pytest.raises(ManifestError) as caught:
        decode_upload_chunk(orjson.dumps(GOOD), PATH, plan_id, index)
    assert caught.value.reason == reason


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"[" * 5000, b"\xff"])
def test_hostile_files(data: bytes) -> None:
    """What is no chunk at all is a named error."""
    with pytest.raises(ManifestError):
        decode_upload_chunk(data, PATH, "p", 0)


def test_a_chunk_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk of more bytes than a reader would ask for is neither read nor written."""
    data = encode_upload_chunk(CHUNK)
    monkeypatch.setattr(upload_plan, "MAX_CHUNK_BYTES", len(data) - 1)

    with pytest.raises(ManifestError, match="more than"):
        decode_upload_chunk(data, PATH, "p", 0)
    with pytest.raises(ManifestError, match="more than"):
        encode_upload_chunk(CHUNK)


@pytest.mark.parametrize(
    "change,reason",
    [
        ({"plan_id": "a/b"}, "plan is 'a/b'"),
        ({"old": [OldRow("/a", 1, None)]}, "old[0].place is the string '/a'"),
        ({"uploads": [UploadRow("a", "u", 1, ())]}, "uploads[0].parts is a list"),
        ({"uploads": [UploadRow("a\ud800", "u", 1, (Part("e"),))]}, "uploads[0].place is "),
    ],
)
def test_what_could_not_be_read_is_not_written(change: dict[str, Any], reason: str) -> None:
    """A writer hears of a mistake at once, not who resumes."""
    with pytest.raises(ManifestError) as caught:
        encode_upload_chunk(replace(CHUNK, **change))
    assert caught.value.reason.startswith(reason)

"""The course of a commit as a text in ``_SUCCESS``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import ManifestError
from asynccommit.formats.course import MAX_ITEMS, Course, decode_course, encode_course
from asynccommit.results import Partition, StageTime, Timeline

COURSE = Course(
    "abfs://lake@account/t",
    Timeline(
        1_700_000_000_000,
        (StageTime("job_stage_rename_files", 0.25, 1.5),),
        0.1,
        (10, 0, 5),
        (1, 0, 0),
        (100.0, 100.0, 50.5),
        {"rename": ((0.01, 9), (0.02, 6))},
        (Partition("day=1", 2, 300),),
        1,
    ),
    files=2,
    bytes=300,
    tasks=1,
    seconds=2.0,
    requests={"rename": 15},
    sent=15,
    refused=1,
    recovered={"rename": 1},
    waited={"rate": 0.5},
)


def test_course_is_read_as_it_was_written() -> None:
    """The text holds all of a course."""
    assert decode_course(encode_course(COURSE, 600), "f") == COURSE


def test_buckets_are_merged_to_the_number_that_is_asked_for() -> None:
    """A marker has fewer points in time; their sum is the same."""
    long = Course("file:/t", Timeline(1, width=0.1, sent=(1,) * 599, refused=(0,) * 599))

    found = decode_course(encode_course(long, 100), "f").timeline

    assert len(found.sent) == 100
    assert sum(found.sent) == 599
    assert found.width == pytest.approx(0.6)


HOSTILE: list[tuple[str, Any]] = [
    ("files", -1),
    ("files", 10**30),
    ("seconds", "1"),
    ("seconds", float("nan")),
    ("dest", 7),
    ("dest", "x" * 5000),
    ("version", 2),
    ("requests", {"rename": 1.5}),
    ("timeline", []),
]


@pytest.mark.parametrize("name,value", HOSTILE)
def test_hostile_value_is_refused(name: str, value: Any) -> None:
    """A value that is not of its kind, or out of bounds, is an error that names the file."""
    fields = json.loads(encode_course(COURSE, 600)) | {name: value}

    with pytest.raises(ManifestError, match="_SUCCESS"):
        decode_course(json.dumps(fields), "_SUCCESS")


def test_long_lists_are_cut() -> None:
    """No more of a list is read than the package writes."""
    fields = json.loads(encode_course(COURSE, 600))
    fields["timeline"]["sent"] = [1] * 100_000

    assert len(decode_course(json.dumps(fields), "f").timeline.sent) == MAX_ITEMS


@given(st.text(max_size=200))
def test_any_text_is_a_course_or_an_error(text: str) -> None:
    """No text raises anything but ``ManifestError``."""
    with pytest.raises(ManifestError):
        decode_course(text, "f")

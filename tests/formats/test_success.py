"""The ``_SUCCESS`` marker and the job summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import ManifestError
from asynccommit.formats.statistics import Statistics
from asynccommit.formats.success import (
    COMMITTER,
    MAX_FILENAMES,
    NAME,
    SuccessData,
    decode_success,
    encode_success,
)

SAMPLES = Path(__file__).parent.parent / "fixtures" / "hadoop_manifest"
REPORTS = sorted([*SAMPLES.glob("_SUCCESS_*.json"), *SAMPLES.glob("summary_*.json")])

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=10)
optional = st.none() | texts.filter(bool)
successes = st.builds(
    SuccessData,
    timestamp_ms=st.integers(0, 253_402_300_799_999),
    success=st.booleans(),
    hostname=texts,
    committer=texts,
    job_id=texts,
    job_id_source=texts,
    description=optional,
    metrics=st.dictionaries(texts, st.integers(0, 2**63 - 1), max_size=2),
    diagnostics=st.dictionaries(texts, texts, max_size=2),
    filenames=st.lists(texts, max_size=3),
    statistics=st.just(Statistics(counters={"op_rename": 2}, minimums={"op_rename.min": 0})),
    state=optional,
    stage=optional,
)


def job(**fields: Any) -> SuccessData:
    """Return a job's result with these fields."""
    return SuccessData(0, True, "host", COMMITTER, "job_1", "JobID", **fields)


@pytest.mark.parametrize("sample", REPORTS, ids=lambda path: path.stem)
def test_samples_of_hadoop_load(sample: Path) -> None:
    """Every marker and summary that Hadoop wrote is read, and written alike but for the date."""
    value = json.loads(sample.read_bytes())
    data = decode_success(sample.read_bytes(), str(sample))
    written = json.loads(encode_success(data))
    assert list(written) == list(value)
    assert written | {"date": ""} == value | {"date": ""}
    assert written["date"][:16] == value["date"][:16], "Hadoop looks at the clock twice"
    assert data.committer == COMMITTER


@given(successes, st.booleans())
def test_round_trip(data: SuccessData, full: bool) -> None:
    """What is written reads back."""
    assert decode_success(encode_success(data, full=full), "s") == data


@pytest.mark.parametrize(
    "millis, date",
    [
        (0, "1970-01-01T00:00:00.000Z[Etc/UTC]"),
        (1795224154772, "2026-11-21T01:22:34.772Z[Etc/UTC]"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z[Etc/UTC]"),
    ],
)
def test_date_is_that_of_java(millis: int, date: str) -> None:
    """The date is Java's text of a zoned time, in UTC."""
    assert SuccessData(millis, True, "", "", "", "").date == date


def test_fields_without_a_value_are_left_out() -> None:
    """Hadoop writes no nulls."""
    written = json.loads(encode_success(job()))
    assert not {"description", "state", "stage"} & set(written)
    assert (
        list(json.loads(encode_success(job(stage="s", description="d", state="x"))))[-1] == "stage"
    )


def test_file_names_are_limited() -> None:
    """The marker stays small however many files there are."""
    names = [f"file:/{i}" for i in range(MAX_FILENAMES + 1)]
    written = json.loads(encode_success(job(filenames=names)))
    assert written["filenames"] == names[:MAX_FILENAMES]


def test_encode_refuses_what_is_no_unicode() -> None:
    """A lone surrogate is a named error rather than one of the JSON library."""
    with pytest.raises(ManifestError, match="cannot be written"):
        encode_success(job(diagnostics={"exception": "\ud800"}))


def test_empty_marker_is_that_of_a_classic_committer() -> None:
    """The error says what left it."""
    with pytest.raises(ManifestError, match="classic committer"):
        decode_success(b"", "s")


def test_name_alone_is_enough() -> None:
    """Like Hadoop the reader asks for the name only; success is true when missing."""
    data = decode_success(orjson.dumps({"name": NAME, "later": [1]}), "s")
    assert data == SuccessData(0, True, "", "", "", "", filenames=[])


@pytest.mark.parametrize(
    "fields, reason",
    [
        ({"name": None}, "name is null or missing"),
        ({"name": "x"}, "name is 'x', not"),
        ({"success": "true"}, "success is the string 'true'"),
        ({"timestamp": -1}, "timestamp is -1"),
        ({"timestamp": 2**62}, "timestamp is 4611686018427387904, later"),
        ({"hostname": []}, "hostname is a list"),
        ({"metrics": {"m": 1.5}}, "metrics.'m' is not an integer"),
        ({"metrics": 3}, "metrics is a number"),
        ({"diagnostics": {"d": None}}, "diagnostics.'d' is null"),
        ({"filenames": [1]}, "filenames[0] is not a string"),
        ({"filenames": "x"}, "filenames is the string 'x'"),
    ],
)
def test_wrong_field_is_named(fields: dict[str, Any], reason: str) -> None:
    """A field of a wrong type or value is refused by its name."""
    with pytest.raises(ManifestError) as caught:
        decode_success(orjson.dumps({"name": NAME} | fields), "s")
    assert caught.value.reason.startswith(reason)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_manifest_error(data: bytes) -> None:
    """Bytes that are no marker are refused as such and in no other way."""
    with pytest.raises(ManifestError):
        decode_success(data, "s")


json_values: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | texts
)
json_values |= st.lists(json_values, max_size=2) | st.dictionaries(texts, json_values, max_size=2)
FIELDS = list(json.loads(encode_success(job(description="d", state="s", stage="t"))))[1:]


@given(st.dictionaries(st.sampled_from(FIELDS), json_values))
def test_any_values_give_a_result_or_a_manifest_error(fields: dict[str, Any]) -> None:
    """Fields of any type are read or refused, and what is read can be written."""
    try:
        data = decode_success(orjson.dumps({"name": NAME} | fields), "s")
    except ManifestError:
        return
    assert decode_success(encode_success(data), "s") == data

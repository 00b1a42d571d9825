"""The pending uploads of a task: samples, round trips, and what is refused of a whole set."""

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
from asynccommit.formats import pending_set
from asynccommit.formats.pending import PendingCommit
from asynccommit.formats.pending_set import PendingSet, decode_pending_set, encode_pending_set
from asynccommit.formats.statistics import Statistics
from asynccommit.options.uploads import EtagForm
from asynccommit.stores.parts import Part

FIXTURES = Path(__file__).parent.parent / "fixtures"
PATH = "/t/__magic_job-1/job-1/00/task_1.pendingset"


def commit(key: str, **fields: Any) -> PendingCommit:
    """Return a pending commit of one part."""
    return PendingCommit(
        "b", key, "u", (Part('"e"', "CRC32", "A=="),), 3, f"s3a://b/{key}", **fields
    )


SET = PendingSet("job-1", (commit("out/a", task_id="a"), commit("out/b")))
GOOD: dict[str, Any] = orjson.loads(encode_pending_set(SET))

counts = st.dictionaries(st.sampled_from(["x", "y"]), st.integers(1, 2**62), max_size=2)
sets = st.builds(
    PendingSet,
    job_id=st.text("abc-", max_size=5),
    commits=st.lists(
        st.builds(commit, st.text("ab", min_size=1, max_size=4), job_id=st.text("xy")),
        max_size=4,
        unique_by=lambda one: one.key,
    ).map(tuple),
    statistics=st.builds(Statistics, counters=counts),
)


def refused(value: Any) -> str:
    """Return the reason why a file with this content is refused."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(ManifestError) as caught:
        decode_pending_set(data, PATH)
    assert caught.value.path == PATH
    return caught.value.reason


@pytest.mark.parametrize("form", EtagForm)
def test_samples_of_hadoop_load(form: EtagForm) -> None:
    """A set as each release writes it has all its values, and is written alike."""
    folder = FIXTURES / f"s3a_v2_{form.value.removesuffix('s')}_etags"
    data = (folder / "task_202401010000_0001_m_000000.pendingset").read_bytes()
    found = decode_pending_set(data, PATH)

    assert [len(one.parts) for one in found.commits] == [2]
    assert found.job_id == found.commits[0].job_id == "0b0a7b3e-job-uuid"
    assert found.commits[0].task_id == "attempt_202401010000_0001_m_000000_0"
    assert found.statistics.counters == {"object_multipart_initiated": 1}
    assert orjson.loads(encode_pending_set(found, form))["commits"] == orjson.loads(data)["commits"]


@given(sets)
def test_round_trip(pending: PendingSet) -> None:
    """What is written reads back."""
    assert decode_pending_set(encode_pending_set(pending), PATH) == pending


def test_round_trip_with_strings() -> None:
    """The form of the etags is the writer's choice here too, for all commits."""
    bare = replace(SET, commits=tuple(replace(one, parts=(Part('"e"'),)) for one in SET.commits))

    assert decode_pending_set(encode_pending_set(SET, EtagForm.STRINGS), PATH) == bare


@pytest.mark.parametrize("value", [{}, {"commits": []}, {"version": 3, "jobId": None}])
def test_a_set_without_files(value: dict[str, Any]) -> None:
    """A task without files has a set without commits."""
    assert decode_pending_set(orjson.dumps(value), PATH) == PendingSet("")


@pytest.mark.parametrize(
    "change,reason",
    [
        ({"version": 2}, "version is 2, not 3: another release wrote it"),
        ({"version": 2**70}, "version is a float, not an integer"),
        ({"commits": {}}, "commits is an object, not a list"),
        ({"commits": None}, "commits is null or missing, not a list"),
        ({"commits": [None]}, "commits[0] is null or missing, not an object"),
        ({"commits": [GOOD["commits"][0]] * 2}, "commits[1].destinationKey is 'out/a', as in com"),
        ({"commits": [GOOD["commits"][0] | {"version": 1}]}, "commits[0].version is 1, not 2"),
        ({"commits": [GOOD["commits"][0] | {"etags": []}]}, "commits[0].etags is empty"),
        (
            {"commits": [GOOD["commits"][0] | {"etags": [{"etag": 5}]}]},
            "commits[0].etags[0] is an object, not an etag",
        ),
        ({"jobId": 5}, "jobId is a number, not a string"),
    ],
)
def test_a_wrong_field_says_why(change: dict[str, Any], reason: str) -> None:
    """Each rule names the commit, the field and what it found."""
    assert refused(GOOD | change).startswith(reason)


def test_statistics_cannot_fail_a_commit() -> None:
    """Numbers for people that are none are left out."""
    data = orjson.dumps(GOOD | {"iostatistics": {"counters": {"a": "x", "b": 2}, "gauges": 7}})

    assert decode_pending_set(data, PATH).statistics == Statistics(counters={"b": 2})


def test_a_set_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set of more bytes than a reader would ask for is neither read nor written."""
    data = encode_pending_set(SET)
    monkeypatch.setattr(pending_set, "MAX_PENDING_SET_BYTES", len(data) - 1)

    assert refused(data) == f"holds {len(data)} bytes, more than {len(data) - 1}"
    with pytest.raises(ManifestError, match="more than"):
        encode_pending_set(SET)


def test_the_same_key_twice_is_not_written() -> None:
    """A task that wrote one file twice hears of it, not the job."""
    with pytest.raises(ManifestError, match=r"commits\[1\]\.destinationKey is 'out/a'"):
        encode_pending_set(PendingSet("job-1", (commit("out/a"), commit("out/a"))))


def test_a_uri_that_hadoop_could_not_read_is_not_written() -> None:
    """A set is checked as its commits are."""
    with pytest.raises(ManifestError, match="uri cannot be written"):
        encode_pending_set(PendingSet("", (replace(commit("k"), uri="s3a://b/a b"),)))

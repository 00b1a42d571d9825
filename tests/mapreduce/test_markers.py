"""The markers of an application master: Hadoop's table of them, and what ours say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import ManifestError
from asynccommit.formats.commit_record import Owner
from asynccommit.mapreduce.markers import (
    Action,
    CommitVerdict,
    End,
    Markers,
    MarkerState,
    Start,
    decode_end,
    decode_start,
    encode_end,
    encode_start,
    epoch_of_sign,
    epoch_of_start,
    judge,
    later_start,
    sign_of_life,
    start_up,
)

JOB = "job_1700000000000_0007"
OWNER = Owner("owner-1", "node-3", "alice", "17.boot")
START = Start(JOB, 2, OWNER, 60.0, 1_795_000_000_000, True)
END = End(JOB, 2, OWNER, 1_795_000_000_000, "sha256:00", "")
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)

# staging, started, success, fail, repeatable; None is whatever.
TABLE = (
    ((False, None, None, None, None), Action.ERROR),
    ((True, False, None, None, None), Action.RUN),
    ((True, True, True, None, None), Action.SUCCEEDED),
    ((True, True, False, True, None), Action.FAILED),
    ((True, True, False, False, True), Action.REPEAT),
    ((True, True, False, False, False), Action.ERROR),
)


@pytest.mark.parametrize("case", list(product([False, True], repeat=5)), ids=str)
def test_the_table_of_a_start_up(case: tuple[bool, ...]) -> None:
    """Scenario 49: every state there is falls into one row of the table, and is answered by it."""
    rows = [
        action
        for row, action in TABLE
        if all(wanted in (None, given) for wanted, given in zip(row, case, strict=True))
    ]

    assert rows == [start_up(Markers(*case[:4]), repeatable=case[4])]


def test_what_an_action_means() -> None:
    """A job is run, or its end is reported; all but the plain run are the last attempt."""
    assert [action for action in Action if action.runs] == [Action.RUN, Action.REPEAT]
    assert [action for action in Action if not action.is_last] == [Action.RUN]


# --- what ours say ------------------------------------------------------------------------------


@given(texts, st.integers(1, 999_999), st.floats(0.001, 1e9), st.integers(0, 10**14), st.booleans())
def test_a_start_and_back(
    owner: str, epoch: int, lease: float, started: int, repeatable: bool
) -> None:
    """What a start says is read again."""
    start = Start(JOB, epoch, Owner(owner, "h", "u"), lease, started, repeatable)

    assert decode_start(encode_start(start), "x") == start


@given(st.integers(1, 999_999), texts, texts)
def test_an_end_and_back(epoch: int, digest: str, error: str) -> None:
    """What an end says is read again."""
    end = End(JOB, epoch, OWNER, 5, digest, error)

    assert decode_end(encode_end(end), "x") == end


def test_an_end_can_say_any_error() -> None:
    """An error is cut and made writable: a failed commit can always be told."""
    end = decode_end(encode_end(replace(END, error="\0\ud800" + "x" * 20_000)), "x")

    assert end is not None
    assert end.error.startswith("\\0\\ud800xxx")
    assert len(end.error) < 10_100


@pytest.mark.parametrize("data", [b"", b"\0\0\0"])
def test_an_empty_marker_is_hadoops(data: bytes) -> None:
    """What holds nothing was written by Hadoop, or by ours before a power cut."""
    assert decode_start(data, "x") is None
    assert decode_end(data, "x") is None


@pytest.mark.parametrize(
    "damage, text",
    [
        (lambda data: data[:50], "JSON"),
        (lambda data: b"[]", "not an object"),
        (lambda data: data.replace(b"/1", b"/2"), "type"),
        (lambda data: data.replace(b'"epoch": 2', b'"epoch": 0'), "epoch"),
        (lambda data: data.replace(b'"epoch": 2', b'"epoch": 1000000'), "epoch"),
        (lambda data: data.replace(JOB.encode(), b"../x"), "jobId"),
        (lambda data: data.replace(b'"id": "owner-1"', b'"id": ""'), r"owner\.id"),
        (lambda data: data.replace(b"1795000000000", b"-1"), "less than 0"),
    ],
)
def test_a_damaged_marker(damage: Callable[[bytes], bytes], text: str) -> None:
    """What is neither Hadoop's nor ours is refused, and the file is named."""
    with pytest.raises(ManifestError, match=f"^/s/COMMIT_STARTED: .*{text}"):
        decode_start(damage(encode_start(START)), "/s/COMMIT_STARTED")
    with pytest.raises(ManifestError, match=f"^/s/COMMIT_FAIL: .*{text}"):
        decode_end(damage(encode_end(END)), "/s/COMMIT_FAIL")


def test_names_and_back() -> None:
    """The names of later starts and heartbeats tell their epoch; no other name does."""
    assert (later_start(2), sign_of_life(2, 31)) == (
        "COMMIT_STARTED.000002",
        "COMMIT_ALIVE.000002.000031",
    )
    assert epoch_of_start(later_start(17)) == epoch_of_sign(sign_of_life(17, 1)) == 17
    for name in ("COMMIT_STARTED", "COMMIT_STARTED.17", "COMMIT_STARTED.000017.id", "job.xml"):
        assert epoch_of_start(name) == epoch_of_sign(name) == 0


# --- what ours do with them ----------------------------------------------------------------------


def standing(**known: bool) -> MarkerState:
    """Return the standing of a commit that ``START`` has begun."""
    return MarkerState(Markers(started=True, **known), START, epoch=2)


CASES: tuple[tuple[MarkerState, dict[str, object], CommitVerdict], ...] = (
    (MarkerState(Markers(staging=False)), {}, CommitVerdict.MISSING),
    (MarkerState(Markers()), {}, CommitVerdict.BEGIN),
    (MarkerState(Markers(), epoch=2), {}, CommitVerdict.BEGIN),
    (MarkerState(Markers(), epoch=3), {}, CommitVerdict.LATER),
    (MarkerState(Markers(success=True)), {}, CommitVerdict.STRAY),
    (MarkerState(Markers(fail=True)), {}, CommitVerdict.STRAY),
    (standing(success=True), {}, CommitVerdict.COMMITTED),
    (standing(success=True, fail=True), {}, CommitVerdict.COMMITTED),
    (standing(fail=True), {}, CommitVerdict.FAILED),
    (replace(standing(fail=True), fail=END), {}, CommitVerdict.FAILED),
    (replace(standing(fail=True), fail=replace(END, epoch=1)), {}, CommitVerdict.OWNED),
    (standing(), {"owner_id": "owner-1"}, CommitVerdict.GO_ON),
    (standing(), {}, CommitVerdict.OWNED),
    (standing(), {"epoch": 2, "expired": True}, CommitVerdict.LATER),
    (standing(), {"epoch": 1, "expired": True}, CommitVerdict.LATER),
    (standing(), {"expired": True}, CommitVerdict.TAKE_OVER),
    (standing(), {"expired": True, "repeatable": False}, CommitVerdict.UNREPEATABLE),
    (replace(standing(), start=replace(START, repeatable=False)), {"expired": True},
     CommitVerdict.UNREPEATABLE),
    (MarkerState(Markers(started=True)), {"expired": True}, CommitVerdict.OWNED),
    (MarkerState(Markers(started=True, fail=True)), {}, CommitVerdict.FAILED),
)  # fmt: skip


@pytest.mark.parametrize("there, asked, verdict", CASES)
def test_who_may_commit(
    there: MarkerState, asked: dict[str, object], verdict: CommitVerdict
) -> None:
    """Nobody begins what another has, and only what may be repeated changes hands."""
    known = {"owner_id": "me", "epoch": 3, "repeatable": True, "expired": False, **asked}

    assert judge(there, **known) is verdict  # type: ignore[arg-type]


@given(
    st.builds(Markers, st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    st.sampled_from([None, START, replace(START, repeatable=False)]),
    st.sampled_from([None, END, replace(END, epoch=1)]),
    *[st.booleans()] * 2,
    st.integers(1, 4),
)
def test_nobody_commits_twice(
    markers: Markers, start: Start | None, fail: End | None, again: bool, expired: bool, epoch: int
) -> None:
    """A start that is there is gone past by its owner, or by a later one of a repeatable commit."""
    there = MarkerState(markers, start if markers.started else None, fail=fail, epoch=2)
    verdict = judge(there, "me", epoch, repeatable=again, expired=expired)

    assert verdict is not CommitVerdict.GO_ON
    if verdict is CommitVerdict.BEGIN:
        assert markers == Markers()
    if verdict is CommitVerdict.TAKE_OVER:
        assert start is not None
        assert (again, start.repeatable, expired, epoch > 2) == (True,) * 4
        assert start_up(markers, repeatable=True) in (Action.REPEAT, Action.FAILED)
    if start_up(markers, repeatable=again) is Action.SUCCEEDED:
        assert verdict is CommitVerdict.COMMITTED

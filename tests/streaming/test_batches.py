"""Batch numbers of a sink log: names, compaction, what is read, what expires."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.streaming.batches import (
    MAX_BATCH,
    batch_of,
    before_compaction,
    derive_interval,
    expired_below,
    file_name,
    is_compaction,
    is_strange,
    to_read,
)

intervals = st.integers(1, 12)
batches = st.integers(0, 200)


@pytest.mark.parametrize(
    "name,batch,strange",
    [
        ("0", (0, False), False),
        ("12", (12, False), False),
        ("9.compact", (9, True), False),
        (str(MAX_BATCH), (MAX_BATCH, False), False),
        (str(MAX_BATCH + 1), None, True),
        ("99999999999999999999999", None, True),
        ("007", None, True),
        ("+5", None, True),
        ("-1.compact", None, True),
        ("٣", None, True),
        ("1234a", None, False),
        ("1.tmp", None, False),
        (".1.crc", None, False),
        ("5.compact.compact", None, False),
        ("README", None, False),
        ("", None, False),
    ],
)
def test_names(name: str, batch: tuple[int, bool] | None, strange: bool) -> None:
    """Scenario 57: a name is that of a batch, one that Spark alone would take for that, or none."""
    assert batch_of(name) == batch
    assert is_strange(name) == strange


def test_compaction_every_third() -> None:
    """Scenario 57: with an interval of 3 the batches 2, 5, 8 are compact files."""
    assert [b for b in range(9) if is_compaction(b, 3)] == [2, 5, 8]
    assert [file_name(b, 3) for b in (1, 2, 3)] == ["1", "2.compact", "3"]
    assert [list(before_compaction(b, 3)) for b in (2, 5)] == [[0, 1], [2, 3, 4]]
    assert [list(to_read(b, 3)) for b in (1, 2, 4, 5)] == [[0, 1], [2], [2, 3, 4], [5]]


@pytest.mark.parametrize(
    "default,compacts,interval",
    [
        (10, [], 10),
        (10, [9], 10),
        (3, [9], 5),
        (10, [2], 3),
        (10, [12], 13),
        (10, [29], 10),
        (7, [29], 10),
        (100, [9], 10),
        (10, [4, 9], 5),
        (10, [9, 4, 14], 5),
        (1, [6], 1),
        (2, [6], 7),
        (10, [0], 1),
    ],
)
def test_derived_interval(default: int, compacts: list[int], interval: int) -> None:
    """Scenario 57: the compact files say what the interval is; what is set only helps."""
    assert derive_interval(default, compacts) == interval


def naive_interval(default: int, place: int) -> int:
    """Return what Spark derives from one compact file, looked for number by number."""
    if place <= default:
        return place
    if default < place // 2:
        for number in range(default, place // 2 + 1):
            if place % number == 0:
                return number
    return place


@given(st.integers(1, 60), st.integers(0, 3000))
def test_derived_interval_divides(default: int, compact: int) -> None:
    """It is what a plain search finds, and the compact file is in its place."""
    interval = derive_interval(default, [compact])

    assert interval == naive_interval(default, compact + 1)
    assert is_compaction(compact, interval)


def test_derived_interval_of_a_hostile_name() -> None:
    """A large prime is no long search."""
    assert derive_interval(10, [2_147_483_628]) == 2_147_483_629


@given(intervals, batches)
def test_what_is_read_covers_all(interval: int, newest: int) -> None:
    """Scenario 57: from the newest compact file on, nothing is left out and no other compact file
    is read."""
    window = to_read(newest, interval)

    assert window[-1] == newest
    assert window[0] == 0 or is_compaction(window[0], interval)
    assert not any(is_compaction(batch, interval) for batch in window[1:])


@given(intervals, batches, st.integers(1, 120))
def test_what_expires_is_not_read(interval: int, batch: int, keep: int) -> None:
    """Scenario 57: what may expire is below what any reader of the batches that are kept takes."""
    below = expired_below(batch, interval, keep)

    oldest = max(0, batch + 1 - keep)
    if below is None:
        assert oldest < interval
        return
    assert is_compaction(below, interval)
    assert all(to_read(kept, interval)[0] >= below for kept in range(oldest, batch + 1))


@given(intervals, batches)
def test_a_compact_file_takes_up_what_was_read_before(interval: int, number: int) -> None:
    """What it takes up is what a reader took a batch earlier: all there was."""
    batch = (number + 1) * interval - 1
    if batch:
        assert list(before_compaction(batch, interval)) == list(to_read(batch - 1, interval))

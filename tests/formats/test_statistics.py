"""Statistics: what is counted, merged, written and read."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.formats.statistics import COUNTERS, DURATIONS, MAX_NAMES, Statistics

SAMPLES = Path(__file__).parent.parent / "fixtures" / "hadoop_manifest"
LONG = st.integers(-(2**63), 2**63 - 1)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)

statistics = st.builds(
    Statistics,
    counters=st.dictionaries(NAMES, st.integers(1, 2**40)),
    gauges=st.dictionaries(NAMES, LONG.filter(bool)),
    minimums=st.dictionaries(NAMES, LONG.filter(lambda value: value != -1)),
    maximums=st.dictionaries(NAMES, LONG.filter(lambda value: value != -1)),
    means=st.dictionaries(NAMES, st.tuples(st.integers(1, 2**40), LONG)),
)


def test_registered_names_are_those_of_hadoop() -> None:
    """The full form has exactly the names, and the defaults, of a manifest by Hadoop."""
    hadoop = json.loads((SAMPLES / "task_manifest_no_files.json").read_bytes())["iostatistics"]
    ours = Statistics().to_json(full=True)
    assert {key: set(value) for key, value in ours.items()} == {
        key: set(value) for key, value in hadoop.items()
    }
    assert len(ours["counters"]) == 2 * len(DURATIONS) + len(COUNTERS) == 84
    assert set(ours["minimums"].values()) == {-1}
    assert ours["meanstatistics"]["op_delete.mean"] == {"samples": 0, "sum": 0}


def test_full_form_of_a_sample_is_the_sample() -> None:
    """Reading Hadoop's statistics and writing them in full changes nothing."""
    hadoop = json.loads((SAMPLES / "_SUCCESS_csv.json").read_bytes())["iostatistics"]
    assert Statistics.from_json(hadoop).to_json(full=True) == hadoop


def test_short_form_holds_what_is_in_use() -> None:
    """Without ``full`` nothing is written that was not counted."""
    empty = Statistics().to_json(full=False)
    assert list(empty) == ["counters", "gauges", "minimums", "maximums", "meanstatistics"]
    assert not any(empty.values())


def test_duration_counts_and_times() -> None:
    """Two operations are counted, and timed in whole milliseconds."""
    stats = Statistics()
    stats.duration("op_rename", 0.0129)
    stats.duration("op_rename", 0.5)
    assert stats == Statistics(
        counters={"op_rename": 2},
        minimums={"op_rename.min": 12},
        maximums={"op_rename.max": 500},
        means={"op_rename.mean": (2, 512)},
    )


def test_duration_of_a_failure_is_kept_apart() -> None:
    """A failed operation counts twice, but its time is with the failures only."""
    stats = Statistics()
    stats.duration("op_rename", 0.001, failed=True)
    assert stats == Statistics(
        counters={"op_rename": 1, "op_rename.failures": 1},
        minimums={"op_rename.failures.min": 1},
        maximums={"op_rename.failures.max": 1},
        means={"op_rename.failures.mean": (1, 1)},
    )


def test_sample_has_the_bare_name_in_every_map() -> None:
    """A sample adds its value to the counter and is a minimum, maximum and mean as well."""
    stats = Statistics()
    stats.sample("committer_task_file_size", 10)
    stats.sample("committer_task_file_size", 0)
    name = "committer_task_file_size"
    expected = Statistics({name: 10}, {}, {name: 0}, {name: 10}, {name: (2, 10)})
    assert stats == expected


def test_gauge_is_set_and_counter_never_falls() -> None:
    """The last value of a gauge counts; a negative increment is nothing, as in Hadoop."""
    stats = Statistics()
    stats.gauge("g", 3)
    stats.gauge("g", 2)
    stats.count("c", 2)
    stats.count("c", -5)
    assert stats == Statistics(counters={"c": 2}, gauges={"g": 2})


def test_merge_adds_and_compares() -> None:
    """Counters, gauges and means are added, minimums and maximums compared."""
    stats = Statistics({"c": 1}, {"g": 1}, {"m": 5}, {"m": 5}, {"m": (1, 5)})
    stats.merge(Statistics({"c": 2}, {"g": -3}, {"m": 2, "n": 9}, {"m": 7}, {"m": (2, 9)}))
    merged = Statistics({"c": 3}, {"g": -2}, {"m": 2, "n": 9}, {"m": 7}, {"m": (3, 14)})
    assert stats == merged


@given(statistics, statistics)
def test_merge_does_not_depend_on_the_order(one: Statistics, other: Statistics) -> None:
    """Manifests may be loaded in any order."""
    left, right = Statistics(), Statistics()
    for target, parts in ((left, (one, other)), (right, (other, one))):
        for part in parts:
            target.merge(part)
    assert left == right


@given(statistics, st.booleans())
def test_round_trip(stats: Statistics, full: bool) -> None:
    """What is written reads back, whether zeros are written or not."""
    assert Statistics.from_json(orjson.loads(orjson.dumps(stats.to_json(full)))) == stats


@pytest.mark.parametrize("value", [None, [], 3, "x", {}, {"counters": [], "gauges": None}])
def test_from_json_takes_no_statistics_for_none(value: object) -> None:
    """What is no snapshot counts as an empty one."""
    assert Statistics.from_json(value) == Statistics()


def test_from_json_leaves_out_what_is_no_number() -> None:
    """Values of a wrong type or range are left out; quoted integers count, as in Hadoop."""
    value = {
        "counters": {"a": 1.5, "b": True, "c": None, "d": " 7 ", "e": 2**63, "f": -4, "g": {}},
        "minimums": {"a": -1, "b": 0, "c": "x"},
        "meanstatistics": {
            "a": {"samples": 2, "sum": 3, "mean": 1.5},
            "b": {"samples": -2, "sum": 3},
            "c": 5,
            "d": {"samples": 1},
        },
        "meanStatistics": {"z": {"samples": 2, "sum": 3}},
    }
    expected = Statistics({"d": 7}, {}, {"b": 0}, {}, {"a": (2, 3), "d": (1, 0)})
    assert Statistics.from_json(value) == expected


def test_from_json_stops_at_the_limit_of_names() -> None:
    """A file with a million names costs no more memory than one with a thousand."""
    value = {"counters": {str(i): 1 for i in range(MAX_NAMES + 50)}}
    assert len(Statistics.from_json(value).counters) == MAX_NAMES


def test_to_json_keeps_to_a_long() -> None:
    """Sums beyond a Java ``long`` are written as the greatest one."""
    stats = Statistics(counters={"c": 2**63 - 1})
    stats.count("c")
    assert stats.to_json(full=False)["counters"] == {"c": 2**63 - 1}

"""Moves as they are handed over to the JVM."""

from __future__ import annotations

import pytest

from asynccommit.spark.hadoop_store.store import grouped
from asynccommit.stores.base import Move

TASK, TABLE = "/t/_temporary/j/00/tasks/a", "/t"


@pytest.mark.parametrize(
    "pairs, groups",
    [
        ([("/a", "/b")], 1),
        ([(f"{TASK}/day={n}/part-{n}", f"{TABLE}/day={n}/part-{n}") for n in range(9)], 1),
        ([(f"{TASK}{n}/x/f{n}", f"{TABLE}/x/f{n}") for n in range(3)], 3),
        ([(f"{TASK}/f", f"{TABLE}/f"), ("/staged/0-g", "/else/g"), (f"{TASK}/h", "/t/h")], 3),
        ([("/a/x", "/b/x"), ("/a/x", "/b/x")], 1),
        ([("/b/xab", "/b/ab"), ("/b/xa", "/b/a")], 1),
    ],
)
def test_moves_are_grouped_by_what_they_have_in_common(
    pairs: list[tuple[str, str]], groups: int
) -> None:
    """Every path comes out as it was, in order, whatever the paths have in common."""
    moves: list[Move] = [(source, dest, "etag") for source, dest in pairs]
    found = grouped(moves)

    assert [(old + end, new + end) for old, new, ends in found for end in ends] == pairs
    assert len(found) == groups

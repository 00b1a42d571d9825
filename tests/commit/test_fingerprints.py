"""Fingerprints: what is twice, common or missing, as sets would say it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.commit.fingerprints import Fingerprints, fingerprint

THINGS = st.lists(st.integers(0, 60).map(str), max_size=80)


def bag(things: list[str], in_memory: int) -> Fingerprints:
    """Return fingerprints of ``things``, added a few at a time."""
    found = Fingerprints(in_memory=in_memory)
    for start in range(0, len(things), 7):
        found.add(things[start : start + 7])
    return found


@pytest.mark.parametrize("in_memory", [5, 1000], ids=["in a file", "in memory"])
@given(mine=THINGS, theirs=THINGS)
def test_like_sets(in_memory: int, mine: list[str], theirs: list[str]) -> None:
    """Repeated, common and missing are what sets and counters give."""
    a, b = bag(mine, in_memory), bag(theirs, in_memory)
    prints = {thing: fingerprint(thing) for thing in mine + theirs}
    twice = {prints[thing] for thing, count in Counter(mine).items() if count > 1}
    common = {prints[thing] for thing in set(mine) & set(theirs)}
    missing = {prints[thing] for thing in set(mine) - set(theirs)}
    try:
        assert a.count == len(mine)
        assert a.repeated() == twice
        assert a.common(b) == common
        assert a.missing(b) == missing
    finally:
        a.close()
        b.close()

"""Names stay in order whatever comes and goes between."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.testing.models.gcs.names import SortedNames, behind

NAME = st.text("ab/\U0010ffff", min_size=1, max_size=3)


@given(st.lists(st.tuples(st.sampled_from(["add", "drop", "look", "reset"]), NAME)), NAME)
def test_names_are_those_of_the_dictionary(steps: list[tuple[str, str]], prefix: str) -> None:
    """In order, and none twice, after any additions and removals between looks."""
    known: dict[str, object] = {}
    names = SortedNames(known)
    for step, name in steps:
        if step == "add" and name not in known:
            known[name] = True
            names.added(name)
        elif step == "drop" and name in known:
            del known[name]
            names.removed()
        elif step == "reset":
            names.reset()
        elif step == "look":
            assert names.below("") == sorted(known)

    shown = names.in_order()
    assert shown == sorted(set(shown))
    assert [name for name in shown if name in known] == sorted(known)
    below = [name for name in sorted(known) if name.startswith(prefix)]
    assert names.below(prefix) == below
    assert names.any_below(prefix) == any(name != prefix for name in below)


def test_few_new_names_among_many_are_put_in_place() -> None:
    """The list is not made anew for one name, nor for one that comes back."""
    known: dict[str, object] = {f"{number:04}": True for number in range(1000)}
    names = SortedNames(known)
    shown = names.in_order()
    known["0500a"] = True
    names.added("0500a")
    del known["0007"]
    names.removed()
    known["0007"] = True
    names.added("0007")

    assert names.in_order() is shown
    assert names.below("") == sorted(known)


def test_names_that_are_gone_are_forgotten() -> None:
    """Once they are a quarter of the list it is made anew."""
    known: dict[str, object] = {f"{number:03}": True for number in range(100)}
    names = SortedNames(known)
    names.in_order()
    for number in range(30):
        del known[f"{number:03}"]
        names.removed()

    assert names.in_order() == sorted(known)


@pytest.mark.parametrize(
    "prefix,end", [("a/", "a0"), ("a", "b"), ("a\U0010ffff", "b"), ("\ud7ff", "\ud800")]
)
def test_behind(prefix: str, end: str) -> None:
    """The first text that is behind all that begin so."""
    assert behind(prefix) == end

"""Directories are made once each, and only the innermost by a request."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit import OptionError
from asynccommit.engine import BulkError, make_directories
from asynccommit.engine.directories import Parents, leaves
from tests.engine.conftest import RENAMING, Place, on

on_adls = pytest.mark.parametrize("place", ["adls"], indirect=True)
PATHS = st.lists(st.lists(st.sampled_from("ab-"), min_size=1, max_size=4))


@on(RENAMING)
async def test_directories_are_made(place: Place) -> None:
    """Directories and their parents are there, whether they existed or not."""
    await place.write({"a/file": "x"})
    names = ["a", "a/b", "a/b/c", "d/e"]

    for _ in range(2):
        report = await make_directories(place.store, [place(name) for name in names])
        assert (report.done, report.failed) == (2, 0)
    for name in names:
        assert (await place.store.head(place(name))).is_dir


@pytest.mark.parametrize("place", ["local"], indirect=True)
async def test_a_file_in_the_way_is_reported(place: Place) -> None:
    """A directory below a file fails; the others are made if errors are collected."""
    await place.write({"a": "file"})
    paths = [place("a/b"), place("c")]

    report = await make_directories(place.store, paths, on_error="continue")
    assert [it.path for it in report.failures] == [place("a/b")]
    assert (await place.store.head(place("c"))).is_dir

    with pytest.raises(BulkError):
        await make_directories(place.store, paths)
    with pytest.raises(OptionError):
        await make_directories(place.store, [place("x"), "y"])


@on_adls
async def test_parents_are_made_once(place: Place) -> None:
    """Many files that go to one directory at a time wait for one request."""
    parents = Parents(place.store)
    before = place.weather.requests["mkdir"]

    await asyncio.gather(*(parents.make(place(f"d/{i}")) for i in range(20)))
    assert place.weather.requests["mkdir"] == before + 1

    parents.forget(place("d/0"))
    await parents.make(place("d/1"))
    assert place.weather.requests["mkdir"] == before + 2


@given(PATHS)
def test_leaves_imply_all_others(parts: list[list[str]]) -> None:
    """Every path is a leaf or a parent of one, and no leaf is a parent of another."""
    paths = ["/" + "/".join(names) for names in parts]
    found = leaves(paths)

    assert {*found} <= {*paths}
    assert len({*found}) == len(found)
    for path in paths:
        assert any(f"{leaf}/".startswith(f"{path}/") for leaf in found)
    for leaf in found:
        assert not any(other.startswith(f"{leaf}/") for other in found)

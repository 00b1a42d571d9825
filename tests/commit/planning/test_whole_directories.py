"""Whole directories are chosen by requests, and by price where that is wished."""

from __future__ import annotations

import pytest

from asynccommit.commit.planning.whole_directories import CarriedTree
from asynccommit.options.job import Options
from asynccommit.simulate import Setup, simulate
from asynccommit.stores.prices import LIST_PRICES, Prices


@pytest.mark.parametrize("files, is_cheap", [(150, False), (200, False), (201, True)])
def test_a_directory_is_cheap_from_some_hundred_files_on(files: int, is_cheap: bool) -> None:
    """Two iterative writes and a listing against a write for each file and one directory."""
    tree = CarriedTree("/task/a", "/a", {"/a"}, {"/task/a": files})

    assert tree.is_cheap(LIST_PRICES["adls"], 2) is is_cheap


def test_a_directory_is_cheap_where_its_rename_costs_what_a_files_does() -> None:
    """By other prices any directory that saves requests also saves money."""
    tree = CarriedTree("/task/a", "/a", {"/a"}, {"/task/a": 5})

    assert tree.is_cheap(Prices(rename=1, rename_directory=1, list=1, write=1), 2)


def test_a_cheap_commit_costs_less() -> None:
    """It renames file by file what is dearer whole, and takes more requests."""
    fast, cheap = (
        simulate(Setup(files=2_000, tasks=10, partitions=2, options=Options(prefer=wish)))
        for wish in ("fast", "cheap")
    )

    assert cheap.figures.requests["rename"] > fast.figures.requests["rename"]
    assert fast.figures.renamed_directories - cheap.figures.renamed_directories == 2 * 2
    assert (cheap.dollars or 0) < (fast.dollars or 0)

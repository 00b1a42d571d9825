"""What a commit will change: which directories, which units, and where things wait."""

from __future__ import annotations

import pytest

from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.paths import SAMPLE, above, ancestors, leaves, outermost, stays, within
from asynccommit.commit.planning.load_manifests import LoadedManifests
from asynccommit.commit.planning.plan import (
    Aside,
    Plan,
    aside_path,
    staged_path,
    undone_path,
    untagged,
)
from asynccommit.commit.spill import Entry
from asynccommit.options.job import Options
from asynccommit.stores.base import Info, Kind, Traits
from asynccommit.stores.urls import Address

LAYOUT = Layout(Address("file", "", "/t"), "job")
ROOT = Layout(Address("file", "", "/"), "job")
EPOCH = "/t/_temporary/job/00/commit-epoch-000003"


async def filled(*files: str, etag: str | None = "e", directories: tuple[str, ...] = ()) -> Plan:
    """Return a plan for files with these destinations."""
    made = Plan(LoadedManifests(Options(), Traits("any")))
    await made.loaded.add([Entry(f"/s{name}", name, 1, etag) for name in files], directories)
    return made


@pytest.mark.parametrize(
    "name, hidden",
    [
        ("_SUCCESS", True),
        ("_temporary", True),
        ("_spark_metadata", True),
        (".hidden", True),
        (".part=1", True),
        ("_notes", True),
        ("_part=1", False),
        ("_metadata", False),
        ("_common_metadata", False),
        ("part=1", False),
        ("part-0", False),
        ("a_b.c", False),
    ],
)
def test_names_that_no_mode_replaces(name: str, hidden: bool) -> None:
    """As Spark reads a table: what it takes for no data is not replaced as data."""
    assert stays(name) is hidden


@pytest.mark.parametrize(
    "path, part",
    [("/t/day=1/f", "in/day=1/f"), ("/elsewhere/f", "out/elsewhere/f"), ("/t2/f", "out/t2/f")],
)
def test_where_things_wait(path: str, part: str) -> None:
    """What waits is below its owner's place, and a neighbour's name is not the table's."""
    assert staged_path(LAYOUT, 3, path) == f"{EPOCH}/new/{part}"
    assert aside_path(LAYOUT, 3, path) == f"{EPOCH}/aside/{part}"
    assert undone_path(LAYOUT, 3, path) == f"{EPOCH}/undone/{part}"


def test_a_table_that_is_the_root() -> None:
    """Everything is inside of the root."""
    place = aside_path(ROOT, 1, "/day=1/f")

    assert place == "/_temporary/job/00/commit-epoch-000001/aside/in/day=1/f"


def test_two_paths_never_wait_at_one_place() -> None:
    """A directory of the table called ``out`` is not what lies outside of it."""
    paths = ["/t/out/f", "/out/f", "/t/in/f", "/in/f", "/t/f", "/f", "/t/out/t/f"]

    assert len({aside_path(LAYOUT, 1, path) for path in paths}) == len(paths)


@pytest.mark.parametrize(
    "paths, found",
    [
        ([], []),
        (["/a/b", "/a", "/a/b/c"], ["/a"]),
        (["/a-b", "/a", "/a/b"], ["/a", "/a-b"]),
        (["/a/b", "/a-b/c", "/a-b"], ["/a/b", "/a-b"]),
        (["/a/c", "/a/b", "/a/c"], ["/a/b", "/a/c"]),
    ],
)
def test_the_outermost_of_paths(paths: list[str], found: list[str]) -> None:
    """Paths below others are left out, whatever sorts between a directory and what is in it."""
    assert outermost(paths) == found


def test_within() -> None:
    """A path is in itself and in what is above it, and not in what only begins alike."""
    assert within("/a/b", ["/a"])
    assert within("/a", ["/a"])
    assert not within("/ab", ["/a"])
    assert not within("/a", ["/a/b"])
    assert not within("/a", [])


def test_above() -> None:
    """The directories above a path, the innermost first, the root not among them."""
    assert list(above("/a/b/c")) == ["/a/b", "/a"]
    assert list(above("/a")) == []


def test_ancestors_outside_of_the_root() -> None:
    """Of a path that is not below the root every directory counts."""
    assert ancestors("/t", ["/t/a/b", "/x/y"]) == {"/t/a", "/t/a/b", "/x", "/x/y"}
    assert leaves(["/a", "/a/b", "/c"]) == ["/a/b", "/c"]


async def test_the_unit_of_a_directory() -> None:
    """A directory is in the unit that it is, or is below."""
    made = await filled("/t/day=1/hour=1/f", "/t/day=10/f", directories=("/t/day=1/empty",))
    made.units = {"/t/day=1"}

    assert made.unit_of("/t/day=1") == made.unit_of("/t/day=1/hour=1") == "/t/day=1"
    assert made.unit_of("/t/day=10") is None
    assert made.unit_of("/t") is None
    assert made.unit_directories() == {"/t/day=1", "/t/day=1/hour=1", "/t/day=1/empty"}


async def test_without_units_there_are_no_directories_of_them() -> None:
    """A plan that replaces nothing has nothing to put together."""
    assert (await filled("/t/day=1/f")).unit_directories() == set()


async def test_the_sample() -> None:
    """The first hundred destinations are named."""
    made = await filled(*[f"/t/f{n:03}" for n in range(150)])
    await made.take_sample()

    assert made.sample == [f"/t/f{n:03}" for n in range(SAMPLE)]
    await made.take_sample()
    assert len(made.sample) == SAMPLE


@pytest.mark.parametrize("etag, told", [("e", False), (None, True)])
async def test_files_that_only_their_size_tells(etag: str | None, told: bool) -> None:
    """Where something was replaced, a file without an etag can be an old one of the same size."""
    made = await filled("/t/f", etag=etag)
    made.aside = [Aside.of(Info("/t/f", Kind.FILE, 1, "old"))]

    assert untagged(made) is told

"""Listings in pages: prefixes, delimiters, offsets, globs, folders, versions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.testing.models.gcs.listing import glob_pattern
from asynccommit.testing.models.gcs.model import GcsLimits, ListQuery
from tests.testing.models.gcs.model import BUCKET, Bench, refused

NAMES = st.lists(
    st.text("ab/\U0001f600", min_size=1, max_size=5), min_size=1, max_size=12, unique=True
)


def bench_of(*names: str, **options: Any) -> Bench:
    """Return a service whose bucket holds these objects."""
    bench = Bench(**options)
    bench.put(*names)
    return bench


def plainly(names: list[str], query: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return items and prefixes as the documentation's words say, in the plainest way."""
    prefix, delimiter = query["prefix"], query["delimiter"]
    items, prefixes = [], set()
    for name in sorted(names):
        end = query["end_offset"]
        if not name.startswith(prefix) or name < query["start_offset"] or (end and name >= end):
            continue
        rest = name[len(prefix) :]
        if delimiter and delimiter in rest:
            group = prefix + rest[: rest.index(delimiter) + len(delimiter)]
            prefixes.add(group)
            if query["include_trailing_delimiter"] and group == name:
                items.append(name)
        else:
            items.append(name)
    return items, sorted(prefixes)


@given(
    NAMES,
    NAMES,
    st.sampled_from(["", "a", "a/", "/", "ab"]),
    st.sampled_from(["", "/", "b", "a/"]),
    st.sampled_from(["", "a", "a/a", "b"]),
    st.sampled_from(["", "a/b", "b"]),
    st.booleans(),
    st.integers(1, 4),
)
def test_pages_are_what_the_plainest_listing_gives(
    names: list[str],
    gone: list[str],
    prefix: str,
    delimiter: str,
    start: str,
    end: str,
    trailing: bool,
    page: int,
) -> None:
    """Each item and prefix once, in order, no page too long, whatever was deleted before."""
    bench = Bench(limits=GcsLimits(page=page))
    bench.put(*names, *gone)
    bench.names()
    for name in gone:
        bench.delete(BUCKET, name)
    query = {
        "prefix": prefix,
        "delimiter": delimiter,
        "start_offset": start,
        "end_offset": end,
        "include_trailing_delimiter": trailing,
    }
    pages = list(bench.pages(**query))

    items = [name for shown, _ in pages for name in shown]
    prefixes = [name for _, shown in pages for name in shown]
    assert (items, prefixes) == plainly([name for name in names if name not in gone], query)
    assert all(len(shown) + len(more) <= page for shown, more in pages)
    assert all(shown or more for shown, more in pages[1:])


def test_the_documentation_s_example() -> None:
    """As on https://cloud.google.com/storage/docs/json_api/v1/objects/list."""
    bench = bench_of("a/b", "a/c", "d", "e", "e/f", "e/g/h")

    assert list(bench.pages(delimiter="/")) == [(["d", "e"], ["a/", "e/"])]
    assert list(bench.pages(delimiter="/", prefix="e/")) == [(["e/f"], ["e/g/"])]


def test_a_page_has_a_thousand_entries_at_most() -> None:
    """Whatever is asked for; a page of none or fewer is refused."""
    bench = bench_of(*(f"{number:04}" for number in range(1001)))

    assert [len(items) for items, _ in bench.pages()] == [1000, 1]
    assert [len(items) for items, _ in bench.pages(max_results=5000)] == [1000, 1]
    assert len(bench.list(BUCKET, ListQuery(max_results=7)).items) == 7
    with refused(400, "invalid"):
        bench.list(BUCKET, ListQuery(max_results=0))


def test_items_and_prefixes_share_a_page() -> None:
    """``maxResults`` bounds both together, in one order."""
    bench = bench_of("a/1", "b", "c/1", "d")

    assert list(bench.pages(delimiter="/", max_results=3)) == [(["b"], ["a/", "c/"]), (["d"], [])]


def test_a_listing_goes_on_behind_what_it_showed() -> None:
    """What stays is shown once, whatever comes and goes between the pages."""
    bench = bench_of("a", "b", "c", "d")
    first = bench.list(BUCKET, ListQuery(max_results=2))
    bench.delete(BUCKET, "b")
    bench.put("aa", "a", "cc")
    second = bench.list(BUCKET, ListQuery(page_token=first.token))

    assert [found.name for found in first.items + second.items] == ["a", "b", "c", "cc", "d"]


def test_pages_may_be_empty() -> None:
    """A page of nothing but a token is no end."""
    bench = Bench(limits=GcsLimits(empty_pages=True))
    bench.put("a")

    assert list(bench.pages()) == [([], []), (["a"], [])]


@pytest.mark.parametrize("token", ["?", "YQ==", "e", "0 0 a"])
def test_bad_tokens_are_refused(token: str) -> None:
    """As a bad parameter."""
    with refused(400, "invalid") as caught:
        Bench().list(BUCKET, ListQuery(page_token=token))
    assert caught.value.location == "pageToken"


def test_a_prefix_that_is_an_object_too() -> None:
    """The object is listed beside the prefix of its own name, as both exist."""
    bench = bench_of("a", "a/b", "a/")

    assert list(bench.pages(delimiter="/")) == [(["a"], ["a/"])]
    assert list(bench.pages(delimiter="/", prefix="a/")) == [(["a/", "a/b"], [])]
    assert list(bench.pages(delimiter="/", include_trailing_delimiter=True)) == [
        (["a", "a/"], ["a/"])
    ]


def test_folders_are_prefixes_if_asked() -> None:
    """Empty ones too; without the parameter only objects make prefixes."""
    bench = bench_of("a/1", "b/c/1", hns=True)
    bench.insert_folder(BUCKET, "empty/inner", recursive=True)
    asked = {"delimiter": "/", "include_folders_as_prefixes": True}

    assert bench.names(delimiter="/") == ["a/", "b/"]
    assert bench.names(**asked) == ["a/", "b/", "empty/"]
    assert bench.names(**asked, prefix="empty/") == ["empty/inner/"]
    assert bench.names(**asked, prefix="empty/inner/") == []
    assert bench.names(**asked, prefix="em") == ["empty/"]
    assert bench.names(**asked, max_results=1) == ["a/", "b/", "empty/"]
    bench.delete(BUCKET, "a/1")
    bench.delete_folder(BUCKET, "a")
    assert bench.names(**asked) == ["b/", "empty/"]


@pytest.mark.parametrize(
    "query",
    [
        {"include_folders_as_prefixes": True},
        {"include_folders_as_prefixes": True, "delimiter": "b"},
        {"match_glob": "*", "delimiter": "b"},
        {"match_glob": "[b-a]"},
        {"versions": True, "soft_deleted": True},
    ],
)
def test_parameters_that_exclude_each_other(query: dict[str, Any]) -> None:
    """A delimiter must be ``/`` with folders and globs (documented)."""
    with refused(400, "invalid"):
        Bench().list(BUCKET, ListQuery(**query))


def test_versions_are_listed_by_generation() -> None:
    """The oldest of a name first, through all pages."""
    bench = Bench(versioning=True, limits=GcsLimits(page=2))
    wanted = [("a", bench.put("a")), ("a", bench.put("a")), ("a", bench.put("a"))]
    wanted += [("b", bench.put("b")), ("d/b", bench.put("d/b"))]
    bench.delete(BUCKET, "a")
    found, token = [], ""
    while True:
        page = bench.list(BUCKET, ListQuery(versions=True, page_token=token))
        found += [(item.name, item.generation) for item in page.items]
        token = page.token
        if not token:
            break

    assert found == wanted
    assert bench.names(versions=True, delimiter="/") == ["a", "a", "a", "b", "d/"]


@pytest.mark.parametrize(
    "glob,matching",
    [
        ("*", ["a.csv", "b.txt"]),
        ("**", ["a.csv", "b.txt", "d/a.csv", "d/e/a.csv"]),
        ("**/*.csv", ["a.csv", "d/a.csv", "d/e/a.csv"]),
        ("d/**/a.csv", ["d/a.csv", "d/e/a.csv"]),
        ("d/*.csv", ["d/a.csv"]),
        ("?.{csv,txt}", ["a.csv", "b.txt"]),
        ("[!a]*", ["b.txt"]),
        ("[ab].csv", ["a.csv"]),
    ],
)
def test_globs(glob: str, matching: list[str]) -> None:
    """A star stays in its directory, two do not."""
    bench = bench_of("a.csv", "b.txt", "d/a.csv", "d/e/a.csv")

    assert bench.names(match_glob=glob) == matching
    assert glob_pattern(glob).fullmatch(matching[0])

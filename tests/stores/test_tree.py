"""Listing and walking trees."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from asynccommit.errors import NotFoundError, PreconditionError, RejectedError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Page
from asynccommit.stores.local import files
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.stats import Stats
from asynccommit.stores.tree import (
    Ask,
    ahead,
    for_each_directory,
    is_there,
    list_all,
    list_if_there,
    pages,
    walk,
)
from tests.support.faults import Faults

COUNT = 16
FAILING = 8

Items = Callable[[Iterable[int]], "Iterable[int] | AsyncIterator[int]"]


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalStore]:
    """A local store that lists three names a page."""
    monkeypatch.setattr(files, "PAGE", 3)
    store = LocalStore()
    yield store
    await store.aclose()


async def test_list_all_reads_every_page(store: LocalStore, tmp_path: Path) -> None:
    """All children are there, however many pages they come in."""
    expected = [f"{tmp_path}/{number}" for number in range(8)]
    for path in expected:
        await store.put(path, b"")
    assert [len(page) async for page in pages(store, str(tmp_path))] == [3, 3, 2]
    assert sorted(info.path for info in await list_all(store, str(tmp_path))) == expected


async def test_what_may_be_missing(store: LocalStore, tmp_path: Path) -> None:
    """What is missing is not there, and a missing directory is empty; a file is no directory."""
    (tmp_path / "file").touch()

    assert await is_there(store, f"{tmp_path}/file")
    assert not await is_there(store, f"{tmp_path}/none")
    assert [info.path for info in await list_if_there(store, str(tmp_path))] == [f"{tmp_path}/file"]
    assert await list_if_there(store, f"{tmp_path}/none") == []
    with pytest.raises(PreconditionError):
        await list_if_there(store, f"{tmp_path}/file")


async def test_walk_does_not_follow_links(store: LocalStore, tmp_path: Path) -> None:
    """A link out of the tree is shown as what it is, and not walked into."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    await store.mkdir(f"{outside}/d")
    await store.mkdir(str(inside))
    inside.joinpath("link").symlink_to(outside)
    found = [info async for info in walk(store, str(inside))]
    assert [(info.path, info.is_dir) for info in found] == [(f"{inside}/link", False)]


async def test_walk_raises_what_a_listing_raises(store: LocalStore, tmp_path: Path) -> None:
    """A missing directory is an error, not an empty tree."""
    with pytest.raises(NotFoundError):
        [info async for info in walk(store, f"{tmp_path}/gone")]


async def test_walk_lists_wide_and_deep_trees(store: LocalStore, tmp_path: Path) -> None:
    """More directories than are listed at once, and many levels, are all found."""
    expected = {f"{tmp_path}/{number}" for number in range(300)}
    deep = str(tmp_path)
    for _ in range(30):
        deep += "/deep"
        expected.add(deep)
    await for_each(expected, store.mkdir, workers=32)
    found = [info.path async for info in walk(store, str(tmp_path))]
    assert sorted(found) == sorted(expected)


async def test_directories_are_listed_together(store: LocalStore, tmp_path: Path) -> None:
    """Directories of one page come in one call; longer and missing ones are listed alone."""
    counted = Stats("sent")
    wrapped = Wrapped(store, counted, seen := Faults())
    for name, count in (("one", 1), ("none", 0), ("many", 7)):
        await store.mkdir(f"{tmp_path}/{name}")
        for number in range(count):
            await store.put(f"{tmp_path}/{name}/{number}", b"")
    found: dict[str, int] = {}

    async def look(path: str, ask: Ask) -> None:
        with suppress(NotFoundError):
            found[path] = len(await list_all(wrapped, path, ask))

    names = ["one", "gone", "none", "many"]
    paths = [f"{tmp_path}/{name}" for name in names]
    await for_each_directory(wrapped, paths, look, workers=2)

    assert found == {paths[0]: 1, paths[2]: 0, paths[3]: 7}
    assert [op.name for op in seen.seen] == ["list_many", "list", "list", "list", "list"]
    assert counted.counts["list"].n == 2 + 4


async def test_what_is_read_ahead_is_read_once(store: LocalStore, tmp_path: Path) -> None:
    """A directory that is listed a second time is shown as it is by then."""
    paths = [f"{tmp_path}/a", f"{tmp_path}/b"]
    for path in paths:
        await store.mkdir(path)
    ask = await ahead(store, paths)
    await store.put(f"{tmp_path}/a/late", b"")

    assert await list_all(store, paths[0], ask) == []
    assert [info.path for info in await list_all(store, paths[0], ask)] == [f"{tmp_path}/a/late"]


async def test_a_store_that_turns_in_circles_is_left(tmp_path: Path) -> None:
    """A page that names itself as the next one would be read for ever."""

    class Circle(LocalStore):
        """Answers every page with the same token."""

        async def list(self, path: str, token: str | None = None) -> Page:
            return Page((), "again")

    store = Circle()
    with pytest.raises(RejectedError, match="the same page repeatedly"):
        await list_all(store, str(tmp_path))
    await store.aclose()

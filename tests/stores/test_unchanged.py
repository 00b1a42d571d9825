"""A filesystem on which a renamed file cannot be known again is refused."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from asynccommit.errors import PreconditionError
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.stats import Stats
from asynccommit.stores.unchanged import delete_unchanged, keeps_etag, refuse_renumbering


@pytest.fixture
def stats() -> Stats:
    """The requests that were sent."""
    return Stats("asked")


@pytest.fixture
async def store(stats: Stats) -> AsyncIterator[Wrapped]:
    """A local store that counts."""
    made = Wrapped(LocalStore(), stats)
    yield made
    await made.aclose()


async def test_a_changed_file_is_not_deleted(store: Wrapped, tmp_path: Path) -> None:
    """A file that was written again since its listing stays."""
    path = f"{tmp_path}/f"
    seen = await store.put(path, b"1")
    await store.put(path, b"2")
    with pytest.raises(PreconditionError):
        await delete_unchanged(store, seen)
    await delete_unchanged(store, await store.head(path))
    assert not list(tmp_path.iterdir())


async def test_a_disk_is_asked_once_whether_it_renumbers(
    store: Wrapped, stats: Stats, tmp_path: Path
) -> None:
    """One look at a file that was written anyway tells that a rename kept its number."""
    written = await store.put(f"{tmp_path}/f", b"1", overwrite=False)
    await refuse_renumbering(store, written)
    assert {name: count.n for name, count in stats.counts.items() if count.n} == {
        "put": 1,
        "head": 1,
    }


async def test_a_time_that_is_set_at_the_close_is_no_other_number(
    store: Wrapped, tmp_path: Path
) -> None:
    """Where a server stamps a closed file, a file that is renamed for the test tells."""
    written = await store.put(f"{tmp_path}/f", b"1", overwrite=False)
    os.utime(written.path, (1, 1))
    await refuse_renumbering(store, written)
    assert os.listdir(tmp_path) == ["f"]


async def test_a_disk_keeps_the_etag(store: Wrapped, tmp_path: Path) -> None:
    """A file that was renamed on a disk is known again."""
    await store.put(f"{tmp_path}/f", b"1")
    assert await keeps_etag(store, f"{tmp_path}/f", f"{tmp_path}/g")

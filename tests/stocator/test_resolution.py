"""Tables that Stocator wrote: what a reader should see, and what a repair deletes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import NotFoundError
from asynccommit.stocator.resolution import Resolved, repair, resolve
from asynccommit.stores.base import Info, Store
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Call, Op, Wrapped
from asynccommit.stores.urls import Address
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import S3Service
from asynccommit.testing.models.virtual_loop import run_virtual

ONE, TWO, THREE = (f"attempt_201512062056_0000_m_000000_{n}" for n in range(3))
TABLE = {
    "t/_SUCCESS": 0,
    f"t/part-0-{ONE}.csv": 5,
    f"t/part-0-{TWO}.csv": 9,
    f"t/part-0-{THREE}.csv": 2,
    f"t/part-1-{TWO}.csv": 4,
    f"t/part-1-{ONE}.csv": 4,
    f"t/p=1/part-2-{ONE}.csv": 3,
    f"t/p=2/part-2-{ONE}.csv": 0,
    "t/other.csv": 6,
}
SEEN = [
    "t/other.csv",
    f"t/p=1/part-2-{ONE}.csv",
    f"t/part-0-{TWO}.csv",
    f"t/part-1-{ONE}.csv",
]
LOST = [f"t/part-0-{ONE}.csv", f"t/part-0-{THREE}.csv", f"t/part-1-{TWO}.csv"]


def bucket() -> SimS3Store:
    """Return an empty bucket."""
    ids = map(str, count())
    service = S3Service(now=lambda: 0.0, new_id=lambda: next(ids))
    service.create_bucket("data")
    return SimS3Store(Address("s3", "data", "/"), {"service": service})


async def fill(store: Store, sizes: Mapping[str, int], root: str = "") -> None:
    """Write files of these sizes."""
    for name, size in sizes.items():
        path = f"{root}/{name}"
        if store.traits.directories:
            await store.mkdir(path.rpartition("/")[0])
        await store.put(path, bytes(size))


def names(entries: list[Info], root: str = "") -> list[str]:
    """Return the paths of entries, relative to where the tables are."""
    return [info.path.removeprefix(f"{root}/") for info in entries]


async def resolved(sizes: Mapping[str, int], path: str = "/t") -> Resolved:
    """Return what a reader should see of these objects."""
    store = bucket()
    await fill(store, sizes)
    return await resolve(store, path)


async def test_the_largest_attempt_is_seen() -> None:
    """Of several attempts the largest counts, of two as large the smaller name; none is empty."""
    found = await resolved(TABLE)

    assert names(found.visible) == SEEN
    assert {winner[1:]: names(group) for winner, group in found.losers.items()} == {
        SEEN[2]: LOST[:2],
        SEEN[3]: LOST[2:],
    }
    assert names(found.empty) == ["t/_SUCCESS", f"t/p=2/part-2-{ONE}.csv"]
    assert found.unfinished == []


async def test_on_a_store_with_directories(tmp_path: Path) -> None:
    """A copy of the table elsewhere is read alike."""
    store, root = LocalStore(), str(tmp_path)
    await fill(store, TABLE, root)
    found = await resolve(store, f"{root}/t")
    done = await repair(store, f"{root}/t", dry_run=False)
    await store.aclose()

    assert names(found.visible, root) == SEEN
    assert [path.removeprefix(f"{root}/") for path in done.deleted] == LOST


async def test_without_success_attempts_are_hidden() -> None:
    """Nothing of a job that has not finished is seen, and other files are."""
    found = await resolved({name: size for name, size in TABLE.items() if "_SUCCESS" not in name})

    assert names(found.visible) == ["t/other.csv"]
    assert names(found.unfinished) == sorted(
        name for name, size in TABLE.items() if "attempt_" in name and size
    )
    assert found.losers == {}


@pytest.mark.parametrize("marker", ["_SUCCESS", "a/_SUCCESS", "a/t/_SUCCESS", "a/t/p=1/_SUCCESS"])
async def test_success_in_any_directory_above(marker: str) -> None:
    """The marker may be in the directory of the file or any above it, the bucket's root too."""
    found = await resolved({marker: 0, f"a/t/p=1/part-0-{ONE}.csv": 3}, "/a/t")

    assert names(found.visible) == [f"a/t/p=1/part-0-{ONE}.csv"]


async def test_success_elsewhere() -> None:
    """The marker of one partition, or of another table, is none for the rest."""
    sizes = {"a/t/p=1/_SUCCESS": 0, "a/u/_SUCCESS": 0, f"a/t/p=2/part-0-{ONE}.csv": 3}
    found = await resolved(sizes, "/a/t")

    assert (found.visible, names(found.unfinished)) == ([], [f"a/t/p=2/part-0-{ONE}.csv"])


async def test_a_marker_with_content() -> None:
    """A marker that says something is a marker, and a file that is seen."""
    found = await resolved({"t/_SUCCESS": 7, f"t/part-0-{ONE}.csv": 3})

    assert names(found.visible) == ["t/_SUCCESS", f"t/part-0-{ONE}.csv"]


async def test_temporary_is_not_seen() -> None:
    """What is under ``_temporary`` is no file of the table."""
    found = await resolved({"t/_SUCCESS": 0, f"t/_temporary/0/{ONE}/part-0.csv": 3})

    assert (found.visible, found.unfinished) == ([], [])


async def test_whole_bucket() -> None:
    """The root of a bucket is a directory like others."""
    found = await resolved({"_SUCCESS": 0, f"part-0-{ONE}.csv": 3, f"part-0-{TWO}.csv": 4}, "/")

    assert names(found.visible) == [f"part-0-{TWO}.csv"]


async def test_a_missing_directory(tmp_path: Path) -> None:
    """A directory that is not there is an error where the store has directories."""
    store = LocalStore()
    with pytest.raises(NotFoundError):
        await resolve(store, f"{tmp_path}/none")
    await store.aclose()

    assert (await resolved({"u": 1}, "/none")).visible == []


async def test_repair_deletes_nothing_at_first() -> None:
    """Unless it is told otherwise, a repair only says what it would delete."""
    store = bucket()
    await fill(store, TABLE)
    said = await repair(store, "/t")

    assert (names(said.losers), said.deleted, said.dry_run) == (LOST, [], True)
    assert names((await resolve(store, "/t")).losers[f"/{SEEN[2]}"]) == LOST[:2]


async def test_repair() -> None:
    """After a repair every reader sees the same, and a second repair finds nothing."""
    store = bucket()
    await fill(store, TABLE)
    done = await repair(store, "/t", dry_run=False)
    after = await resolve(store, "/t")
    again = await repair(store, "/t", dry_run=False)

    assert done.deleted == [f"/{name}" for name in LOST]
    assert (names(after.visible), after.losers) == (SEEN, {})
    assert names(after.empty) == ["t/_SUCCESS", f"t/p=2/part-2-{ONE}.csv"]
    assert (again.losers, again.deleted, again.kept) == ([], [], {})


async def test_repair_needs_success() -> None:
    """Without the marker nothing is known of any attempt, so nothing is deleted."""
    store = bucket()
    await fill(store, {name: size for name, size in TABLE.items() if "_SUCCESS" not in name})
    done = await repair(store, "/t", dry_run=False)

    assert (done.losers, done.deleted) == ([], [])
    assert len((await resolve(store, "/t")).unfinished) == 6


class Meddling:
    """Something happens to a file right before the first look at any file of the table."""

    def __init__(self, store: Store, path: str, size: int | None) -> None:
        self.store, self.path, self.size = store, path, size

    def around(self, call: Call) -> Call:
        """Return the call that lets it happen."""

        async def meddle(op: Op) -> Any:
            if op.name == "head" and "part-" in op.args[0] and self.path:
                changed, self.path = self.path, ""
                if self.size is None:
                    await self.store.delete(changed)
                else:
                    await self.store.put(changed, bytes(self.size))
            return await call(op)

        return meddle


@pytest.mark.parametrize(
    "name,size,why",
    [
        (TWO, None, "is gone"),
        (TWO, 1, "the larger file is now smaller"),
        (ONE, None, "it is gone"),
        (ONE, 7, "it has changed since the listing"),
    ],
)
async def test_repair_of_a_table_that_changes(name: str, size: int | None, why: str) -> None:
    """What is not as it was listed any more is left, with the reason."""
    store = bucket()
    await fill(store, {"t/_SUCCESS": 0, f"t/part-0-{ONE}.csv": 5, f"t/part-0-{TWO}.csv": 9})
    meddled = Wrapped(store, Meddling(store, f"/t/part-0-{name}.csv", size))
    done = await repair(meddled, "/t", dry_run=False)

    assert done.deleted == []
    assert list(done.kept) == [f"/t/part-0-{ONE}.csv"]
    assert done.kept[f"/t/part-0-{ONE}.csv"].endswith(why)


def expected(sizes: Mapping[str, int]) -> set[str]:
    """Return what the rule says is seen below ``t``, worked out from pairs of objects."""
    shown = set[str]()
    for name, size in sizes.items():
        stem, _, attempt = name.partition("-attempt_")
        rivals = {(-sizes[other], other) for other in sizes if other.startswith(f"{stem}-attempt_")}
        if size and (not attempt or min(rivals) == (-size, name)):
            shown.add(name)
    return shown


tables: st.SearchStrategy[dict[str, int]] = st.dictionaries(
    st.builds(
        "t/{}part-{}{}".format,
        st.sampled_from(["", "p=1/"]),
        st.integers(0, 2),
        st.sampled_from(["", f"-{ONE}", f"-{TWO}", f"-{THREE}"]),
    ),
    st.integers(0, 3),
    max_size=10,
)


@given(tables)
def test_any_table(sizes: dict[str, int]) -> None:
    """Whatever was written, what is seen is what the rule says, and a repair leaves just that."""

    async def scenario() -> tuple[list[str], list[str], Any]:
        store = bucket()
        await fill(store, {**sizes, "t/_SUCCESS": 0})
        before = names((await resolve(store, "/t")).visible)
        await repair(store, "/t", dry_run=False)
        after = await resolve(store, "/t")
        return before, names(after.visible), after.losers

    before, after, losers = run_virtual(scenario())

    assert set(before) == expected(sizes)
    assert (after, losers) == (before, {})

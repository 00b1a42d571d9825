"""Requests under a grant: refused when it is over, and tied to the directories that were there."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pytest

from asynccommit.errors import ExistsError, NotFoundError, RejectedError
from asynccommit.stores.base import NOT_A_LINK
from asynccommit.stores.grant import check_grant, granting, unchecked
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.in_flight import InFlightLimit

pytestmark = pytest.mark.skipif(not LocalStore.traits.pins, reason="this system has no /proc")


class OverError(Exception):
    """The grant is over."""


def over() -> None:
    """Say that nothing may be changed any more."""
    raise OverError


@pytest.fixture
async def store() -> AsyncIterator[LocalStore]:
    """A local store."""
    made = LocalStore()
    yield made
    await made.aclose()


def job(root: Path) -> Path:
    """Make a job's directory as each of its runs finds it; return the attempt's."""
    attempt = root / "_temporary/job/00"
    (attempt / "tasks").mkdir(parents=True)
    (attempt / "tasks/part-0").write_text("x")
    return attempt


def tree(root: Path) -> list[str]:
    """Return all files and directories below."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


async def pinned(store: LocalStore, attempt: Path) -> AbstractContextManager[None]:
    """Return the grant of a run that has pinned its directories."""
    places = [str(attempt.parent), str(attempt)]
    return granting(pins=await store.pin(places, [str(attempt.parents[1] / "0")]))


async def test_nothing_is_changed_once_the_grant_is_over(store: LocalStore, tmp_path: Path) -> None:
    """Every request that changes something asks the grant; what only reads does not."""
    attempt = job(tmp_path)
    part, free = str(attempt / "tasks/part-0"), str(tmp_path / "free")
    before = tree(tmp_path)
    with granting(check=over):
        for request in (
            store.rename(part, free),
            store.rename_many([(part, free, None)]),
            store.put(free, b"x"),
            store.mkdir(free),
            store.copy(part, free),
            store.delete(part),
            store.delete_tree(str(attempt)),
        ):
            with pytest.raises(OverError):
                await request
        assert (await store.head(part)).size == 1
        with unchecked():
            await store.delete(part)
    assert tree(tmp_path) == [name for name in before if "part-0" not in name]


async def test_a_grant_that_ends_among_many_renames(store: LocalStore, tmp_path: Path) -> None:
    """The files before it are counted; the next request is told."""
    left = [2]

    def two() -> None:
        if not left[0]:
            raise OverError
        left[0] -= 1

    pairs = [(str(tmp_path / f"a{n}"), str(tmp_path / f"b{n}"), None) for n in range(5)]
    for source, _, _ in pairs:
        Path(source).touch()
    with granting(check=two):
        assert await store.rename_many(pairs) == (2, None)
        with pytest.raises(OverError):
            await store.rename_many(pairs[2:])
    assert tree(tmp_path) == ["a2", "a3", "a4", "b0", "b1"]


async def test_directories_are_listed_from_their_pins(store: LocalStore, tmp_path: Path) -> None:
    """A directory that has come to the place of a pinned one is not listed for it."""
    attempt = job(tmp_path)
    paths = [f"{attempt}/tasks", str(tmp_path)]
    with await pinned(store, attempt):
        attempt.rename(f"{attempt}-moved")
        (attempt / "tasks").mkdir(parents=True)
        found = await store.list_many(paths)
    assert found[0] is not None
    assert [info.path for info in found[0].entries] == [f"{attempt}/tasks/part-0"]


async def test_a_request_that_waits_in_a_wrapper_asks_again(tmp_path: Path) -> None:
    """What was queued when the grant ended is not sent when its turn comes."""
    store, told = LocalStore(), list[BaseException]()
    wrapped = Wrapped(store, InFlightLimit(1))
    ended = [False]

    def check() -> None:
        if ended[0]:
            raise OverError

    async def make(number: int) -> None:
        try:
            await wrapped.mkdir(str(tmp_path / f"{number}"))
        except OverError as error:
            told.append(error)
        ended[0] = True

    with granting(check=check):
        await asyncio.gather(*map(make, range(3)))
    await store.aclose()
    assert tree(tmp_path) == ["0"]
    assert len(told) == 2


async def test_a_grant_is_of_its_block(tmp_path: Path) -> None:
    """What comes after the block is asked for as before."""
    with pytest.raises(OverError), granting(check=over):
        check_grant()
    check_grant()


async def test_the_next_directory_of_the_name_is_not_reached(
    store: LocalStore, tmp_path: Path
) -> None:
    """Below a directory that was deleted there is nothing, whatever has its name now."""
    attempt = job(tmp_path)
    with await pinned(store, attempt):
        shutil.rmtree(attempt.parent)
        job(tmp_path)
        before = tree(tmp_path)
        part, aside = str(attempt / "tasks/part-0"), str(attempt / "aside")
        (tmp_path / "old").touch()
        for request in (
            store.rename(part, str(tmp_path / "free")),
            store.rename(str(tmp_path / "old"), aside),
            store.rename(str(attempt), f"{attempt}.committed"),
            store.head(part),
            store.get(part, 10),
            store.list(str(attempt / "tasks")),
            store.list(str(attempt)),
            store.list(str(attempt.parent)),
            store.put(aside, b"x"),
            store.mkdir(aside),
            store.delete(part),
            store.delete_tree(str(attempt)),
        ):
            with pytest.raises(NotFoundError):
                await request
        done, error = await store.rename_many([(part, str(tmp_path / "free"), None)])
        assert done == 0
        assert isinstance(error, NotFoundError)
    assert tree(tmp_path) == sorted([*before, "old"])
    assert (await store.head(part)).size == 1


async def test_the_job_attempts_directory_itself_is_told_by_what_it_is(
    store: LocalStore, tmp_path: Path
) -> None:
    """Also where the job's directory is the same, only that of the attempt was made again."""
    attempt = job(tmp_path)
    with await pinned(store, attempt):
        shutil.rmtree(attempt)
        job_dir_stays = job(tmp_path)
        for request in (
            store.rename(str(attempt), f"{attempt}.aborted"),
            store.delete_tree(str(attempt)),
            store.head(str(attempt)),
        ):
            with pytest.raises(NotFoundError):
                await request
        assert [info.path for info in (await store.list(str(attempt.parent))).entries] == [
            str(job_dir_stays)
        ]
    assert (attempt / "tasks/part-0").exists()


async def test_the_own_directory_is_reached_under_its_path(
    store: LocalStore, tmp_path: Path
) -> None:
    """As long as it is there, everything works, and answers name what was asked."""
    attempt = job(tmp_path)
    with await pinned(store, attempt):
        made = str(attempt / "new")
        await store.mkdir(made)
        info = await store.put(f"{made}/a", b"abc", overwrite=False)
        assert info.etag == (await store.head(f"{made}/a")).etag
        assert info.path == f"{made}/a"
        assert await store.get(f"{made}/a", 10) == b"abc"
        assert (await store.list(str(attempt))).entries[0].path.startswith(f"{attempt}/")
        with pytest.raises(ExistsError, match="_temporary/job/00/tasks/part-0"):
            await store.rename(f"{made}/a", str(attempt / "tasks/part-0"))
        await store.rename(f"{made}/a", str(tmp_path / "a"), replace=True)
        await store.rename(str(attempt), f"{attempt}.committed")
        with pytest.raises(NotFoundError):
            await store.head(made)
        await store.delete_tree(f"{attempt}.committed")
        await store.delete(str(attempt.parent))
    assert tree(tmp_path) == ["_temporary", "a"]


async def test_a_place_that_was_not_there(store: LocalStore, tmp_path: Path) -> None:
    """It is reached once a request of the same grant has made it, and not if another has."""
    attempt = tmp_path / "_temporary/job/00"
    with await pinned(store, attempt):
        job(tmp_path)
        with pytest.raises(NotFoundError):
            await store.head(str(attempt / "tasks/part-0"))
        with pytest.raises(NotFoundError):
            await store.rename(str(attempt), f"{attempt}.aborted")
        shutil.rmtree(attempt.parent)
        await store.mkdir(str(attempt / "mine"))
        await store.put(str(attempt / "mine/a"), b"x")
        assert (await store.head(str(attempt / "mine/a"))).size == 1


async def test_a_shared_directory(store: LocalStore, tmp_path: Path) -> None:
    """A task's directory is opened before the grant is asked, so it is one of that time."""
    shared = tmp_path / "_temporary/0"
    task = shared / "task_1"
    task.mkdir(parents=True)
    (task / "part-0").write_text("old")

    def check() -> None:
        """Take away what was opened: the file that is moved then is that one, or none."""
        shutil.rmtree(task)
        task.mkdir()
        (task / "part-0").write_text("new")

    pins = await store.pin([str(tmp_path / "_temporary/job")], [str(shared)])
    with granting(check=check, pins=pins), pytest.raises(NotFoundError):
        await store.rename(str(task / "part-0"), str(tmp_path / "part-0"))
    assert (task / "part-0").read_text() == "new"


async def test_a_tree_that_is_replaced_before_it_is_deleted(
    store: LocalStore, tmp_path: Path
) -> None:
    """The directory is opened before the grant is asked, and another one is not deleted."""
    task = tmp_path / "task_1"
    task.mkdir()

    def check() -> None:
        task.rmdir()
        task.mkdir()
        (task / "part-0").write_text("new")

    with granting(check=check), suppress(ExistsError):
        await store.delete_tree(str(task))
    assert (task / "part-0").read_text() == "new"


async def test_no_link_below_a_root_is_followed(store: LocalStore, tmp_path: Path) -> None:
    """Each request names the link, and what is behind it stays as it is; a root may be a link."""
    (tmp_path / "private/in").mkdir(parents=True)
    (tmp_path / "private/secret").write_text("s")
    (tmp_path / "real").mkdir()
    (tmp_path / "table").symlink_to(tmp_path / "real")
    (tmp_path / "real/link").symlink_to(tmp_path / "private")
    (tmp_path / "real/file").write_text("f")
    table, before = str(tmp_path / "table"), tree(tmp_path / "private")
    link = f"{table}/link"
    with granting(pins=await store.pin([f"{table}/_temporary/job"], [table])):
        for request in (
            store.rename(f"{link}/secret", f"{table}/secret"),
            store.rename(f"{table}/file", f"{link}/file"),
            store.rename(f"{table}/file", f"{link}/in/file", replace=True),
            store.head(f"{link}/secret"),
            store.get(f"{link}/secret", 10),
            store.list(link),
            store.list(f"{link}/in"),
            store.put(f"{link}/new", b"x"),
            store.mkdir(link),
            store.mkdir(f"{link}/in"),
            store.mkdir(f"{link}/new"),
            store.mkdir_new(f"{link}/new"),
            store.copy(f"{link}/secret", f"{table}/secret"),
            store.copy(f"{table}/file", f"{link}/file"),
            store.delete(f"{link}/secret"),
            store.delete_tree(f"{link}/in"),
        ):
            with pytest.raises(RejectedError, match=f"{link} is a link"):
                await request
        done, error = await store.rename_many([(f"{link}/secret", f"{table}/secret", None)])
        assert (done, type(error)) == (0, RejectedError)
        assert await store.list_many([link, table]) != []
        assert [info.path for info in (await store.list(table)).entries] == [
            f"{table}/file",
            link,
        ]
        await store.mkdir(f"{table}/day=1/hour=1")
        await store.rename(f"{table}/file", f"{table}/day=1/hour=1/file")
    assert tree(tmp_path / "private") == before
    assert (tmp_path / "real/day=1/hour=1/file").read_text() == "f"


async def test_a_link_is_not_renamed_as_a_file(store: LocalStore, tmp_path: Path) -> None:
    """Where a file without an etag is meant, a link in its place stays where it is."""
    (tmp_path / "file").write_text("f")
    (tmp_path / "link").symlink_to("file")
    source, dest = str(tmp_path / "link"), str(tmp_path / "dest")
    with pytest.raises(RejectedError, match="a symbolic link"):
        await store.rename(source, dest, etag=NOT_A_LINK)
    await store.rename(str(tmp_path / "file"), dest, etag=NOT_A_LINK)
    assert tree(tmp_path) == ["dest", "link"]


async def test_few_descriptors_are_enough(store: LocalStore, tmp_path: Path) -> None:
    """With nearly no descriptor left, files of many directories are renamed all the same."""
    pairs = []
    for number in range(80):
        (tmp_path / f"a/{number}").mkdir(parents=True)
        (tmp_path / f"b/{number}").mkdir(parents=True)
        (tmp_path / f"a/{number}/f").touch()
        pairs.append((f"{tmp_path}/a/{number}/f", f"{tmp_path}/b/{number}/f", None))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with granting(pins=await store.pin([f"{tmp_path}/job"], [str(tmp_path)])):
        top = max(map(int, os.listdir("/proc/self/fd")))
        resource.setrlimit(resource.RLIMIT_NOFILE, (top + 8, hard))
        try:
            done, error = await store.rename_many(pairs)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (done, error) == (80, None)
    assert (await store.list(f"{tmp_path}/b/79")).entries

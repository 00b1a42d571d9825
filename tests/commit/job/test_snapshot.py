"""A snapshot answers what it knows, and nothing once something was written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.job.snapshot import MAX_FILE_BYTES, take_snapshot, view
from asynccommit.errors import NotFoundError, RejectedError
from asynccommit.stores.base import Kind, Store
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Call, Op, Wrapped


class Asked:
    """The requests that reach a store."""

    def __init__(self) -> None:
        self.ops: list[str] = []

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        def noted(op: Op) -> object:
            self.ops.append(f"{op.name} {op.path}")
            return call(op)

        return noted  # type: ignore[return-value]


async def looked(root: Path, asked: Asked) -> tuple[Store, str]:
    """Return a store with a snapshot of ``root``, and the path of ``root``."""
    (root / "directory").mkdir()
    (root / "directory/deep").mkdir()
    (root / "file").write_bytes(b"data")
    (root / "large").write_bytes(bytes(MAX_FILE_BYTES + 1))
    store = Wrapped(LocalStore(), asked)
    files = [f"{root}/file", f"{root}/large", f"{root}/none"]
    found = await take_snapshot(store, infos=[f"{root}/a"], listings=[str(root)], files=files)
    asked.ops.clear()
    return view(store, found), str(root)


async def test_what_is_known_needs_no_request(tmp_path: Path) -> None:
    """Entries of a listing, missing paths and small files are answered by the snapshot."""
    store, root = await looked(tmp_path, asked := Asked())
    assert (await store.head(f"{root}/directory")).kind is Kind.DIRECTORY
    assert (await store.head(root)).is_dir
    assert (await store.head(f"{root}/file")).size == 4
    assert await store.get(f"{root}/file", 100) == b"data"
    assert len((await store.list(root)).entries) == 3
    for missing in (f"{root}/a", f"{root}/b", f"{root}/b/c/d"):
        with pytest.raises(NotFoundError):
            await store.head(missing)
        with pytest.raises(NotFoundError):
            await store.list(missing)
        with pytest.raises(NotFoundError):
            await store.get(missing, 1)
    assert not asked.ops


class Late:
    """A policy that changes ``path`` after it was read and before its directory is listed."""

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self._path = path
        self._was_read = asyncio.Event()

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def changed(op: Op) -> Any:
            if op.name == "list":
                await self._was_read.wait()
                await self._store.put(self._path, b"other")
            answer = await call(op)
            if op.name == "get_tagged":
                self._was_read.set()
            return answer

        return changed


async def test_a_file_that_is_not_the_listed_one_is_asked(tmp_path: Path) -> None:
    """The content of a file is that of its listed etag, or of a later version."""
    path, inner = f"{tmp_path}/file", LocalStore()
    await inner.put(path, b"first")
    store = Wrapped(inner, asked := Asked(), Late(inner, path))
    seen = view(store, await take_snapshot(store, listings=[str(tmp_path)], files=[path]))
    asked.ops.clear()

    assert await seen.get(path, 100) == b"other"
    assert asked.ops == [f"get {path}"]


async def test_what_is_unknown_is_asked(tmp_path: Path) -> None:
    """So are what lies deeper, and files over the limit of the snapshot or of the question."""
    store, root = await looked(tmp_path, asked := Asked())
    assert (await store.head(f"{root}/directory/deep")).is_dir
    assert not (await store.list(f"{root}/directory/deep")).entries
    assert len(await store.get(f"{root}/large", 1 << 20)) > MAX_FILE_BYTES
    with pytest.raises(RejectedError):
        await store.get(f"{root}/file", 3)
    assert len(asked.ops) == 4


async def test_a_write_ends_it(tmp_path: Path) -> None:
    """After any write every question is asked again."""
    store, root = await looked(tmp_path, asked := Asked())
    await store.mkdir(f"{root}/a")
    assert (await store.head(f"{root}/a")).is_dir
    assert len((await store.list(root)).entries) == 4
    assert asked.ops == [f"mkdir {root}/a", f"head {root}/a", f"list {root}"]

"""A directory of the table is the same, moved whole or made for files that are moved into it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.options.job import Options
from asynccommit.results import JobReport
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.modes import UMASK
from asynccommit.stores.policies.funnel import Wrapped
from tests.commit.by_rename.test_rename_directories import moved, tasks_of
from tests.support.faults import Faults, apart
from tests.support.jobs import HOST, committer, left, visible
from tests.support.permissions import GROUP, KINDS, directory, facts, like_hadoop, umask

WHOLE = {f"day={n}/hour={n % 3}/part": str(n) for n in range(60)} | {"day=0/part": "0"}
"""Directories that are moved as they are."""
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


async def commit(dest: Path, seen: Faults, option: str | None = None) -> JobReport:
    """Commit what the tasks at ``dest`` have written; ``option`` is Hadoop's umask."""
    store = Wrapped(LocalStore(None, {UMASK: option}), *apart([seen]))
    job = ManifestCommitter(store, committer(dest).layout, Options(), HOST)
    try:
        return await job.commit_job()
    finally:
        await store.aclose()


def whole(seen: Faults, dest: Path, files: Mapping[str, str]) -> bool:
    """Return whether the directories came as they were, each with one rename."""
    tops = {name.partition("/")[0] for name in files}
    return moved(seen, dest) == sorted({"_SUCCESS", *tops})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("option, mask", [(None, 0o077), (None, 0o027), ("002", 0o022)])
async def test_a_directory_moved_whole_has_the_permissions_of_a_new_one(
    tmp_path: Path, option: str | None, mask: int, kind: str
) -> None:
    """A library made it by the umask of its process; it becomes as this job makes directories."""
    dest, seen = directory(tmp_path / "t", kind), Faults()
    hadoop, file = like_hadoop(dest, int(option or "022", 8))
    with umask(mask):
        await tasks_of(dest, WHOLE)
        await commit(dest, seen, option)

    assert whole(seen, dest, WHOLE)
    made = {*dest.rglob("day=*"), *dest.rglob("hour=*")}
    assert (len(made), {facts(path) for path in made}) == (120, {hadoop})
    assert facts(dest / "_SUCCESS") == file
    assert (visible(dest), left(dest)) == (WHOLE, [])


@ROOT
@pytest.mark.parametrize("deep", [False, True])
async def test_directories_of_another_user_are_made_anew(tmp_path: Path, deep: bool) -> None:
    """Files of tasks of another user keep their owner; the table's directories are the job's."""
    dest, seen = directory(tmp_path / "t", "plain"), Faults()
    hadoop, _ = like_hadoop(dest, 0o022)
    await tasks_of(dest, WHOLE)
    names = "hour=*" if deep else "day=*"
    for path in (*dest.rglob(f"tasks/*/**/{names}"), *dest.rglob("part")):
        os.chown(path, 1000, 1000)
    await commit(dest, seen)

    made = {*dest.rglob("day=*"), *dest.rglob("hour=*")}
    assert (len(made), {facts(path) for path in made}) == (120, {hadoop})
    assert {path.stat().st_uid for path in dest.rglob("part")} == {1000}
    assert (visible(dest), left(dest)) == (WHOLE, [])


@ROOT
@pytest.mark.parametrize("kind", ["setgid", "acl"])
async def test_a_new_directory_inherits_from_the_one_it_is_in(tmp_path: Path, kind: str) -> None:
    """If only a directory of the table hands something on, what comes there gets it."""
    dest, seen = directory(tmp_path / "t", "plain"), Faults()
    files = {f"year=1/day={n}/part": str(n) for n in range(60)}
    directory(dest / "year=1", kind)
    hadoop, _ = like_hadoop(dest / "year=1", 0o022)
    await tasks_of(dest, files)
    await commit(dest, seen)

    assert {facts(path) for path in dest.rglob("day=*")} == {hadoop}
    assert hadoop[2] == (GROUP if kind == "setgid" else os.getegid())
    assert (visible(dest), left(dest)) == (files, [])

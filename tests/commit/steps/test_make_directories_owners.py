"""The directories of a table on a local disk are made by its jobs, and are no task's."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.options.job import Options
from asynccommit.results import JobReport
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.modes import UMASK
from asynccommit.stores.policies.funnel import Policy, Wrapped
from tests.commit.steps.test_rename_directories import tasks_of
from tests.support.faults import Before, apart
from tests.support.jobs import HOST, committer, left, visible
from tests.support.permissions import GROUP, KINDS, directory, facts, like_hadoop, umask

FILES = {f"day={n}/hour={n % 3}/part": str(n) for n in range(60)} | {"day=0/part": "0"}
"""The output of a task that fills many directories."""
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


async def commit(dest: Path, *policies: Policy, option: str | None = None) -> JobReport:
    """Commit what the tasks at ``dest`` have written; ``option`` is Hadoop's umask."""
    store = Wrapped(LocalStore(None, {UMASK: option}), *apart(policies))
    job = ManifestCommitter(store, committer(dest).layout, Options(), HOST)
    try:
        return await job.commit_job()
    finally:
        await store.aclose()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("option, mask", [(None, 0o077), (None, 0o027), ("002", 0o022)])
async def test_a_directory_has_the_permissions_of_a_new_one(
    tmp_path: Path, option: str | None, mask: int, kind: str
) -> None:
    """A library makes its task's by the umask of its process; the table's are made by the job."""
    dest = directory(tmp_path / "t", kind)
    hadoop, file = like_hadoop(dest, int(option or "022", 8))
    with umask(mask):
        await tasks_of(dest, FILES)
        await commit(dest, option=option)

    made = {*dest.rglob("day=*"), *dest.rglob("hour=*")}
    assert (len(made), {facts(path) for path in made}) == (120, {hadoop})
    assert facts(dest / "_SUCCESS") == file
    assert (visible(dest), left(dest)) == (FILES, [])


@ROOT
@pytest.mark.parametrize("deep", [False, True])
async def test_directories_of_another_user_are_made_anew(tmp_path: Path, deep: bool) -> None:
    """Files of tasks of another user keep their owner; the table's directories are the job's."""
    dest = directory(tmp_path / "t", "plain")
    hadoop, _ = like_hadoop(dest, 0o022)
    await tasks_of(dest, FILES)
    names = "hour=*" if deep else "day=*"
    for path in (*dest.rglob(f"tasks/*/**/{names}"), *dest.rglob("part")):
        os.chown(path, 1000, 1000)
    await commit(dest)

    made = {*dest.rglob("day=*"), *dest.rglob("hour=*")}
    assert (len(made), {facts(path) for path in made}) == (120, {hadoop})
    assert {path.stat().st_uid for path in dest.rglob("part")} == {1000}
    assert (visible(dest), left(dest)) == (FILES, [])


@ROOT
@pytest.mark.parametrize("kind", ["setgid", "acl"])
async def test_a_new_directory_inherits_from_the_one_it_is_in(tmp_path: Path, kind: str) -> None:
    """If only a directory of the table hands something on, what comes there gets it."""
    dest = directory(tmp_path / "t", "plain")
    files = {f"year=1/day={n}/part": str(n) for n in range(60)}
    directory(dest / "year=1", kind)
    hadoop, _ = like_hadoop(dest / "year=1", 0o022)
    await tasks_of(dest, files)
    await commit(dest)

    assert {facts(path) for path in dest.rglob("day=*")} == {hadoop}
    assert hadoop[2] == (GROUP if kind == "setgid" else os.getegid())
    assert (visible(dest), left(dest)) == (files, [])


class Straggler:
    """A process that has directories of a job open, and writes into them."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._open: list[int] = []

    async def look(self) -> None:
        """Open every directory of the job."""
        found = await asyncio.to_thread(lambda: [*os.walk(self._top / "_temporary")])
        self._open += [os.open(path, os.O_RDONLY) for path, *_ in found]

    async def write(self) -> None:
        """Write a file into each directory that was opened."""
        for fd in self._open:
            with suppress(FileNotFoundError):  # it was deleted
                os.close(os.open("stray", os.O_CREAT | os.O_WRONLY, dir_fd=fd))

    def close(self) -> None:
        """Close them all."""
        for fd in self._open:
            os.close(fd)


@pytest.mark.parametrize("when", ["/tasks/", "{dest}/day=", "/_SUCCESS", "never"])
async def test_who_has_a_directory_of_a_job_open_writes_nothing_into_the_table(
    tmp_path: Path, when: str
) -> None:
    """Whichever it opened, and whenever it writes, nothing of that is in the table then."""
    files = {f"day={n % 2}/part-{n}": "1" for n in range(120)}
    straggler = Straggler(tmp_path)
    await tasks_of(tmp_path, files)
    await straggler.look()
    looks = Before("rename", f" {tmp_path}/day=", straggler.look)
    writes = Before("rename", when.format(dest=f" {tmp_path}"), straggler.write)
    report = await commit(tmp_path, looks, writes)
    await straggler.write()
    straggler.close()

    assert (visible(tmp_path), report.files) == (files, 120)

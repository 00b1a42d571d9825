"""Whole jobs of ours on a real NameNode, and what Hadoop's client reads then."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest

from asynccommit import open_job, open_store
from asynccommit.api import JobRef, job_statuses
from asynccommit.cli.output import Exit
from asynccommit.commit.planning.quotas import refuse_without_names
from asynccommit.errors import (
    CommitError,
    DeniedError,
    ForeignCommitError,
    NotFoundError,
    RejectedError,
    UnavailableError,
    UnfinishedError,
)
from asynccommit.formats.success import decode_success
from asynccommit.runtime.host import own_name
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.tree import walk
from tests.crash_real.processes import environment
from tests.support.hdfs_kill import FILES, TASKS
from tests.support.mini_hdfs import MiniHdfs

pytestmark = [pytest.mark.jvm, pytest.mark.full, pytest.mark.timeout(180)]

_numbers = count()


@pytest.fixture
def dest(hdfs: MiniHdfs) -> str:
    """Return the path of a table of this test's own, which does not exist."""
    return f"/jobs-{next(_numbers)}/a table=100%é"


@asynccontextmanager
async def opened(hdfs: MiniHdfs, **options: Any) -> AsyncIterator[Wrapped]:
    """Open the store as a program does."""
    async with open_store(hdfs.url, **options) as store:
        assert isinstance(store, Wrapped)
        yield store


def files_of(job_id: str) -> dict[str, bytes]:
    """Return the files that a job of ``tests.support.hdfs_kill`` writes."""
    return {
        f"p={file}/part-{number}": f"{job_id} {number} {file}".encode()
        for number in range(TASKS)
        for file in range(FILES)
    }


def seen(hdfs: MiniHdfs, dest: str) -> dict[str, bytes]:
    """Return what Hadoop's client lists and reads below ``dest``, the marker apart."""
    if not hdfs.exists(dest):
        return {}
    with hdfs.hadoop.errors():
        listed = hdfs.filesystem.listFiles(hdfs.path(dest), True)
        found = []
        while listed.hasNext():
            found.append(listed.next().getPath().toUri().getPath())
    names = [path.removeprefix(f"{dest}/") for path in found]
    return {name: hdfs.read(f"{dest}/{name}") for name in names if name != "_SUCCESS"}


def command(*words: str) -> tuple[int, Any]:
    """Run the command in a process of its own; return its exit code and what its JSON says."""
    line = [sys.executable, "-m", "asynccommit", *words, "--json"]
    done = subprocess.run(line, capture_output=True, text=True, env=environment(), timeout=120)
    return done.returncode, json.loads(done.stdout)


def states(found: Any) -> dict[str, str]:
    """Return the jobs of a status and the state of each."""
    return {job["job_id"]: job["state"] for job in found["jobs"]}


def run_driver(
    url: str, job_id: str, renames: int, mode: str = "append", user: str = own_name()
) -> int:
    """Run a driver of a user that kills itself before the rename of that number."""
    words = [url, job_id, mode, str(renames)]
    line = [sys.executable, "-m", "tests.support.hdfs_kill", *words]
    variables = environment() | {"HADOOP_USER_NAME": user}
    return subprocess.run(line, env=variables, timeout=120, check=False).returncode


async def test_job_is_committed(hdfs: MiniHdfs, dest: str) -> None:
    """Hadoop's client reads each file and the marker, and nothing else is left."""
    async with open_job(f"{hdfs.url}{dest}") as job:
        for number in range(3):
            async with job.task(number) as task:
                for file in range(4):
                    await task.put(f"p={file} é/part-{number}", f"{number} {file}".encode())

    assert job.report.files == 12
    expected = {f"p={f} é/part-{n}": f"{n} {f}".encode() for n in range(3) for f in range(4)}
    assert seen(hdfs, dest) == expected
    assert decode_success(hdfs.read(f"{dest}/_SUCCESS"), "_SUCCESS").success
    async with opened(hdfs) as store:
        names = {info.path.removeprefix(dest) async for info in walk(store, dest)}
    assert not [name for name in names if "_temporary" in name]


def test_directory_of_a_commit_is_its_owners(hdfs: MiniHdfs, dest: str) -> None:
    """Only the user of the driver may enter it, as Hadoop's client sees it."""
    assert run_driver(f"{hdfs.url}{dest}", "nightly", 1) == -signal.SIGKILL
    place = hdfs.path(f"{dest}/_temporary/nightly/00/commit-epoch-000001")
    with hdfs.hadoop.errors():
        status = hdfs.filesystem.getFileStatus(place)

    assert (str(status.getPermission()), status.getOwner()) == ("rwx------", own_name())


@pytest.mark.parametrize("how", ["refuse", "resume", "rollback"])
async def test_a_nightly_job_does_nothing_for_another_user(
    hdfs: MiniHdfs, dest: str, how: str
) -> None:
    """The superuser of HDFS leaves the commit of a user alone, and finishes it when asked."""
    place = hdfs.path(dest)
    hdfs.mkdirs(dest)
    with hdfs.hadoop.errors():
        rights = hdfs.hadoop.new("org.apache.hadoop.fs.permission.FsPermission", "777")
        hdfs.filesystem.setPermission(place, rights)
    url = f"{hdfs.url}{dest}"
    assert run_driver(url, "theirs", 3, user="mallory") == -signal.SIGKILL
    before = seen(hdfs, dest)
    refused = UnfinishedError if how == "refuse" else ForeignCommitError
    with pytest.raises(refused, match="belongs to mallory"):
        async with open_job(url, options={"asynccommit.on.unfinished": how}):
            pass

    assert seen(hdfs, dest) == before
    found = command("status", url)[1]["jobs"]
    assert [(job["belongs_to"], job["resume"]["command"]) for job in found] == [("mallory", "")]
    assert command("resume", url)[0] == 0
    assert seen(hdfs, dest) == files_of("theirs")


async def test_job_that_fails_leaves_nothing(hdfs: MiniHdfs, dest: str) -> None:
    """An exception in the block aborts the job."""
    with pytest.raises(ZeroDivisionError):
        async with open_job(f"{hdfs.url}{dest}") as job:
            async with job.task(0) as task:
                await task.put("part-0", b"x")
            raise ZeroDivisionError

    assert seen(hdfs, dest) == {}
    assert not hdfs.exists(f"{dest}/_temporary")


@pytest.mark.parametrize("renames", [0, 5, 11])
def test_killed_commit_is_resumed(hdfs: MiniHdfs, dest: str, renames: int) -> None:
    """After kill -9 the command shows the job and finishes it, without a JVM."""
    url = f"{hdfs.url}{dest}"
    assert run_driver(url, "nightly", renames) == -signal.SIGKILL
    assert len(seen(hdfs, dest)) > renames  # the rest is in the job's directory

    code, found = command("status", url)
    assert (code, states(found)) == (0, {"nightly": "stopped"})
    assert command("inspect", url)[0] == Exit.REFUSED  # it has found an interrupted commit
    code, report = command("resume", url)

    assert code == 0, report
    assert command("inspect", url)[0] == Exit.DONE
    assert seen(hdfs, dest) == files_of("nightly")
    assert hdfs.exists(f"{dest}/_SUCCESS")
    assert not hdfs.exists(f"{dest}/_temporary")


@pytest.mark.parametrize("mode", ["append", "replace_table"])
def test_killed_commit_is_rolled_back(hdfs: MiniHdfs, dest: str, mode: str) -> None:
    """The table is as before the job: what was replaced is back, what was moved is gone."""
    url = f"{hdfs.url}{dest}"
    assert run_driver(url, "first", 100) == 0
    before = seen(hdfs, dest)
    assert before == files_of("first")
    for name in before if mode == "append" else ():
        hdfs.rename(f"{dest}/{name}", f"{dest}/{name}-kept")
    before = seen(hdfs, dest)
    renames = 5 if mode == "append" else 1
    assert run_driver(url, "second", renames, mode) == -signal.SIGKILL

    code, report = command("abort", url, "--rollback")

    assert code == 0, report
    assert seen(hdfs, dest) == before
    assert not hdfs.exists(f"{dest}/_temporary")


async def test_abort_of_a_job_that_has_not_begun(hdfs: MiniHdfs, dest: str) -> None:
    """The command deletes what the tasks of a job left."""
    url = f"{hdfs.url}{dest}"
    async with JobRef(url, "lost").open() as committer:
        await committer.setup_job()
        _, attempt = committer.layout.ids(0, 0)
        await committer.setup_task(attempt)
    code, found = command("status", url)
    assert (code, list(states(found))) == (0, ["lost"])

    assert command("abort", url)[0] == Exit.REFUSED  # this process has the job, and is alive

    code, report = command("abort", url, "--force")

    assert code == 0, report
    assert not hdfs.exists(f"{dest}/_temporary")


async def test_quota_stops_a_commit_that_is_then_resumed(
    hdfs: MiniHdfs, dest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quota of names that is used up after it was looked at is named, with its remedy."""
    url = f"{hdfs.url}{dest}"
    hdfs.mkdirs(dest)

    def limit() -> None:
        names = hdfs.filesystem.getContentSummary(hdfs.path(dest))
        used = names.getFileCount() + names.getDirectoryCount()
        hdfs.filesystem.setQuota(hdfs.path(dest), used + 20, 2**63 - 1)

    async def looked_at(run: Any, plan: Any) -> None:
        await refuse_without_names(run, plan)
        await asyncio.to_thread(limit)

    monkeypatch.setattr("asynccommit.commit.by_rename.record.refuse_without_names", looked_at)
    job = open_job(url, job_id="nightly")
    running = await job.__aenter__()
    async with running.task(0) as task:
        for file in range(30):
            await task.put(f"p={file}/part-0", b"x")

    with pytest.raises(CommitError, match="dfsadmin -setQuota"):
        await job.__aexit__(None, None, None)

    hdfs.filesystem.setQuota(hdfs.path(dest), -1, -1)
    code, report = command("resume", url)
    assert code == 0, report
    assert len(seen(hdfs, dest)) == 30


async def test_refusals_are_our_errors(
    hdfs: MiniHdfs, dest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A colon, a missing parent and a permission are told apart, with what to do."""
    hdfs.write(f"{dest}/a", b"x")
    async with opened(hdfs) as store:
        with pytest.raises(RejectedError, match="allows no ':'"):
            await store.rename(f"{dest}/a", f"{dest}/a:b", etag="any")
        with pytest.raises(NotFoundError, match="parent"):
            await store.rename(f"{dest}/a", f"{dest}/none/a", etag="any")
    monkeypatch.setenv("HADOOP_USER_NAME", "mallory")
    async with opened(hdfs) as store:
        with pytest.raises(DeniedError, match=r"user=mallory.*ask the owner"):
            await store.rename(f"{dest}/a", f"{dest}/b", etag="any")
    assert hdfs.read(f"{dest}/a") == b"x"


@pytest.fixture
def safe_mode(hdfs: MiniHdfs) -> Iterator[None]:
    """Put the NameNode into safe mode."""
    action = hdfs.hadoop.java("org.apache.hadoop.fs.SafeModeAction")
    hdfs.filesystem.setSafeMode(action.FORCE_EXIT)
    hdfs.filesystem.setSafeMode(action.ENTER)
    yield
    hdfs.filesystem.setSafeMode(action.LEAVE)


async def test_safe_mode_is_named(hdfs: MiniHdfs, safe_mode: None) -> None:
    """Reads work; a change is refused for now, with the command that ends it."""
    async with opened(hdfs, attempts=2) as store:
        await store.head("/")
        with pytest.raises(UnavailableError, match="dfsadmin -safemode leave"):
            await store.mkdir("/new")


async def test_statuses_of_nothing(hdfs: MiniHdfs, dest: str) -> None:
    """A destination that does not exist has no jobs."""
    assert await job_statuses(f"{hdfs.url}{dest}") == []

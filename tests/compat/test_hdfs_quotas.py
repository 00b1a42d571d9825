"""Quotas of a real NameNode: refused before anything has changed, or survived in mid-commit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from asynccommit import CommitError, JobState, Mode, Options, api, job_statuses, open_job
from asynccommit.errors import AsyncCommitError
from asynccommit.spark.hadoop_store.opening import facts_of
from asynccommit.spark.hadoop_store.store import HadoopStore
from asynccommit.stores import elsewhere
from asynccommit.stores.hdfs import store as hdfs_store
from asynccommit.stores.hdfs.store import HdfsStore
from tests.support.mini_hdfs import MiniHdfs

pytestmark = [pytest.mark.jvm, pytest.mark.full, pytest.mark.timeout(180)]

_numbers = count()
NO_QUOTA = 2**63 - 1
STORES = pytest.mark.parametrize("kind", ["native", "jvm"])


@pytest.fixture
def table(hdfs: MiniHdfs, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the path of a table with one partition; ``jvm`` opens the cluster, too."""
    path = f"/quotas-{next(_numbers)}/t"
    hdfs.mkdirs(f"{path}/p=0")
    files = hdfs.hadoop.new("org.asynccommit.spark.Filesystems")
    with hdfs.hadoop.errors():
        files.open(f"{hdfs.url}/", hdfs.hadoop.configuration())
        facts = facts_of(files, hdfs.url)
    opener = lambda *_: HadoopStore(lambda: files.calls(hdfs.url), facts)  # noqa: E731
    monkeypatch.setitem(elsewhere._OPENERS, "jvm", opener)
    return path


def set_quota(hdfs: MiniHdfs, path: str, names: int = NO_QUOTA, space: int = NO_QUOTA) -> None:
    """Set the quotas of a directory."""
    with hdfs.hadoop.errors():
        hdfs.filesystem.setQuota(hdfs.path(path), names, space)


async def write(
    hdfs: MiniHdfs, table: str, kind: str, mode: Mode = Mode.APPEND, *, files: int = 6, **more: Any
) -> None:
    """Write files of ten bytes into one partition."""
    options = {"asynccommit.store": kind}
    url = f"{hdfs.url}{table}"
    async with (
        open_job(url, mode=mode, storage_options=options, **more) as job,
        job.task(0) as task,
    ):
        for number in range(files):
            await task.put(f"p=0/part-{mode}-{number}", b"0123456789")


def replicas_of(hdfs: MiniHdfs, kind: str) -> int:
    """Return the number of replicas that each client asks for; Hadoop's has its own default."""
    if kind == "jvm":
        return int(hdfs.hadoop.configuration().getInt("dfs.replication", 3))
    return int(hdfs.filesystem.getDefaultReplication(hdfs.path("/")))


def names_in(hdfs: MiniHdfs, path: str) -> set[str]:
    """Return the names in a directory."""
    return {str(each.getPath().getName()) for each in hdfs.filesystem.listStatus(hdfs.path(path))}


async def refusal(writing: Any) -> str:
    """Return the message of a job that is refused before anything has changed."""
    with pytest.raises(AsyncCommitError) as caught:
        await writing
    return str(caught.value)


@STORES
async def test_names_beyond_the_quota_are_refused(hdfs: MiniHdfs, table: str, kind: str) -> None:
    """The error names directory, quota, use, need and remedy; nothing has changed."""
    hdfs.write(f"{table}/p=0/old", b"x")
    set_quota(hdfs, f"{table}/p=0", names=7)

    said = await refusal(write(hdfs, table, kind))

    assert f"{table}/p=0" in said
    assert "quota is 7 names, 2 are used, and the job adds 6" in said
    assert "-setQuota" in said
    assert names_in(hdfs, f"{table}/p=0") == {"old"}
    set_quota(hdfs, f"{table}/p=0", names=8)
    await write(hdfs, table, kind)
    assert len(names_in(hdfs, f"{table}/p=0")) == 7


@STORES
async def test_bytes_beyond_the_quota_are_refused(hdfs: MiniHdfs, table: str, kind: str) -> None:
    """All replicas of the new files count."""
    replicas = replicas_of(hdfs, kind)
    set_quota(hdfs, f"{table}/p=0", space=59 * replicas)

    said = await refusal(write(hdfs, table, kind))

    assert f"quota is {59 * replicas} bytes of all replicas, 0 are used" in said
    assert f"the job adds {60 * replicas}" in said, said
    assert "-setSpaceQuota" in said
    assert names_in(hdfs, f"{table}/p=0") == set()
    set_quota(hdfs, f"{table}/p=0", space=60 * replicas)
    await write(hdfs, table, kind)
    assert len(names_in(hdfs, f"{table}/p=0")) == 6


@STORES
@pytest.mark.parametrize("mode", [Mode.REPLACE_PARTITIONS, Mode.REPLACE_TABLE])
async def test_files_that_are_replaced_leave_room(
    hdfs: MiniHdfs, table: str, kind: str, mode: Mode
) -> None:
    """An overwrite of a directory with a quota needs what the new files need beyond the old."""
    hdfs.mkdirs(f"{table}/p=0/sub")
    hdfs.write(f"{table}/p=0/sub/old", b"x")
    set_quota(hdfs, f"{table}/p=0", names=7)

    await write(hdfs, table, kind, mode)

    assert len(names_in(hdfs, f"{table}/p=0")) == 6


@STORES
async def test_quota_of_the_whole_table_needs_no_room(
    hdfs: MiniHdfs, table: str, kind: str
) -> None:
    """The job's own directory is below the same quota, so its files are counted already."""
    replicas = replicas_of(hdfs, kind)
    block = int(hdfs.filesystem.getDefaultBlockSize(hdfs.path("/")))
    # A file that is open takes a whole block.
    set_quota(hdfs, table, space=1000 * replicas + 9 * block * replicas)

    await write(hdfs, table, kind)

    assert len(names_in(hdfs, f"{table}/p=0")) == 6


def used(hdfs: MiniHdfs, path: str) -> int:
    """Return the number of names in a directory, itself included."""
    summary = hdfs.filesystem.getContentSummary(hdfs.path(path))
    return int(summary.getFileCount() + summary.getDirectoryCount())


async def write_partitions(hdfs: MiniHdfs, table: str, kind: str, partitions: int) -> str:
    """Write a file into each of some new partitions; return what was refused."""
    try:
        async with (
            open_job(f"{hdfs.url}{table}", storage_options={"asynccommit.store": kind}) as job,
            job.task(0) as task,
        ):
            for number in range(partitions):
                await task.put(f"new={number}/part", b"0123456789")
    except AsyncCommitError as error:
        return str(error)
    return ""


async def require_none_begun(hdfs: MiniHdfs, table: str) -> None:
    """Check that no commit stopped after its record, and delete what a refused job has left."""
    found = await job_statuses(f"{hdfs.url}{table}")
    assert [job.why for job in found if job.state is not JobState.DEAD] == []
    hdfs.filesystem.delete(hdfs.path(f"{table}/_temporary"), True)


@STORES
async def test_names_of_the_whole_table_are_asked_for(
    hdfs: MiniHdfs, table: str, kind: str
) -> None:
    """New partitions need names of the table: whatever its quota, no commit stops in the middle."""
    most, told = 10, []
    before = used(hdfs, table)
    for more in (20, 32, 45, 150):
        set_quota(hdfs, table, names=before + more)
        told.append(await write_partitions(hdfs, table, kind, most))
        await require_none_begun(hdfs, table)
        found = names_in(hdfs, table)
        if told[-1]:
            assert found == {"p=0"}, (more, told[-1])
        else:
            assert len(found) == most + 2  # with _SUCCESS and p=0
            break

    assert told[-1] == ""
    remedy = f"leaves no room for the {most + 12} directories and files that the commit makes"
    assert any(remedy in text and "-setQuota" in text for text in told)


@STORES
async def test_space_of_the_whole_table_is_asked_for(hdfs: MiniHdfs, table: str, kind: str) -> None:
    """Whatever room the table has for the blocks of open files, no commit stops in the middle."""
    replicas = replicas_of(hdfs, kind)
    block = int(hdfs.filesystem.getDefaultBlockSize(hdfs.path("/")))
    for blocks in range(4):
        set_quota(hdfs, table, space=(blocks * block + 100_000) * replicas)
        told = await write_partitions(hdfs, table, kind, 2)
        await require_none_begun(hdfs, table)
        if not told:
            break
        assert names_in(hdfs, table) == {"p=0"}, (blocks, told)
    assert len(names_in(hdfs, table)) == 4


@pytest.fixture
def run_out(hdfs: MiniHdfs, table: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let the partition's quota be used up after three renames; return what lifts it."""
    rename, moved = HdfsStore.rename, count(1)

    async def watched(self: HdfsStore, source: str, dest: str, **more: Any) -> None:
        if "/p=0/part-" in dest and next(moved) == 4:
            await asyncio.to_thread(set_quota, hdfs, f"{table}/p=0", names=2)
        await rename(self, source, dest, **more)

    monkeypatch.setattr(HdfsStore, "rename", watched)
    monkeypatch.setattr(hdfs_store, "BATCH", 0)  # each rename is a request, and is seen
    return lambda: set_quota(hdfs, f"{table}/p=0", names=100)


@pytest.mark.parametrize("end", ["resume", "roll back"])
async def test_quota_that_runs_out_in_mid_commit(
    hdfs: MiniHdfs, table: str, run_out: Callable[[], None], end: str
) -> None:
    """The commit stops with the remedy; with a higher quota it is finished, else undone."""
    url = f"{hdfs.url}{table}"
    with pytest.raises(CommitError, match=r"quota of names is used up.*-setQuota"):
        await write(hdfs, table, "native", options=Options(workers=1))
    assert 0 < len(names_in(hdfs, f"{table}/p=0")) < 6
    assert [job.state for job in await job_statuses(url)] == [JobState.STOPPED]

    if end == "resume":
        run_out()
        assert (await api.job(url).resume()).files == 6
        assert len(names_in(hdfs, f"{table}/p=0")) == 6
    else:
        await api.job(url).rollback()
        assert names_in(hdfs, f"{table}/p=0") == set()
    assert await job_statuses(url) == []

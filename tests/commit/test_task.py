"""Tasks as a program sees them, with every committer."""

from __future__ import annotations

import asyncio
import json
import os
from array import array
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from asynccommit import (
    CommitError,
    Mode,
    OptionError,
    PreflightError,
    UnsupportedError,
    api,
    job_statuses,
    open_job,
    sync,
)
from asynccommit.errors import NotFoundError
from asynccommit.inspect.discovery import open_place
from asynccommit.options.uploads import S3A
from asynccommit.stores import registry
from asynccommit.stores.tree import walk
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.models.s3.model import S3Bucket
from tests.support.jobs import visible
from tests.support.uploads import SMALLEST, keys, new_bucket

URL = "s3://data/out/t"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> S3Bucket:
    """A bucket of the model behind ``s3:`` URLs."""
    table = {**registry.STORES, "s3": "asynccommit.testing.models.s3.client.SimS3Store"}
    monkeypatch.setattr(registry, "STORES", MappingProxyType(table))
    return new_bucket()


def settings(bucket: S3Bucket, tmp_path: Path, **conf: str) -> dict[str, Any]:
    """Return what a job on the bucket is opened with."""
    options = {"fs.s3a.multipart.size": str(SMALLEST), "fs.s3a.buffer.dir": str(tmp_path), **conf}
    return {"storage_options": {"bucket": bucket}, "options": options}


def contents(bucket: S3Bucket) -> dict[str, bytes]:
    """Return what readers see below the destination."""
    found = {key: bucket.objects[key].data for key in keys(bucket)}
    return {key.removeprefix("out/t/"): data for key, data in found.items() if "/_" not in key}


@pytest.mark.parametrize("committer", ["manifest", "file_v1"])
async def test_the_commit_removes_the_suffix(tmp_path: Path, committer: str) -> None:
    """A file may have another ending until then, with committers that can take it away."""
    async with open_job(tmp_path, committer=committer) as job, job.task(0) as task:
        await task.put(f"day=1/part.csv{task.staging_suffix}", b"1")
        await task.put("day=1/other.csv", b"2")

    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.csv*")}
    assert found == {"day=1/part.csv", "day=1/other.csv"}
    assert bool(task.staging_suffix) == (committer == "manifest")


@pytest.mark.parametrize("committer", [None, "magic", "directory", "partitioned"])
async def test_writing_by_and_by(bucket: S3Bucket, tmp_path: Path, committer: str | None) -> None:
    """Scenario 14: files are written in pieces or whole, and seen when the job commits."""
    given = settings(bucket, tmp_path, **{S3A + "staging.unique-filenames": "false"})

    async with open_job(URL, committer=committer, **given) as job:
        async with job.task(0) as task:
            async with await task.open("day=1/part-0") as file:
                for number in range(10):
                    await file.write(b"%d," % number)
            await task.put("day=1/part-1", b"whole")
        async with api.job(URL, job.job_id, committer=committer, **given).task(1) as other:
            await other.put("part-2", b"")
        assert other.commit is not None
        job.accept(other.commit)
        assert contents(bucket) == {}

    assert contents(bucket) == {
        "day=1/part-0": b"0,1,2,3,4,5,6,7,8,9,",
        "day=1/part-1": b"whole",
        "part-2": b"",
    }
    assert [key for key in keys(bucket) if "/_" in key] == ["out/t/_SUCCESS"]
    assert (bucket.uploads.open, os.listdir(tmp_path)) == ({}, [])


@pytest.mark.parametrize("uploads", [False, True])
async def test_hidden_files_are_in_the_way(bucket: S3Bucket, tmp_path: Path, uploads: bool) -> None:
    """A file of the table itself whose name is hidden is replaced by no mode, on any store."""
    url = URL if uploads else str(tmp_path / "t")
    given = settings(bucket, tmp_path) if uploads else {}
    async with open_job(url, **given) as job, job.task(0) as task:
        await task.put(".note", b"old")

    with pytest.raises(PreflightError, match="exists already"):
        async with open_job(url, mode="replace_table", **given) as job, job.task(0) as task:
            await task.put(".note", b"new")


@pytest.mark.parametrize("committer", ["magic", "directory", "partitioned"])
async def test_failed_task_is_aborted(bucket: S3Bucket, tmp_path: Path, committer: str) -> None:
    """An exception in a task leaves nothing of it, and the job goes on without it."""
    async with open_job(URL, committer=committer, **settings(bucket, tmp_path)) as job:
        with pytest.raises(ValueError, match="mine"):
            async with job.task(0) as task:
                await task.put("a", b"more than one part")
                file = await task.open("b")
                await file.write(b"half of it")
                raise ValueError("mine")

    assert (contents(bucket), bucket.uploads.open) == ({}, {})
    assert job.report is not None
    assert job.report.files == 0


@pytest.mark.parametrize("committer", ["magic", "directory", "partitioned"])
async def test_failed_job_is_aborted(bucket: S3Bucket, tmp_path: Path, committer: str) -> None:
    """An exception in a job leaves no upload, no object, and no directory."""
    with pytest.raises(ValueError, match="mine"):
        async with open_job(URL, committer=committer, **settings(bucket, tmp_path)) as job:
            async with job.task(0) as task:
                await task.put("a", b"data")
            raise ValueError("mine")

    assert (keys(bucket), bucket.uploads.open) == ([], {})


@pytest.mark.parametrize("committer", ["magic", "directory", "manifest"])
async def test_open_file_fails_the_task(bucket: S3Bucket, tmp_path: Path, committer: str) -> None:
    """A task that leaves a file open commits nothing: not half of it, and not the others."""
    url = tmp_path / "out" if committer == "manifest" else URL
    buffer = tmp_path / "buffer"
    given = settings(bucket, buffer, **{"fs.s3a.multipart.size": "1M"})
    async with open_job(url, committer=committer, **given) as job:
        with pytest.raises(OptionError, match=r"still open.*: a, b"):
            async with job.task(0) as task:
                await task.put("whole", b"1")
                await (await task.open("b")).write(b"half of it" * 200_000)
                await (await task.open("a")).write(b"half of it")
                with pytest.raises(OptionError, match="already being written"):
                    await task.open("a")

    assert (contents(bucket), bucket.uploads.open) == ({}, {})
    assert not (tmp_path / "out").exists() or visible(tmp_path / "out") == {}


async def test_local_paths_of_staging(bucket: S3Bucket, tmp_path: Path) -> None:
    """What can only write to paths writes to those of a staging task."""
    given = settings(bucket, tmp_path)

    async with open_job(URL, committer="directory", **given) as job, job.task(0) as task:
        path = await asyncio.to_thread(task.path, "day=1/part-0.csv")
        Path(path).write_bytes(b"1,2")

    assert contents(bucket) == {f"day=1/part-0-{job.job_id}.csv": b"1,2"}


async def test_magic_has_no_local_paths(bucket: S3Bucket, tmp_path: Path) -> None:
    """Magic says which method to use in place of a path."""
    async with open_job(URL, **settings(bucket, tmp_path)) as job, job.task(0) as task:
        with pytest.raises(UnsupportedError, match=r"Task\.open or Task\.put"):
            task.path("a")


async def test_id_of_the_options(bucket: S3Bucket, tmp_path: Path) -> None:
    """Scenario 19: the id that the options give is the job's, and the marker says where from."""
    given = settings(bucket, tmp_path, **{S3A + "uuid": "from-options"})

    async with open_job(URL, **given) as job:
        pass

    assert job.job_id == "from-options"
    marker = json.loads(bucket.objects["out/t/_SUCCESS"].data)
    assert (marker["jobId"], marker["jobIdSource"]) == ("from-options", S3A + "uuid")


async def test_id_that_is_required(bucket: S3Bucket, tmp_path: Path) -> None:
    """Scenario 18: where an id is required and none is given, there is no job."""
    given = settings(bucket, tmp_path, **{S3A + "require.uuid": "true"})

    with pytest.raises(OptionError, match=r"set fs\.s3a\.committer\.uuid"):
        async with open_job(URL, **given):
            pass

    async with open_job(URL, job_id="given", **given) as job:
        pass
    assert job.job_id == "given"


@pytest.mark.parametrize("threads", ["0", "1", "5", "-1"])
async def test_number_of_threads(bucket: S3Bucket, tmp_path: Path, threads: str) -> None:
    """Scenario 20: however many threads there are, the result is the same."""
    given = settings(bucket, tmp_path, **{S3A + "threads": threads})

    async with open_job(URL, **given) as job:
        for number in range(4):
            async with job.task(number) as task:
                await task.put(f"part-{number}", b"x" * number)

    assert contents(bucket) == {f"part-{n}": b"x" * n for n in range(4)}


async def test_conflict_of_the_options(bucket: S3Bucket, tmp_path: Path) -> None:
    """Scenario 32: fail refuses a table that is there at setup; append and replace do not."""
    bucket.put("out/t/old", b"old")
    key = S3A + "staging.conflict-mode"

    with pytest.raises(CommitError, match="old"):
        async with open_job(
            URL, committer="directory", **settings(bucket, tmp_path, **{key: "fail"})
        ):
            pass
    async with open_job(
        URL, committer="directory", **settings(bucket, tmp_path, **{key: "append"})
    ) as job:
        pass
    assert contents(bucket) == {"old": b"old"}
    async with open_job(
        URL, committer="directory", **settings(bucket, tmp_path, **{key: "replace"})
    ) as job:
        async with job.task(0) as task:
            await task.put("new", b"new")
        assert contents(bucket) == {"old": b"old"}

    assert contents(bucket) == {f"new-{job.job_id}": b"new"}


async def test_two_jobs_of_one_destination(bucket: S3Bucket, tmp_path: Path) -> None:
    """Scenario 17: two jobs write to one table at once, and neither touches the other's uploads."""
    given = settings(bucket, tmp_path)

    async with open_job(URL, job_id="one", **given) as one:
        async with open_job(URL, job_id="two", **given) as two:
            async with one.task(0) as task:
                await task.put("of-one", b"1")
            async with two.task(0) as task:
                await task.put("of-two", b"2")
        assert contents(bucket) == {"of-two": b"2"}

    assert contents(bucket) == {"of-one": b"1", "of-two": b"2"}


async def test_jobs_of_siblings(bucket: S3Bucket, tmp_path: Path) -> None:
    """Scenario 16: a job's commit leaves the uploads of one in a directory beside it, or below."""
    given = settings(bucket, tmp_path)

    async with open_job(f"{URL}/b", **given) as below:
        async with below.task(0) as task:
            await task.put("part-0", b"1")
        async with open_job(URL, **given) as above, above.task(0) as task:
            await task.put("part-0", b"2")

    assert contents(bucket) == {"b/part-0": b"1", "part-0": b"2"}


async def test_writing_to_a_local_destination(tmp_path: Path) -> None:
    """The manifest committer's tasks write by and by, too."""
    async with open_job(tmp_path / "out") as job, job.task(0) as task:
        file = await task.open("day=1/part-0")
        await file.write(b"by and ")
        await file.write(b"by")
        await file.aclose()

    assert visible(tmp_path / "out") == {"day=1/part-0": "by and by"}


def test_blocking_files(bucket: S3Bucket, tmp_path: Path) -> None:
    """Blocking programs write by and by as well."""
    given = settings(bucket, tmp_path)

    with sync.open_job(URL, **given) as job, job.task(0) as task, task.open("part-0") as file:
        file.write(b"by and ")
        file.write(b"by")

    assert contents(bucket) == {"part-0": b"by and by"}


# --- tasks that write where nothing would be committed -----------------------------------------

HIDDEN = [".x.crc/part", ".crc", ".a\n.crc", "day=1/.x.crc", ".asynccommit-1-2.tmp", "a/_/.x.crc/b"]


@pytest.mark.parametrize("name", HIDDEN)
async def test_names_that_no_listing_shows(tmp_path: Path, name: str) -> None:
    """A name that Hadoop or the store hides, in any part of it, is refused when it is written."""
    async with open_job(tmp_path / "t") as job, job.task(0) as task:
        with pytest.raises(OptionError, match="does not list"):
            await asyncio.to_thread(task.path, name)
        with pytest.raises(OptionError, match="does not list"):
            await task.put(name, b"x")
        with pytest.raises(OptionError, match="does not list"):
            await task.open(name)


@pytest.mark.parametrize("committer", ["manifest", "magic", "directory", "file_v1"])
@pytest.mark.parametrize("fails", [False, True])
async def test_a_task_that_has_ended(
    bucket: S3Bucket, tmp_path: Path, committer: str, fails: bool
) -> None:
    """After its block a task takes no files, which nobody would commit, and says so."""
    local = committer in ("manifest", "file_v1")
    url, given = (tmp_path / "t", {}) if local else (URL, settings(bucket, tmp_path))
    async with open_job(url, committer=committer, **given) as job:
        try:
            async with job.task(0) as task:
                await task.put("part-0", b"x")
                if fails:
                    raise ConnectionError("gone")
        except ConnectionError:
            pass
        before = sorted(tmp_path.rglob("*")), keys(bucket)
        how = "was aborted" if fails else "is committed"
        with pytest.raises(OptionError, match=how):
            task.path("part-1")
        with pytest.raises(OptionError, match=how):
            await task.put("part-1", b"x")
        with pytest.raises(OptionError, match=how):
            await task.open("part-1")
        assert (sorted(tmp_path.rglob("*")), keys(bucket)) == before


async def test_a_job_that_has_ended(tmp_path: Path) -> None:
    """After its block a job takes neither tasks nor commit messages; nothing is made again."""
    async with open_job(tmp_path / "t") as job, job.task(0) as task:
        await task.put("part-0", b"x")
    before = sorted(tmp_path.rglob("*"))
    assert task.commit is not None

    with pytest.raises(OptionError, match=f"job {job.job_id} has ended"):
        async with job.task(1):
            raise AssertionError("it has begun")
    with pytest.raises(OptionError, match="has ended"):
        job.accept(task.commit)
    assert sorted(tmp_path.rglob("*")) == before


async def test_a_task_that_outlives_its_job(tmp_path: Path) -> None:
    """A job does not commit without a task that still runs: it would lose what that has written."""
    with pytest.raises(OptionError, match=r"still running.*attempt_.*_m_000001_0"):
        async with open_job(tmp_path / "t") as job:
            async with job.task(0) as done:
                await done.put("part-0", b"x")
            block = job.task(1)
            task = await block.__aenter__()
            await task.put("part-1", b"x")
    with pytest.raises(OptionError, match="cannot continue, because its job"):
        await task.put("part-2", b"x")
    with pytest.raises(OptionError, match="cannot continue, because its job"):
        await block.__aexit__(None, None, None)

    assert list(tmp_path.iterdir()) == []


async def test_an_attempt_that_nobody_waits_for(tmp_path: Path) -> None:
    """Another attempt of a task that has committed may still run; it takes no files any more."""
    async with open_job(tmp_path / "t") as job:
        block = job.task(0, 0)
        slow = await block.__aenter__()
        async with job.task(0, 1) as task:
            await task.put("part-0", b"x")
    with pytest.raises(OptionError, match="cannot continue, because its job"):
        await slow.put("part-1", b"x")
    with pytest.raises(OptionError, match="cannot continue, because its job"):
        await block.__aexit__(None, None, None)

    assert visible(tmp_path / "t") == {"part-0": "x"}
    assert sorted(os.listdir(tmp_path / "t")) == ["_SUCCESS", "part-0"]


@pytest.mark.parametrize("how", ["path", "put", "open"])
async def test_a_task_elsewhere_that_outlives_its_job(tmp_path: Path, how: str) -> None:
    """A task of another process whose job has ended fails and leaves no directory of the job."""
    async with open_job(tmp_path / "t") as job:
        async with job.task(0) as task:
            await task.put("part-0", b"x")
        block = api.job(tmp_path / "t", job.job_id).task(1)
        late = await block.__aenter__()
    with pytest.raises(NotFoundError, match="has ended"):
        if how == "path":
            await asyncio.to_thread(late.path, "day=1/part-1")
        elif how == "put":
            await late.put("day=1/part-1", b"x")
        else:
            async with await late.open("part-1") as file:
                await file.write(b"x")
    with pytest.raises(CommitError):
        await block.__aexit__(None, None, None)

    assert sorted(os.listdir(tmp_path / "t")) == ["_SUCCESS", "part-0"]
    assert await job_statuses(tmp_path / "t") == []


async def test_a_task_elsewhere_that_outlives_its_job_on_a_store() -> None:
    """Where a write brings its directories along, the end of the task removes them again."""
    async with AdlsEmulator() as emulator:
        emulator.model.create_filesystem("data")
        url = "abfss://data@devstoreaccount1.dfs.core.windows.net/t"
        storage = {"connection_string": emulator.connection_string}
        async with open_job(url, storage_options=storage) as job:
            async with job.task(0) as task:
                await task.put("part-0", b"x")
            block = api.job(url, job.job_id, storage_options=storage).task(1)
            late = await block.__aenter__()
        await late.put("day=1/part-1", b"x")
        with pytest.raises(CommitError):
            await block.__aexit__(None, None, None)

        assert await job_statuses(url, storage_options=storage) == []
        async with open_place(parse_url(url), storage) as store:
            found = {info.path: info.size async for info in walk(store, "/t")}
        assert found.keys() == {"/t/_SUCCESS", "/t/part-0"}


# --- jobs whose tasks commit no file -----------------------------------------------------------


@pytest.mark.parametrize("committer", ["manifest", "file_v1", "file_v2", "magic", "directory"])
@pytest.mark.filterwarnings("ignore::asynccommit.commit.errors.CommitterWarning")
async def test_a_job_without_a_file(bucket: S3Bucket, tmp_path: Path, committer: str) -> None:
    """A job whose tasks have committed no file says so; one with a file, or no task, does not."""
    local = committer in ("manifest", "file_v1", "file_v2")
    url, given = (tmp_path / "t", {}) if local else (URL, settings(bucket, tmp_path))

    async def warnings_of(*files: int) -> list[str]:
        async with open_job(url, committer=committer, **given) as job:
            for task_number, count in enumerate(files):
                async with job.task(task_number) as task:
                    for number in range(count):
                        await task.put(f"part-{job.job_id}-{task_number}-{number}", b"x")
        assert job.report is not None
        return [text for text in job.report.warnings if "without a file" in text]

    (said,) = await warnings_of(0, 0)
    assert said.startswith("2 tasks have committed without a file")
    assert "Task.directory" in said
    assert await warnings_of(0, 2) == []
    assert await warnings_of() == []


@pytest.mark.parametrize("committer", ["manifest", "file_v1", "file_v2", "magic", "directory"])
@pytest.mark.parametrize("tasks", [0, 1])
@pytest.mark.filterwarnings("ignore::asynccommit.commit.errors.CommitterWarning")
async def test_files_can_be_required(
    bucket: S3Bucket, tmp_path: Path, committer: str, tasks: int
) -> None:
    """By option a job without a file is an error, and what was there stays as it was."""
    local = committer in ("manifest", "file_v1", "file_v2")
    url, given = (tmp_path / "t", {}) if local else (URL, settings(bucket, tmp_path))
    given["options"] = {**given.get("options", {}), "asynccommit.require.files": "true"}

    async def write(files: int, mode: str) -> None:
        async with open_job(url, committer=committer, mode=Mode(mode), **given) as job:
            for number in range(tasks):
                async with job.task(number) as task:
                    for name in range(files):
                        await task.put(f"part-{name}", b"x")

    if tasks:
        await write(1, "append")
    with pytest.raises(PreflightError, match=r"require\.files is set, so nothing was changed"):
        await write(0, "append" if committer == "file_v2" else "replace_table")
    there = visible(tmp_path / "t") if local else contents(bucket)
    assert len([name for name in there if name.startswith("part-0")]) == tasks


async def test_the_directory_of_a_task(bucket: S3Bucket, tmp_path: Path) -> None:
    """It is a local path where the task has local files, and else a URL that names the store."""
    async with open_job(tmp_path / "t") as job, job.task(0) as task:
        assert task.directory.startswith(f"{tmp_path}/t/_temporary/{job.job_id}/00/tasks/")
        assert parse_url(task.url) == parse_url(task.directory)
        assert task.url == f"file://{task.directory}"
    async with open_job(URL, **settings(bucket, tmp_path)) as job, job.task(0) as task:
        assert task.directory.startswith(f"{URL}/__magic_job-{job.job_id}/")
    given = settings(bucket, tmp_path)
    async with open_job(URL, committer="directory", **given) as job, job.task(0) as task:
        assert task.directory.startswith(f"{tmp_path}/")
    async with AdlsEmulator() as emulator:
        emulator.model.create_filesystem("data")
        url = "abfss://data@devstoreaccount1.dfs.core.windows.net/a b/t"
        storage = {"connection_string": emulator.connection_string}
        async with open_job(url, storage_options=storage) as job, job.task(0) as task:
            assert task.directory.startswith(f"{url}/_temporary/{job.job_id}/00/tasks/")
            assert task.url == task.directory
            place = parse_url(task.directory)
            async with open_place(place, storage) as store:
                assert (await store.head(place.path)).is_dir


# --- calls that have not returned when the task's block is left ----------------------------------


@pytest.mark.parametrize("committer", ["manifest", "magic", "directory", "file_v1"])
@pytest.mark.parametrize("call", ["put", "close"])
async def test_a_call_that_nobody_awaits(
    bucket: S3Bucket, tmp_path: Path, committer: str, call: str
) -> None:
    """A task does not commit while a file is still being put or closed: it would miss that file."""
    local = committer in ("manifest", "file_v1")
    url, given = (tmp_path / "t", {}) if local else (URL, settings(bucket, tmp_path))
    async with open_job(url, committer=committer, **given) as job:
        with pytest.raises(OptionError, match=r"await each call there: part-1$"):
            async with job.task(0) as task:
                await task.put("part-0", b"x")
                if call == "put":
                    late = asyncio.ensure_future(task.put("part-1", b"y"))
                else:
                    file = await task.open("part-1")
                    await file.write(b"y")
                    late = asyncio.ensure_future(file.aclose())
                await asyncio.sleep(0)
                assert not late.done()
        await asyncio.wait([late])
        late.exception()
        async with job.task(0, 1) as again:
            await again.put("part-1", b"z")

    seen = visible(tmp_path / "t") if local else contents(bucket)
    assert [str(name).startswith("part-1") for name in seen] == [True]


async def test_a_file_that_is_being_closed(tmp_path: Path) -> None:
    """While a file is being closed nothing more is taken for it, and nothing is lost."""
    async with open_job(tmp_path / "t") as job, job.task(0) as task:
        file = await task.open("part-0")
        await file.write(b"x")
        closing = asyncio.ensure_future(file.aclose())
        await asyncio.sleep(0)
        with pytest.raises(OptionError, match="is closed"):
            await file.write(b"y")
        with pytest.raises(OptionError, match="already being written"):
            await task.open("part-0")
        await closing

    assert visible(tmp_path / "t") == {"part-0": "x"}


async def test_a_task_whose_commit_fails(tmp_path: Path) -> None:
    """A task that could not be committed does not say that it is."""
    async with open_job(tmp_path / "t") as job:
        with pytest.raises(CommitError, match="_SUCCESS"):
            async with job.task(0) as task:
                await asyncio.to_thread(Path(task.directory, "_SUCCESS").write_bytes, b"")
        with pytest.raises(OptionError, match="was aborted"):
            await task.put("part-1", b"x")


async def test_a_task_that_is_set_up_while_its_job_ends(tmp_path: Path) -> None:
    """A task whose job ends before it could begin takes no files."""
    async with open_job(tmp_path / "t") as job:
        async with job.task(0) as task:
            await task.put("part-0", b"x")
        block = job.task(1)
        begins = asyncio.ensure_future(anext(block.gen))
        await asyncio.sleep(0)
        job.end()
        with pytest.raises(OptionError, match="has ended"):
            await begins


@pytest.mark.parametrize("name", [5, None, b"x", [], Path("x"), "\0", "a/\ud800"], ids=repr)
async def test_what_is_no_name(tmp_path: Path, name: Any) -> None:
    """A name that is no text, or that no path can hold, is refused by the argument's name."""
    async with open_job(tmp_path / "t") as job, job.task(0) as task:
        with pytest.raises(OptionError, match=r"name is|not allowed in a path"):
            task.path(name)
        with pytest.raises(OptionError, match=r"name is|not allowed in a path"):
            await task.put(name, b"x")
        with pytest.raises(OptionError, match=r"name is|not allowed in a path"):
            await task.open(name)


@pytest.mark.parametrize("data", [5, True, [], {}, [104, 105], "text", None], ids=repr)
@pytest.mark.parametrize("committer", ["manifest", "magic"])
async def test_what_is_no_data(bucket: S3Bucket, tmp_path: Path, committer: str, data: Any) -> None:
    """What has no bytes is refused: of a number ``bytes`` would make that many zeros."""
    url, given = (
        (tmp_path / "t", {}) if committer == "manifest" else (URL, settings(bucket, tmp_path))
    )
    async with open_job(url, committer=committer, **given) as job, job.task(0) as task:
        with pytest.raises(OptionError, match=r"data is .*: expected bytes"):
            await task.put("part-0", data)


async def test_buffers(tmp_path: Path) -> None:
    """All that has bytes to read is written as they are."""
    async with open_job(tmp_path / "t") as job, job.task(0) as task:
        await task.put("array", array("H", [0x6968]))  # type: ignore[arg-type]
        await task.put("bytearray", bytearray(b"x"))

    assert visible(tmp_path / "t") == {"array": "hi", "bytearray": "x"}

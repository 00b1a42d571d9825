"""The tasks of the staging committers: local files, uploaded when the task commits."""

from __future__ import annotations

import asyncio
import glob
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_upload.task.local import find_files
from asynccommit.commit.by_upload.task.send import send, to_send
from asynccommit.commit.errors import CommitterWarning
from asynccommit.commit.job.messages import digest
from asynccommit.commit.registry import Committer
from asynccommit.errors import (
    CommitError,
    DeniedError,
    ExistsError,
    NotFoundError,
    OptionError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    UnavailableError,
)
from asynccommit.formats.pending_set import PendingSet, decode_pending_set
from asynccommit.options.job import Mode
from asynccommit.options.uploads import Conflict
from asynccommit.stores.urls import Address
from tests.support.faults import Fault, Faults
from tests.support.uploads import (
    ATTEMPT,
    JOB,
    TASK,
    Gauge,
    keys,
    new_bucket,
    open_committer,
    open_uploads,
)

SETS = f"out/t/_temporary/staging/alice/{JOB}/staging-uploads/_temporary/0"
SET = f"{SETS}/{TASK}"


class Site:
    """A bucket and a local directory, and committers of one job as different processes have them.

    Args:
        tmp: the local directory.
        name: of the committer.
    """

    def __init__(self, tmp: Path, name: str = "directory", **rules: Any) -> None:
        self.bucket = new_bucket(**rules)
        self.buffer = tmp / "buffer"
        self.name = name
        self._set_up = False

    def open(self, *faults: Any, name: str = "", **settings: Any) -> Committer:
        """Open a committer."""
        settings.setdefault("unique_names", False)
        return open_committer(
            self.bucket,
            name or self.name,
            *faults,
            buffer_directory=str(self.buffer),
            **settings,
        )

    async def begin(
        self, files: Mapping[str, bytes], *faults: Any, attempt: str = ATTEMPT, **settings: Any
    ) -> Committer:
        """Set up the job if need be, and a task attempt that writes files; return its committer."""
        job = self.open(*faults, **settings)
        if not self._set_up:
            self._set_up = True
            await self.open(**settings).setup_job()
        await job.setup_task(attempt)
        for name, data in files.items():
            place = await asyncio.to_thread(job.work(attempt).path, name)
            Path(place).write_bytes(data)
        return job

    @property
    def local(self) -> list[Path]:
        """The local directories of task attempts."""
        return [Path(entry) for entry in glob.glob(f"{self.buffer}/*")]

    def pending(self, key: str = SET) -> PendingSet:
        """Return what a pending set says."""
        return decode_pending_set(self.bucket.objects[key].data, key)

    @property
    def visible(self) -> list[str]:
        """The keys that readers see."""
        return [key for key in keys(self.bucket) if "/_" not in key and not key.endswith("/")]


@pytest.fixture(params=["directory", "partitioned"])
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Site:
    """A site of each committer."""
    return Site(tmp_path, request.param)


async def put(site: Site, *wanted: str) -> None:
    """Put objects below the destination."""
    for key in wanted:
        await site.open().store.put(f"/out/t/{key}", b"old")


# --- task commit -----------------------------------------------------------------------------


async def test_one_file(site: Site) -> None:
    """Scenario 21: one upload, a pending file named by the task, and no object to be seen."""
    job = await site.begin({"day=1/part-0": b"0123456789"})

    commit = await job.commit_task(TASK, ATTEMPT)

    (entry,) = site.pending().commits
    assert (entry.bucket, entry.key, entry.length) == ("data", "out/t/day=1/part-0", 10)
    (upload,) = site.bucket.uploads.open.values()
    assert [part.etag for part in entry.parts] == [upload.parts[n].etag for n in (1, 2, 3)]
    assert len(entry.parts) == 3
    assert (entry.job_id, entry.task_id, entry.text) == (JOB, ATTEMPT, "partition: day=1")
    assert entry.uri == "s3://data/out/t/day=1/part-0"
    assert commit.manifest == f"s3://data/{SET}"
    assert commit.digest == digest(site.bucket.objects[SET].data)
    assert (commit.files, commit.bytes) == (1, 10)
    assert (site.visible, site.local) == ([], [])
    assert open_uploads(site.bucket) == ["out/t/day=1/part-0"]


async def test_empty_file(site: Site) -> None:
    """Scenario 22: an empty file is uploaded, as one empty part."""
    job = await site.begin({"empty": b""})

    await job.commit_task(TASK, ATTEMPT)

    assert [(each.key, each.length) for each in site.pending().commits] == [("out/t/empty", 0)]
    assert len(site.pending().commits[0].parts) == 1


async def test_empty_file_of_netflix(site: Site) -> None:
    """Scenario 22: with Netflix' rules an empty file is left out, and nothing is uploaded."""
    job = await site.begin({"empty": b""}, conf={"s3.multipart.committer.num-threads": "2"})

    commit = await job.commit_task(TASK, ATTEMPT)

    assert commit.files == 0
    assert (site.pending().commits, site.bucket.uploads.open) == ((), {})


async def test_several_files(site: Site) -> None:
    """Scenarios 7 and 23: every file is pending, and the tree of directories is kept."""
    names = [f"day={day}/hour={hour}/part-0" for day in range(3) for hour in range(3)]
    job = await site.begin({name: name.encode() for name in names})

    commit = await job.commit_task(TASK, ATTEMPT)

    assert [each.key for each in site.pending().commits] == [f"out/t/{name}" for name in names]
    assert commit.files == 9


async def test_task_without_files(site: Site) -> None:
    """Scenario 6: a task that wrote nothing commits an empty set, if it commits at all."""
    job = await site.begin({})

    assert not await job.needs_task_commit(ATTEMPT)  # type: ignore[attr-defined]
    await job.commit_task(TASK, ATTEMPT)

    assert site.pending().commits == ()


async def test_task_that_needs_a_commit(site: Site) -> None:
    """A task that wrote anything has to commit; one that is not on this machine is an error."""
    job: Any = await site.begin({"a": b"1"})

    assert await job.needs_task_commit(ATTEMPT)
    with pytest.raises(CommitError, match="no directory on this machine"):
        await job.needs_task_commit("another")


async def test_hidden_files(site: Site) -> None:
    """Scenario 35: names that begin with _ or . are not committed; directories may have any."""
    job = await site.begin({"a": b"1", "_dir/b": b"2"})
    directory = Path(job.work(ATTEMPT).directory)
    (directory / "_hidden").write_bytes(b"3")
    (directory / "_dir" / ".crc").write_bytes(b"4")
    (directory / "_dir" / ".b.crc").write_bytes(b"5")

    with pytest.warns(CommitterWarning, match=r"not committed.*: _dir/\.crc, _hidden$"):
        await job.commit_task(TASK, ATTEMPT)

    assert [each.key for each in site.pending().commits] == ["out/t/_dir/b", "out/t/a"]


@pytest.mark.parametrize("name", ["_SUCCESS", "_temporary/x", "__magic/a", "day=1/__magic/a"])
async def test_names_of_the_protocol_fail_the_task(site: Site, name: str) -> None:
    """A task that leaves a file under a name of the protocol uploads nothing and names the file."""
    job = await site.begin({"a": b"1"})
    path = Path(job.work(ATTEMPT).directory, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")

    with pytest.raises(CommitError, match=f"task_stage.*{name}.*commit protocol"):
        await job.commit_task(TASK, ATTEMPT)

    assert site.bucket.uploads.open == {}


async def test_unique_names(site: Site) -> None:
    """Scenario 36: the job's id is in the name before the first dot, and not twice."""
    files = {"day=1/part-0.gz.csv": b"1", f"b-{JOB}.csv": b"2", f"{JOB}/c": b"3", "plain": b"4"}
    job = await site.begin(files, unique_names=True)

    await job.commit_task(TASK, ATTEMPT)

    assert [each.key.removeprefix("out/t/") for each in site.pending().commits] == [
        f"{JOB}/c",
        f"b-{JOB}.csv",
        f"day=1/part-0-{JOB}.gz.csv",
        f"plain-{JOB}",
    ]


async def test_two_files_of_one_unique_name(site: Site) -> None:
    """Files that the rule gives one name are refused before anything is uploaded."""
    job = await site.begin({"a": b"1", f"a-{JOB}": b"2"}, unique_names=True)

    with pytest.raises(CommitError) as caught:
        await job.commit_task(TASK, ATTEMPT)

    assert isinstance(caught.value.failures[0], ExistsError)
    assert site.bucket.uploads.ended == {}


async def test_memory_is_bounded(site: Site) -> None:
    """However many files there are, and however large, so many parts are on their way."""
    gauge = Gauge()
    files = {f"part-{number}": b"x" * (97 * number) for number in range(12)}
    job = await site.begin(files, gauge, part_size=10, in_flight=3)

    commit = await job.commit_task(TASK, ATTEMPT)

    assert gauge.most == 30
    assert commit.bytes == sum(map(len, files.values()))


async def test_parts_grow_with_a_large_file(site: Site) -> None:
    """A file of more parts than an upload has is sent in larger ones."""
    site.bucket.rules = site.bucket.rules._replace(most_parts=3)
    job = await site.begin({"large": b"x" * 100})

    await job.commit_task(TASK, ATTEMPT)

    assert len(site.pending().commits[0].parts) == 1


async def test_intent_is_there_before_the_first_part(site: Site) -> None:
    """A task that is killed while it uploads leaves word of all that it has begun."""
    seen = Faults()
    job = await site.begin({"a": b"01234", "b": b"56789"}, seen)
    seen.seen.clear()

    await job.commit_task(TASK, ATTEMPT)

    order = [op.name for op in seen.seen if op.name in ("create_upload", "put", "put_part")]
    assert order == ["create_upload"] * 2 + ["put"] + ["put_part"] * 4 + ["put"]
    (intent,) = [key for key in keys(site.bucket) if "_intents/" in key]
    assert len(json.loads(site.bucket.objects[intent].data)["uploads"]) == 2


async def test_second_commit_of_an_attempt(site: Site) -> None:
    """Scenario 3: an attempt is committed once; then it is not there any more."""
    job = await site.begin({"a": b"1"})
    await job.commit_task(TASK, ATTEMPT)
    before = site.bucket.objects[SET]

    with pytest.raises(CommitError) as caught:
        await job.commit_task(TASK, ATTEMPT)

    assert isinstance(caught.value.failures[0], NotFoundError)
    assert site.bucket.objects[SET] is before


async def test_last_attempt_counts(site: Site) -> None:
    """Scenario 4: of two attempts of a task that commit, the set is the second's."""
    other = ATTEMPT[:-1] + "1"
    job = await site.begin({"first": b"1"})
    await site.begin({"second": b"2"}, attempt=other)

    await job.commit_task(TASK, ATTEMPT)
    await job.commit_task(TASK, other)

    assert [each.key for each in site.pending().commits] == ["out/t/second"]


@pytest.mark.parametrize(
    "fault, begun",
    [
        ({"name": "create_upload"}, 0),
        ({"name": "create_upload", "skip": 1}, 1),
        ({"name": "put_part", "skip": 1}, 2),
        ({"name": "put", "match": "_intents"}, 2),
        ({"name": "put", "match": f"0/{TASK}"}, 2),
    ],
    ids=["first upload", "second upload", "second part", "intent", "set"],
)
async def test_failed_commit(site: Site, fault: dict[str, Any], begun: int) -> None:
    """Scenarios 24 and 25: what was begun is aborted, and the attempt's directory deleted."""
    seen = Faults(Fault(error=UnavailableError, **fault))
    job = await site.begin(
        {"a": b"01234", "b": b"56789"}, seen, conf={"fs.s3a.committer.threads": "1"}
    )

    with pytest.raises(CommitError) as caught:
        await job.commit_task(TASK, ATTEMPT)

    assert isinstance(caught.value.failures[0], UnavailableError)
    assert seen.count("abort_upload") == begun
    assert (site.bucket.uploads.open, site.local) == ({}, [])
    assert SET not in site.bucket.objects


async def test_failed_abort_of_a_failed_commit(site: Site) -> None:
    """Scenario 26: the upload's error is the one that is raised, not the abort's."""
    faults = Faults(
        Fault("put_part", UnavailableError), Fault("abort_upload", DeniedError, match="a")
    )
    job = await site.begin({"a": b"1"}, faults)

    with pytest.raises(CommitError) as caught:
        await job.commit_task(TASK, ATTEMPT)

    (cause,) = caught.value.failures
    assert isinstance(cause, UnavailableError)
    assert "could not be aborted" in cause.__notes__[0]
    assert site.local == []


async def test_set_that_was_saved_without_an_answer(site: Site) -> None:
    """Scenario 44: a set whose answer was lost, and that is there, is saved."""
    lost = Fault("put", OutcomeUnknownError, match=SET, after=True)
    job = await site.begin({"a": b"1"}, Faults(lost))

    await job.commit_task(TASK, ATTEMPT)

    assert lost.struck == 1
    assert open_uploads(site.bucket) == ["out/t/a"]


async def test_cancelled_commit(site: Site) -> None:
    """A commit that is cancelled while it uploads leaves no upload and no local file."""
    gauge = Gauge(hold=1_000_000)
    job = await site.begin({"a": b"0123456789"}, gauge)
    committing = asyncio.create_task(job.commit_task(TASK, ATTEMPT))
    await gauge.busy.wait()

    committing.cancel()
    await asyncio.wait([committing])

    assert committing.cancelled()
    assert (site.bucket.uploads.open, site.local) == ({}, [])


async def test_file_that_changes_meanwhile(site: Site) -> None:
    """A file that is written to while it is uploaded is an error, not half a file."""
    gauge = Gauge(hold=200)
    job = await site.begin({"a": b"x" * 400}, gauge, in_flight=1)
    path = Path(job.work(ATTEMPT).directory, "a")
    committing = asyncio.create_task(job.commit_task(TASK, ATTEMPT))
    await gauge.busy.wait()
    path.write_bytes(b"more")

    with pytest.raises(CommitError) as caught:
        await committing

    assert isinstance(caught.value.failures[0], PreconditionError)
    assert site.bucket.uploads.open == {}


async def test_link_is_no_file(site: Site) -> None:
    """A link could lead to anything: it is refused, and nothing is uploaded."""
    job = await site.begin({"a": b"1"})
    Path(job.work(ATTEMPT).directory, "link").symlink_to("/etc/hostname")

    with pytest.raises(CommitError, match="a link"):
        await job.commit_task(TASK, ATTEMPT)

    assert site.bucket.uploads.ended == {}


# --- task abort ------------------------------------------------------------------------------


async def test_abort(site: Site) -> None:
    """Scenario 27: a task that is aborted leaves no upload and no local directory."""
    job = await site.begin({"a": b"1"})

    await job.abort_task(TASK, ATTEMPT)
    await job.abort_task(TASK, ATTEMPT)

    assert (site.bucket.uploads.ended, site.local) == ({}, [])


async def test_abort_of_a_committed_task(site: Site) -> None:
    """Whoever aborts a task that committed, on any machine, ends its uploads and its set."""
    job = await site.begin({"a": b"1"})
    await job.commit_task(TASK, ATTEMPT)

    await site.open().abort_task(TASK, ATTEMPT)

    assert site.bucket.uploads.open == {}
    assert SET not in site.bucket.objects


async def test_abort_of_a_killed_task(site: Site) -> None:
    """Scenario 12: uploads of a task that died half-way are found by its intents."""
    job: Any = await site.begin({"a": b"0123456789"})
    run = job._run()
    files = await asyncio.to_thread(find_files, job.work(ATTEMPT).directory)
    await send(run, ATTEMPT, to_send(run, files))
    assert open_uploads(site.bucket) == ["out/t/a"]

    await site.open().abort_task(TASK, ATTEMPT)

    assert site.bucket.uploads.open == {}


# --- conflicts -------------------------------------------------------------------------------


async def test_partition_that_is_there(tmp_path: Path) -> None:
    """Scenario 33: with fail, a partition that is there is found before anything is uploaded."""
    site, seen = Site(tmp_path, "partitioned"), Faults()
    await put(site, "day=1/old")
    settings = {"conflict": Conflict.FAIL}
    job = await site.begin({"day=1/new": b"1", "day=2/new": b"2"}, seen, **settings)

    with pytest.raises(CommitError, match=r"day=1/old exists.*conflict mode is fail"):
        await job.commit_task(TASK, ATTEMPT)

    assert (seen.count("create_upload"), site.local) == (0, [])

    await site.open().store.delete("/out/t/day=1/old")
    retry = ATTEMPT[:-1] + "1"
    job = await site.begin({"day=1/new": b"1"}, attempt=retry, **settings)
    assert (await job.commit_task(TASK, retry)).files == 1


@pytest.mark.parametrize(
    "there, wanted, refused",
    [
        ("part-0", "part-0", True),
        ("part-0", "part-1", False),
        ("table_root/part-0", "part-0", False),
        ("day=1/_hidden", "day=1/part-0", False),
        ("day=1/hour=1/part-0", "day=1/part-0", True),
        ("day=11/part-0", "day=1/part-0", False),
    ],
)
async def test_what_is_a_conflict(tmp_path: Path, there: str, wanted: str, refused: bool) -> None:
    """Scenario 35: a partition is a directory that files go to; the root is none, its files are."""
    site = Site(tmp_path, "partitioned")
    await put(site, there)
    job = await site.begin({wanted: b"1"}, conflict=Conflict.FAIL)

    if refused:
        with pytest.raises(CommitError, match="exists"):
            await job.commit_task(TASK, ATTEMPT)
    else:
        await job.commit_task(TASK, ATTEMPT)


@pytest.mark.parametrize("conflict", [None, Conflict.APPEND, Conflict.REPLACE])
async def test_modes_without_a_probe(tmp_path: Path, conflict: Conflict | None) -> None:
    """Scenario 33: append and replace do not look at the partitions."""
    site, seen = Site(tmp_path, "partitioned"), Faults()
    await put(site, "day=1/old")
    job = await site.begin({"day=1/new": b"1"}, seen, conflict=conflict)
    seen.seen.clear()

    await job.commit_task(TASK, ATTEMPT)

    looked = [op.path for op in seen.seen if op.name in ("list", "list_tree", "head")]
    own = [f"/{SETS}/_alive", f"/{SETS}/_alive", f"/{SETS}/_intents/{ATTEMPT}-0.json"]
    assert looked == own


async def test_mode_of_the_job_beats_the_options(tmp_path: Path) -> None:
    """Tasks in the process that set up the job go by the mode that it was given."""
    site = Site(tmp_path, "partitioned")
    await put(site, "day=1/old")
    job = site.open(conflict=Conflict.APPEND)
    await job.setup_job(mode=Mode.FAIL)
    await job.setup_task(ATTEMPT)
    await job.work(ATTEMPT).put("day=1/new", b"1")

    with pytest.raises(CommitError, match="conflict mode is fail"):
        await job.commit_task(TASK, ATTEMPT)


# --- where things are ------------------------------------------------------------------------


async def test_local_directory_is_private(site: Site) -> None:
    """Nobody else reads or writes what a task writes, and two attempts never share it."""
    job = await site.begin({})

    (top,) = site.local
    assert top.name == f"{JOB}-{ATTEMPT}"
    assert top.stat().st_mode & 0o777 == 0o700
    assert Path(job.work(ATTEMPT).directory).relative_to(top) == Path(
        f"_temporary/0/_temporary/{ATTEMPT}"
    )
    with pytest.raises(CommitError, match="exists already"):
        await job.setup_task(ATTEMPT)


async def test_local_directory_that_cannot_be_made(site: Site) -> None:
    """A buffer directory that is none is named, with its option."""
    await site.open().setup_job()
    site.buffer.write_text("a file")

    with pytest.raises(CommitError, match=r"fs\.s3a\.buffer\.dir") as caught:
        await site.open().setup_task(ATTEMPT)

    assert isinstance(caught.value.failures[0], RejectedError)


async def test_task_of_a_job_that_has_ended(site: Site) -> None:
    """A task that comes after its job's end is not set up."""
    job = site.open()
    await job.setup_job()
    await job.abort_job()

    with pytest.raises(CommitError) as caught:
        await job.setup_task(ATTEMPT)

    assert isinstance(caught.value.failures[0], NotFoundError)
    assert site.local == []


async def test_commit_after_the_job_has_ended(site: Site) -> None:
    """A task that commits after its job's end uploads nothing, and leaves no directory."""
    job = await site.begin({"a": b"1"})
    await site.open().abort_job()

    with pytest.raises(CommitError) as caught:
        await job.commit_task(TASK, ATTEMPT)

    assert isinstance(caught.value.failures[0], NotFoundError)
    assert (keys(site.bucket), site.bucket.uploads.ended, site.local) == ([], {}, [])


async def test_sets_on_another_store(site: Site, tmp_path: Path) -> None:
    """Pending sets may be on any store, as Hadoop has them: written aside and renamed."""
    pending = Address("file", "", str(tmp_path / "cluster"))
    job = site.open(pending=pending)
    await job.setup_job()
    await job.setup_task(ATTEMPT)
    await job.work(ATTEMPT).put("a", b"data")

    commit = await job.commit_task(TASK, ATTEMPT)

    sets = tmp_path / "cluster" / "alice" / JOB / "staging-uploads" / "_temporary" / "0"
    assert commit.manifest == f"file:{sets}/{TASK}"
    data = (sets / TASK).read_bytes()
    assert [each.key for each in decode_pending_set(data, TASK).commits] == ["out/t/a"]
    assert [*(sets / "_temporary").iterdir()] == []
    assert keys(site.bucket) == []

    await site.open(pending=pending).abort_task(TASK, ATTEMPT)

    assert not (sets / TASK).exists()
    assert site.bucket.uploads.open == {}


@pytest.mark.parametrize("name", ["", "/a", "../a", "_SUCCESS", "_hidden", ".a", "__magic/a"])
async def test_names_that_would_not_be_committed(site: Site, name: str) -> None:
    """A name that leads elsewhere, is hidden or the protocol's is refused when it is written."""
    job = await site.begin({})

    with pytest.raises(OptionError):
        job.work(ATTEMPT).path(name)
    with pytest.raises(OptionError):
        await job.work(ATTEMPT).open(name)


async def test_part_size_that_is_too_small(site: Site) -> None:
    """Parts that the store does not take are refused before a task writes."""
    await site.open().setup_job()

    with pytest.raises(OptionError, match=r"fs\.s3a\.multipart\.size"):
        await site.open(part_size=3).setup_task(ATTEMPT)


async def test_staging_end_to_end(site: Site) -> None:
    """Scenario 28: a whole job, 4 tasks of 3 files: all are completed, and nothing else is left."""
    job = site.open(unique_names=True)
    await job.setup_job()
    commits = []
    for number in range(4):
        task, attempt = job.layout.ids(number)
        await job.setup_task(attempt)
        for file in range(3):
            await job.work(attempt).put(f"day={file}/part-{number}", b"x" * (10 * file))
        commits.append(await job.commit_task(task, attempt))
    assert site.visible == []

    report = await job.commit_job(commits, strict=True)

    assert (report.files, report.bytes) == (12, 120)
    assert site.visible == [f"out/t/day={f}/part-{n}-{JOB}" for f in range(3) for n in range(4)]
    assert [key for key in keys(site.bucket) if "/_" in key] == ["out/t/_SUCCESS"]
    assert (site.bucket.uploads.open, site.local) == ({}, [])
    marker = json.loads(site.bucket.objects["out/t/_SUCCESS"].data)
    assert marker["committer"] == site.name

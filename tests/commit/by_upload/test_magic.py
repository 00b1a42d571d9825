"""The tasks of the magic committer: uploads to final places, and what says that they are there."""

from __future__ import annotations

import asyncio
import json

import pytest

from asynccommit.commit.job.messages import digest
from asynccommit.commit.registry import Committer
from asynccommit.errors import (
    CommitError,
    DeniedError,
    ManifestError,
    NotFoundError,
    OptionError,
    OutcomeUnknownError,
    UnavailableError,
    UnsupportedError,
)
from asynccommit.formats.magic_paths import LENGTH_HEADER
from asynccommit.formats.pending import PendingCommit, decode_pending, encode_pending
from asynccommit.formats.pending_set import PendingSet, decode_pending_set
from asynccommit.options.job import Mode
from asynccommit.options.uploads import EtagForm
from asynccommit.stores.parts import Part
from asynccommit.testing.models.s3.model import S3Bucket
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
    store_of,
)

ATTEMPTS = f"out/t/__magic_job-{JOB}/job-{JOB}/00"
BASE = f"{ATTEMPTS}/tasks/{ATTEMPT}/__base"
SET = f"{ATTEMPTS}/{TASK}.pendingset"


async def begun(bucket: S3Bucket, attempt: str = ATTEMPT, **settings: object) -> Committer:
    """Return the committer of a job that is set up, and one task attempt of it."""
    job = open_committer(bucket, "magic", **settings)  # type: ignore[arg-type]
    if not any(key.startswith(ATTEMPTS) for key in keys(bucket)):
        await job.setup_job()
    await job.setup_task(attempt)
    return job


def pending_set(bucket: S3Bucket, key: str = SET) -> PendingSet:
    """Return what a pending set says."""
    return decode_pending_set(bucket.objects[key].data, key)


def below(bucket: S3Bucket, prefix: str) -> list[str]:
    """Return the keys below a prefix, relative to it."""
    return [key[len(prefix) :] for key in keys(bucket) if key.startswith(prefix)]


# --- writing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 3, 4, 41])
async def test_written_file(size: int) -> None:
    """Scenario 39: there are an empty marker with the length, and a pending file; not the file."""
    bucket = new_bucket()
    job = await begun(bucket)
    data = bytes(range(size))

    await job.work(ATTEMPT).put("day=1/part-0.parquet", data)

    marker = bucket.objects[f"{BASE}/day=1/part-0.parquet"]
    assert (marker.data, marker.metadata[LENGTH_HEADER]) == (b"", str(size))
    key = f"{BASE}/day=1/part-0.parquet.pending"
    pending = decode_pending(bucket.objects[key].data, key)
    assert (pending.bucket, pending.key) == ("data", "out/t/day=1/part-0.parquet")
    assert (pending.length, len(pending.parts)) == (size, max(1, -(-size // 4)))
    assert pending.uri == "s3://data/out/t/day=1/part-0.parquet"
    assert open_uploads(bucket) == ["out/t/day=1/part-0.parquet"]
    assert "out/t/day=1/part-0.parquet" not in bucket.objects


async def test_marker_comes_before_the_pending_file() -> None:
    """As with Hadoop: whoever sees the pending file finds the length."""
    bucket, seen = new_bucket(), Faults()
    await begun(bucket)
    job = open_committer(bucket, "magic", seen)

    await job.work(ATTEMPT).put("a", b"data")

    order = [op.name for op in seen.seen]
    assert order == ["head", "create_upload", "put", "head", "put_part", "put_marker", "put"]
    assert [op.path for op in seen.seen if op.name == "head"] == [f"/{ATTEMPTS}/alive"] * 2
    assert "/intents/" in seen.seen[2].path
    assert seen.seen[6].path.endswith("/__base/a.pending")


async def test_intent_is_there_before_the_first_part() -> None:
    """A task that is killed before it closes a file leaves word of the upload."""
    bucket = new_bucket()
    job = await begun(bucket)
    file = await job.work(ATTEMPT).open("a")

    (key,) = below(bucket, f"{ATTEMPTS}/tasks/{ATTEMPT}/intents/")
    intent = json.loads(bucket.objects[f"{ATTEMPTS}/tasks/{ATTEMPT}/intents/{key}"].data)
    assert intent["uploads"] == [["out/t/a", file.upload_id]]  # type: ignore[attr-defined]
    assert open_uploads(bucket) == ["out/t/a"]
    assert [upload.parts for upload in bucket.uploads.open.values()] == [{}]


async def test_intent_that_cannot_be_written() -> None:
    """An upload of which there is no word gets no part, and is not left."""
    bucket = new_bucket()
    await begun(bucket)
    job = open_committer(bucket, "magic", Faults(Fault("put", UnavailableError, match="intents")))

    with pytest.raises(UnavailableError):
        await job.work(ATTEMPT).open("a")

    assert bucket.uploads.open == {}


async def test_file_written_twice() -> None:
    """The last file of a name that is closed counts, and the upload of the one before is gone."""
    bucket = new_bucket()
    job = await begun(bucket)
    work = job.work(ATTEMPT)

    await work.put("a", b"the first")
    await work.put("a", b"second")
    file = await work.open("a")
    with pytest.raises(OptionError, match="already being written"):
        await work.open("a")
    await file.abort()
    commit = await job.commit_task(TASK, ATTEMPT)

    assert (commit.files, commit.bytes) == (1, 6)
    assert open_uploads(bucket) == ["out/t/a"]


@pytest.mark.parametrize(
    "name",
    [
        *("", "/a", "a/", "a//b", "../a", "a/./b", "_SUCCESS", "_temporary/a"),
        *("a.pending", "day=1/a.pendingset", "__magic_job-x/a", "day=1/__magic/a"),
    ],
)
async def test_names_of_the_protocol(name: str) -> None:
    """A name that leads out of the destination, or is the protocol's, is refused."""
    bucket = new_bucket()
    job = await begun(bucket)

    with pytest.raises(OptionError):
        await job.work(ATTEMPT).open(name)

    assert bucket.uploads.open == {}


async def test_no_local_path() -> None:
    """Magic has no local files, and says what there is instead."""
    job = open_committer(new_bucket(), "magic")

    with pytest.raises(UnsupportedError, match=r"Task\.open"):
        job.work(ATTEMPT).path("a")


async def test_memory_of_a_task_is_bounded() -> None:
    """Files written at once share the parts in flight."""
    bucket, gauge = new_bucket(), Gauge()
    await begun(bucket)
    job = open_committer(bucket, "magic", gauge, part_size=10, in_flight=3)
    work = job.work(ATTEMPT)

    await asyncio.gather(*(work.put(f"part-{number}", b"x" * 205) for number in range(10)))

    assert gauge.most == 20


# --- task commit -----------------------------------------------------------------------------


async def test_task_commit() -> None:
    """Scenario 1: a pending set with job and attempt in it, no attempt directory, and a message."""
    bucket = new_bucket()
    job = await begun(bucket)
    for number in range(3):
        await job.work(ATTEMPT).put(f"day={number}/part-0", b"x" * (10 * number))

    commit = await job.commit_task(TASK, ATTEMPT)

    found = pending_set(bucket)
    assert [each.key for each in found.commits] == [f"out/t/day={n}/part-0" for n in range(3)]
    assert found.job_id == JOB
    assert {(each.job_id, each.task_id) for each in found.commits} == {(JOB, ATTEMPT)}
    assert commit.manifest == f"s3://data/{SET}"
    assert commit.digest == digest(bucket.objects[SET].data)
    assert (commit.task_id, commit.attempt_id) == (TASK, ATTEMPT)
    assert (commit.files, commit.bytes) == (3, 30)
    assert below(bucket, BASE) == []
    assert len(open_uploads(bucket)) == 3


async def test_committed_by_another_process() -> None:
    """What a task wrote is found by whoever commits it: all is on the store."""
    bucket = new_bucket()
    writer = await begun(bucket)
    await writer.work(ATTEMPT).put("a", b"data")

    await open_committer(bucket, "magic").commit_task(TASK, ATTEMPT)

    assert [each.key for each in pending_set(bucket).commits] == ["out/t/a"]


async def test_task_without_files() -> None:
    """Scenario 6: a task that wrote nothing commits an empty set."""
    bucket = new_bucket()
    job = await begun(bucket)

    commit = await job.commit_task(TASK, ATTEMPT)

    assert (pending_set(bucket).job_id, pending_set(bucket).commits) == (JOB, ())
    assert commit.files == 0
    assert await job.needs_task_commit(ATTEMPT)  # type: ignore[attr-defined]


@pytest.mark.parametrize("in_memory", [False, True])
async def test_second_commit_of_an_attempt(in_memory: bool) -> None:
    """Scenario 3: an attempt is committed once; a second time it is not there, and no set goes."""
    bucket = new_bucket()
    job = await begun(bucket, in_memory=in_memory)
    await job.work(ATTEMPT).put("a", b"data")
    await job.commit_task(TASK, ATTEMPT)
    before = bucket.objects[SET]

    with pytest.raises(CommitError) as caught:
        await job.commit_task(TASK, ATTEMPT)

    assert isinstance(caught.value.failures[0], NotFoundError)
    assert bucket.objects[SET] is before


async def test_data_that_nothing_uploads() -> None:
    """A file that another client put below the task's directory fails the task, by its name."""
    bucket = new_bucket()
    job = await begun(bucket)
    await job.work(ATTEMPT).put("a", b"data")
    path = f"/{BASE}/day=1/part-1"
    assert job.work(ATTEMPT).directory == f"s3://data/{BASE}"
    await store_of(bucket).put(path, b"rows")

    with pytest.raises(CommitError, match=f"task_stage_commit: list {path}.*Task.open"):
        await job.commit_task(TASK, ATTEMPT)
    assert bucket.uploads.open == {}
    await job.abort_task(TASK, ATTEMPT)
    assert below(bucket, f"{ATTEMPTS}/tasks/{ATTEMPT}/__base") == []


async def test_last_attempt_counts() -> None:
    """Scenario 4: of two attempts of a task that commit, the set is the second's."""
    bucket = new_bucket()
    other = ATTEMPT[:-1] + "1"
    job = await begun(bucket)
    await job.setup_task(other)
    await job.work(ATTEMPT).put("first", b"1")
    await job.work(other).put("second", b"2")

    await job.commit_task(TASK, ATTEMPT)
    await job.commit_task(TASK, other)

    assert [each.key for each in pending_set(bucket).commits] == ["out/t/second"]
    assert len(below(bucket, f"{ATTEMPTS}/tasks/{ATTEMPT}/intents/")) == 1


async def test_open_file_keeps_a_task_from_committing() -> None:
    """A file that was not closed is named, and once it is closed the task commits."""
    bucket = new_bucket()
    job = await begun(bucket)
    file = await job.work(ATTEMPT).open("late")
    await file.write(b"data")

    with pytest.raises(OptionError, match="late"):
        await job.commit_task(TASK, ATTEMPT)
    await file.aclose()

    assert (await job.commit_task(TASK, ATTEMPT)).files == 1


@pytest.mark.parametrize(
    "rubbish, error", [(b"rubbish", ManifestError), (b'{"version": 1}', ManifestError)]
)
async def test_unreadable_pending_file(rubbish: bytes, error: type[Exception]) -> None:
    """What can be read is aborted, the first error is raised, and the directory is gone."""
    bucket = new_bucket()
    job = await begun(bucket)
    for name in ("a", "b", "c"):
        await job.work(ATTEMPT).put(name, b"data")
    await job.store.put(f"/{BASE}/b.pending", rubbish)

    with pytest.raises(CommitError) as caught:
        await job.commit_task(TASK, ATTEMPT)

    assert isinstance(caught.value.failures[0], error)
    assert "b.pending" in str(caught.value)
    assert open_uploads(bucket) == ["out/t/b"]
    assert SET not in bucket.objects
    assert below(bucket, BASE) == []


@pytest.mark.parametrize(
    "bucket_name, key, job_id",
    [
        ("other", "out/t/x", JOB),
        ("data", "elsewhere/x", JOB),
        ("data", "out/t/_SUCCESS", JOB),
        ("data", "out/t/__magic_job-9/x", JOB),
        ("data", "out/t/x", "another"),
    ],
)
async def test_pending_file_of_another_place(bucket_name: str, key: str, job_id: str) -> None:
    """A pending file for what is not the job's to write is refused, and its upload left alone."""
    bucket = new_bucket()
    job = await begun(bucket)
    upload_id = await job.store.create_upload(f"/{key}")  # type: ignore[attr-defined]
    foreign = PendingCommit(
        bucket_name, key, upload_id, (Part("e"),), 1, "s3://data/x", job_id=job_id
    )
    await job.store.put(f"/{BASE}/x.pending", encode_pending(foreign))

    with pytest.raises(CommitError, match=r"x\.pending"):
        await job.commit_task(TASK, ATTEMPT)

    assert open_uploads(bucket) == [key]


async def test_two_files_of_one_place() -> None:
    """Scenario 45: pending files that name one place twice make no set."""
    bucket = new_bucket()
    job = await begun(bucket)
    await job.work(ATTEMPT).put("a", b"data")
    await job.store.copy(f"/{BASE}/a.pending", f"/{BASE}/b.pending")

    with pytest.raises(CommitError, match="as in commits"):
        await job.commit_task(TASK, ATTEMPT)

    assert SET not in bucket.objects
    assert open_uploads(bucket) == []


async def test_renamed_pending_file() -> None:
    """Scenario 40: what was moved below __base keeps its length and its destination."""
    bucket = new_bucket()
    job = await begun(bucket)
    await job.work(ATTEMPT).put("a", b"data")
    for suffix in ("", ".pending"):
        await job.store.copy(f"/{BASE}/a{suffix}", f"/{BASE}/day=1/moved{suffix}")
        await job.store.delete(f"/{BASE}/a{suffix}")
    assert bucket.objects[f"{BASE}/day=1/moved"].metadata[LENGTH_HEADER] == "4"

    await job.commit_task(TASK, ATTEMPT)

    assert [each.key for each in pending_set(bucket).commits] == ["out/t/a"]


async def test_set_that_cannot_be_saved() -> None:
    """If the set cannot be written, all uploads of the attempt are aborted."""
    bucket = new_bucket()
    writer = await begun(bucket)
    for name in ("a", "b"):
        await writer.work(ATTEMPT).put(name, b"data")
    job = open_committer(bucket, "magic", Faults(Fault("put", DeniedError, match="pendingset")))

    with pytest.raises(CommitError) as caught:
        await job.commit_task(TASK, ATTEMPT)

    assert isinstance(caught.value.failures[0], DeniedError)
    assert (open_uploads(bucket), below(bucket, BASE)) == ([], [])


async def test_set_that_was_saved_without_an_answer() -> None:
    """Scenario 44: a set whose answer was lost, and that is there, is saved."""
    bucket = new_bucket()
    writer = await begun(bucket)
    await writer.work(ATTEMPT).put("a", b"data")
    lost = Fault("put", OutcomeUnknownError, match="pendingset", after=True)

    await open_committer(bucket, "magic", Faults(lost)).commit_task(TASK, ATTEMPT)

    assert lost.struck == 1
    assert open_uploads(bucket) == ["out/t/a"]


async def test_uploads_that_cannot_be_aborted_are_told() -> None:
    """The error of a failed commit is the first one, whatever becomes of the aborts."""
    bucket = new_bucket()
    writer = await begun(bucket)
    await writer.work(ATTEMPT).put("a", b"data")
    faults = Faults(
        Fault("put", DeniedError, match="pendingset"), Fault("abort_upload", UnavailableError)
    )

    with pytest.raises(CommitError) as caught:
        await open_committer(bucket, "magic", faults).commit_task(TASK, ATTEMPT)

    (cause,) = caught.value.failures
    assert isinstance(cause, DeniedError)
    assert "1 uploads could not be aborted" in cause.__notes__[0]


async def test_listing_that_fails_changes_nothing() -> None:
    """A commit that cannot see what the task wrote may be tried again."""
    bucket = new_bucket()
    writer = await begun(bucket)
    await writer.work(ATTEMPT).put("a", b"data")
    job = open_committer(bucket, "magic", Faults(Fault("list_tree", UnavailableError, times=1)))

    with pytest.raises(CommitError):
        await job.commit_task(TASK, ATTEMPT)

    assert (await job.commit_task(TASK, ATTEMPT)).files == 1


async def test_kept_magic_directory() -> None:
    """Scenario 43: with the clean-up disabled the attempt's files stay after the commit."""
    bucket = new_bucket()
    job = await begun(bucket, keep_magic=True)
    await job.work(ATTEMPT).put("a", b"data")

    await job.commit_task(TASK, ATTEMPT)

    assert below(bucket, BASE) == ["/", "/a", "/a.pending"]


@pytest.mark.parametrize("form", list(EtagForm))
async def test_form_of_etags(form: EtagForm) -> None:
    """Pending files and sets have the etags as the Hadoop wants them that is to read them."""
    bucket = new_bucket()
    job = await begun(bucket, etags=form)
    await job.work(ATTEMPT).put("a", b"data")
    single = json.loads(bucket.objects[f"{BASE}/a.pending"].data)["etags"]
    await job.commit_task(TASK, ATTEMPT)
    in_set = json.loads(bucket.objects[SET].data)["commits"][0]["etags"]

    kind = str if form is EtagForm.STRINGS else dict
    assert [type(each) for each in (*single, *in_set)] == [kind, kind]


async def test_tasks_at_once() -> None:
    """Scenario 13: tasks that write subdirectories at once commit sets of their own."""
    bucket = new_bucket()
    job = open_committer(bucket, "magic")
    await job.setup_job()

    async def run(number: int) -> None:
        task, attempt = job.layout.ids(number)
        await job.setup_task(attempt)
        await job.work(attempt).put(f"day={number % 2}/part-{number}", b"x" * number)
        await job.commit_task(task, attempt)

    await asyncio.gather(*(run(number) for number in range(6)))

    sets = [name for name in below(bucket, f"{ATTEMPTS}/") if name.endswith(".pendingset")]
    assert len(sets) == 6
    assert len(open_uploads(bucket)) == 6


# --- task abort ------------------------------------------------------------------------------


async def test_abort_by_another_process() -> None:
    """Scenario 15: whoever aborts a task finds its uploads on the store."""
    bucket = new_bucket()
    writer = await begun(bucket)
    await writer.work(ATTEMPT).put("a", b"data")
    await (await writer.work(ATTEMPT).open("b")).write(b"half of it")

    await open_committer(bucket, "magic").abort_task(TASK, ATTEMPT)

    assert bucket.uploads.open == {}
    assert below(bucket, f"{ATTEMPTS}/tasks/") == []


@pytest.mark.parametrize("how", ["commit_task", "abort_task"])
async def test_writing_after_the_end(how: str) -> None:
    """A task that has ended writes nothing any more: nobody would complete it."""
    bucket = new_bucket()
    job = await begun(bucket)
    work = job.work(ATTEMPT)
    await getattr(job, how)(TASK, ATTEMPT)

    with pytest.raises(OptionError, match="too late"):
        await work.put("a", b"data")

    assert bucket.uploads.open == {}


@pytest.mark.parametrize("in_memory", [False, True])
async def test_abort_with_open_files(in_memory: bool) -> None:
    """Scenario 10: a task is aborted with what is closed and what is open, and nothing is left."""
    bucket = new_bucket()
    job = await begun(bucket, in_memory=in_memory)
    await job.work(ATTEMPT).put("a", b"data")
    file = await job.work(ATTEMPT).open("b")
    await file.write(b"more than one part")

    await job.abort_task(TASK, ATTEMPT)

    assert bucket.uploads.open == {}
    assert below(bucket, f"{ATTEMPTS}/tasks/") == []
    with pytest.raises(OptionError, match="closed"):
        await file.write(b"more")


async def test_abort_without_work() -> None:
    """Scenarios 8 and 41: aborting a task that is not there, or twice, is no error."""
    bucket = new_bucket()
    job = await begun(bucket)

    await job.abort_task(TASK, ATTEMPT)
    await job.abort_task(TASK, ATTEMPT)
    await open_committer(bucket, "magic", job_id="never").abort_task(TASK, ATTEMPT)

    assert below(bucket, f"{ATTEMPTS}/tasks/") == []


async def test_abort_with_a_corrupt_pending_file() -> None:
    """Scenario 41: an unreadable pending file is told, when all others are aborted."""
    bucket = new_bucket()
    job = await begun(bucket)
    for name in ("a", "b", "c"):
        await job.work(ATTEMPT).put(name, b"data")
    await job.store.put(f"/{BASE}/b.pending", b"rubbish")

    with pytest.raises(CommitError, match=r"b\.pending"):
        await job.abort_task(TASK, ATTEMPT)

    assert bucket.uploads.open == {}  # the intents know of it, too


async def test_abort_of_a_failing_store() -> None:
    """Scenario 11: an upload that cannot be aborted is an error, the others are aborted."""
    bucket = new_bucket()
    writer = await begun(bucket)
    for name in ("a", "b", "c"):
        await writer.work(ATTEMPT).put(name, b"data")
    faults = Faults(Fault("abort_upload", DeniedError, match="/out/t/b"))

    with pytest.raises(CommitError) as caught:
        await open_committer(bucket, "magic", faults).abort_task(TASK, ATTEMPT)

    assert isinstance(caught.value.failures[0], DeniedError)
    assert open_uploads(bucket) == ["out/t/b"]
    assert below(bucket, f"{ATTEMPTS}/tasks/{ATTEMPT}/intents/") != []


async def test_abort_of_a_committed_task() -> None:
    """A task that committed and is aborted leaves neither set nor uploads; another's set stays."""
    bucket = new_bucket()
    other = ATTEMPT[:-1] + "1"
    job = await begun(bucket)
    await job.setup_task(other)
    await job.work(ATTEMPT).put("a", b"1")
    await job.work(other).put("b", b"2")
    await job.commit_task(TASK, ATTEMPT)
    await job.commit_task(TASK, other)

    await job.abort_task(TASK, ATTEMPT)

    assert open_uploads(bucket) == ["out/t/b"]
    assert [each.key for each in pending_set(bucket).commits] == ["out/t/b"]

    await job.abort_task(TASK, other)

    assert bucket.uploads.open == {}
    assert SET not in bucket.objects


async def test_abort_once_the_job_commits() -> None:
    """A job commit that has begun completes what the task committed, whoever aborts it then."""
    bucket = new_bucket()
    job = await begun(bucket)
    await job.work(ATTEMPT).put("a", b"data")
    await job.commit_task(TASK, ATTEMPT)
    await job.store.put(job.layout.record, b"a record")

    await job.abort_task(TASK, ATTEMPT)

    assert open_uploads(bucket) == ["out/t/a"]
    assert SET in bucket.objects


# --- setup and options -----------------------------------------------------------------------


async def test_attempt_that_is_there() -> None:
    """A task attempt is set up once: two with one name would abort each other."""
    bucket = new_bucket()
    job = await begun(bucket)

    with pytest.raises(CommitError, match="exists already"):
        await job.setup_task(ATTEMPT)


async def test_task_of_a_job_that_has_ended() -> None:
    """A task that comes after its job's end is not set up, and writes nothing."""
    bucket = new_bucket()
    job = await begun(bucket)
    await job.abort_job()

    with pytest.raises(CommitError) as caught:
        await job.setup_task(ATTEMPT[:-1] + "1")

    assert isinstance(caught.value.failures[0], NotFoundError)
    assert below(bucket, "out/t/__magic") == []


async def test_attempts_of_a_job() -> None:
    """Scenario 2: a second attempt of a job has places of its own, and aborts its own uploads only.

    Nothing recovers a task of another attempt, as with Hadoop: there is no method for it.
    """
    bucket = new_bucket()
    first = await begun(bucket)
    second = open_committer(bucket, "magic", attempt=1)
    await second.setup_job()
    await second.setup_task(ATTEMPT)
    await first.work(ATTEMPT).put("a", b"1")
    await second.work(ATTEMPT).put("b", b"2")

    await second.abort_task(TASK, ATTEMPT)

    assert first.work(ATTEMPT).directory != second.work(ATTEMPT).directory
    assert open_uploads(bucket) == ["out/t/a"]


async def test_in_memory_tracking() -> None:
    """With tracking in memory there is no marker and no pending file, and the set is the same."""
    bucket = new_bucket()
    job = await begun(bucket, in_memory=True)
    await job.work(ATTEMPT).put("day=1/a", b"data")

    assert below(bucket, BASE) == []
    commit = await job.commit_task(TASK, ATTEMPT)

    assert [each.key for each in pending_set(bucket).commits] == ["out/t/day=1/a"]
    assert (commit.files, commit.bytes) == (1, 4)


async def test_in_memory_tracking_in_another_process() -> None:
    """A process that did not write the files does not commit an empty set in their place."""
    bucket = new_bucket()
    writer = await begun(bucket, in_memory=True)
    await writer.work(ATTEMPT).put("a", b"data")

    with pytest.raises(CommitError, match="was not set up in this process"):
        await open_committer(bucket, "magic", in_memory=True).commit_task(TASK, ATTEMPT)

    assert SET not in bucket.objects


def test_magic_that_is_disabled() -> None:
    """Scenario 42: where the options forbid magic, there is no such committer."""
    with pytest.raises(UnsupportedError, match=r"magic\.enabled is false"):
        open_committer(new_bucket(), "magic", conf={"fs.s3a.committer.magic.enabled": "false"})


async def test_part_size_that_is_too_small() -> None:
    """Parts that the store does not take are refused before a task writes."""
    job = open_committer(new_bucket(), "magic", part_size=3)
    await job.setup_job()

    with pytest.raises(OptionError, match=r"fs\.s3a\.multipart\.size"):
        await job.setup_task(ATTEMPT)


async def test_magic_end_to_end() -> None:
    """Scenarios 1 and 39: nothing is seen before the commit, then files and marker, no more."""
    bucket = new_bucket()
    job = open_committer(bucket, "magic")
    await job.setup_job(mode=Mode.APPEND)
    commits = []
    for number in range(4):
        task, attempt = job.layout.ids(number)
        await job.setup_task(attempt)
        async with await job.work(attempt).open(f"day={number}/part-0") as file:
            for _ in range(number):
                await file.write(b"0123456789")
        commits.append(await job.commit_task(task, attempt))
    assert not [key for key in keys(bucket) if "__magic" not in key and not key.endswith("/")]

    report = await job.commit_job(commits, strict=True)

    assert (report.files, report.bytes) == (4, 60)
    assert keys(bucket) == ["out/t/_SUCCESS", *(f"out/t/day={n}/part-0" for n in range(4))]
    assert [bucket.objects[f"out/t/day={n}/part-0"].data for n in range(4)] == [
        b"0123456789" * n for n in range(4)
    ]
    assert LENGTH_HEADER not in bucket.objects["out/t/day=1/part-0"].metadata
    assert bucket.uploads.open == {}
    assert json.loads(bucket.objects["out/t/_SUCCESS"].data)["committer"] == "magic"

"""Uploads that are open: whose they are, what they hold, and which an abort is for."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from asynccommit.commit.by_upload.abort_uploads import Aborted
from asynccommit.commit.layouts.uploads import MagicLayout
from asynccommit.errors import UnsupportedError
from asynccommit.formats.pending import PendingCommit, encode_pending
from asynccommit.formats.pending_set import PendingSet, encode_pending_set
from asynccommit.formats.upload_record import IntendedUpload, UploadIntent, encode_upload_intent
from asynccommit.inspect.open_uploads import DAY, OpenUploads, choose, find_uploads
from asynccommit.inspect.upload_text import upload_abort, upload_list, upload_plan
from asynccommit.runtime.cells import to_text
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.parts import Part
from asynccommit.stores.urls import Address, parse_url
from asynccommit.testing.models.fault_rules import BEFORE, Fault, FaultInjector
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import UploadRules
from asynccommit.testing.models.s3.refusals import S3
from tests.testing.models.s3.bench import NAME, Clock, new_bucket

DEST = parse_url(f"s3://{NAME}/table")
JOB = "11111111-2222-3333-4444-555555555555"


class Bench:
    """A bucket with uploads and jobs, on a clock that is told what time it is."""

    def __init__(self, rules: UploadRules | None = None) -> None:
        self.clock = Clock()
        bucket = new_bucket(rules or UploadRules(smallest_part=1), self.clock)
        self.weather = FaultInjector(random.Random(1), self.clock, dialect=S3)
        self.store = SimS3Store(DEST, {"bucket": bucket, "weather": self.weather})

    async def begin(self, path: str, *parts: bytes, age: float = 0.0) -> str:
        """Begin an upload so many seconds ago; return its id."""
        self.clock.now -= age
        upload_id = await self.store.create_upload(path)
        for number, data in enumerate(parts, 1):
            await self.store.put_part(path, upload_id, number, data)
        self.clock.now += age
        return upload_id

    async def leave(self, path: str, data: bytes, age: float = 0.0) -> None:
        """Leave a file that was written so many seconds ago."""
        self.clock.now -= age
        await self.store.put(path, data)
        self.clock.now += age

    async def find(self, dest: Address = DEST) -> OpenUploads:
        """Look for uploads."""
        return await find_uploads(self.store, dest, self.clock())


def _layout(job_id: str = JOB, dest: Address = DEST) -> MagicLayout:
    return MagicLayout(dest, job_id, 0)


def _commit(path: str, upload_id: str, bucket: str = NAME) -> PendingCommit:
    parts, uri = (Part('"etag"'),), f"s3a://{bucket}{path}"
    return PendingCommit(bucket, path[1:], upload_id, parts, 1, uri, job_id=JOB)


def _set(*uploads: tuple[str, str]) -> bytes:
    return encode_pending_set(PendingSet(JOB, tuple(_commit(*upload) for upload in uploads)))


def _chosen(found: OpenUploads, age: float | None = None, job: str | None = None) -> Sequence[str]:
    return [one.upload.path for one in choose(found, age, job).uploads]


def _kept(found: OpenUploads, age: float | None = None, job: str | None = None) -> dict[str, str]:
    return {kept.found.upload.path: kept.reason for kept in choose(found, age, job).kept}


# --- finding -----------------------------------------------------------------------------------


async def test_uploads_are_found_with_what_they_hold() -> None:
    """The oldest first, those below the place only, however listings are paged."""
    bench = Bench(UploadRules(smallest_part=1, page=2))
    for number in range(5):
        await bench.begin(f"/table/p={number}/f", *[b"abc"] * number, age=100.0 - number)
    await bench.begin("/tables/f", b"other", age=500)
    await bench.begin("/table/late", age=1)
    found = await bench.find()

    assert [(one.upload.path, one.parts, one.size) for one in found.uploads] == [
        *[(f"/table/p={number}/f", number, 3 * number) for number in range(5)],
        ("/table/late", 0, 0),
    ]
    assert [found.age(one) for one in found.uploads] == [100, 99, 98, 97, 96, 1]
    assert len((await bench.find(DEST.at("/"))).uploads) == 7


async def test_nothing_is_written_and_nothing_asked_without_uploads() -> None:
    """One listing; the directories of jobs are looked for only if there are uploads."""
    bench = Bench()
    await bench.leave(_layout().pending_set("task"), b"not even read")
    bench.weather.requests.clear()

    assert (await bench.find()).uploads == []
    assert bench.weather.requests == {"list_uploads": 1}


async def test_upload_that_ends_meanwhile_is_not_shown() -> None:
    """Between two requests it was completed or aborted."""
    bench = Bench()
    await bench.begin("/table/a")
    bench.weather.add(Fault(BEFORE, op="list_parts", code="NoSuchUpload"))

    assert (await bench.find()).uploads == []


async def test_store_without_uploads() -> None:
    """It is named."""
    dest = parse_url("/table")
    store = LocalStore(dest, {})
    with pytest.raises(UnsupportedError, match="no multipart uploads"):
        await find_uploads(store, dest, 0.0)  # type: ignore[arg-type]
    await store.aclose()


# --- whose they are ------------------------------------------------------------------------------


async def test_jobs_name_their_uploads() -> None:
    """By pending sets, by pending files of single uploads, by intents; others stay nobody's."""
    bench, layout = Bench(), _layout()
    a, b, c, _ = [await bench.begin(f"/table/{name}", age=DAY) for name in "abcd"]
    await bench.leave(layout.pending_set("task_1"), _set(("/table/a", a)))
    base = layout.task_base("attempt_2")
    await bench.leave(f"{base}/b.pending", encode_pending(_commit("/table/b", b)))
    intent = UploadIntent(JOB, "attempt_3", (IntendedUpload("table/c", c),), 0)
    await bench.leave(layout.intent("attempt_3", 0), encode_upload_intent(intent))
    found = await bench.find()

    assert {one.upload.path[-1]: one.job for one in found.uploads} == {
        "a": JOB,
        "b": JOB,
        "c": JOB,
        "d": "-",
    }
    assert [(job.job_id, job.sets, job.begun) for job in found.jobs] == [(JOB, 1, False)]


@pytest.mark.parametrize("dest", ["/", "/table", "/table/day=1"])
@pytest.mark.parametrize("place", ["/", "/table", "/table/day=1"])
async def test_job_is_found_wherever_its_destination_is(dest: str, place: str) -> None:
    """At the place that is looked at, above it, or below it."""
    bench, layout = Bench(), _layout(dest=DEST.at(dest))
    upload_id = await bench.begin("/table/day=1/x", age=DAY)
    await bench.leave(layout.pending_set("task"), _set(("/table/day=1/x", upload_id)))
    (one,) = (await bench.find(DEST.at(place))).uploads

    assert one.jobs == (JOB,)


async def test_magic_directory_of_older_hadoop() -> None:
    """Before 3.4 the jobs of a destination shared one."""
    bench = Bench()
    upload_id = await bench.begin("/table/a", age=DAY)
    path = f"/table/__magic/job-{JOB}/00/task_1.pendingset"
    await bench.leave(path, _set(("/table/a", upload_id)))
    (one,) = (await bench.find()).uploads

    assert one.jobs == (JOB,)


@pytest.mark.parametrize(
    "path, bucket", [("/other/a", NAME), ("/table/a", "elsewhere")], ids=["place", "bucket"]
)
async def test_job_cannot_name_what_is_not_in_its_destination(path: str, bucket: str) -> None:
    """Its files are no authority for it."""
    bench = Bench()
    upload_id = await bench.begin(path, age=DAY)
    data = encode_pending_set(PendingSet(JOB, (_commit(path, upload_id, bucket),)))
    await bench.leave(_layout().pending_set("task"), data)
    found = await bench.find(DEST.at("/"))

    assert [one.jobs for one in found.uploads] == [()]


async def test_file_of_a_job_that_cannot_be_read() -> None:
    """It is a warning with the file's name, and what it may have named stays."""
    bench = Bench()
    await bench.leave(_layout().pending_set("task"), b"{", age=2 * DAY)
    await bench.begin("/table/a", age=DAY)
    found = await bench.find()

    assert JOB in found.warnings[0]
    assert "task.pendingset" in found.warnings[0]
    assert _chosen(found, DAY / 2) == []


async def test_place_that_nobody_may_look_at() -> None:
    """Whose uploads are whose may be unknown then, and that is said."""
    bench = Bench()
    await bench.begin("/table/a", age=DAY)
    bench.weather.add(Fault(BEFORE, op="list", path="^/$", code="AccessDenied"))
    found = await bench.find()

    assert len(found.uploads) == 1
    assert "may be unknown" in found.warnings[0]


# --- choosing ------------------------------------------------------------------------------------


async def test_only_what_is_older_than_a_day() -> None:
    """Unless another age is given; a time that is unknown is no age."""
    bench = Bench()
    for hours in (1, 23, 25, 50):
        await bench.begin(f"/table/{hours}", age=hours * 3600)
    found = await bench.find()

    assert _chosen(found) == ["/table/50", "/table/25"]
    assert _chosen(found, 7200.0) == ["/table/50", "/table/25", "/table/23"]
    assert len(_chosen(found, 0.0)) == 4
    assert _kept(found) == {}


async def test_what_is_of_a_job_stays_unless_it_is_given() -> None:
    """However old it is; and with the job given nothing else is taken, however old."""
    bench = Bench()
    upload_id = await bench.begin("/table/a", age=9 * DAY)
    await bench.leave(_layout().pending_set("task"), _set(("/table/a", upload_id)), age=8 * DAY)
    await bench.begin("/table/b", age=9 * DAY)
    found = await bench.find()

    assert _chosen(found) == ["/table/b"]
    assert _kept(found)["/table/a"].endswith(f"uploads abort s3://{NAME}/table --job-id {JOB}")
    assert _chosen(found, job=JOB) == ["/table/a"]
    assert _chosen(found, 10 * DAY, JOB) == []
    assert _chosen(found, job="another") == []
    assert _kept(found, job=JOB) == {}


async def test_what_may_be_of_a_job_stays() -> None:
    """A task of Hadoop's says what it uploads only when a file is closed."""
    bench = Bench()
    await bench.begin("/table/before", age=4 * DAY)
    await bench.leave(f"{_layout().job_dir}/x", b"", age=3 * DAY)
    await bench.begin("/table/since", age=2 * DAY)
    await bench.begin("/tables/other", age=2 * DAY)
    found = await bench.find(DEST.at("/"))

    assert {one.upload.path: one.job for one in found.uploads} == {
        "/table/before": "-",
        "/table/since": f"{JOB}?",
        "/tables/other": "-",
    }
    assert _chosen(found) == ["/table/before", "/tables/other"]
    assert "it may belong to job" in _kept(found)["/table/since"]
    assert _chosen(found, job=JOB) == []


async def test_what_two_jobs_name_is_for_neither() -> None:
    """One of them must be wrong, and nobody can tell which."""
    bench = Bench()
    upload_id = await bench.begin("/table/a", age=DAY)
    for job in (JOB, "other"):
        await bench.leave(_layout(job).pending_set("task"), _set(("/table/a", upload_id)))
    found = await bench.find()

    assert _chosen(found, job=JOB) == _chosen(found, job="other") == _chosen(found) == []
    assert _kept(found, job=JOB) == {"/table/a": "job other names it too"}


# --- as text -------------------------------------------------------------------------------------


async def test_list_as_text() -> None:
    """Age, job, parts, size, cost, key, id; sums; where the price comes from."""
    bench = Bench()
    upload_id = await bench.begin("/table/\x1b[31ma", *[b"x" * 1000] * 3, age=50 * 3600)
    await bench.begin("/table/b", age=90)
    shown = to_text(upload_list(await bench.find(), 1e6), 300)
    lines = [line.split() for line in shown.splitlines()]

    assert ["2", "days", "-", "3", "3.0", "kB", "$2.79", r"table/\x1b[31ma", upload_id] in lines
    assert "2 uploads, 3 parts, 3.0 kB, $2.79 a month" in shown
    assert "here $1e+06 per GB and month" in shown


async def test_nothing_as_text() -> None:
    """It is said that nothing is there."""
    assert "no upload is open" in to_text(upload_list(await Bench().find(), 1.0))


async def test_plan_and_abort_as_text() -> None:
    """What would be aborted, what stays and why, and how to do it; then what was done."""
    bench = Bench()
    await bench.leave(f"{_layout().job_dir}/x", b"", age=3 * DAY)
    await bench.begin("/table/since", age=2 * DAY)
    await bench.begin("/table/before", b"abc", age=4 * DAY)
    found = await bench.find()
    choice = choose(found, None, None)
    planned = to_text(upload_plan(found, choice, 1.0), 300)
    done = to_text(upload_abort(choice, Aborted([choice.uploads[0].upload])), 300)

    assert "would abort 1 upload, 1 part, 3 B" in planned
    assert "kept 1 upload: it may belong to job" in planned
    assert "pass --yes" in planned
    assert "aborted 1 upload, 1 part, 3 B" in done
    assert "kept 1 upload" in done

"""Intents: what a task has begun is on the store before its first part."""

from __future__ import annotations

import asyncio
import json

import pytest

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.task.intents import Intents, intended, intent_files
from asynccommit.errors import ManifestError, UnavailableError
from asynccommit.formats.upload_record import decode_upload_intent
from asynccommit.testing.models.s3.model import S3Bucket
from tests.support.faults import Fault, Faults
from tests.support.uploads import ATTEMPT, JOB, Gate, keys, magic_run, new_bucket, staging_run


def written(bucket: S3Bucket) -> list[list[tuple[str, str]]]:
    """Return the uploads of each intent in the bucket, by name."""
    data = [bucket.objects[key].data for key in keys(bucket) if "intents/" in key]
    return [[tuple(row) for row in json.loads(each)["uploads"]] for each in data]


async def test_recorded_uploads_are_read_again() -> None:
    """What is recorded is found by whoever cleans up, with paths and ids."""
    bucket = new_bucket()
    run = magic_run(bucket)

    await Intents(run, ATTEMPT).record(("/out/t/a", "1"), ("/out/t/day=1/b", "2"))

    assert await intended(run, ATTEMPT) == ([("/out/t/a", "1"), ("/out/t/day=1/b", "2")], [])
    (key,) = keys(bucket)
    intent = decode_upload_intent(bucket.objects[key].data, key)
    assert (intent.job_id, intent.task_attempt) == (JOB, ATTEMPT)
    assert intent.created_ms == 1_795_000_000_000


def record(intents: Intents, *names: str) -> list[asyncio.Task[None]]:
    """Begin to record uploads, each by a task of its own."""
    return [
        asyncio.create_task(intents.record((f"/out/t/{name}", f"id of {name}"))) for name in names
    ]


def rows(*names: str) -> list[tuple[str, str]]:
    """Return what an intent of these uploads holds."""
    return [(f"out/t/{name}", f"id of {name}") for name in names]


async def test_uploads_begun_meanwhile_go_together() -> None:
    """While one intent is written, all that begin wait for one more, and no more."""
    bucket, gate = new_bucket(), Gate("put")
    intents = Intents(magic_run(bucket, gate), ATTEMPT)
    names = [str(number) for number in range(50)]

    recording = record(intents, *names)
    await asyncio.sleep(0.01)
    assert gate.waiting == 1
    assert not any(task.done() for task in recording)
    gate.open()
    await asyncio.gather(*recording)

    assert written(bucket) == [rows("0"), rows(*names[1:])]


async def test_failed_intent_fails_all_that_waited() -> None:
    """An upload whose intent is not on the store does not go on; later ones may."""
    faults, gate = Faults(Fault("put", UnavailableError, skip=1, times=1)), Gate("put")
    bucket = new_bucket()
    intents = Intents(magic_run(bucket, gate, faults), ATTEMPT)

    recording = record(intents, "a", "b", "c")
    await asyncio.sleep(0.01)
    gate.open()
    said = await asyncio.gather(*recording, return_exceptions=True)
    await asyncio.gather(*record(intents, "d"))

    assert [type(each) for each in said] == [type(None), UnavailableError, UnavailableError]
    assert written(bucket) == [rows("a"), rows("d")]


async def test_cancelled_writer_leaves_the_batch_to_the_next() -> None:
    """If the one who writes an intent is cancelled, another who waits for it writes it."""
    bucket, gate = new_bucket(), Gate("put")
    intents = Intents(magic_run(bucket, gate), ATTEMPT)
    first, second, third = record(intents, "a", "b", "c")
    await asyncio.sleep(0.01)
    gate.open(1)
    await first
    await asyncio.sleep(0.01)
    assert gate.waiting == 1

    second.cancel()
    await asyncio.wait([second])
    gate.open()
    await third

    assert written(bucket) == [rows("a"), rows("b", "c")]


@pytest.mark.parametrize("run", [magic_run, staging_run], ids=["magic", "staging"])
async def test_intents_of_other_attempts_are_theirs(run: object) -> None:
    """Attempts whose names begin alike do not read each other's intents."""
    made: UploadContext = run(new_bucket())  # type: ignore[operator]
    for attempt in ("a_1", "a_1-2", "a_10"):
        await Intents(made, attempt).record(("/out/t/x", f"of {attempt}"))

    for attempt in ("a_1", "a_1-2", "a_10"):
        assert await intended(made, attempt) == ([("/out/t/x", f"of {attempt}")], [])
        assert len(await intent_files(made, attempt)) == 1
    assert await intended(made, "a_2") == ([], [])


@pytest.mark.parametrize(
    "key", ["other/t/a", "out/t", "out/t2/a", "out/t/_temporary/a", "out/t/__magic_job-x/a"]
)
async def test_uploads_of_others_are_nobodys_word(key: str) -> None:
    """An intent that names a place which is not the job's is not acted on, and is told."""
    run = magic_run(new_bucket())
    await Intents(run, ATTEMPT).record(("/out/t/good", "1"))
    await Intents(run, ATTEMPT).record((f"/{key}", "2"))

    found, failures = await intended(run, ATTEMPT)

    assert found == [("/out/t/good", "1")]
    assert [type(error) for _, error in failures] == [ManifestError]
    assert key in str(failures[0][1])


async def test_intent_that_cannot_be_read_is_told() -> None:
    """Rubbish in an intent keeps nobody from reading the others."""
    run = magic_run(new_bucket())
    intents = Intents(run, ATTEMPT)
    await intents.record(("/out/t/a", "1"))
    await run.pending.put(run.layout.intent(ATTEMPT, 7), b"rubbish")

    found, failures = await intended(run, ATTEMPT)

    assert found == [("/out/t/a", "1")]
    assert [path for path, _ in failures] == [run.layout.intent(ATTEMPT, 7)]


async def test_two_processes_of_one_attempt() -> None:
    """Whoever else writes for the attempt replaces no intent."""
    bucket = new_bucket()
    for name in ("a", "b", "c"):
        await asyncio.gather(*record(Intents(magic_run(bucket), ATTEMPT), name))

    assert written(bucket) == [rows("a"), rows("b"), rows("c")]

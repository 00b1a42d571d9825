"""Giving up uploads: all that can be, and what cannot is told."""

from __future__ import annotations

import asyncio

import pytest

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.task.give_up import give_up, uploads_of
from asynccommit.commit.by_upload.task.intents import Intents
from asynccommit.commit.by_upload.task.pending import pending_commit
from asynccommit.commit.by_upload.task.sets import save_set
from asynccommit.commit.by_upload.task.undo import abort_after, abort_all
from asynccommit.errors import DeniedError, ManifestError
from asynccommit.stores.parts import Part
from tests.support.faults import Fault, Faults
from tests.support.uploads import ATTEMPT, TASK, magic_run, new_bucket, open_uploads


async def begin(run: UploadContext, *names: str) -> list[tuple[str, str]]:
    """Begin uploads."""
    paths = [f"/out/t/{name}" for name in names]
    return [(path, await run.store.create_upload(path)) for path in paths]


async def test_all_are_aborted() -> None:
    """Each upload is aborted once, and one that is gone is fine."""
    seen, bucket = Faults(), new_bucket()
    run = magic_run(bucket, seen)
    uploads = await begin(run, "a", "b")

    assert await abort_all(run, [*uploads, *uploads, ("/out/t/c", "gone")]) == []

    assert seen.count("abort_upload") == 3
    assert bucket.uploads.open == {}


async def test_some_cannot_be_aborted() -> None:
    """A refusal keeps the others from nothing."""
    bucket = new_bucket()
    run = magic_run(bucket, Faults(Fault("abort_upload", DeniedError, match="/b")))

    failed = await abort_all(run, await begin(run, "a", "b", "c"))

    assert [type(error) for error in failed] == [DeniedError]
    assert open_uploads(bucket) == ["out/t/b"]


async def test_cancelled_work_is_aborted_twice() -> None:
    """A part that was under way when it was cancelled may come after the first abort."""
    seen = Faults()
    run = magic_run(new_bucket(), seen)
    uploads = await begin(run, "a")

    await abort_after(run, ValueError("mine"), uploads)
    assert seen.count("abort_upload") == 1
    await abort_after(run, asyncio.CancelledError(), uploads)
    assert seen.count("abort_upload") == 3


async def test_giving_up() -> None:
    """What is known, what was intended and what is in the set is aborted, and the set removed."""
    bucket = new_bucket()
    run = magic_run(bucket)
    known, intended, in_set = await begin(run, "a", "b", "c")
    entries = [
        pending_commit(run, ATTEMPT, path, upload_id, [Part("e")], 1, "t-1")
        for path, upload_id in (known, in_set)
    ]
    assert uploads_of(entries) == [known, in_set]
    await Intents(run, ATTEMPT).record(intended)
    await save_set(run, TASK, ATTEMPT, entries[1:])

    await give_up(run, TASK, ATTEMPT, entries[:1])

    assert bucket.uploads.open == {}
    assert run.layout.pending_set(TASK)[1:] not in bucket.objects


async def test_giving_up_with_failures() -> None:
    """All is aborted that can be; then the first error is raised, with the others on it."""
    bucket = new_bucket()
    run = magic_run(bucket, Faults(Fault("abort_upload", DeniedError, match="/b")))
    uploads = await begin(run, "a", "b", "c")
    await Intents(run, ATTEMPT).record(*uploads)
    unreadable = [("/x", ManifestError("/x", "rubbish"))]

    with pytest.raises(DeniedError) as caught:
        await give_up(run, TASK, ATTEMPT, (), unreadable)

    assert "rubbish" in caught.value.__notes__[0]
    assert open_uploads(bucket) == ["out/t/b"]

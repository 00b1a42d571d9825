"""Aborting uploads: each on its own, and nothing left of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from asynccommit.commit.by_upload.abort_uploads import Aborted, abort_uploads
from asynccommit.errors import DeniedError, RejectedError
from asynccommit.inspect.open_uploads import list_open
from asynccommit.stores.multipart import Upload
from asynccommit.testing.models.fault_rules import BEFORE, Climate, Fault, FaultInjector
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.refusals import S3
from tests.testing.models.s3.bench import open_store


async def _begun(store: SimS3Store, *paths: str) -> list[Upload]:
    """Begin uploads with one part each."""
    found = []
    for path in paths:
        upload_id = await store.create_upload(path)
        await store.put_part(path, upload_id, 1, b"part")
        found.append(Upload(path, upload_id))
    return found


async def _abort(
    store: SimS3Store, uploads: Sequence[Upload], before: Callable[[], object] = lambda: None
) -> Aborted:
    """Abort uploads; what ``before`` does happens each time before it is looked what is left."""

    async def open_now() -> Sequence[Upload]:
        before()
        return await list_open(store, "/")

    return await abort_uploads(store, uploads, open_now)


async def test_only_what_is_given_is_aborted() -> None:
    """Another upload of the same file stays."""
    store = open_store()
    one, two, other = await _begun(store, "/a", "/b", "/a")

    done = await _abort(store, [one, two])

    assert done == Aborted(aborted=[one, two])
    assert list(store.bucket.uploads.open) == [other.upload_id]


async def test_one_that_has_ended_is_no_failure() -> None:
    """Whoever ended it, as long as it is over."""
    store = open_store()
    one, two = await _begun(store, "/a", "/b")
    await store.abort_upload(one.path, one.upload_id)

    done = await _abort(store, [one, two])

    assert (done.ended, done.aborted, done.failures) == ([one], [two], [])


async def test_one_that_fails_keeps_no_other() -> None:
    """It is named with its reason, the rest is aborted."""
    fault = Fault(BEFORE, op="abort_upload", path="/b$", code="AccessDenied")
    store = open_store(weather=FaultInjector(random.Random(1), lambda: 0.0, Climate((fault,)), S3))
    uploads = await _begun(store, "/a", "/b", "/c")

    done = await _abort(store, uploads)
    ((failed, error),) = done.failures

    assert done.aborted == [uploads[0], uploads[2]]
    assert failed == uploads[1]
    assert isinstance(error, DeniedError)
    assert list(store.bucket.uploads.open) == [uploads[1].upload_id]


async def test_part_that_comes_late_is_aborted_too() -> None:
    """It was on its way when its upload was aborted, and would be paid for."""
    store = open_store()
    (upload,) = await _begun(store, "/a")
    late = [b"late"]

    def arrive() -> None:
        if late:
            store.bucket.upload_part("a", upload.upload_id, 2, late.pop(), begun=True)

    done = await _abort(store, [upload], arrive)

    assert done == Aborted(aborted=[upload])
    assert store.bucket.uploads.open == {}


async def test_parts_that_come_without_end_are_told() -> None:
    """Somebody is still writing: it is said that the upload is there."""
    store = open_store()
    (upload,) = await _begun(store, "/a")

    def arrive() -> None:
        store.bucket.upload_part("a", upload.upload_id, 2, b"more", begun=True)

    done = await _abort(store, [upload], arrive)
    ((failed, error),) = done.failures

    assert (done.aborted, failed) == ([], upload)
    assert isinstance(error, RejectedError)
    assert "abort it again" in str(error)


@pytest.mark.parametrize("number", [0, 1])
async def test_nothing_is_asked_without_need(number: int) -> None:
    """One look at what is left, if nothing is."""
    weather = FaultInjector(random.Random(1), lambda: 0.0, dialect=S3)
    store = open_store(weather=weather)
    uploads = await _begun(store, *["/a"] * number)
    weather.requests.clear()

    await _abort(store, uploads)

    assert weather.requests["abort_upload"] == number
    assert weather.requests["list_uploads"] == 1

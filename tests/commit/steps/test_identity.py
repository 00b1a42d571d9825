"""Moving a task's file: as the version that its task committed, or another of the same content."""

from __future__ import annotations

import pytest

from asynccommit.commit.context import CommitContext, Environment
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.spill import Entry
from asynccommit.commit.steps.identity import identity_of
from asynccommit.commit.tasks.output import put_whole
from asynccommit.errors import ExistsError, PreconditionError
from asynccommit.options.job import Options
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.models.gcs.model import GcsService
from tests.support.gcs_store import BUCKET, Direct, new_service, new_store
from tests.support.storms import host, objects_of

SOURCE, DEST = "/t/_temporary/job/source", "/t/part-0"


async def ready(data: bytes = b"data") -> tuple[GcsService, CommitContext, Entry]:
    """Return a bucket with a task's file, and its entry in the manifest."""
    service = new_service()
    store = Wrapped(new_store(Direct(GcsApp(service))))
    info = await store.put(SOURCE, data)
    layout = Layout(parse_url(f"gs://{BUCKET}/t"), "job")
    run = CommitContext.new(Environment(store, host(0), store), layout, Options())
    return service, run, Entry(SOURCE, DEST, info.size, info.etag)


async def test_another_version_is_moved() -> None:
    """The same bytes under a new generation are what the task committed."""
    service, run, entry = await ready()
    service.insert(BUCKET, SOURCE[1:], b"data")
    await identity_of(run).move(entry, DEST)

    assert objects_of(service, "/t") == {"part-0": b"data"}


async def test_other_content_stays() -> None:
    """Other bytes are not moved, though they be as many."""
    service, run, entry = await ready()
    service.insert(BUCKET, SOURCE[1:], b"DATA")

    with pytest.raises(PreconditionError):
        await identity_of(run).move(entry, DEST)
    assert objects_of(service, "/t") == {"_temporary/job/source": b"DATA"}


async def test_what_is_at_the_destination_stays() -> None:
    """Another version replaces nothing, either."""
    service, run, entry = await ready()
    service.insert(BUCKET, SOURCE[1:], b"data")
    service.insert(BUCKET, DEST[1:], b"of another")

    with pytest.raises(ExistsError):
        await identity_of(run).move(entry, DEST)
    assert objects_of(service, "/t")["part-0"] == b"of another"


async def test_a_task_writes_a_file_again() -> None:
    """The last content counts, and no write of a task replaces what is there."""
    direct = Direct(GcsApp(new_service()))
    store = new_store(direct)
    for data in (b"first", b"second"):
        await put_whole(store, SOURCE, data)
    uploads = [sent.query for sent in direct.seen if sent.path.startswith("/upload/")]

    assert await store.get(SOURCE, 100) == b"second"
    assert uploads
    assert all("ifGenerationMatch=0" in query for query in uploads)

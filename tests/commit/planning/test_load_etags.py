"""Files whose manifest names no etag, on Azure Data Lake Storage: renamed under one anyway."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.layouts.layout import Layout
from asynccommit.errors import CommitError, ManifestError, PreconditionError, PreflightError
from asynccommit.formats.manifest import decode_manifest, encode_manifest
from asynccommit.options.job import Options
from asynccommit.stores.adls.store import AdlsStore
from asynccommit.stores.http.base import HttpSettings, Response, Transport
from asynccommit.stores.http.client import open_transport
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from tests.support.jobs import HOST, JOB, ids

DEST = "abfs://data@devstoreaccount1.dfs.core.windows.net/t"
TASKS = ({"a": "1", "b": "2", "c": "3"}, {"p=1/d": "4", "p=1/e": "5", "p=2/f": "6"})
FILES = {name: text for task in TASKS for name, text in task.items()}


class Watched:
    """A transport that notes what is asked, and does something before the rename of a file.

    Attributes:
        listed: how often each directory of a task was listed.
        renamed: the condition on the source of each rename of a task's file.
        before: name of a file -> what to do before its rename is sent.
    """

    def __init__(self, inner: Transport) -> None:
        self.listed: Counter[str] = Counter()
        self.renamed: dict[str, str | None] = {}
        self.before: dict[str, Callable[[], Awaitable[object]]] = {}
        self._inner = inner

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, limit: int
    ) -> Response:
        """See ``Transport.send``."""
        source = headers.get("x-ms-rename-source", "")
        if "/tasks/" in source and "/_temporary/" not in url:
            name = PurePosixPath(url.partition("?")[0]).name
            self.renamed[name] = headers.get("x-ms-source-if-match")
            if name in self.before:
                await self.before.pop(name)()
        elif method == "GET" and "resource=filesystem" in url and "tasks%2F" in url:
            self.listed[url.partition("tasks%2F")[2].partition("&")[0]] += 1
        return await self._inner.send(method, url, headers, body, limit=limit)

    async def aclose(self) -> None:
        """See ``Transport.aclose``."""
        await self._inner.aclose()


class Job:
    """A job on the emulator whose tasks have committed; its manifests name no etags."""

    def __init__(self, emulator: AdlsEmulator) -> None:
        self.watched = Watched(open_transport(HttpSettings()))
        options = {"connection_string": emulator.connection_string}
        self.store = AdlsStore(parse_url(DEST), options, environ={}, transport=self.watched)
        layout = Layout(parse_url(DEST), JOB)
        self.committer = ManifestCommitter(self.store, layout, Options(), HOST)

    async def run(self) -> None:
        """Set up the job and run its tasks."""
        await self.committer.setup_job()
        for number, files in enumerate(TASKS):
            task_id, attempt_id = ids(number)
            base = await self.committer.setup_task(attempt_id)
            for name, text in files.items():
                path = self.source(base, name)
                await self.store.mkdir(path.rpartition("/")[0])
                await self.store.put(path, text.encode())
            await self.committer.commit_task(task_id, attempt_id)
            await self._strip(self.committer.layout.manifest(task_id))
        self.watched.listed.clear()

    async def names(self) -> set[str]:
        """Return the names of the files that readers see."""
        found = set[str]()
        for path in ("/t", "/t/p=1", "/t/p=2"):
            listing = (await self.store.list(path)).entries
            found |= {info.path[len("/t/") :] for info in listing if not info.is_dir}
        return found - {"_SUCCESS"}

    def path(self, number: int, name: str) -> str:
        """Return where a task has written a file."""
        base = self.committer.layout.task_attempt_dir(ids(number)[1])
        return self.source(base, name)

    @staticmethod
    def source(base: str, name: str) -> str:
        """Return a file below a task's directory, which may be given as a URL."""
        return f"{parse_url(base).path if '://' in base else base}/{name}"

    async def _strip(self, path: str) -> None:
        manifest = decode_manifest(await self.store.get(path, 1 << 20), path)
        assert all(entry.etag for entry in manifest.files)
        bare = [entry._replace(etag=None) for entry in manifest.files]
        await self.store.put(path, encode_manifest(replace(manifest, files=bare)))


@pytest.fixture
async def job() -> AsyncIterator[Job]:
    """A job that is ready to be committed."""
    async with AdlsEmulator() as emulator:
        emulator.model.create_filesystem("data")
        made = Job(emulator)
        await made.run()
        yield made
        await made.store.aclose()


async def test_every_rename_names_the_etag_that_is_listed(job: Job) -> None:
    """One listing of each directory that such files are in, and each rename has its condition."""
    etags = {
        name: f'"{(await job.store.head(job.path(number, name))).etag}"'
        for number, files in enumerate(TASKS)
        for name in files
    }
    await job.committer.commit_job()

    assert await job.names() == set(FILES)
    assert job.watched.renamed == {PurePosixPath(name).name: etags[name] for name in FILES}
    (_, first), (_, second) = ids(0), ids(1)
    assert job.watched.listed == {first: 1, f"{second}%2Fp%3D1": 1, f"{second}%2Fp%3D2": 1}


async def test_a_source_that_is_replaced_after_the_listing_is_refused(job: Job) -> None:
    """What came in its place has another etag: it is not published, and stays."""
    path = job.path(1, "p=2/f")
    job.watched.before["f"] = lambda: job.store.put(path, b"!")
    with pytest.raises(CommitError) as failed:
        await job.committer.commit_job()

    assert isinstance(failed.value.failures[0], PreconditionError)
    assert "p=2/f" not in await job.names()
    assert await job.store.get(path, 1) == b"!"


async def test_a_source_of_another_size_is_refused_before_the_first_change(job: Job) -> None:
    """What the listing shows is not what the manifest says: nothing of the job is published."""
    await job.store.put(job.path(0, "b"), b"longer")
    with pytest.raises(PreflightError) as failed:
        await job.committer.commit_job()

    assert isinstance(failed.value.failures[0], ManifestError)
    assert "/b has 6 bytes, but its manifest has 1" in str(failed.value)
    assert job.watched.renamed == {}


async def test_a_source_that_is_missing_is_named_by_its_rename(job: Job) -> None:
    """The listing does not show it; its rename finds nothing, and says so."""
    await job.store.delete(job.path(0, "b"))
    with pytest.raises(CommitError, match=r"NotFound|404|missing|gone") as failed:
        await job.committer.commit_job()

    assert job.path(0, "b") in str(failed.value)
    assert "b" not in await job.names()

"""Whole jobs through bad weather: answers lost, effects late; and what must be true then."""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.layouts.layout import SUCCESS, Layout
from asynccommit.options.job import Options
from asynccommit.results import JobReport
from asynccommit.runtime.concurrency import for_each
from asynccommit.runtime.host import Host
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.urls import parse_url
from asynccommit.testing.models.adls.account import AdlsAccount
from asynccommit.testing.models.fault_profiles import LATE as LATE
from asynccommit.testing.models.fault_profiles import STORM as STORM
from asynccommit.testing.models.gcs.model import GcsService
from asynccommit.testing.models.invariants import Item, bucket_tree, is_temporary, words_of

Write = Callable[[str, Mapping[str, bytes]], Awaitable[object]]
"""Writes files below a directory."""

FILESYSTEM = "data"
ROOT = f"abfs://{FILESYSTEM}@devstoreaccount1.dfs.core.windows.net"
BUCKET = "data"
GCS_ROOT = f"gs://{BUCKET}"


@dataclass(frozen=True, slots=True)
class Size:
    """How large a job is.

    Attributes:
        tasks: how many there are.
        files: of each task.
        partitions: directories that the files of each task are spread over.
    """

    tasks: int
    files: int
    partitions: int = 10

    def names(self, task: int) -> list[str]:
        """Return the files of a task, relative to the destination."""
        return [f"day={n % self.partitions}/part-{task:05}-{n:05}" for n in range(self.files)]


def host(seed: int) -> Host:
    """Return a host whose ids are those of ``seed``."""
    rng = random.Random(seed)
    return Host(
        now=lambda: 1_795_000_000.0,
        new_id=lambda: f"{rng.getrandbits(128):032x}",
        rng=rng,
        name="driver-0",
        user="alice",
    )


async def run_job(
    store: Wrapped, path: str, size: Size, seed: int, write: Write, *, root: str = ROOT
) -> JobReport:
    """Set a job up, have its tasks write and commit, and commit it, all through ``store``."""
    layout = Layout(parse_url(root + path), f"job_202601010000_{seed:04}")
    job = ManifestCommitter(store, layout, Options(), host(seed))
    await job.setup_job()
    commits = []
    for task in range(size.tasks):
        task_id, attempt_id = layout.ids(task, 0)
        base = await job.setup_task(attempt_id)
        await write(base, {name: name.encode() for name in size.names(task)})
        commits.append(await job.commit_task(task_id, attempt_id))
    return await job.commit_job(commits, strict=True)


async def fill(store: Wrapped, base: str, files: Mapping[str, bytes]) -> None:
    """Write files below a directory."""
    parents = sorted({f"{base}/{name}".rpartition("/")[0] for name in files})
    await for_each(parents, store.mkdir, workers=16)

    async def write(name: str) -> None:
        await store.put(f"{base}/{name}", files[name])

    await for_each(files, write, workers=64)


def place(account: AdlsAccount, base: str, files: Mapping[str, bytes]) -> None:
    """Put files below a directory of the model, without any request."""
    for name, data in files.items():
        path = f"{base.strip('/')}/{name}"
        account.create(FILESYSTEM, path)
        account.append(FILESYSTEM, path, 0, data, flush=True)


def upload(service: GcsService, base: str, files: Mapping[str, bytes]) -> None:
    """Put files below a directory of the bucket, without any request."""
    for name, data in files.items():
        service.insert(BUCKET, f"{base[1:]}/{name}", data)


def etags_of(account: AdlsAccount, path: str) -> dict[str, str]:
    """Return the etag of each file below a directory, by its name without the directories."""
    found: dict[str, str] = {}
    token: str | None = None
    while True:
        listing = account.list(FILESYSTEM, path.strip("/"), recursive=True, token=token)
        found |= {name: node.etag for name, node in listing.entries if not node.is_dir}
        token = listing.token
        if token is None:
            return found


def files_of(account: AdlsAccount, path: str) -> dict[str, bytes]:
    """Return the files below a directory of an account, by their names in it."""
    base = path.strip("/")
    names = etags_of(account, path)
    return {name.removeprefix(f"{base}/"): account.read(FILESYSTEM, name)[1] for name in names}


def objects_of(service: GcsService, path: str) -> dict[str, bytes]:
    """Return the files below a directory of the bucket, by their names in it."""
    start = f"{path}/"
    return {
        name.removeprefix(start): item.data
        for name, item in bucket_tree(service, BUCKET).items()
        if item.data is not None and name.startswith(start)
    }


_SENT_AGAIN = re.compile(
    r"_temporary/[^/]+/\d\d/(manifests/[^/]+-manifest\.json|claims/[^/]+)"
).fullmatch


def check(files: Mapping[str, bytes], size: Size, *, late: bool = False) -> None:
    """Assert that every file of a job is there, whole, and nothing else but its marker.

    What took effect when all was over is rubbish below ``_temporary``: a temporary file, what an
    owner said of the commit, and, where no missing directory keeps it out (``late``), a manifest or
    a task's claim that was sent again. Nobody reads it.
    """
    words = words_of({f"/{name}": Item(data) for name, data in files.items()})
    rubbish = {name for name in files if is_temporary(name) or f"/{name}" in words}
    rubbish |= {name for name in files if late and _SENT_AGAIN(name)}
    wanted = {name: name.encode() for task in range(size.tasks) for name in size.names(task)}
    there = {name: data for name, data in files.items() if name not in {*rubbish, SUCCESS}}

    assert there == wanted
    assert SUCCESS in files

"""A bucket that holds a job's pending sets, made as they are asked for, and none of its files.

It is the model of a bucket, which keeps what a commit writes of its own. Sets, plan and completed
files would take more memory there than the commit does, so they are made, dropped and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from asynccommit.commit.by_upload.committer import UploadCommitter
from asynccommit.commit.layouts.layout import PLAN
from asynccommit.commit.layouts.uploads import MagicLayout
from asynccommit.options.job import Options
from asynccommit.results import JobReport
from asynccommit.runtime.host import this_host
from asynccommit.stores.base import Info, Kind, Page
from asynccommit.stores.parts import Part
from asynccommit.stores.urls import Address
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import S3Bucket
from bench import noop, trees
from bench.s3.account import BUCKET, DEST, ETAG

PAGE = 1000
_LAYOUT = MagicLayout(Address("s3", BUCKET, DEST), trees.JOB_ID)
_WHOLE = f"{ETAG[1:-1]}-1"


class NoopBucket(SimS3Store):
    """Claims that every upload was completed, and lists what it made from then on.

    Args:
        shape: of the job whose pending sets it holds.
    """

    def __init__(self, shape: trees.Shape) -> None:
        host = this_host()
        bucket = S3Bucket(BUCKET, now=host.now, new_id=host.new_id)
        super().__init__(_LAYOUT.dest, {"bucket": bucket})
        self.shape = shape
        self.ended = 0
        self._partitions = {f"{DEST}/{shape.partition(n)}": n for n in range(shape.partitions)}
        self._listings: dict[str, Iterator[Info]] = {}
        self._sets = {_LAYOUT.pending_set(trees.task_id(n)): n for n in range(shape.tasks)}
        self._size = len(_pending_set(shape, 0))
        for path in (f"{_LAYOUT.attempt_dir}/", *self._sets):
            bucket.put(path[1:], b"")

    async def list(self, path: str, token: str | None = None) -> Page:
        """Sets have the size that they would have, and partitions what was completed."""
        if path in self._partitions and self.ended:
            if token is None:
                self._listings[path] = self._partition(path)
            entries = tuple(islice(self._listings[path], PAGE))
            return Page(entries, f"{token}+" if len(entries) == PAGE else None)
        page = await super().list(path, token)
        sizes = {info: self._size for info in page.entries if info.path in self._sets}
        entries = tuple(info._replace(size=sizes.get(info, info.size)) for info in page.entries)
        return Page(entries, page.token)

    def _partition(self, path: str) -> Iterator[Info]:
        step, first = self.shape.partitions, self._partitions[path]
        for task in range(self.shape.tasks):
            for number in range(first, self.shape.files, step):
                yield Info(f"{DEST}/{self.shape.name(task, number)}", Kind.FILE, 1, _WHOLE)

    async def get(self, path: str, limit: int) -> bytes:
        """Return a pending set, or what the commit has written."""
        if path in self._sets:
            return _pending_set(self.shape, self._sets[path])
        return await super().get(path, limit)

    async def put(
        self, path: str, data: bytes, *, overwrite: bool = True, token: str | None = None
    ) -> Info:
        """Keep what the commit writes, and nothing of its plan."""
        kept = b"" if f"/{PLAN}" in path else data
        return await super().put(path, kept, overwrite=overwrite, token=token)

    async def complete_upload(
        self,
        path: str,
        upload_id: str,
        parts: Sequence[Part],
        *,
        overwrite: bool = True,
        etag: str | None = None,
        token: str | None = None,
    ) -> Info:
        """Count."""
        self.ended += 1
        return Info(path, Kind.FILE, 1, _WHOLE)


def _pending_set(shape: trees.Shape, task: int) -> bytes:
    """Return a set as our own tasks write it, as text: making objects would take longer."""
    key, attempt = DEST[1:], trees.attempt_id(task)
    same = (
        f'"version":2,"bucket":"{BUCKET}","jobId":"{trees.JOB_ID}","taskId":"{attempt}","length":1,'
        f'"etags":[{{"etag":"{ETAG[1:-1]}"}}]'
    )
    rows = ",".join(
        [
            f'{{{same},"destinationKey":"{key}/{name}","uri":"s3://{BUCKET}{DEST}/{name}",'
            f'"uploadId":"{number:032x}{"ab" * 32}",'
            f'"extraData":{{"asynccommit.token":"{task:016x}{number:016x}"}}}}'
            for number, name in enumerate(shape.names(task))
        ]
    )
    return f'{{"version":3,"jobId":"{trees.JOB_ID}","commits":[{rows}]}}'.encode()


async def commit(store: NoopBucket) -> JobReport:
    """Commit the job of the store, with every default, and see that all uploads were completed."""
    committer = UploadCommitter(noop.wrapped(store), _LAYOUT, Options(), this_host())
    report = await committer.commit_job()
    if {store.ended, report.files} != {store.shape.total}:
        raise AssertionError(f"{store.ended} of {store.shape.total} uploads were completed")
    return report

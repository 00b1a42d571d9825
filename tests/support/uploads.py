"""A bucket of the model for tests of uploads, and what is in it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.context import Environment
from asynccommit.commit.job_context import JobContext
from asynccommit.commit.layouts.uploads import MagicLayout, StagingLayout, UploadLayout
from asynccommit.commit.registry import Committer, open_named
from asynccommit.options.job import Options
from asynccommit.options.uploads import UploadOptions
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Call, Op, Policy, Wrapped
from asynccommit.stores.urls import Address
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import S3Bucket
from asynccommit.testing.models.s3.uploads import UploadRules

NAME = "data"
SMALLEST = 4
"""Bytes of a part at least: small, so that tests have many."""

JOB = "0123abcd-0000-4000-8000-000000000001"
DEST = Address("s3", NAME, "/out/t")
HOST = Host(
    now=lambda: 1_795_000_000.0,
    new_id=lambda: "one",
    rng=random.Random(0),
    name="driver-0",
    user="alice",
)
TASK, ATTEMPT = "task_202601010000_0001_m_000000", "attempt_202601010000_0001_m_000000_0"


def new_bucket(**rules: Any) -> S3Bucket:
    """Return an empty bucket that takes small parts."""
    numbers = count(1)
    return S3Bucket(
        NAME,
        now=lambda: 1_795_000_000.0,
        new_id=lambda: f"id-{next(numbers)}",
        rules=UploadRules(**{"smallest_part": SMALLEST, **rules}),
    )


def store_of(bucket: S3Bucket, *policies: Policy, **options: Any) -> Wrapped:
    """Return the bucket as a store."""
    store = SimS3Store(Address("s3", NAME, "/"), {"bucket": bucket, **options})
    return Wrapped(store, *policies)


def keys(bucket: S3Bucket) -> list[str]:
    """Return the keys of all objects, those of the protocol too."""
    return sorted(bucket.objects)


def open_uploads(bucket: S3Bucket) -> list[str]:
    """Return the keys of the uploads that are neither completed nor aborted."""
    return sorted(each.key for each in bucket.uploads.open.values() if not each.aborted)


class Gauge:
    """A policy that counts the bytes of parts and blocks on the wire, and the most there ever were.

    ``busy`` is set when the first part is.

    Args:
        hold: how often the loop turns while a part is on the wire.
    """

    def __init__(self, hold: int = 5) -> None:
        self.now = 0
        self.most = 0
        self.busy = asyncio.Event()
        self._hold = hold

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def gauged(op: Op) -> Any:
            size = len(op.args[3]) if op.name in ("put_part", "put_block") else 0
            self.now += size
            self.most = max(self.most, self.now)
            if size:
                self.busy.set()
            try:
                for _ in range(self._hold if size else 0):
                    await asyncio.sleep(0)
                return await call(op)
            finally:
                self.now -= size

        return gauged


class Gate:
    """A policy that lets no request of one kind through before it is opened."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting = 0
        self._let = asyncio.Semaphore(0)

    def open(self, count: int = 1_000) -> None:
        """Let so many through."""
        for _ in range(count):
            self._let.release()

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def gated(op: Op) -> Any:
            if op.name == self.name:
                self.waiting += 1
                try:
                    await self._let.acquire()
                finally:
                    self.waiting -= 1
            return await call(op)

        return gated


def magic_run(bucket: S3Bucket, *policies: Policy, **uploads: Any) -> UploadContext:
    """Return the work of a magic task."""
    return _run(store_of(bucket, *policies), None, MagicLayout(DEST, JOB), uploads)


def staging_run(bucket: S3Bucket, *policies: Policy, **uploads: Any) -> UploadContext:
    """Return the work of a staging task whose pending sets are in the same bucket."""
    layout = StagingLayout(DEST, JOB, tmp=Address("s3", NAME, "/tmp/alice"))
    return _run(store_of(bucket, *policies), None, layout, uploads)


def _run(
    store: Wrapped, pending: Store | None, layout: UploadLayout, uploads: dict[str, Any]
) -> UploadContext:
    options = Options(uploads=UploadOptions(**{"part_size": SMALLEST, **uploads}))
    return UploadContext.new(Environment(store, HOST, pending or store), layout, options)


def open_committer(
    bucket: S3Bucket,
    name: str,
    *policies: Policy,
    job_id: str = JOB,
    attempt: int = 0,
    conf: Mapping[str, str] | None = None,
    pending: Address | None = None,
    **uploads: Any,
) -> Committer:
    """Return a committer of one job, in a process of its own as far as it can tell.

    Its options are ``conf``, or fields of ``UploadOptions``.
    """
    store = store_of(bucket, *policies)
    options = Options.from_conf(conf or {})
    options = replace(
        options, uploads=replace(options.uploads, **{"part_size": SMALLEST, **uploads})
    )
    opening = JobContext(
        dest=DEST,
        job_id=job_id,
        attempt=attempt,
        store=store,
        options=options,
        host=HOST,
        open_store=lambda place: Wrapped(LocalStore()),
        pending=pending,
    )
    return open_named(name, opening)

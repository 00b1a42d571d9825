"""A file of a sink log is made where there is none, whole, and so that it outlives a power cut."""

from __future__ import annotations

import random
from itertools import count
from pathlib import Path

import pytest

from asynccommit.errors import RejectedError
from asynccommit.runtime.host import Host
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Call, Op, Wrapped
from asynccommit.stores.urls import Address, parse_url
from asynccommit.streaming.log import Added, SinkLog
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import S3Bucket
from asynccommit.testing.models.s3.uploads import UploadRules
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.sink import DEST, entry, log_files


class Ops:
    """Notes down what is asked of a store."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        def noted(op: Op) -> object:
            if op.writes or op.name == "sync":
                self.seen.append(f"{op.name} {op.path.rpartition('/')[2]}")
            return call(op)

        return noted  # type: ignore[return-value]


def host() -> Host:
    """Return a host whose ids are numbers."""
    ids = map(str, count())
    return Host(lambda: 0.0, lambda: next(ids), random.Random(0))


async def test_on_a_local_disk(tmp_path: Path) -> None:
    """The file is on the disk before it has its name, and then so is the name."""
    store, ops = LocalStore(), Ops()
    dest = parse_url(str(tmp_path))
    log = SinkLog(Wrapped(store, ops), dest, host=host())
    for batch in range(2):
        assert await log.add(batch, [entry(dest, str(batch))]) is Added.NEW
    await store.aclose()

    assert ops.seen == [
        *("mkdir _spark_metadata", f"sync {tmp_path.name}"),
        *("put .0.0.tmp", "sync .0.0.tmp", "rename .0.0.tmp", "delete .0.crc"),
        "sync _spark_metadata",
        *("put .1.1.tmp", "sync .1.1.tmp", "rename .1.1.tmp", "delete .1.crc"),
        "sync _spark_metadata",
    ]
    assert list(log_files(tmp_path)) == ["0", "1"]


def unproven(*, heeds: bool) -> SimS3Store:
    """Return a bucket of a server of which nobody knows whether it keeps conditions."""
    ids = map(str, count())
    rules = UploadRules(conditional_writes=heeds)
    bucket = S3Bucket("data", now=lambda: 0.0, new_id=lambda: next(ids), rules=rules)
    return SimS3Store(Address("s3a", "data", "/"), {"bucket": bucket, "known": False})


def test_server_that_passes_conditions_over() -> None:
    """Where two queries could each write a batch nothing is added, and nothing is left."""
    store = unproven(heeds=False)

    async def work() -> None:
        with pytest.raises(RejectedError, match="If-None-Match"):
            await SinkLog(store, DEST, host=host()).add(0, [entry(DEST, "a")])

    run_virtual(work())
    assert list(store.bucket.objects) == []


def test_server_that_keeps_conditions() -> None:
    """It is asked once whether it does."""
    store, ops = unproven(heeds=True), Ops()

    async def work() -> None:
        log = SinkLog(Wrapped(store, ops), DEST, host=host())
        for batch in range(2):
            await log.add(batch, [entry(DEST, str(batch))])

    run_virtual(work())
    probe = ".probe.0.tmp"
    assert ops.seen == [*[f"put {probe}"] * 2, f"delete_many {probe}", "put 0", "put 1"]

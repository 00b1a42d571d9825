"""``python -m bench.gcs.service``: the emulator in a process of its own, with jobs put into it.

A job of 10,000 files is put into the model of the bucket itself, which has neither quota nor bill;
by requests it would take longer than what is measured.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from asynccommit.runtime.loop_thread import submit
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from asynccommit.testing.models.fault_rules import Climate
from asynccommit.testing.models.gcs.model import BucketOptions, GcsService
from asynccommit.testing.models.gcs.quotas import Quotas
from asynccommit.testing.models.gcs.refusals import GCS
from bench import trees
from bench.child import serve
from bench.gcs import account

_PLACE = trees.Place(account.URL, account.URL)
_DATA = b"1"
_MOVING = ("move", "rewrite", "delete")


class Bucket:
    """An emulator that listens, its one bucket, and what a bench does to it."""

    def __init__(self) -> None:
        self._emulator = GcsEmulator()
        self._counted = _Counted()
        submit(self._emulator.start())

    def host(self) -> str:
        """Return where it listens."""
        return f"127.0.0.1:{self._emulator.port}"

    def make(
        self,
        *,
        hns: bool = False,
        moves: bool = True,
        quotas: dict[str, float] | None = None,
        latency: float = 0.0,
    ) -> None:
        """Begin anew with an empty bucket of this kind in this weather."""
        options = BucketOptions(hns=hns, moves=moves, quotas=Quotas(**(quotas or {})))

        async def begin() -> None:
            emulator = self._emulator
            emulator.reset()
            emulator.service.create_bucket(account.BUCKET, options)
            emulator.weather.climate = Climate.from_json({"latency": latency}, GCS)
            self._counted = _Counted()
            self._counted.watch(emulator.service)

        submit(begin())
        gc.collect()

    def arrange(self, tasks: int, files: int, partitions: int) -> None:
        """Put in what all tasks of a manifest committer's job leave behind."""
        shape = trees.Shape(tasks, files, partitions)

        async def put() -> None:
            _arrange(self._emulator.service, shape)

        submit(put())
        gc.collect()

    def fill(self, folder: str, count: int) -> None:
        """Put ``count`` files into a folder."""

        async def put() -> None:
            for number in range(count):
                name = f"{folder}/part-{number:06d}.parquet"
                self._emulator.service.insert(account.BUCKET, name, _DATA)

        submit(put())
        gc.collect()

    def check(self, tasks: int, files: int, partitions: int) -> None:
        """Raise ``AssertionError`` unless the destination holds exactly the job's files."""
        shape = trees.Shape(tasks, files, partitions)
        expected = {f"{account.DEST[1:]}/{name}" for name in (*shape.all_names(), "_SUCCESS")}
        self.holds(sorted(expected))

    def holds(self, expected: list[str]) -> None:
        """Raise ``AssertionError`` unless these are the objects of the bucket."""

        async def look() -> set[str]:
            return set(self._emulator.service.get_bucket(account.BUCKET).objects)

        found, wanted = submit(look()), set(expected)
        if found != wanted:
            missing, more = len(wanted - found), sorted(found - wanted)
            raise AssertionError(f"{missing} files missing, {len(more)} too many: {more[:3]}")

    def stats(self) -> dict[str, Any]:
        """Return what was asked since ``make``, and the process's CPU seconds so far.

        ``requests`` are those on the wire, ``operations`` have each part of a batch instead of the
        batch; ``moving`` are the operations that bring files of the job to another place, and
        ``refused`` those that were one too many for the quota.
        """
        found = self._emulator.stats()
        asked = found["requests"]
        return {
            "requests": sum(found["statuses"].values()),
            "operations": sum(asked.values()) - asked.get("batch", 0),
            "moving": self._counted["moving"],
            "refused": self._counted["refused"],
            "cpu": time.process_time(),
        }

    def stop(self) -> None:
        """Stop listening."""
        submit(self._emulator.stop())


class _Counted(Counter[str]):
    """Counts what a service lets in, and what not."""

    def watch(self, service: GcsService) -> None:
        """Begin."""
        setattr(service, "admit", partial(self._admit, service.admit))  # noqa: B010  mypy

    def _admit(self, admit: Callable[..., None], op: str, *names: str, **more: Any) -> None:
        if op in _MOVING and names[-1].endswith(".parquet"):
            self["moving"] += 1
        try:
            admit(op, *names, **more)
        except Exception:
            self["refused"] += 1
            raise


def _arrange(service: GcsService, shape: trees.Shape) -> None:
    dest, bucket = account.DEST, account.BUCKET
    for task in range(shape.tasks):
        work = trees.work_dir(dest, task)
        service.insert(bucket, f"{work[1:]}/", b"")  # what Google's connector makes of mkdirs
        etags = []
        for name in shape.names(task):
            made = service.insert(bucket, f"{work[1:]}/{name}", _DATA)
            etags.append(f"{made.generation}-{made.content.crc32c:08x}")
        manifest = trees.manifest(dest, shape, task, _PLACE, etags)
        path = f"{trees.job_attempt_dir(dest)}/manifests/{trees.task_id(task)}-manifest.json"
        service.insert(bucket, path[1:], manifest)


if __name__ == "__main__":
    bucket = Bucket()
    serve(
        {
            "host": bucket.host,
            "make": bucket.make,
            "arrange": bucket.arrange,
            "fill": bucket.fill,
            "check": bucket.check,
            "holds": bucket.holds,
            "stats": bucket.stats,
        }
    )
    bucket.stop()

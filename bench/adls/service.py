"""``python -m bench.adls.service``: the emulator in a process of its own, with jobs put into it.

A job of 20,000 files is put into the model of the account itself; by requests it would take longer
than what is measured.
"""

from __future__ import annotations

import gc
import time
from typing import Any

from asynccommit.runtime.loop_thread import submit
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.models.adls.account import AdlsAccount
from asynccommit.testing.models.fault_rules import Climate
from bench import trees
from bench.adls import account
from bench.child import serve

_PLACE = trees.Place(account.URL, account.URL)


class Service:
    """An emulator that listens, and what a bench does to it."""

    def __init__(self) -> None:
        self._emulator = AdlsEmulator()
        submit(self._emulator.start())

    def host(self) -> str:
        """Return where it listens."""
        return f"127.0.0.1:{self._emulator.port}"

    def reset(self) -> None:
        """Begin anew with an empty filesystem, without latency, limit or faults."""

        async def begin() -> None:
            self._emulator.reset()
            self._emulator.model.create_filesystem(account.FILESYSTEM)

        submit(begin())
        gc.collect()

    def weather(self, climate: dict[str, Any]) -> None:
        """Let this be the weather from now on."""

        async def begin() -> None:
            self._emulator.weather.climate = Climate.from_json(climate)

        submit(begin())

    def arrange(self, tasks: int, files: int, partitions: int) -> None:
        """Put in what all tasks of a manifest committer's job leave behind."""
        shape = trees.Shape(tasks, files, partitions)

        async def put() -> None:
            _arrange(self._emulator.model, shape)

        submit(put())
        gc.collect()

    def check(self, tasks: int, files: int, partitions: int) -> None:
        """Raise ``AssertionError`` unless the destination holds exactly the job's files."""
        shape = trees.Shape(tasks, files, partitions)

        async def look() -> None:
            _check(self._emulator.model, shape)

        submit(look())

    def stats(self) -> dict[str, Any]:
        """Return what was asked since ``reset``, and the process's CPU seconds so far."""
        return {**self._emulator.stats(), "cpu": time.process_time()}

    def stop(self) -> None:
        """Stop listening."""
        submit(self._emulator.stop())


def _write(model: AdlsAccount, path: str, data: bytes) -> str:
    """Write a file and return its etag."""
    model.create(account.FILESYSTEM, path[1:])
    model.append(account.FILESYSTEM, path[1:], 0, data, flush=True)
    return model.head(account.FILESYSTEM, path[1:]).etag


def _arrange(model: AdlsAccount, shape: trees.Shape) -> None:
    dest = account.DEST
    for task in range(shape.tasks):
        work = trees.work_dir(dest, task)
        etags = [_write(model, f"{work}/{name}", b"1") for name in shape.names(task)]
        manifest = trees.manifest(dest, shape, task, _PLACE, etags)
        path = f"{trees.job_attempt_dir(dest)}/manifests/{trees.task_id(task)}-manifest.json"
        _write(model, path, manifest)


def _check(model: AdlsAccount, shape: trees.Shape) -> None:
    dest = account.DEST[1:]
    found: set[str] = set()
    token: str | None = None
    while True:
        entries, token = model.list(account.FILESYSTEM, dest, recursive=True, token=token)
        found.update(path[len(dest) + 1 :] for path, node in entries if not node.is_dir)
        if token is None:
            break
    expected = {*shape.all_names(), "_SUCCESS"}
    if found != expected:
        missing, more = len(expected - found), sorted(found - expected)
        raise AssertionError(f"{missing} files missing, {len(more)} too many: {more[:3]}")


if __name__ == "__main__":
    service = Service()
    serve(
        {
            "host": service.host,
            "reset": service.reset,
            "weather": service.weather,
            "arrange": service.arrange,
            "check": service.check,
            "stats": service.stats,
        }
    )
    service.stop()

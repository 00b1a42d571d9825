"""Google Cloud Storage: a job commit against other clients, and what its parts cost.

The bucket is emulated, in a process of its own: rates without a limit are those of the emulator
and of this machine, and say nothing of the service. Every row says which rules about growing rates
were in force: those of our client, and those of the bucket.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from bench.child import Child
from bench.gcs import cleanup, commit, cpu
from bench.null import Null, Says, null_server

ROWS = ("commit", "ramp", "nolimit", "cleanup", "cpu")

Say = Callable[[str], None]

MOVED = Says(
    "200 OK",
    {"X-GUploader-UploadID": "null"},
    '{"kind":"storage#object","name":"x","bucket":"bench","generation":"1732190400000000",'
    '"metageneration":"1","size":"1","done":true}',
)
"""What is said to everything that moves, copies or deletes a file."""


def run(rows: Sequence[str] = ROWS, *, quick: bool, folder: str | None, say: Say) -> dict[str, Any]:
    """Measure ``rows``; returns what each of them found."""
    with _Bench(folder) as bench:
        measure: dict[str, Callable[[], Any]] = {
            "commit": lambda: commit.run(bench.service, commit.LIMITED, quick=quick, say=say),
            "ramp": lambda: commit.run(bench.service, commit.RAMPED, quick=quick, say=say),
            "nolimit": lambda: commit.run(bench.service, commit.UNLIMITED, quick=quick, say=say),
            "cleanup": lambda: cleanup.run(bench.service, quick=quick),
            "cpu": lambda: cpu.cost(bench.null, quick=quick),
        }
        result = {}
        for row in ROWS:
            if row in rows:
                say(f"gcs-{row}")
                result[row] = measure[row]()
        return result


class _Bench(ExitStack):
    """The servers, each started when it is first needed and stopped at the end."""

    def __init__(self, folder: str | None) -> None:
        super().__init__()
        self._folder = folder
        self._null: Null | None = None
        self._service: Child | None = None

    @property
    def null(self) -> Null:
        """A server that says ``MOVED`` to everything."""
        if self._null is None:
            scratch = tempfile.TemporaryDirectory(prefix="asynccommit-bench-", dir=self._folder)
            self._null = self.enter_context(null_server(self.enter_context(scratch), MOVED))
        return self._null

    @property
    def service(self) -> Child:
        """The emulator."""
        if self._service is None:
            self._service = self.enter_context(Child("bench.gcs.service"))
        return self._service

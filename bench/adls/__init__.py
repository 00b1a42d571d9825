"""ADLS Gen2: what a rename costs, how the limit is met, and a job commit against Hadoop's.

Every figure is of one run, beside its target; nothing is asserted but that results are right.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from bench.adls import commit, cpu, limits, small
from bench.child import Child
from bench.null import Null, Says, null_server

ROWS = ("cpu", "tls", "limit", "share", "latency", "commit", "small")

Say = Callable[[str], None]

CREATED = Says(
    "201 Created",
    {
        "x-ms-request-id": "5c4b33f1-c01f-0056-5d8a-000000000000",
        "x-ms-version": "2024-11-04",
    },
)
"""What the service says to a rename."""


def run(rows: Sequence[str] = ROWS, *, quick: bool, folder: str | None, say: Say) -> dict[str, Any]:
    """Measure ``rows``; returns what each of them found."""
    with _Bench(folder) as bench:
        measure: dict[str, Callable[[], Any]] = {
            "cpu": lambda: cpu.cost(bench.null, quick=quick),
            "tls": lambda: cpu.throughput(bench.null, quick=quick),
            "limit": lambda: limits.alone(bench.service, quick=quick),
            "share": lambda: limits.together(bench.service, quick=quick),
            "latency": lambda: limits.latency(bench.service, quick=quick),
            "commit": lambda: commit.run(bench.service, quick=quick, say=say),
            "small": lambda: small.run(bench.service, quick=quick, say=say),
        }
        result = {}
        for row in ROWS:
            if row in rows:
                say(f"adls-{row}")
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
        """A server that answers 201 to everything."""
        if self._null is None:
            scratch = tempfile.TemporaryDirectory(prefix="asynccommit-bench-", dir=self._folder)
            self._null = self.enter_context(null_server(self.enter_context(scratch), CREATED))
        return self._null

    @property
    def service(self) -> Child:
        """The emulator."""
        if self._service is None:
            self._service = self.enter_context(Child("bench.adls.service"))
        return self._service

"""S3: what completing an upload costs, against other clients, and what is held in memory.

Servers are on this machine: what they do in a second says nothing of the service, and only what
the client does is compared.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from bench.null import Null, Says, null_server
from bench.s3 import cpu, flat, memory, moto, small

ROWS = ("complete", "moto", "memory", "flat", "small")

Say = Callable[[str], None]

COMPLETED = Says(
    "200 OK",
    {"x-amz-request-id": "null"},
    '<?xml version="1.0" encoding="UTF-8"?>'
    '<CompleteMultipartUploadResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    "<Location>http://bench/k</Location><Bucket>bench</Bucket><Key>k</Key>"
    "<ETag>&quot;3858f62230ac3c915f300c664312c11f-1&quot;</ETag>"
    "</CompleteMultipartUploadResult>",
)
"""What is said to everything that completes an upload."""


def run(rows: Sequence[str] = ROWS, *, quick: bool, folder: str | None, say: Say) -> dict[str, Any]:
    """Measure ``rows``; returns what each of them found."""
    with _Bench(folder) as bench:
        measure: dict[str, Callable[[], Any]] = {
            "complete": lambda: cpu.cost(bench.null, quick=quick),
            "moto": lambda: moto.run(quick=quick),
            "memory": lambda: memory.run(quick=quick),
            "flat": lambda: flat.run(quick=quick),
            "small": lambda: small.run(quick=quick, say=say),
        }
        result = {}
        for row in ROWS:
            if row in rows:
                say(f"s3-{row}")
                result[row] = measure[row]()
        return result


class _Bench(ExitStack):
    """The servers, each started when it is first needed and stopped at the end."""

    def __init__(self, folder: str | None) -> None:
        super().__init__()
        self._folder = folder
        self._null: Null | None = None

    @property
    def null(self) -> Null:
        """A server that says ``COMPLETED`` to everything."""
        if self._null is None:
            scratch = tempfile.TemporaryDirectory(prefix="asynccommit-bench-", dir=self._folder)
            self._null = self.enter_context(null_server(self.enter_context(scratch), COMPLETED))
        return self._null

"""``python -m bench.s3.stream HOST MEBIBYTES``: a task that writes one large file; its memory."""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

from asynccommit.api import open_job
from asynccommit.options.uploads import UploadOptions
from asynccommit.runtime.loop_thread import submit
from bench.s3 import account

_CHUNK = bytes(range(256)) * 4096  # a MiB


def measure(host: str, mebibytes: int) -> dict[str, Any]:
    """Write a small file, then the large one, and return what the large one took."""
    submit(_write(host, "warm", 1))
    gc.collect()
    before, begin = _memory("VmRSS"), time.perf_counter()
    submit(_write(host, "large", mebibytes))
    options = UploadOptions()
    return {
        "bytes": mebibytes * len(_CHUNK),
        "part_bytes": options.part_size,
        "in_flight": options.in_flight,
        "bound_bytes": options.part_size * options.in_flight,
        "peak_bytes": _memory("VmHWM") - before,
        "seconds": time.perf_counter() - begin,
    }


async def _write(host: str, name: str, mebibytes: int) -> None:
    told = account.storage_options(host)
    opened = open_job(f"{account.URL}/{name}", committer="magic", storage_options=told)
    async with opened as job, job.task(0) as task, await task.open("file") as file:
        for _ in range(mebibytes):
            await file.write(_CHUNK)


def _memory(field: str) -> int:
    """Return resident memory in bytes: as of now (``VmRSS``) or its peak (``VmHWM``)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    return 0


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))

"""``python -m bench.s3.held TASKS FILES``: commit a job of so many FILES a task; its memory."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from asynccommit.runtime.loop_thread import submit
from asynccommit.simulate.memory import MemoryGrowth
from bench.s3.noop import NoopBucket, commit
from bench.trees import Shape

_WARM = Shape(tasks=4, files=100, partitions=10)
_PARTITIONS = 100


def measure(tasks: int, files: int) -> dict[str, Any]:
    """Commit a small job, then the one that is asked for, and return what that one took."""
    submit(commit(NoopBucket(_WARM)))
    bucket = NoopBucket(Shape(tasks, files, _PARTITIONS))
    growth, begin = MemoryGrowth(), time.perf_counter()
    report = submit(commit(bucket))
    return {
        "files": report.files,
        "peak_bytes": growth.bytes(),
        "how": growth.how,
        "seconds": time.perf_counter() - begin,
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))

"""A million files over a store that does nothing: how much memory the engine takes for them.

``run`` measures in a process of its own, so that nothing else has been there before.
"""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from asynccommit.runtime.loop_thread import submit
from bench import noop, trees

FULL = trees.Shape(tasks=1000, files=1000, partitions=100)
QUICK = trees.Shape(tasks=100, files=1000, partitions=100)
WARM = trees.Shape(tasks=4, files=100, partitions=10)
TARGET_MEGABYTES = 200.0


def run(*, quick: bool) -> dict[str, Any]:
    """Measure in a new process; returns megabytes and seconds."""
    command = [sys.executable, "-m", "bench.memory", "quick" if quick else "full"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def measure(shape: trees.Shape) -> dict[str, Any]:
    """Commit a small job, then the large one, and return what the large one took."""
    submit(noop.commit(noop.NoopStore(WARM, keep=False)))
    store = noop.NoopStore(shape, keep=False)
    gc.collect()
    before, begin = memory("VmRSS"), time.perf_counter()
    report = submit(noop.commit(store))
    elapsed = time.perf_counter() - begin
    return {
        "files": shape.total,
        "manifests": shape.tasks,
        "manifest_megabytes": len(trees.manifest(noop.DEST, shape, 0)) * shape.tasks / 1e6,
        "peak_growth_megabytes": memory("VmHWM") - before,
        "target_megabytes": TARGET_MEGABYTES,
        "seconds": elapsed,
        "seconds_of_the_bench_itself": store.making,
        "stages_seconds": dict(report.stages),
    }


def memory(field: str) -> float:
    """Return resident memory in MB: as of now (``VmRSS``) or its peak (``VmHWM``)."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == field:
                return int(value.split()[0]) / 1024
    except OSError:
        pass
    # Elsewhere only the peak is known; macOS says it in bytes.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024


if __name__ == "__main__":
    print(json.dumps(measure(QUICK if sys.argv[1] == "quick" else FULL)))

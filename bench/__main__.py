"""``python -m bench``: measure everything in one run, print a table, write JSON.

Fails on wrong results only, never on slow ones: read the ratios, not the seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import (
    adls,
    bulk,
    emulators,
    engines,
    gcs,
    goals,
    hdfs,
    local,
    memory,
    overhead,
    requests,
    s3,
    sink,
    source,
    stream,
    table,
    write,
    write_local,
)
from bench.adls import table as adls_table
from bench.gcs import table as gcs_table
from bench.s3 import table as s3_table
from bench.sink import table as sink_table
from bench.source import table as source_table

RESULTS = Path(__file__).parent / "results"
PARTS = (
    "requests",
    "local",
    "overhead",
    "memory",
    "adls",
    "gcs",
    "s3",
    "hdfs",
    "bulk",
    "sink",
    "source",
    "stream",
    "write",
    "write-local",
    "engines",
    "emulators",
)
ROWS = {
    **{f"adls-{row}": ("adls", row) for row in adls.ROWS},
    **{f"gcs-{row}": ("gcs", row) for row in gcs.ROWS},
    **{f"s3-{row}": ("s3", row) for row in s3.ROWS},
    **{f"bulk-{row}": ("bulk", row) for row in bulk.ROWS},
    **{f"sink-{row}": ("sink", row) for row in sink.ROWS},
    **{f"engines-{row}": ("engines", row) for row in engines.ROWS},
}
"""Name of one row alone -> its part, and its name there."""
_ALIASES = {"goals": goals.PARTS}


def main(arguments: list[str] | None = None) -> int:
    """Run the parts that are asked for; returns the exit code."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    if unknown := set(asked.parts) - {*PARTS, *ROWS, *_ALIASES}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    result: dict[str, Any] = {"machine": _machine(), "quick": asked.quick}
    named = [each for name in asked.parts for each in _ALIASES.get(name, (name,))]
    parts = _split(named or PARTS)
    runs: dict[str, Callable[[], dict[str, Any]]] = {
        "requests": requests.run,
        "local": lambda: local.run(quick=asked.quick, folder=asked.folder, say=_say),
        "overhead": lambda: overhead.run(quick=asked.quick),
        "memory": lambda: memory.run(quick=asked.quick),
        "adls": lambda: adls.run(
            parts["adls"] or adls.ROWS, quick=asked.quick, folder=asked.folder, say=_say
        ),
        "gcs": lambda: gcs.run(
            parts["gcs"] or gcs.ROWS, quick=asked.quick, folder=asked.folder, say=_say
        ),
        "s3": lambda: s3.run(
            parts["s3"] or s3.ROWS, quick=asked.quick, folder=asked.folder, say=_say
        ),
        "hdfs": lambda: hdfs.run(quick=asked.quick, folder=asked.folder, say=_say),
        "bulk": lambda: bulk.run(parts["bulk"] or bulk.ROWS, quick=asked.quick, say=_say),
        "sink": lambda: sink.run(
            parts["sink"] or sink.ROWS, quick=asked.quick, folder=asked.folder, say=_say
        ),
        "source": lambda: source.run(quick=asked.quick, folder=asked.folder, say=_say),
        "stream": lambda: stream.run(quick=asked.quick, say=_say),
        "write": lambda: write.run(quick=asked.quick, say=_say),
        "write-local": lambda: write_local.run(quick=asked.quick, say=_say),
        "engines": lambda: engines.run(
            parts["engines"] or engines.ROWS, quick=asked.quick, folder=asked.folder, say=_say
        ),
        "emulators": lambda: emulators.run(quick=asked.quick, say=_say),
    }
    for part in parts:
        result[part] = runs[part]()
        print("\n".join(_LINES[part](result[part])), end="\n\n", flush=True)
    if "goals" in asked.parts:
        print("\n".join(goals.lines(result)), end="\n\n", flush=True)
    machine = result["machine"]
    machine["load_after"] = os.getloadavg()[0]
    _say("load average {load_before:.1f} before, {load_after:.1f} after".format(**machine))
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {asked.json}")
    return 0


_LINES: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {
    "requests": requests.lines,
    "local": table.local,
    "overhead": table.overhead,
    "memory": table.memory,
    "adls": adls_table.lines,
    "gcs": gcs_table.lines,
    "s3": s3_table.lines,
    "hdfs": hdfs.lines,
    "bulk": bulk.lines,
    "sink": sink_table.lines,
    "source": source_table.lines,
    "stream": stream.lines,
    "write": write.lines,
    "write-local": write_local.lines,
    "engines": engines.lines,
    "emulators": emulators.lines,
}


def _split(asked: Sequence[str]) -> dict[str, list[str]]:
    """Return the parts to run, with the rows of each; none is all of them."""
    found: dict[str, list[str]] = {}
    for name in asked:
        part, row = ROWS.get(name, (name, ""))
        found.setdefault(part, []).append(row)
    return {part: [] if "" in rows else rows for part, rows in found.items()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="part",
        help=f"some of {', '.join(PARTS)}, or of rows {', '.join(ROWS)}, or goals for what "
        "ordinary jobs should cost; all by default",
    )
    parser.add_argument("--quick", action="store_true", help="small jobs and few rounds")
    parser.add_argument("--folder", help="where the trees are made; a temporary folder by default")
    parser.add_argument(
        "--json",
        type=Path,
        default=RESULTS / f"{time.strftime('%Y%m%d-%H%M%S')}.json",
        help="the file to write; one in bench/results by default",
    )
    return parser


def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "load_before": os.getloadavg()[0],
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

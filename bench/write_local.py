"""Stock ``df.write`` to a local disk in one warm session, by ours and by Spark's own, in turns.

Also the time of ``configure`` without and with a compiled jar, and the memory of both processes.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from tests.support.spark import run_script

FILES = (1, 16, 200)
OVER_MS = 30.0
"""Milliseconds that a write of one file may take longer than by Spark's own committer."""
_PROGRAM = """
import json, os, re, time
from asynccommit.spark import sessions

given = json.loads((scratch / "given.json").read_text())

def timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin

def memory(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1024

spark = builder(scratch).config("spark.ui.enabled", "false").getOrCreate()
spark.range(1).count()
jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
before = {"driver": memory(os.getpid()), "jvm": memory(jvm)}
cold = timed(lambda: configure(spark, progress=False))
warm = timed(lambda: configure(spark.newSession(), progress=False))
stock = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
kinds = {"ours": sessions.PROTOCOL, "stock": stock}

def turn(frame, name):
    taken = {}
    for kind, protocol in kinds.items():
        spark.conf.set("spark.sql.sources.commitProtocolClass", protocol)
        taken[kind] = timed(lambda: frame.write.parquet(str(scratch / f"{name}-{kind}")))
    return taken

seconds = {}
for files in given["files"]:
    frame = spark.range(400).coalesce(1) if files == 1 else spark.range(400).repartition(files)
    for number in range(given["warm"]):
        turn(frame, f"warm-{files}-{number}")
    seconds[files] = [turn(frame, f"{files}-{number}") for number in range(given["rounds"])]
after = {"driver": memory(os.getpid()), "jvm": memory(jvm)}
told = {"seconds": seconds, "cold": cold, "warm": warm, "before": before, "after": after}
(scratch / "told.json").write_text(json.dumps(told))
spark.stop()
"""


def run(*, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure each number of files; returns medians."""
    with tempfile.TemporaryDirectory(prefix="asynccommit-bench-") as folder:
        scratch = Path(folder)
        given = {"files": FILES, "warm": 2 if quick else 12, "rounds": 3 if quick else 9}
        (scratch / "given.json").write_text(json.dumps(given))
        program = run_script(
            scratch, _PROGRAM, timeout=1200, environment={"XDG_CACHE_HOME": f"{scratch}/cache"}
        )
        if program.returncode:
            raise RuntimeError(program.stderr[-2_000:])
        told: dict[str, Any] = json.loads((scratch / "told.json").read_text())
    for files, turns in told["seconds"].items():
        texts = (f"{turn['ours'] * 1e3:.0f}/{turn['stock'] * 1e3:.0f}" for turn in turns)
        say(f"{files} files, ours/stock: {' '.join(texts)} ms")
    rows = {files: _row(turns) for files, turns in told["seconds"].items()}
    return {**told, "files": rows}


def _row(turns: list[dict[str, float]]) -> dict[str, float]:
    """Return the medians of both, and of what ours takes longer turn by turn, in milliseconds."""
    kinds = {kind: median(turn[kind] for turn in turns) * 1e3 for kind in ("ours", "stock")}
    return {**kinds, "over": median(turn["ours"] - turn["stock"] for turn in turns) * 1e3}


def lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "df.write to a local disk, one warm session, in turns"
    for files, row in result["files"].items():
        target = f" (target: at most {OVER_MS:.0f})" if files == "1" else ""
        yield (
            f"  {files:>3} files: ours {row['ours']:6.0f} ms, Spark's own {row['stock']:6.0f} ms; "
            f"ours less Spark's own, turn by turn: {row['over']:+.0f} ms{target}"
        )
    yield (
        f"  configure: {result['cold']:.2f} s with the compilation of the jar, "
        f"{result['warm']:.2f} s without"
    )
    for process, name in (("driver", "Python"), ("jvm", "the JVM")):
        before, after = result["before"][process], result["after"][process]
        yield f"  peak memory of {name}: {before:.0f} MB before configure, {after:.0f} MB after"

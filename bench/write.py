"""Stock ``df.write`` to ADLS at 30 ms a response: of one file, and of a task with 25 partitions.

A write is measured from the call to its return, the task by Spark's own metric.

Ours against Hadoop's manifest committer and FileOutputCommitter 1. Requests are those that the
emulator has seen, with the clean-up that goes on behind the return.
"""

from __future__ import annotations

import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from asynccommit.demo.adls import client_jar
from asynccommit.testing.emulators.adls.emulator import EmulatorThread, running_emulator
from asynccommit.testing.models.fault_rules import Climate
from asynccommit.testing.models.latency import Latency
from tests.support import abfs
from tests.support.spark import run_script

LATENCY = 0.03
REQUESTS, SECONDS_OVER_V1 = 40, 0.2
"""The requests that ours should take, and the seconds that it may take longer than version 1."""
_FACTORY = "mapreduce.outputcommitter.factory.scheme.abfs"
_COMMITTERS: dict[str, dict[str, str]] = {
    "ours": {},
    "hadoop_manifest": {_FACTORY: abfs.FACTORY},
    "hadoop_v1": {
        _FACTORY: "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitterFactory",
        "mapreduce.fileoutputcommitter.algorithm.version": "1",
    },
}
PARTITIONS, TASK_SECONDS = 25, 0.4
"""The partitions of a task, and the seconds that its commit should take."""
_WARM = 3
_SETTLES = 1.5  # seconds in which the clean-up ends
_PROGRAM = """
import json, time
from asynccommit.demo.session import commit_times

given = json.loads((scratch / "given.json").read_text())
made = builder(scratch).config("spark.jars", given["jar"])
for key, value in given["conf"].items():
    made.config(f"spark.hadoop.{key}", value)
spark = (configure(made) if given["ours"] else made).getOrCreate()
frame = spark.range(20).coalesce(1)

def write(name):
    begin = time.perf_counter()
    frame.write.csv(f"{given['root']}/{name}")
    return time.perf_counter() - begin

for number in range(given["warm"]):
    write(f"warm-{number}")
time.sleep(given["settles"])
(scratch / "warm").touch()
while not (scratch / "go").exists():
    time.sleep(0.01)
seconds = []
for number in range(given["rounds"]):
    seconds.append(write(f"table-{number}"))
    time.sleep(given["settles"])
(scratch / "counted").touch()
while (scratch / "go").exists():
    time.sleep(0.01)
wide = spark.range(given["partitions"]).selectExpr("id", "id AS day").coalesce(1)
tasks = []
for number in range(4):
    wide.write.partitionBy("day").csv(f"{given['root']}/wide-{number}")
    tasks.append(commit_times(spark)[0])
told = {"seconds": seconds, "task_seconds": tasks[1:]}
(scratch / "told.json").write_text(json.dumps(told))
spark.stop()
"""


def run(*, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure each committer; returns medians, or why there is no Spark to measure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark's, about pandas
        why = abfs.why_not()
    found = {} if why else {name: _measure(name, 3 if quick else 9, say) for name in _COMMITTERS}
    return {"latency": LATENCY, "committers": found, "skipped": why}


def _measure(name: str, rounds: int, say: Callable[[str], None]) -> dict[str, float]:
    climate = Climate(latency=Latency(first=LATENCY))
    with (
        tempfile.TemporaryDirectory(prefix="asynccommit-bench-") as folder,
        running_emulator(filesystems=["tables"], climate=climate) as emulator,
        ThreadPoolExecutor(1) as pool,
    ):
        scratch = Path(folder)
        (scratch / "given.json").write_text(json.dumps(_given(emulator, name, rounds)))
        running = pool.submit(run_script, scratch, _PROGRAM)
        _await(scratch / "warm", running)
        before = _seen(emulator)
        (scratch / "go").touch()
        _await(scratch / "counted", running)
        requests = (_seen(emulator) - before) / rounds
        (scratch / "go").unlink()
        program = running.result()
        if program.returncode:
            raise RuntimeError(program.stderr[-2_000:])
        told = json.loads((scratch / "told.json").read_text())
    seconds = told["seconds"]
    say(f"{name}: {', '.join(f'{value:.2f}' for value in seconds)} s, {requests:.1f} requests")
    middle = {key: median(values) for key, values in told.items()}
    return {**middle, "requests": requests}


def _await(file: Path, running: Future[Any]) -> None:
    """Wait until the program has made the file, or has ended."""
    while not file.exists() and not running.done():
        time.sleep(0.05)


def _given(emulator: EmulatorThread, name: str, rounds: int) -> dict[str, Any]:
    return {
        "jar": str(client_jar()),
        "conf": {**abfs.conf_of(emulator), **_COMMITTERS[name]},
        "root": f"abfs://tables@{emulator.account}.dfs.core.windows.net",
        "ours": name == "ours",
        "warm": _WARM,
        "rounds": rounds,
        "partitions": PARTITIONS,
        "settles": _SETTLES,
    }


def _seen(emulator: EmulatorThread) -> int:
    counts: dict[str, int] = emulator.do(lambda it: dict(it.weather.requests))
    return sum(counts.values())


def lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"df.write of one file to ADLS at {result['latency'] * 1000:.0f} ms a response"
    if result["skipped"]:
        yield f"  skipped: {result['skipped']}"
        return
    found = result["committers"]
    for name, row in found.items():
        yield (
            f"  {name:16} {row['seconds']:6.2f} s {row['requests']:6.1f} requests; "
            f"commit of a task with {PARTITIONS} partitions {row['task_seconds']:.2f} s"
        )
    over = found["ours"]["seconds"] - found["hadoop_v1"]["seconds"]
    yield (
        f"  ours takes {over:.2f} s longer than hadoop_v1 (target: {SECONDS_OVER_V1}) and "
        f"{found['ours']['requests']:.0f} requests (target: {REQUESTS})"
    )

"""Job commits of small jobs through Spark: ours beside Hadoop's magic committer, at 30 ms.

The tasks of both upload through Hadoop's client to moto, behind a proxy that responds after 30 ms.
A job commit is measured by Spark's own metric. Requests are those of whole writes.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from asynccommit.demo.moto import serving_moto
from asynccommit.demo.s3 import BUCKET, S3, client_conf, client_jars, committers_jar
from asynccommit.errors import UnsupportedError
from asynccommit.testing.emulators.s3_proxy.emulator import S3ProxyThread, running_s3_proxy
from asynccommit.testing.models.fault_rules import Climate
from asynccommit.testing.models.latency import Latency
from tests.support.spark import run_script

LATENCY = 0.03
SHAPES = {1: (1, 1), 20: (4, 5), 200: (8, 25)}
"""By the number of files: tasks, and files of each."""
_COMMITTERS = ("ours", "hadoop_magic")
_SETTLES = 1.5  # seconds in which the clean-up ends
_PROGRAM = """
import json, time
from asynccommit.demo.session import commit_times

given = json.loads((scratch / "given.json").read_text())
made = builder(scratch).config("spark.jars", given["jars"])
for key, value in given["conf"].items():
    made.config(key, value)
spark = (configure(made) if given["ours"] else made).getOrCreate()
told = {}
for files, (tasks, each) in given["shapes"].items():
    frame = spark.range(0, tasks * each, 1, tasks).selectExpr("id", f"id % {each} AS day")
    seconds = []
    for number in range(given["warm"] + given["rounds"]):
        frame.write.partitionBy("day").csv(f"{given['root']}/{files}-{number}")
        seconds.append(commit_times(spark)[1])
        time.sleep(given["settles"])
    told[files] = seconds[given["warm"]:]
(scratch / "told.json").write_text(json.dumps(told))
spark.stop()
"""


def run(*, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure both committers; returns medians, or why there is no client to measure."""
    try:
        jars = [*client_jars(), committers_jar()]
    except UnsupportedError as error:
        return {"latency": LATENCY, "seconds": {}, "skipped": str(error)}
    rounds = 2 if quick else 7
    found = {name: _measure(name, jars, rounds, say) for name in _COMMITTERS}
    return {"latency": LATENCY, "rounds": rounds, "seconds": found, "skipped": None}


def _measure(
    name: str, jars: list[Path], rounds: int, say: Callable[[str], None]
) -> dict[str, float]:
    climate = Climate(latency=Latency(first=LATENCY))
    with (
        tempfile.TemporaryDirectory(prefix="asynccommit-bench-") as folder,
        serving_moto(Path(folder, "moto.log")) as moto,
        running_s3_proxy(moto.url, climate=climate) as proxy,
    ):
        moto.make_bucket(BUCKET)
        scratch = Path(folder)
        (scratch / "given.json").write_text(json.dumps(_given(proxy, name, jars, rounds, scratch)))
        program = run_script(scratch, _PROGRAM, timeout=600)
        if program.returncode:
            raise RuntimeError(program.stderr[-2_000:])
        told = json.loads((scratch / "told.json").read_text())
    for files, seconds in told.items():
        say(f"{name}, {files} files: {', '.join(f'{value:.2f}' for value in seconds)} s")
    return {files: median(seconds) for files, seconds in told.items()}


def _given(
    proxy: S3ProxyThread, name: str, jars: list[Path], rounds: int, scratch: Path
) -> dict[str, Any]:
    hadoop = {**client_conf(proxy.endpoint), "fs.s3a.buffer.dir": str(scratch / "buffer")}
    if name == "hadoop_magic":
        hadoop["fs.s3a.committer.name"] = "magic"
    conf = {f"spark.hadoop.{key}": value for key, value in hadoop.items()}
    return {
        "jars": ",".join(map(str, jars)),
        "conf": {**conf, **S3.conf} if name == "hadoop_magic" else conf,
        "root": S3.root,
        "ours": name == "ours",
        "shapes": SHAPES,
        "warm": 2,
        "rounds": rounds,
        "settles": _SETTLES,
    }


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table."""
    if found["skipped"]:
        yield f"Job commits of small jobs on S3: {found['skipped']}"
        return
    yield (
        f"Job commits of small jobs by Spark on S3 (moto) at {found['latency'] * 1000:.0f} ms a "
        f"response, median of {found['rounds']}"
    )
    yield f"  {'':10}{'ours':>12}{'Hadoop magic':>16}{'of Hadoop':>12}"
    ours, hadoop = (found["seconds"][name] for name in _COMMITTERS)
    for files, seconds in ours.items():
        part = seconds / hadoop[files]
        title = f"{files} file{'' if files == '1' else 's'}"
        yield f"  {title:10}{seconds:>10.2f} s{hadoop[files]:>14.2f} s{part:>12.2f}"
    yield "  target: at most Hadoop's"

"""Queries of Spark's file sink whose drivers are killed at random moments, and what is left.

``python -m tests.support.stream_kills 100`` kills as many drivers, or their JVMs alone. With
``--stock`` they have Spark's own protocol, with ``--python`` another Spark, with ``--executors``
executors of a local cluster are killed too.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet

from asynccommit.runtime.loop_thread import submit
from asynccommit.streaming.api import open_sink_log
from asynccommit.streaming.batch_names import named_run
from asynccommit.streaming.entries import FOLDER
from tests.support.spark import ENVIRONMENT

ROWS = 12
WAITING = 12
DRIVER = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
base, master = Path(sys.argv[1]), sys.argv[2]
stock, last = sys.argv[3] == "stock", sys.argv[4] == "last"
builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
builder = builder.config("spark.log.level", "ERROR").config("spark.executor.memory", "512m")
builder = builder.config("spark.sql.streaming.fileSink.log.cleanupDelay", "0")
builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
builder = builder.config("spark.driver.host", "127.0.0.1")
if not stock:
    import asynccommit.spark
    builder = asynccommit.spark.configure(builder, streams=True, progress=False)
spark = builder.getOrCreate()
source = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
source = source.json(str(base / "source"))
rows = source.selectExpr("id", "id % 3 as p").repartition(2)
writer = rows.writeStream.format("parquet").partitionBy("p").queryName("killed")
writer = writer.option("checkpointLocation", str(base / "checkpoint"))
if last:
    writer = writer.trigger(availableNow=True)
query = writer.start(str(base / "table"))
print("ready", flush=True)
query.awaitTermination()
"""


@dataclass
class Weather:
    """Drivers that are killed.

    Args:
        base: where everything is.
        rng: when they are killed.
        stock: with Spark's own protocol.
        python: the interpreter with the Spark.
        executors: kill executors of a local cluster, too.
    """

    base: Path
    rng: random.Random
    stock: bool = False
    python: str = sys.executable
    executors: bool = False
    files: int = 0
    killed: Counter[str] = field(default_factory=Counter)

    def put(self, count: int) -> None:
        """Add files to the source, each of which becomes a batch."""
        (self.base / "source").mkdir(parents=True, exist_ok=True)
        for number in range(self.files, self.files + count):
            ids = range(number * ROWS, (number + 1) * ROWS)
            hidden = self.base / "source" / f".{number}.tmp"
            hidden.write_text("\n".join(f'{{"id": {one}}}' for one in ids))
            hidden.rename(self.base / "source" / f"{number:06d}.json")
        self.files += count

    def fill(self) -> None:
        """Have so much in the source that the query does not wait for more."""
        batches = max((int(one) + 1 for one in self._done()), default=0)  # each is of one file
        self.put(max(0, WAITING - self.files + batches))

    def _done(self) -> set[str]:
        """Return the batches that the checkpoint says are done."""
        done = self.base / "checkpoint" / "commits"
        return {one for one in os.listdir(done) if one.isdecimal()} if done.is_dir() else set()

    def start(self, *, last: bool = False) -> subprocess.Popen[str]:
        """Start a driver, in a process group of its own."""
        master = "local-cluster[2,1,512]" if self.executors else "local[2]"
        words = (str(self.base), master, "stock" if self.stock else "", "last" if last else "")
        root = str(Path(__file__).parents[2])
        return subprocess.Popen(
            [self.python, "-W", "ignore", "-c", DRIVER, *words],
            env={**os.environ, **ENVIRONMENT, "PYTHONPATH": root},
            stdout=subprocess.PIPE,
            stderr=(self.base / "stderr").open("a"),
            text=True,
            start_new_session=True,
        )

    def kill(self) -> None:
        """Kill one driver while its query runs."""
        driver = self.start()
        assert driver.stdout is not None
        assert driver.stdout.readline() == "ready\n", (self.base / "stderr").read_text()[-3000:]
        before = self._done()
        until = time.monotonic() + (120 if self.rng.random() < 0.85 else self.rng.uniform(0, 8))
        while time.monotonic() < until and driver.poll() is None and self._done() == before:
            time.sleep(0.05)
        time.sleep(self.rng.uniform(0, 3))
        if self.executors and self.rng.random() < 0.5:
            self._kill_one_of(driver.pid, b"CoarseGrainedExecutorBackend", "executors")
            time.sleep(self.rng.uniform(0, 3))
        if self.rng.random() < 0.3:
            self._kill_one_of(driver.pid, b"org.apache.spark.deploy.SparkSubmit", "JVMs")
            with suppress(subprocess.TimeoutExpired):
                driver.wait(20)
        else:
            self.killed["drivers"] += 1
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        driver.stdout.close()

    def _kill_one_of(self, group: int, kind: bytes, name: str) -> None:
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                try:
                    words = (folder / "cmdline").read_bytes()
                    mine = os.getpgid(int(folder.name)) == group
                except OSError:
                    continue
                if mine and kind in words:
                    os.kill(int(folder.name), signal.SIGKILL)
                    self.killed[name] += 1
                    return

    def finish(self) -> None:
        """Let the query read its source to the end, in two starts after the last kill."""
        for _ in range(2):
            self.put(1)
            driver = self.start(last=True)
            driver.communicate(timeout=1200)
            assert driver.returncode == 0, (self.base / "stderr").read_text()[-3000:]

    def seen(self) -> tuple[list[int], set[str], set[str]]:
        """Return what readers see: rows, listed files, and files that are there."""

        async def listed() -> set[str]:
            async with open_sink_log(self.base / "table") as log:
                return {file.path.rpartition("/")[2] for file in await log.files()}

        names, there = submit(listed()), {}
        for path in (self.base / "table").rglob("part-*"):
            there[path.name] = path
        read = [pyarrow.parquet.ParquetFile(there[name]).read(["id"]) for name in names]
        return sorted(i for part in read for i in part["id"].to_pylist()), names, set(there)

    def announced(self) -> list[str]:
        """Return the announcements that are left."""
        return [path for path in os.listdir(self.base / "table" / FOLDER) if named_run(path)]


def main() -> None:
    """Kill drivers, and print what is left."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kills", type=int)
    parser.add_argument("--stock", action="store_true")
    parser.add_argument("--executors", action="store_true")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rng = random.Random(given.seed)
        weather = Weather(Path(folder), rng, given.stock, given.python, given.executors)
        for number in range(given.kills):
            weather.fill()
            weather.kill()
            sys.stderr.write(f"{number + 1} {dict(weather.killed)}\n")
        weather.finish()
        rows, names, there = weather.seen()
        exact = rows == list(range(weather.files * ROWS))
        kind = "stock" if given.stock else "ours"
        sys.stdout.write(
            f"{kind}, seed {given.seed}, killed {dict(weather.killed)}: rows exact: {exact}; "
            f"{len(names)} files listed, {len(there - names)} orphans, {len(names - there)} lost, "
            f"{len(weather.announced())} announcements\n"
        )


if __name__ == "__main__":
    main()

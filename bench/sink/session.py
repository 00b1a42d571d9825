"""Two queries of Spark's file sink, ours and stock, that write in turns."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from bench.child import serve

KINDS = ("ours", "stock")


class Turns:
    """The session of this process."""

    def __init__(self) -> None:
        self._spark: Any = None
        self._scratch = Path()
        self._root = ""
        self._asked: dict[str, tuple[int, str]] = {}  # id of a query -> files, kind
        self._batches: dict[tuple[int, str], list[int]] = {}

    def begin(
        self, root: str, jars: Sequence[str], conf: Mapping[str, str], folder: str | None
    ) -> None:
        """Start Spark.

        Args:
            root: where the tables are; a local directory if empty.
            jars: the client of the store.
            conf: its settings, under Hadoop's names.
            folder: where the sources and checkpoints are.
        """
        from pyspark.sql import SparkSession

        import asynccommit.spark

        warnings.simplefilter("ignore")
        self._scratch = Path(tempfile.mkdtemp(prefix="asynccommit-bench-", dir=folder))
        self._root = root or f"file:{self._scratch}/tables"
        (self._scratch / "events").mkdir()
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.numRecentProgressUpdates": "10000",
            "spark.local.dir": str(self._scratch / "local"),
            "spark.jars": ",".join(jars),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": f"file:{self._scratch}/events",
            **{f"spark.hadoop.{key}": value for key, value in conf.items()},
        }
        made = SparkSession.builder.master("local[2]")
        for key, value in settings.items():
            made = made.config(key, value)
        self._spark = asynccommit.spark.configure(made, streams=True, progress=False).getOrCreate()

    def turns(self, files: int, rounds: int, warm: int) -> dict[str, float]:
        """Return the medians of batches of so many files, in milliseconds.

        The first ``warm`` ones do not count.
        """
        queries = {kind: self._start(files, kind) for kind in KINDS}
        for number in range(rounds + warm):
            for kind in KINDS if number % 2 else KINDS[::-1]:
                self._put(files, kind, number)
                queries[kind].processAllAvailable()
        found = {}
        for kind, query in queries.items():
            done = [one for one in query.recentProgress if one["numInputRows"] > 0][warm:]
            found[kind] = median(one["durationMs"]["addBatch"] for one in done)
            self._asked[str(query.id)] = files, kind
            self._batches[files, kind] = [one["batchId"] for one in done]
            query.stop()
        return found

    def _start(self, files: int, kind: str) -> Any:
        from asynccommit.spark.loading import STREAM_PROTOCOL
        from asynccommit.spark.sessions import STREAM_KEY

        if kind == "ours":
            self._spark.conf.set(STREAM_KEY, STREAM_PROTOCOL)
        else:
            self._spark.conf.unset(STREAM_KEY)
        name = f"{kind}-{files}"
        (self._scratch / name).mkdir()
        frame = self._spark.readStream.schema("id long").json(f"file:{self._scratch}/{name}")
        if files == 1:
            writer = frame.coalesce(1).writeStream
        else:
            # Each task has half of the partitions, whose number is exactly that of the files.
            frame = frame.repartitionByRange(2, "id").selectExpr("id", "id as p")
            writer = frame.writeStream.partitionBy("p")
        checkpoint = f"file:{self._scratch}/checkpoints/{name}"
        writer = writer.format("parquet").option("checkpointLocation", checkpoint)
        return writer.start(f"{self._root}/{name}")

    def _put(self, files: int, kind: str, number: int) -> None:
        folder = self._scratch / f"{kind}-{files}"
        text = "\n".join(f'{{"id": {row}}}' for row in range(files))
        (folder / f".{number}").write_text(text)
        (folder / f".{number}").rename(folder / f"{number:05d}.json")

    def end(self) -> dict[str, dict[str, float]]:
        """Stop Spark; return the medians of commits in milliseconds.

        A batch waits for the longest commit of a task, and for that of the job.
        """
        self._spark.stop()
        tasks: defaultdict[tuple[str, int], float] = defaultdict(float)
        jobs: dict[tuple[str, int], float] = {}
        for query, batch, kind, took in _commits(self._scratch / "events"):
            if kind == "job":
                jobs[query, batch] = took
            else:
                tasks[query, batch] = max(tasks[query, batch], took)
        found: dict[str, dict[str, float]] = {}
        for query, (files, kind) in self._asked.items():
            waits = [tasks[query, n] + jobs[query, n] for n in self._batches[files, kind]]
            found.setdefault(str(files), {})[kind] = median(waits)
        shutil.rmtree(self._scratch)
        return found


def _commits(folder: Path) -> Iterator[tuple[str, int, str, float]]:
    """Yield the commits in an event log: query, batch, "task" or "job", ms."""
    stages: dict[int, tuple[str, int]] = {}
    runs: dict[str, tuple[str, int]] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        for line in _lines(path):
            event = json.loads(line)
            name = event["Event"].rpartition(".")[2]
            if name == "SparkListenerJobStart":
                said = event["Properties"]
                if "sql.streaming.queryId" in said:
                    batch = said["sql.streaming.queryId"], int(said["streaming.sql.batchId"])
                    stages |= dict.fromkeys(event["Stage IDs"], batch)
                    runs[said["spark.sql.execution.id"]] = batch
            elif name == "SparkListenerTaskEnd" and event["Stage ID"] in stages:
                for one in event["Task Info"]["Accumulables"]:
                    if one.get("Name") == "task commit time":
                        yield *stages[event["Stage ID"]], "task", float(one["Update"])
            elif name == "SparkListenerDriverAccumUpdates":
                # The last metric that the sink makes is the time of the job's commit.
                updates = event["accumUpdates"]
                if str(event["executionId"]) in runs and updates:
                    yield *runs[str(event["executionId"])], "job", float(max(updates)[1])


def _lines(path: Path) -> Iterator[str]:
    with suppress(UnicodeDecodeError):  # a checksum of Hadoop's
        for line in path.read_text("utf-8").splitlines():
            if line.startswith("{"):
                yield line


if __name__ == "__main__":
    TURNS = Turns()
    serve({"begin": TURNS.begin, "turns": TURNS.turns, "end": TURNS.end})

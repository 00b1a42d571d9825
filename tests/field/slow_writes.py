"""The program of the events: slow writes, each when it is asked for.

It runs on the machine of a driver and needs nothing of this repository. ``given-0.json`` and the
next ones say what to write; ``found-0.json`` and so on say how it went. Without a table it ends.
"""

import itertools
import json
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import asynccommit.spark


def read(number: int) -> dict[str, Any]:
    """Return what is to be written, once it is there."""
    while not (place := Path(f"given-{number}.json")).is_file():
        time.sleep(0.05)
    said: dict[str, Any] = json.loads(place.read_text("utf-8"))
    return said


def write(given: dict[str, Any]) -> str | None:
    """Write rows with a pause before each; return the error, if there was one."""
    pause = f"java_method('java.lang.Thread', 'sleep', {given['pause']}L) is not null"
    rows = spark.range(0, given["rows"], 1, given["tasks"]).where(pause)
    try:
        rows.write.option("maxRecordsPerFile", 10).mode(given["mode"]).parquet(given["table"])
    except Exception as raised:
        return f"{type(raised).__name__}: {raised}"
    return None


spark = asynccommit.spark.configure(SparkSession.builder.appName("events")).getOrCreate()
for number in itertools.count():
    if not (given := read(number))["table"]:
        break
    before = len(asynccommit.spark.reports())
    error = write(given)
    reports = [[it.dest, it.files] for it in asynccommit.spark.reports()[before:]]
    Path("found.tmp").write_text(json.dumps({"error": error, "reports": reports}), "utf-8")
    Path("found.tmp").rename(f"found-{number}.json")
spark.stop()

"""Start the demo's Spark session and read its commit metrics."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS = 4

_CONF = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    # A short run on a few cores: use the fast compiler only, so that neither write pays for warming
    # up.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # Thousands of small files are read by a few tasks, not by one task for a handful of files.
    "spark.sql.files.openCostInBytes": "0",
}

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?) (ms|s|m|h)\b")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@contextmanager
def quiet_session(
    log: Path, scratch: Path, *, threads: int | None = None, conf: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Run Spark with all output of its JVM in ``log``."""
    from pyspark.sql import SparkSession

    threads = threads or min(TASKS, os.cpu_count() or 1)
    builder = SparkSession.builder.master(f"local[{threads}]")
    builder = builder.appName("asynccommit demo").config("spark.local.dir", str(scratch))
    builder = builder.config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    for key, value in {**_CONF, **(conf or {})}.items():
        builder = builder.config(key, value)
    with printed_to(log):
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def printed_to(log: Path) -> Iterator[None]:
    """Redirect the output of this process and its children to a file.

    A JVM that starts inside the block writes there until it ends.
    """
    with ExitStack() as undo:
        file = undo.enter_context(log.open("ab"))
        for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
            stream.flush()
            kept = os.dup(number)
            undo.callback(os.close, kept)
            undo.callback(os.dup2, kept, number)
            undo.callback(stream.flush)
            os.dup2(file.fileno(), number)
        yield


def commit_times(session: SparkSession) -> tuple[float | None, float | None]:
    """Return the seconds of the last write's task commits and job commit.

    The values are SQL metrics of the write, which Spark's web page shows too. Spark measures them
    in the same way for every commit protocol.
    """
    spark: Any = session
    spark._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    execution = store.executionsList().last()
    values = store.executionMetrics(execution.executionId())
    found: dict[str, str] = {}
    metrics = execution.metrics().iterator()
    while metrics.hasNext():
        metric = metrics.next()
        value = values.get(metric.accumulatorId())
        if value.isDefined():
            found[metric.name()] = value.get()
    return duration(found.get("task commit time")), duration(found.get("job commit time"))


def duration(text: str | None) -> float | None:
    """Parse the seconds of a Spark metric.

    Spark writes ``3.1 s``, or a total and its spread.
    """
    found = _DURATION.search(text or "")
    return float(found[1]) * _UNITS[found[2]] if found else None

"""Servers whose clients have no JVM of their own: Spark Connect, and the Thrift server."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.field import drivers
from tests.field.place import MissingError, Place, StartError, end_group
from tests.support.spark import LOOPBACK

_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
_THRIFT = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
_CLIENT = """\
import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
flights = spark.range(1000).selectExpr("id", "id % 7 as day")
flights.write.partitionBy("day").parquet(sys.argv[2])
print("rows:", spark.read.parquet(sys.argv[2]).count())
"""


@contextmanager
def serving(place: Place, ready: str, *arguments: str) -> Iterator[re.Match[str]]:
    """Run a server by ``spark-submit`` until the end of the block; yield what says it is ready.

    Args:
        place: where it runs; its log is ``server.log`` there.
        ready: a pattern of its log.
        arguments: those of ``spark-submit``.

    Raises ``StartError`` if it ends before it is ready.
    """
    log = place.folder / "server.log"
    command = [str(place.environment.programs / "spark-submit"), "--master", place.master]
    with (
        log.open("w") as output,
        subprocess.Popen(
            [*command, *arguments],
            cwd=place.folder,
            env=place.variables_of(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
        ) as process,
    ):
        try:
            yield _said(log, ready, process, place.timeout)
            process.send_signal(signal.SIGTERM)
            process.wait(place.timeout)
        finally:
            end_group(process.pid)


def _said(log: Path, ready: str, process: subprocess.Popen[bytes], seconds: float) -> re.Match[str]:
    end = time.monotonic() + seconds
    while not (found := re.search(ready, text := log.read_text("utf-8"))):
        if process.poll() is not None or time.monotonic() > end:
            raise StartError(f"the server is not ready:\n{text[-4000:]}")
        time.sleep(0.1)
    return found


def connect(place: Place) -> str:
    """Write by a client of a Spark Connect server."""
    jars = place.environment.spark / "jars"
    if not [*jars.glob("spark-connect_*.jar")]:
        raise MissingError(f"{jars} has no server of Spark Connect")
    drivers.prepare(place)
    (place.folder / "client.py").write_text(_CLIENT, "utf-8")
    name = "spark.connect.grpc.binding"
    conf = ("--conf", f"{name}.port=0", "--conf", f"{name}.address={LOOPBACK}")
    ready = r"Spark Connect server started at: (\S+)"
    with serving(place, ready, *conf, "--class", _CONNECT, "spark-internal") as server:
        return place.python("client.py", f"sc://{server[1]}", f"{place.folder}/flights")


def thrift(place: Place) -> str:
    """Run queries by ``beeline``, a client of the Thrift server."""
    drivers.prepare(place)
    with thrift_server(place) as server:
        return ask(place, server, drivers.queries(place))


def ask(place: Place, server: str, queries: str) -> str:
    """Run queries in a session of a user named alice."""
    (place.folder / "q.sql").write_text(queries, "utf-8")
    return place.run("beeline", "-u", server, "-n", "alice", "-f", "q.sql")


@contextmanager
def thrift_server(
    place: Place, conf: Sequence[str] = (), jars: Sequence[str] = ()
) -> Iterator[str]:
    """Run a Thrift server in a place that is prepared; yield its address.

    The package's jar is on its class path, as Spark 4 makes a client's session in a thread that
    does not see those of ``spark.jars``; with others, which go with the session that has loaded
    them.
    """
    path = os.pathsep.join([drivers.own_jar(place), *jars])
    hive = ("hive.server2.thrift.port=0", f"hive.server2.thrift.bind.host={LOOPBACK}", *conf)
    arguments = ["--driver-class-path", path, "--class", _THRIFT]
    arguments += ["spark-internal", *(part for each in hive for part in ("--hiveconf", each))]
    with serving(place, r"CLIService on port (\d+)", *arguments) as server:
        yield f"jdbc:hive2://{LOOPBACK}:{server[1]}"

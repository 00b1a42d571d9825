"""Spark for tests: local sessions, a standalone cluster, scripts in processes of their own."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from asynccommit.spark.hadoop_store.store import HadoopStore
from asynccommit.stores.adls.store import AdlsStore
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.hdfs.store import HdfsStore
from asynccommit.stores.local.store import LocalStore
from tests.support.class_data import driver_options

LOOPBACK = "127.0.0.1"
WORKERS = ("127.0.0.2", "127.0.0.3")
ENVIRONMENT = {
    "PYSPARK_PYTHON": sys.executable,
    "PYSPARK_DRIVER_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": LOOPBACK,
    "LC_ALL": "C.UTF-8",  # the JVM names files in the locale's encoding
}
TASK_FAILURES: tuple[type[Exception], ...] = ()
"""What a failed task raises: the second before Spark 4."""

if importlib.util.find_spec("pyspark") is not None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    TASK_FAILURES = (PySparkException, Py4JError)

CALLBACK = "asynccommit.spark.callback"


def builder(scratch: Path, master: str = "local[2,4]") -> Any:
    """Return a session builder that binds to loopback only and keeps its files in ``scratch``."""
    from pyspark.sql import SparkSession

    conf = {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
        "spark.log.level": "OFF",
    }
    made = SparkSession.builder.master(master).appName("asynccommit tests")
    for key, value in conf.items():
        made = made.config(key, value)
    return made


@contextmanager
def cluster(scratch: Path, user: int | None = None, home: str | None = None) -> Iterator[str]:
    """Run a standalone master and two workers on loopback addresses; yield the master's URL.

    The workers, and so the tasks, belong to ``user``. Spark is the installed one, or that of
    ``home``.
    """
    with ExitStack() as running:
        master = f"spark://{LOOPBACK}:{_free_port()}"
        port = master.rpartition(":")[2]
        arguments = ["master.Master", "--host", LOOPBACK, "--port", port, "--webui-port", "0"]
        ready = "I have been elected leader"
        running.enter_context(_daemon(scratch, LOOPBACK, arguments, ready, home=home))
        for host in WORKERS:
            arguments = ["worker.Worker", "--host", host, "--cores", "1", "--memory", "1g"]
            arguments += ["--webui-port", "0", "--work-dir", str(scratch / host), master]
            ready = "Successfully registered with master"
            running.enter_context(_daemon(scratch, host, arguments, ready, user, home))
        yield master


@contextmanager
def _daemon(
    scratch: Path,
    host: str,
    arguments: list[str],
    ready: str,
    user: int | None = None,
    home: str | None = None,
) -> Iterator[None]:
    from pyspark.find_spark_home import _find_spark_home

    log = scratch / f"{arguments[0]}-{host}.log"
    command = [os.path.join(home or _find_spark_home(), "bin", "spark-class")]
    command += [f"org.apache.spark.deploy.{arguments[0]}", *arguments[1:]]
    environment = {**os.environ, **ENVIRONMENT, "SPARK_LOCAL_IP": host}
    # Executors have their worker's environment.
    environment |= {"SPARK_DAEMON_MEMORY": "256m", "JDK_JAVA_OPTIONS": driver_options()}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
    try:
        wait_until(lambda: ready in log.read_text() or process.poll() is not None, 60)
        if process.poll() is not None:
            raise RuntimeError(f"{arguments[0]} did not start: {log.read_text()[-2000:]}")
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(condition: Any, seconds: float) -> bool:
    """Ask until ``condition()`` holds, or ``seconds`` are over; return whether it holds."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.05)):
        if condition():
            return True
        pause.wait(0.05)
    return bool(condition())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


SCRIPT = """
import os, signal, sys, threading
from pathlib import Path
from asynccommit.spark import bridge, configure, last_report, reports
from tests.support.spark import after_renames, builder
scratch = Path(sys.argv[1])
"""


def run_script(
    scratch: Path,
    body: str,
    *arguments: str,
    timeout: float = 240,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a driver program of its own, with ``scratch`` and our names at hand.

    Returns once every process that writes to its output has ended, its JVM too.
    """
    program = SCRIPT + textwrap.dedent(body)
    return run_python(
        *("-W", "ignore", "-c", program, str(scratch), *arguments),
        timeout=timeout,
        **environment or {},
    )


def run_python(
    *arguments: str, timeout: float = 240, given: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python with this package at hand, and ``given`` on its standard input."""
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": root, **environment},
        input=given,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def below(folder: Path) -> list[Path]:
    """Return every path below a folder, also while another process removes some of them.

    ``Path.rglob`` raises FileNotFoundError if a directory goes away under it.
    """
    return sorted(
        Path(root, name) for root, folders, names in os.walk(folder) for name in folders + names
    )


def visible(table: Path) -> list[str]:
    """Return what readers see of a table: relative names of its files, markers left out."""
    return sorted(
        str(path.relative_to(table))
        for path in below(table)
        if path.is_file() and not re.search(r"(^|/)[_.]", str(path.relative_to(table)))
    )


def leftovers(table: Path) -> list[str]:
    """Return what no finished job may leave: temporary, staging and checksum files."""
    return sorted(
        str(path.relative_to(table))
        for path in below(table)
        if re.search(r"(^|/)(_temporary|\.spark-staging)|\.crc$", str(path.relative_to(table)))
    )


def settles(table: Path, *, seconds: float = 20) -> bool:
    """Wait for stragglers of a failed job, and return whether they have left nothing.

    Spark fails a job while other tasks of it still run.
    """
    return wait_until(lambda: leftovers(table) == [], seconds)


@contextmanager
def answered_by(spark: Any, function: Any, *, checks: Any = None) -> Iterator[None]:
    """Let ``function`` answer what the JVM wants committed, ``None`` for nobody at all.

    What it asks before is answered by ``checks``, as ever by default.
    """
    from asynccommit.spark.bridge import BRIDGE
    from asynccommit.spark.sessions import register

    def answer(request: str) -> Any:
        asked = function if json.loads(request)["what"] == "commit" else checks or BRIDGE.apply
        return asked(request)

    if function is None:
        spark._jvm.java.lang.System.getProperties().remove(CALLBACK)
    else:
        register(spark.sparkContext._gateway, answer)
    try:
        yield
    finally:
        register(spark.sparkContext._gateway)


def after_renames(count: int, action: Callable[[], object], like: str = "/tasks/") -> None:
    """Have this process do something when it has renamed so many paths, and begun no other.

    Args:
        count: how many are renamed before.
        action: called once, in a thread; killing this process is the usual one.
        like: renames of paths without this do not count.
    """
    stores = (LocalStore, AdlsStore, GcsStore, HdfsStore, HadoopStore)
    counter = _Renames(count, action, like)
    for store in stores:
        store.rename = counter.around(store.rename)  # type: ignore[method-assign]


class _Renames:
    """Counts renames, and stops them for ever or for a while."""

    def __init__(self, count: int, action: Callable[[], object], like: str) -> None:
        self._count, self._action, self._like = count, action, like
        self._begun = self._ended = 0
        self._before, self._over = anyio.Event(), anyio.Event()

    def around(self, rename: Any) -> Any:
        """Return a store's rename that is counted."""

        async def counted(store: object, source: str, dest: str, **more: Any) -> None:
            if self._like not in source:
                await rename(store, source, dest, **more)
                return
            await self._begin()
            await rename(store, source, dest, **more)
            self._ended += 1
            if self._ended == self._count:
                self._before.set()

        return counted

    async def _begin(self) -> None:
        self._begun += 1
        if self._begun == self._count + 1:
            if self._count:
                await self._before.wait()
            await anyio.to_thread.run_sync(self._action)
            self._over.set()
        elif self._begun > self._count:
            await self._over.wait()

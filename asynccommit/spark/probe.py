"""Try to load the commit protocol wherever a session's code runs.

A write loads the class in the thread that calls it, and each of its tasks on its executor. Tasks
are asked by SQL's ``reflect``, which needs no class of this package, so an executor without the jar
can answer.
"""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from asynccommit.errors import UnsupportedError
from asynccommit.inspect.doctor import Check
from asynccommit.runtime.host import this_host
from asynccommit.spark.hadoop_store.opening import message_of
from asynccommit.spark.jars import fitting_jar, running_spark
from asynccommit.spark.loading import PROTOCOL, difference_in

_TELLS = "org.asynccommit.spark.Whereabouts"
_PATIENCE = 60.0  # seconds until an executor has answered
_PAUSE = 50  # milliseconds of each task, so that one executor does not take them all
_MOST_TASKS = 512
_SHOWN = 5
_TASK = (
    "reflect('org.apache.spark.util.Utils', 'classIsLoadable', '{kind}') as loadable",
    "reflect('java.net.InetAddress', 'getLocalHost') as host",
    "reflect('java.lang.ProcessHandle', 'current') as process",
    f"reflect('java.lang.Thread', 'sleep', {_PAUSE}L) as pause",
)
_TELL = f"if(loadable = 'true', reflect('{_TELLS}', 'tell'), '') as told"


@dataclass(frozen=True, slots=True)
class ProbedExecutor:
    """An executor that has run a task of the probe.

    Attributes:
        name: its id where it has told it, its process otherwise, and its host.
        loadable: whether its tasks can load the protocol.
        jar: file name of the jar; empty if it is not known.
    """

    name: str
    loadable: bool
    jar: str = ""


def check_classes(session: Any, kind: str = PROTOCOL) -> Iterator[Check]:
    """Yield whether threads and executors can load the protocol.

    Args:
        session: a classic session that is configured.
        kind: the class to look for.
    """
    jar = _own_jar(session)
    here = loaded_from(session, kind)
    with ThreadPoolExecutor(1) as other:
        there = other.submit(loaded_from, session, kind).result()
    for name, found in (("class in this thread", here), ("class in a new thread", there)):
        yield _verdict(name, found is not None, "loadable", "not loadable: a write fails", jar)
    if here and here.startswith("file:") and jar:
        yield check_jar(unquote(urlsplit(here).path), jar)
    yield _on_executors(session, kind, _file_name(here), jar)
    yield _fetched_jars(session)


def _own_jar(session: Any) -> str:
    """Return the path of this package's jar, empty if it cannot be made."""
    try:
        return fitting_jar(running_spark(session), difference_in(session))
    except UnsupportedError:
        return ""


def loaded_from(session: Any, kind: str) -> str | None:
    """Return the URL of the jar that the calling thread loads a class from.

    The result is empty if the class does not tell, and ``None`` if it cannot be loaded.
    """
    from py4j.protocol import Py4JJavaError

    lang = session._jvm.java.lang
    loader = lang.Thread.currentThread().getContextClassLoader()
    try:
        source = lang.Class.forName(kind, False, loader).getProtectionDomain().getCodeSource()
    except Py4JJavaError:
        return None
    return "" if source is None else str(source.getLocation())


def _verdict(name: str, ok: bool, good: str, bad: str, jar: str) -> Check:
    if ok:
        return Check(name, good, ok=True)
    remedy = "call asynccommit.spark.configure(spark) again, or start Spark with the jar"
    return Check(name, bad, False, remedy, [f"spark.jars {jar}"] if jar else [])


def check_jar(loaded: str, jar: str) -> Check:
    """Compare a jar's classes with this package's; names may differ."""
    name = _file_name(loaded)
    if _classes_of(loaded) == _classes_of(jar):
        return Check("jar", f"{name}, of this asynccommit", ok=True)
    found = f"{name} is of another version of asynccommit or Spark"
    return Check("jar", found, False, "start Spark without it, or with", [f"spark.jars {jar}"])


def _classes_of(jar: str) -> Mapping[str, int]:
    """Return the checksum of each class in a jar; none if it cannot be read."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return {info.filename: info.CRC for info in archive.infolist()}
    except (OSError, zipfile.BadZipFile):
        return {}


def _file_name(url: str | None) -> str:
    return (url or "").rpartition("/")[2]


# --- executors -------------------------------------------------------------------------------


def _on_executors(session: Any, kind: str, name: str, jar: str) -> Check:
    """Run a job whose tasks try to load the protocol."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        found = _ask_executors(session, kind, tells=bool(name))
    except (Py4JError, PySparkException, OSError) as error:
        why = message_of(error)
        return Check(
            "class on executors",
            f"the probe job failed: {why}",
            False,
            "see Spark's log of the tasks",
        )
    return judge(found, name, jar, known=_known(session))


def judge(found: Sequence[ProbedExecutor], name: str, jar: str, *, known: int) -> Check:
    """Return the check of the executors that have answered.

    Args:
        found: the executors.
        name: file name of the driver's jar; empty if it is not known.
        jar: path of this package's jar.
        known: the number of executors that the driver has.
    """
    row = "class on executors"
    failed = [each.name for each in found if not each.loadable]
    others = [f"{e.name} ({e.jar})" for e in found if e.loadable and name and e.jar != name]
    if failed:
        return _verdict(row, False, "", f"not loadable on {_some(failed)}", jar)
    if others:
        text = f"another jar than the driver's on {_some(others)}"
        return Check(row, text, False, "remove it from spark.executor.extraClassPath or the image")
    names = _some([each.name for each in found])
    count = f"{len(found)} of {known}: " if known > 1 else ""
    missed = "; the others had no free core" if len(found) < known else ""
    return Check(row, f"loadable on {count}{names}{missed}", ok=True)


def _ask_executors(session: Any, kind: str, *, tells: bool) -> Sequence[ProbedExecutor]:
    """Return the executors that tasks have reached, by name.

    Raises the errors of a Spark job.
    """
    count = min(max(2 * session.sparkContext.defaultParallelism, 2), _MOST_TASKS)
    frame = session.range(0, count, 1, count).selectExpr(
        *(text.format(kind=kind) for text in _TASK)
    )
    with _limited(session):
        rows = frame.selectExpr("*", _TELL if tells else "'' as told").collect()
    return sorted({_executor(row) for row in rows}, key=lambda each: each.name)


def _executor(row: Any) -> ProbedExecutor:
    host = row.host.partition("/")[0] or row.host
    identity, _, jar = row.told.partition(" ")
    name = f"{identity} on {host}" if identity else f"process {row.process} on {host}"
    return ProbedExecutor(name, row.loadable == "true", jar)


@contextmanager
def _limited(session: Any) -> Iterator[None]:
    """Cancel the block's jobs if they last: no core may be free."""
    context, tag = session.sparkContext, f"asynccommit-doctor-{this_host().new_id()}"
    timer = threading.Timer(_PATIENCE, context.cancelJobsWithTag, [tag])
    timer.daemon = True
    context.addJobTag(tag)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        context.removeJobTag(tag)


def _known(session: Any) -> int:
    """Return the number of executors; in local mode it is the driver."""
    context = session.sparkContext
    count = len(context._jsc.sc().statusTracker().getExecutorInfos())
    return count if context._jsc.isLocal() else count - 1


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def _fetched_jars(session: Any) -> Check:
    listed = session.sparkContext._jsc.sc().listJars().mkString("\n").split()
    names = sorted(unquote(_file_name(each)) for each in listed)
    return Check("jars for executors", ", ".join(names) or "none")

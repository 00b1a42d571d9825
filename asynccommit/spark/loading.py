"""The loading of the jar into a running Spark, on driver and executors.

``ADD JAR`` and ``spark.jars`` are not used. The first sets the class loader of the calling thread
alone, and Spark 4 checks the class in the thread that writes; the second does not reach a JVM that
spark-submit has started, and in a builder it replaces what ``--jars`` and ``--packages`` have
brought.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asynccommit.errors import UnsupportedError
from asynccommit.spark.jars import build_id, fitting_jar, other_build, running_spark

PROTOCOL = "org.asynccommit.spark.AsyncCommitProtocol"
STREAM_PROTOCOL = "org.asynccommit.spark.AsyncCommitStreamProtocol"
STREAM_GUARD = "org.asynccommit.spark.StreamExtensions"
"""The class that adds the guard of streams to every session of a JVM."""

_GUARD = "org.asynccommit.spark.StreamGuard"
_METHODS = "org.apache.spark.sql.ExperimentalMethods"
_SIGNATURES = "org.asynccommit.spark.Signatures"
_SHARED = "org.apache.spark.util.MutableURLClassLoader"
_NO_JAR = (
    "Spark was started without the jar of asynccommit, whose path asynccommit spark-conf writes: "
    "--jars replaces spark.jars of spark-defaults.conf, so name it there as well"
)


def load_jar(session: Any) -> None:
    """Make the protocol loadable in every thread and on every executor.

    Args:
        session: a classic session. Its application's other jars stay as they are.

    Raises ``UnsupportedError`` if this JVM cannot load it, with the flag to start Spark with, and
    as ``check_loaded`` does if Spark was started with a jar.
    """
    found = _protocol(session)
    if found is None:
        found = _added(session)
    else:
        check_loaded(session.sparkContext._gateway)
    jar = found.getProtectionDomain().getCodeSource().getLocation().toString()
    context = session.sparkContext._jsc.sc()
    names = {each.rpartition("/")[2] for each in context.listJars().mkString("\n").split("\n")}
    if jar.rpartition("/")[2] not in names:
        context.addJar(jar)


def guard_streams(session: Any) -> None:
    """Have each batch of Spark's file sink checked before the sink sees it.

    Args:
        session: a session whose jar is loaded.
    """
    gateway = session.sparkContext._gateway
    lang, found = gateway.jvm.java.lang, _protocol(session)
    loader = found.getClassLoader()
    types, values = gateway.new_array(lang.Class, 1), gateway.new_array(lang.Object, 1)
    types[0] = lang.Class.forName(_METHODS, False, loader)
    values[0] = session._jsparkSession.experimental()
    lang.Class.forName(_GUARD, True, loader).getMethod("install", types).invoke(None, values)


def check_loaded(gateway: Any) -> None:
    """Check the jar with which a JVM was started.

    Raises ``UnsupportedError`` if there is none, if it is of another version of this package, or
    does not fit this Spark.
    """
    from py4j.protocol import Py4JJavaError

    loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        kind = gateway.jvm.java.lang.Class.forName(PROTOCOL, False, loader)
    except Py4JJavaError as error:
        raise UnsupportedError(_NO_JAR) from error
    try:
        build = str(kind.getField("BUILD").get(None))
    except Py4JJavaError:
        build = None
    if build != build_id():
        raise UnsupportedError(other_build(build))
    if found := _difference(gateway, loader):
        raise UnsupportedError(
            f"the jar with which Spark was started does not fit it: {found}. Start it with the jar "
            "that asynccommit spark-conf writes for this Spark"
        )


def difference_in(session: Any) -> Callable[[str], str]:
    """Return a comparison of jars with the Spark of a session."""
    gateway = session.sparkContext._gateway
    shared = _shared_loader(session)  # it may have a jar of this package already
    parent = None if shared is None else shared.getParent()
    parent = parent or gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()

    def difference(jar: str) -> str:
        urls = gateway.new_array(gateway.jvm.java.net.URL, 1)
        urls[0] = gateway.jvm.java.io.File(jar).toURI().toURL()
        alone = gateway.jvm.java.net.URLClassLoader(urls, parent)
        try:
            return _difference(gateway, alone)
        finally:
            alone.close()

    return difference


def _difference(gateway: Any, loader: Any) -> str:
    """Return how the Spark of a JVM differs from that of a loader's jar.

    Java calls the method: Py4J takes classes of one name for one class, whoever has loaded them.
    """
    lang = gateway.jvm.java.lang
    kind = lang.Class.forName(_SIGNATURES, True, loader)
    method = kind.getMethod("mismatch", gateway.new_array(lang.Class, 0))
    return str(method.invoke(kind.newInstance(), gateway.new_array(lang.Object, 0)))


def is_loadable(session: Any) -> bool:
    """Return whether the calling thread can load the protocol."""
    return _protocol(session) is not None


def _protocol(session: Any) -> Any:
    """Return the class that the calling thread loads, if it can."""
    from py4j.protocol import Py4JJavaError

    lang = session._jvm.java.lang
    loader = lang.Thread.currentThread().getContextClassLoader()
    try:
        return lang.Class.forName(PROTOCOL, False, loader)
    except Py4JJavaError:
        return None


def _added(session: Any) -> Any:
    """Add the jar to the class loader of all threads, and return the class."""
    jar = fitting_jar(running_spark(session), difference_in(session))
    loader = _shared_loader(session)
    if loader is None:
        raise UnsupportedError(
            "this JVM was not started by spark-submit or pyspark, so classes cannot be added "
            f"to all of its threads: start it with {jar} on its class path (--jars, or "
            "spark.driver.extraClassPath and spark.executor.extraClassPath)"
        )
    loader.addURL(session._jvm.java.io.File(jar).toURI().toURL())
    return session._jvm.java.lang.Class.forName(PROTOCOL, False, loader)


def _shared_loader(session: Any) -> Any:
    """Return the class loader that all threads inherit, if it takes jars.

    spark-submit makes it before anything else runs. That of ``ADD JAR``, below it, is only set in
    the threads that have added a jar.
    """
    own = session._jsparkSession.sharedState().jarClassLoader()
    kind = session._jvm.java.lang.Class.forName(_SHARED, False, own)
    loader = session._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    found = None
    while loader is not None:
        if kind.isInstance(loader) and not loader.equals(own):
            found = loader
        loader = loader.getParent()
    return found

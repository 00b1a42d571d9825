"""The loading of the jar into a running Spark, on driver and executors.

``ADD JAR`` and ``spark.jars`` are not used. The first sets the class loader of the calling thread
alone, and Spark 4 checks the class in the thread that writes; the second does not reach a JVM that
spark-submit has started, and in a builder it replaces what ``--jars`` and ``--packages`` have
brought.
"""

from __future__ import annotations

from typing import Any

from asynccommit.errors import UnsupportedError
from asynccommit.spark.jars import compiled_jar, running_spark

PROTOCOL = "org.asynccommit.spark.AsyncCommitProtocol"
_SHARED = "org.apache.spark.util.MutableURLClassLoader"


def load_jar(session: Any) -> None:
    """Make the protocol loadable in every thread and on every executor.

    Args:
        session: a classic session. Its application's other jars stay as they are.

    Raises ``UnsupportedError`` if this JVM cannot load it, with the flag to start Spark with.
    """
    found = _protocol(session) or _added(session)
    jar = found.getProtectionDomain().getCodeSource().getLocation().toString()
    context = session.sparkContext._jsc.sc()
    names = {each.rpartition("/")[2] for each in context.listJars().mkString("\n").split("\n")}
    if jar.rpartition("/")[2] not in names:
        context.addJar(jar)


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
    jar = compiled_jar(running_spark(session))
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

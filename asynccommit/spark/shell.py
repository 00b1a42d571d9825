"""A JVM for the command, which has no Spark session."""

from __future__ import annotations

from importlib.util import find_spec

from asynccommit.errors import UnsupportedError
from asynccommit.stores.elsewhere import STORE_OPTION

_CONF = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def start_jvm(wanted: str = f"{STORE_OPTION}=jvm") -> None:
    """Start a local Spark session, whose JVM opens filesystems from now on.

    Classes and configuration are those of Spark on this machine: ``spark-defaults.conf`` in
    ``SPARK_CONF_DIR``, and ``HADOOP_CONF_DIR``. Raises ``UnsupportedError``, whose text begins with
    ``wanted``, the option that needs it.
    """
    if find_spec("pyspark") is None:
        raise UnsupportedError(f"{wanted} needs PySpark and Java: pip install 'asynccommit[spark]'")
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from asynccommit.spark import configure

    builder = SparkSession.builder.master("local[1]").appName("asynccommit")
    for key, value in _CONF.items():
        builder = builder.config(key, value)
    try:
        configure(builder).getOrCreate()
    except (PySparkException, OSError, RuntimeError) as error:
        raise UnsupportedError(f"{wanted}: no JVM could be started: {error}") from error

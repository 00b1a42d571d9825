"""Settings of Spark that load this package before a program begins."""

from __future__ import annotations

import re
import shlex
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from asynccommit.errors import OptionError
from asynccommit.spark.clients import CLIENT_KEYS, client_settings, hadoop_beside
from asynccommit.spark.jars import difference_on_disk, fitting_jar, installed_spark
from asynccommit.spark.loading import PROTOCOL, STREAM_GUARD, STREAM_PROTOCOL
from asynccommit.spark.sessions import CLASS_KEY, STREAM_KEY, default_setting

JARS = "spark.jars"
EXTENSIONS = "spark.sql.extensions"
DRIVER = "spark.pyspark.driver.python"
ENGINE = "spark.asynccommit.python"

_OURS = re.compile(r"asynccommit-[^/]*\.jar")
_PLAIN = re.compile(r"[\w/.+@-]+")


@dataclass(frozen=True, slots=True)
class SparkConf:
    """Settings for one Spark.

    Attributes:
        spark: its version.
        jar: the path of the jar.
        settings: what spark-submit is to be given.
    """

    spark: str
    jar: str
    settings: Mapping[str, str]

    def defaults(self) -> str:
        """Return lines of spark-defaults.conf, in the format of Java's properties."""
        width = max(map(len, self.settings))
        escaped = {key: value.replace("\\", r"\\") for key, value in self.settings.items()}
        return "\n".join(f"{key:<{width}} {value}" for key, value in escaped.items())

    def flags(self) -> str:
        """Return the flags of spark-submit, for a shell."""
        said = (shlex.quote(f"{key}={value}") for key, value in self.settings.items())
        return " ".join(f"--conf {each}" for each in said)


def settings_for(
    home: Path | None = None, stores: Sequence[str] = (), *, streams: bool = False
) -> SparkConf:
    """Return the settings for a Spark; compile its jar if needed.

    Jars and packages of its spark-defaults.conf are kept.

    Args:
        home: the directory of Spark; by default the one that PySpark starts.
        stores: schemes whose Hadoop client tasks need, as for ``configure``.
        streams: commit the batches of Spark's streaming file sink, too, as for ``configure``.

    Raises:
        UnsupportedError: there is no Spark, no Java, or the jar does not compile.
        OptionError: a scheme has no known client, or a setting cannot be written in a line.
    """
    spark = installed_spark(home)
    jar = fitting_jar(spark, difference_on_disk(spark))
    before = {key: default_setting(key, home) for key in (JARS, EXTENSIONS, *CLIENT_KEYS)}
    others = [each for each in before[JARS].split(",") if each and not _is_ours(each)]
    settings = {JARS: ",".join([*others, _place(jar)]), CLASS_KEY: PROTOCOL}
    if streams:
        known = [each for each in before[EXTENSIONS].split(",") if each not in ("", STREAM_GUARD)]
        settings |= {STREAM_KEY: STREAM_PROTOCOL, EXTENSIONS: ",".join([*known, STREAM_GUARD])}
    if stores:
        settings |= client_settings(stores, hadoop_beside(spark), before)
    launcher = Path(sysconfig.get_path("scripts"), "asynccommit-python")
    if launcher.is_file():
        settings[DRIVER] = str(launcher)
    else:  # a zip of the package has none
        settings[ENGINE] = sys.executable
    if any(not value.isprintable() for value in settings.values()):
        raise OptionError(f"a path has a character that no setting can have: {settings}")
    return SparkConf(spark.version, jar, settings)


def _is_ours(jar: str) -> bool:
    return _OURS.fullmatch(jar.rpartition("/")[2]) is not None


def _place(path: str) -> str:
    """Return a path for a list of jars, in which Spark looks for URLs."""
    return path if _PLAIN.fullmatch(path) else Path(path).as_uri()

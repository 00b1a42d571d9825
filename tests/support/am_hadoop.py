"""Hadoop's own application master, as far as it decides what to do when it starts."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asynccommit.demo.hadoop_jars import cached_jar, hadoop_version
from asynccommit.errors import UnsupportedError
from asynccommit.mapreduce.markers import Action
from tests.support.hadoop import Hadoop, HadoopError, jars, java_command

JOB = "job_1700000000000_0007"
_CLUSTER, _NUMBER = 1_700_000_000_000, 7
_RECORDS = "org.apache.hadoop.yarn.api.records"


def app_jar() -> Path:
    """Return the jar with the application master of PySpark's Hadoop, fetched if need be.

    Raises ``UnsupportedError`` that says what is missing.
    """
    name = "hadoop-mapreduce-client-app"
    version = hadoop_version()
    return cached_jar(f"org.apache.hadoop:{name}:{version}", f"{name}-{version}.jar")


@functools.cache
def why_not() -> str | None:
    """Return why there is no application master to test with, or ``None`` if there is one."""
    if java_command() is None or jars() is None:
        return "needs java and pyspark"
    try:
        app_jar()
    except UnsupportedError as error:
        return str(error)
    return None


@contextmanager
def start_app_master() -> Iterator[Hadoop]:
    """Run a JVM that has Hadoop's application master."""
    path = f"{jars()}{os.pathsep}{app_jar()}"
    with Hadoop.start("-cp", path, "-XX:TieredStopAtLevel=1", "-Xmx256m") as hadoop:
        yield hadoop


@dataclass(frozen=True)
class Started:
    """What an application master has decided.

    Attributes:
        action: what it does.
        is_last: it takes itself for the last attempt.
        said: what it says of that.
    """

    action: Action
    is_last: bool
    said: str


def user_of(hadoop: Hadoop) -> str:
    """Return whose directories it looks at."""
    users = hadoop.java("org.apache.hadoop.security.UserGroupInformation")
    return str(users.getCurrentUser().getShortUserName())


def job_configuration(hadoop: Hadoop, root: Path, version: str) -> Any:
    """Return the configuration of a job by FileOutputCommitter, staged below ``root``."""
    conf = hadoop.configuration(
        {
            "yarn.app.mapreduce.am.staging-dir": str(root),
            "fs.defaultFS": "file:///",
            "mapreduce.job.name": "nightly load",
            "mapreduce.output.fileoutputformat.outputdir": f"file:{root}/out",
            "mapreduce.fileoutputcommitter.algorithm.version": version,
            "mapred.mapper.new-api": "true",
            "mapreduce.job.reduces": "0",
        }
    )
    return hadoop.new("org.apache.hadoop.mapred.JobConf", conf)


def start(hadoop: Hadoop, conf: Any, attempt: int = 2) -> Started:
    """Let an application master start, as far as it can without YARN, and say what it has decided.

    It decides first; then it misses servers that PySpark does not bring.
    """
    application = hadoop.java(f"{_RECORDS}.ApplicationId").newInstance(_CLUSTER, _NUMBER)
    which = hadoop.java(f"{_RECORDS}.ApplicationAttemptId").newInstance(application, attempt)
    container = hadoop.java(f"{_RECORDS}.ContainerId").newContainerId(which, 1)
    name = "org.apache.hadoop.mapreduce.v2.app.MRAppMaster"
    master = hadoop.new(name, which, container, "localhost", 1, 2, _CLUSTER)
    before = _started(hadoop, conf)
    with suppress(HadoopError), hadoop.errors():
        master.init(conf)
    forced = _field(master, "forcedState")
    if forced is not None:
        action = Action(forced.lower())
    else:
        assert _field(master, "committer") is not None  # it has come to that it will commit
        action = Action.REPEAT if before and not _started(hadoop, conf) else Action.RUN
    last, said = _field(master, "isLastAMRetry"), _field(master, "shutDownMessage")
    return Started(action, last == "True", said or "")


def _started(hadoop: Hadoop, conf: Any) -> bool:
    job = hadoop.new("org.apache.hadoop.mapreduce.JobID", str(_CLUSTER), _NUMBER)
    known = hadoop.java("org.apache.hadoop.mapreduce.TypeConverter").toYarn(job)
    names = hadoop.java("org.apache.hadoop.mapreduce.v2.util.MRApps")
    path = names.getStartJobCommitFile(conf, user_of(hadoop), known)
    return Path(str(path.toUri().getPath())).exists()


def _field(master: Any, name: str) -> str | None:
    field = master.getClass().getDeclaredField(name)
    field.setAccessible(True)
    value = field.get(master)
    return None if value is None else str(value)

"""Starts on YARN: a driver here, and drivers in a container with the Python of an archive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.field import programs
from tests.field.environments import packed_environment
from tests.field.place import MissingError, Place, StartError
from tests.field.programs import CHECK, FINISH
from tests.field.starts import Start
from tests.support import mini_yarn
from tests.support.class_data import SHORT_LIVED
from tests.support.mini_yarn import MiniYarn, start_mini_yarn

YARN = "yarn"
_PYTHON, _LAUNCHER = "./environment/bin/python", "./environment/bin/asynccommit-python"
_SETTINGS = {
    "spark.driver.memory": "700m",
    "spark.executor.memory": "600m",
    "spark.executor.instances": "1",
    "spark.executor.cores": "2",
    "spark.yarn.am.memory": "300m",
    "spark.yarn.am.extraJavaOptions": SHORT_LIVED,
}
_CONTAINER = ("spark.driver.host", "spark.driver.bindAddress")  # those of this machine's driver
LEAVE = """
import os

kind = spark._jvm.org.apache.hadoop.fs.Path
files = kind("found.json").getFileSystem(spark._jsc.hadoopConfiguration())
files.copyFromLocalFile(kind("file:" + os.path.abspath("found.json")), kind("found.json"))
"""


def client(place: Place) -> str:
    """Submit with the driver here."""
    with _cluster(place) as yarn:
        app = place.write(programs.example() + CHECK + FINISH)
        return submit(place, yarn, "client", app)


def cluster(place: Place) -> str:
    """Submit with the driver in a container, where an archive brings Python and this package."""
    with _cluster(place) as yarn:
        in_container(place)
        app = place.write(programs.example() + CHECK + FINISH + LEAVE)
        return submit(place, yarn, "cluster", app)


def settings(place: Place) -> str:
    """Submit a program without a call to a container, with the archive's ``asynccommit-python``."""
    with _cluster(place) as yarn:
        in_container(place, _LAUNCHER)
        app = place.write(programs.example_without_call() + CHECK + FINISH + LEAVE)
        printed = place.python("-m", "asynccommit", "spark-conf")
        lines = [line for line in printed.splitlines() if "driver.python" not in line]
        with (place.folder / "conf/spark-defaults.conf").open("a", encoding="utf-8") as file:
            file.write("\n".join([*lines, ""]))
        return submit(place, yarn, "cluster", app)


@contextmanager
def _cluster(place: Place) -> Iterator[MiniYarn]:
    if reason := mini_yarn.why_not():
        raise MissingError(reason)
    folder = place.folder / "cluster"
    folder.mkdir()
    with start_mini_yarn(folder, "-Xmx512m", *SHORT_LIVED.split()) as yarn:
        on_yarn(place, yarn)
        yield yarn
        _fetch(place, yarn)


def on_yarn(place: Place, yarn: MiniYarn) -> None:
    """Have applications run on a cluster."""
    place.settings |= _SETTINGS
    place.settings["spark.yarn.jars"] = f"local:{_spark(place)}/jars/*"
    place.variables["HADOOP_CONF_DIR"] = str(yarn.conf_dir)


def _spark(place: Place) -> Path:
    """Return the directory of Spark, which the machines of this cluster have."""
    return next(place.environment.programs.parent.glob("lib/python*/site-packages/pyspark"))


def in_container(place: Place, python: str = _PYTHON) -> None:
    """Have the driver run in a container, with a Python of the archive."""
    for name in _CONTAINER:
        del place.settings[name]
    place.settings.setdefault("spark.driver.extraJavaOptions", SHORT_LIVED)
    place.settings |= {
        "spark.archives": f"{packed_environment()}#environment",
        "spark.files": ",".join(str(place.folder / name) for name in ("checks.py", "given.json")),
        "spark.pyspark.driver.python": python,
        "spark.pyspark.python": _PYTHON,
    }


def submit(place: Place, yarn: MiniYarn, mode: str, *words: str) -> str:
    """Return the output of the program and of all containers."""
    try:
        said = place.run("spark-submit", "--master", YARN, "--deploy-mode", mode, *words)
    except StartError as error:
        raise type(error)(f"{error}\n{yarn.written('stderr')}") from error
    return said + yarn.written("stdout")


def _fetch(place: Place, yarn: MiniYarn) -> None:
    """Copy what the program has left in its home directory."""
    files, hadoop = yarn.hdfs.filesystem, yarn.hdfs.hadoop
    for each in files.listStatus(files.getHomeDirectory()):
        name = str(each.getPath().getName())
        if not name.startswith("."):
            with hadoop.errors():
                here = hadoop.path(str(place.folder / name))
                files.copyToLocalFile(False, each.getPath(), here, True)


YARN_STARTS = {
    "client": Start(client, "`spark-submit app.py`"),
    "cluster": Start(cluster, "`spark-submit --deploy-mode cluster --archives app.py`"),
    "cluster-settings": Start(
        settings, "the same, settings of `asynccommit spark-conf`, a program without a call"
    ),
}

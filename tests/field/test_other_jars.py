"""Jars of another version, and a Spark with other signatures, in the driver or in executors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.field.belongings import jars
from tests.field.cells import CLUSTER, LOCAL, TIMEOUT
from tests.field.effects import rows
from tests.field.environments import environment, installed_line
from tests.field.place import PROTOCOL, Place, options_of
from tests.support.other_sparks import COMPILES, jar_of_another_version, jar_of_changes
from tests.support.spark import leftovers

pytestmark = [pytest.mark.full, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]

BEGIN = """\
import json
from pathlib import Path

from pyspark.sql import SparkSession

import asynccommit.spark

spark = SparkSession.builder.appName("flights").getOrCreate()
frame = spark.range(5)
said = []


def refused(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:
        said.append(str(error))


def write():
    frame.write.mode("append").parquet("flights")


"""
END = 'Path("said.json").write_text(json.dumps(said))\n'
OLDER_JAR = """\
from asynccommit.spark import sessions
from asynccommit.spark.bridge import BRIDGE

refused(asynccommit.spark.configure, spark)
sessions.register(spark.sparkContext._gateway)
refused(write)


def older_python(request):
    done = json.loads(BRIDGE.apply(json.dumps({**json.loads(request), "build": None})))
    return json.dumps({"ok": True})


sessions.register(spark.sparkContext._gateway, older_python)
refused(write)
"""
OTHER_EXECUTORS = """\
asynccommit.spark.configure(spark)
refused(write)
"""


def said_by(place: Place, program: str, settings: dict[str, str]) -> list[str]:
    """Submit a program; return what it was told."""
    app = place.write(BEGIN + program + END)
    place.run("spark-submit", "--master", place.master, *options_of(settings), app)
    told: list[str] = json.loads((place.folder / "said.json").read_text("utf-8"))
    return told


@pytest.mark.every(3)
def test_jar_of_another_version_is_refused(tmp_path: Path) -> None:
    """By ``configure``, by Python at the set-up, and by the jar if Python is the older one."""
    (tmp_path / "parts").mkdir()
    older = jar_of_another_version(tmp_path / "parts")
    place = Place(tmp_path, environment(installed_line()), LOCAL, jars(), TIMEOUT)
    settings = {"spark.jars": str(older), "spark.sql.sources.commitProtocolClass": PROTOCOL}

    said = said_by(place, OLDER_JAR, settings)

    first, second, third = said
    for text in (first, second):
        assert "the jar of this session is of asynccommit 0.0.9" in text
    assert "the jar of this session is of asynccommit 0.0.9" in third
    assert "its Python has another" in third
    assert not (tmp_path / "flights").exists()


@pytest.mark.every(3)
@pytest.mark.parametrize("where", ["driver", "everywhere"])
def test_signatures_of_driver_and_executors_are_compared(tmp_path: Path, where: str) -> None:
    """A vendor's Spark is committed by a jar of its own; executors with another refuse by name."""
    (tmp_path / "parts").mkdir()
    changed = str(jar_of_changes(tmp_path / "parts", COMPILES))
    place = Place(tmp_path, environment(installed_line()), CLUSTER, jars(), TIMEOUT)
    place.variables["XDG_CACHE_HOME"] = str(tmp_path / "cache")  # jars of no other test
    settings = {"spark.driver.extraClassPath": changed}
    if where == "everywhere":
        settings["spark.executor.extraClassPath"] = changed

    said = said_by(place, OTHER_EXECUTORS, settings)

    if where == "everywhere":
        assert said == []
        assert [row["id"] for row in rows(tmp_path / "flights")] == [*range(5)]
        return
    assert "this executor has another Spark than the driver" in said[0]
    assert "QueryExecutionException.<init>" in said[0]
    assert leftovers(tmp_path / "flights") == []

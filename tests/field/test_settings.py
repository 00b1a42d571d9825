"""Settings without a usable engine: writes are refused, and the call in the error mends it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from asynccommit.spark.settings import DRIVER, ENGINE
from tests.field.belongings import jars
from tests.field.cells import LOCAL, TIMEOUT
from tests.field.effects import rows
from tests.field.environments import environment, installed_line
from tests.field.place import Place
from tests.support.spark import leftovers

PROGRAM = """\
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("flights").getOrCreate()
frame = spark.range(5)
said = []
for mode in ("errorifexists", "append", "overwrite"):
    try:
        frame.write.mode(mode).parquet("new" if mode == "errorifexists" else "kept")
    except Exception as error:
        said.append(str(error))

import json
from pathlib import Path

import asynccommit.spark

left = [path.as_posix() for path in Path("new").rglob("*")]
asynccommit.spark.configure(spark)
frame.write.mode("append").parquet("kept")
Path("said.json").write_text(json.dumps([said, left]))
"""


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_settings_without_an_engine_refuse_each_write(tmp_path: Path) -> None:
    """Nothing is written or replaced in any mode, until the call of the error is made."""
    place = Place(tmp_path, environment(installed_line()), LOCAL, jars(), TIMEOUT)
    app = place.write(PROGRAM)
    flags = shlex.split(place.python("-m", "asynccommit", "spark-conf", "--flags"))
    said = [flag for flag in flags[1::2] if not flag.startswith((DRIVER, ENGINE))]
    said.append(f"{ENGINE}=/nowhere/python")

    conf = (part for each in said for part in ("--conf", each))
    place.run("spark-submit", "--master", LOCAL, *conf, app)

    told, left = json.loads((tmp_path / "said.json").read_text("utf-8"))
    assert len(told) == 3
    for text in told:
        assert "this one was not begun: /nowhere/python (spark.asynccommit.python)" in text
        assert "Set spark.asynccommit.python when Spark is started" in text
        assert "call asynccommit.spark.configure(spark)" in text
    assert left == []
    assert [row["id"] for row in rows(tmp_path / "kept")] == [*range(5)]
    assert leftovers(tmp_path / "kept") == []

"""Settings without an engine: the write is refused, and the call that the error names mends it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from asynccommit.spark.settings import DRIVER
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


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_settings_without_an_engine_refuse_each_write(tmp_path: Path) -> None:
    """Nothing is written or replaced in any mode, until the call of the error is made."""
    place = Place(tmp_path, environment(installed_line()), LOCAL, jars(), TIMEOUT)
    app = place.write(PROGRAM)
    flags = shlex.split(place.python("-m", "asynccommit", "spark-conf", "--flags"))
    pairs = [pair for pair in zip(flags[::2], flags[1::2], strict=True) if DRIVER not in pair[1]]
    assert pairs[0][0] == "--conf"

    place.run("spark-submit", "--master", LOCAL, *(part for pair in pairs for part in pair), app)

    said, left = json.loads((tmp_path / "said.json").read_text("utf-8"))
    assert len(said) == 3
    for text in said:
        assert "this one was not begun: call asynccommit.spark.configure(spark)" in text
    assert left == []
    assert [row["id"] for row in rows(tmp_path / "kept")] == [*range(5)]
    assert leftovers(tmp_path / "kept") == []

"""Spark's file sink in a driver that asks for nothing: the settings of ``spark-conf --streams``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asynccommit.spark.settings import settings_for
from tests.support.spark import run_script

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(300)]
SCRIPT = """
import json

made = builder(scratch)
for key, value in json.loads((scratch / "settings.json").read_text()).items():
    made = made.config(key, value)
spark = made.getOrCreate()
told = {}


def run(checkpoint, number):
    (scratch / "source").mkdir(exist_ok=True)
    (scratch / "source" / f"{number}.json").write_text(json.dumps({"id": number}))
    rows = spark.readStream.schema("id long").json(str(scratch / "source"))
    writer = rows.writeStream.format("parquet").queryName(checkpoint).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(scratch / checkpoint))
    writer.start(str(scratch / "table")).awaitTermination()


run("first", 0)
run("first", 1)
try:
    run("second", 2)
except Exception as error:
    told["second"] = str(error)
run("first", 3)
told["rows"] = sorted(row.id for row in spark.read.parquet(str(scratch / "table")).collect())
(scratch / "told.json").write_text(json.dumps(told))
spark.stop()
"""


def test_driver_without_a_call(tmp_path: Path) -> None:
    """A child of the JVM answers, and a second query is refused before Spark drops its batch."""
    (tmp_path / "settings.json").write_text(json.dumps(dict(settings_for(streams=True).settings)))

    done = run_script(tmp_path, SCRIPT, timeout=280)

    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads((tmp_path / "told.json").read_text())
    assert "belongs to query 'first'" in told["second"]
    assert told["rows"] == [0, 1, 2, 3]
    assert list((tmp_path / "table").glob("part-*"))

"""The Python Data Source through Spark Connect, in a process of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from asynccommit.formats.success import decode_success
from tests.support.spark import LOOPBACK, run_python, settles, visible

pytest.importorskip("pyspark.sql.datasource")

PROGRAM = f"""
import os, sys
from pyspark.sql import SparkSession
from asynccommit.spark import register_data_source

scratch = sys.argv[1]
builder = SparkSession.builder.remote("local[2]")
for key, value in {{
    "spark.driver.host": "{LOOPBACK}",
    "spark.driver.bindAddress": "{LOOPBACK}",
    "spark.ui.enabled": "false",
    "spark.sql.warehouse.dir": f"{{scratch}}/warehouse",
    "spark.local.dir": f"{{scratch}}/local",
    "spark.connect.grpc.binding.address": "{LOOPBACK}",
}}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
register_data_source(spark)

table = f"{{scratch}}/a b/t"
frame = spark.range(100).selectExpr("id", "id % 3 as p", "map('k', array(id)) as m").repartition(2)

def save(frame, mode, **options):
    writer = frame.write.format("asynccommit").mode(mode).option("partition_by", "p")
    writer.options(**options).save(table)

save(frame, "append")
one = spark.range(1000, 1010).selectExpr("id", "1L as p", "map('k', array(id)) as m")
save(one, "overwrite", partitionOverwriteMode="dynamic")
print("rows", spark.read.parquet(table).count())
try:
    save(spark.sql("select 1 id, 1 p, parse_json('{{}}') v"), "append")
except Exception as error:
    print("refused", "column 'v' of type variant" in str(error))

reading = spark.readStream.schema(frame.schema).parquet(table)
writing = reading.writeStream.format("asynccommit").option("path", f"{{scratch}}/s")
query = writing.option("checkpointLocation", f"{{scratch}}/c").trigger(availableNow=True).start()
query.awaitTermination(60)
print("streamed", spark.read.parquet(f"{{scratch}}/s").count())
spark.stop()
"""


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_spark_connect(tmp_path: Path) -> None:
    """A client of Spark Connect writes tables and streams, and reads them back."""
    pytest.importorskip("grpc")
    pytest.importorskip("zstandard")
    path = os.pathsep.join(filter(None, sys.path))

    ended = run_python("-W", "ignore", "-c", PROGRAM, str(tmp_path), timeout=280, PYTHONPATH=path)

    printed = [line for line in ended.stdout.splitlines() if line[:1] in "rs"]
    assert printed == ["rows 77", "refused True", "streamed 77"], ended.stderr[-4000:]
    table = tmp_path / "a b" / "t"
    assert len(visible(table)) >= 3
    assert settles(table)
    marker = decode_success((table / "_SUCCESS").read_bytes(), "_SUCCESS")
    assert marker.success

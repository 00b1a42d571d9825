"""Hadoop's own client of Google Cloud Storage, loaded by ``stores``: tasks write by it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from asynccommit.formats.success import COMMITTER, decode_success
from asynccommit.testing.models.gcs.model import BucketOptions
from tests.field.belongings import make_repository
from tests.support.gcp_hadoop import client_jar, coordinates, in_place_of_google, why_not
from tests.support.gcs_hadoop import Bucket
from tests.support.spark import run_script

pytestmark = [pytest.mark.every(3, 2), pytest.mark.spark, pytest.mark.full]

BUCKETS = {"flat": BucketOptions(), "hns": BucketOptions(hns=True)}
WHOLE = list(range(20))
SCRIPT = """
import json

given = json.loads((scratch / "given.json").read_text())
made = builder(scratch)
for key, value in given["conf"].items():
    made.config(key, value)
made = configure(made, hadoop_clients=["gs"], storage_options=given["storage_options"])
spark = made.getOrCreate()
configure(spark, hadoop_clients=["gs"])
frame = spark.range(20).selectExpr("id", "id % 3 as p", "cast(id as string) as s").repartition(2)
bad = frame.selectExpr("id", "p", "cast(assert_true(id < 15, 'boom') as string) as s")
told = {}
for bucket in given["buckets"]:
    table = f"gs://{bucket}/ta ble"
    frame.write.partitionBy("p").parquet(table)
    one = frame.where("p = 1").selectExpr("id + 100 as id", "p", "s")
    one.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy(
        "p"
    ).parquet(table)
    try:
        bad.write.partitionBy("p").parquet(f"gs://{bucket}/failed")
    except Exception as error:
        failed = str(error)
    ids = sorted(row.id for row in spark.read.parquet(table).collect())
    told[bucket] = {"ids": ids, "files": reports()[-1].files, "failed": failed}
kind = spark._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(
    "gs", spark._jsparkSession.sessionState().newHadoopConf()
)
(scratch / "told.json").write_text(json.dumps({**told, "class": kind.getName()}))
spark.stop()
"""


@dataclass(frozen=True)
class Ran:
    """The driver program after its end: its words, and both buckets."""

    told: Mapping[str, Any]
    buckets: Mapping[str, Bucket]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """Run the driver program; skips where there is no client."""
    if reason := why_not():
        pytest.skip(reason)
    scratch = tmp_path_factory.mktemp("gcp")
    with in_place_of_google(scratch, buckets=BUCKETS) as google:
        Bucket(google.emulator, "flat").strike(kind="cut", op="move", path="/ta ble/", every=3)
        ivy = make_repository(scratch, {coordinates(): client_jar()})
        conf = {"spark.jars.ivySettings": str(ivy), "spark.jars.ivy": str(scratch / "ivy")}
        given = {
            "conf": {**google.conf, **conf},
            "storage_options": google.storage_options,
            "buckets": list(BUCKETS),
        }
        (scratch / "given.json").write_text(json.dumps(given))
        done = run_script(scratch, SCRIPT, timeout=200)
        assert done.returncode == 0, done.stderr[-4000:]
        told = json.loads((scratch / "told.json").read_text())
        yield Ran(told, {name: Bucket(google.emulator, name) for name in BUCKETS})


@pytest.mark.parametrize("name", BUCKETS)
def test_write(ran: Ran, name: str) -> None:
    """A table is written, replaced in part and read back whole, in a bucket of either kind."""
    bucket = ran.buckets[name]
    tree = bucket.tree("/ta ble/")
    visible = [path for path in tree if not re.search(r"(^|/)[_.]", path)]

    assert ran.told["class"] == "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem"
    assert ran.told[name]["ids"] == sorted(i + 100 if i % 3 == 1 else i for i in WHOLE)
    assert ran.told[name]["files"] == len([path for path in visible if path.startswith("p=1/")])
    assert {path.split("/")[0] for path in visible} == {"p=0", "p=1", "p=2"}
    assert decode_success(tree["_SUCCESS"], "_SUCCESS").committer == COMMITTER
    assert [path for path in tree if re.search(r"(^|/)(_temporary|\.)", path)] == []


def test_lost_responses(ran: Ran) -> None:
    """Moves whose responses were lost cost requests only."""
    assert ran.buckets["flat"].struck("cut move") >= 2


@pytest.mark.parametrize("name", BUCKETS)
def test_job_that_fails(ran: Ran, name: str) -> None:
    """It leaves no file, no marker and no directory of its own."""
    assert "boom" in ran.told[name]["failed"]
    assert ran.buckets[name].tree("/failed/") == {}

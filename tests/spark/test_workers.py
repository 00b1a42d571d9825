"""A table on ADLS whose files Spark's executors rename, one of which is killed on the way."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from asynccommit.demo.adls import client_jar
from asynccommit.testing import AdlsEmulator, Climate, running_emulator
from tests.support.abfs import conf_of, why_not
from tests.support.spark import cluster, run_script

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.every(4), pytest.mark.timeout(900)]

FILES = 120
_SLOW = {"latency": {"model": "lognormal", "median": 0.05, "sigma": 0.3}}
DRIVER = """
import json
import threading
import time

import psutil

from asynccommit.commit.planning import plan_file
from asynccommit.runners.spark import SparkWorkers
from asynccommit.spark import reports

plan_file.CHUNK_ROWS = 20
given = json.loads((scratch / "given.json").read_text())
made = builder(scratch, given["master"]).config("spark.jars", given["jar"])
made.config("spark.executor.memory", "512m")
for key, value in {**given["conf"], "asynccommit.workers": given["workers"]}.items():
    made.config(f"spark.hadoop.{key}", value)
spark = configure(made).getOrCreate()
killed, jobs = [], []
collect = SparkWorkers._collect


def struck(self, parcel, group):
    if parcel.piece:
        jobs.append(group)
    if len(jobs) == 3 and given["kill"] and not killed:
        killed.append(0)
        threading.Timer(1.0, kill).start()
    return collect(self, parcel, group)


def kill():
    mine = spark.sparkContext.applicationId
    for each in psutil.process_iter(["cmdline"]):
        words = each.info["cmdline"] or []
        if mine in words and any("CoarseGrainedExecutorBackend" in word for word in words):
            killed[0] = each.pid
            each.kill()
            return


SparkWorkers._collect = struck
frame = spark.range(0, 240, 1, 2).selectExpr("id", "id % 60 as p")
frame.write.partitionBy("p").parquet(given["root"])
[report] = reports()
told = {
    "files": report.files,
    "warnings": list(report.warnings),
    "ids": spark.read.parquet(given["root"]).count(),
    "killed": killed,
    "jobs": len(jobs),
}
(scratch / "told.json").write_text(json.dumps(told))
spark.stop()
"""


def written(scratch: Path, master: str, workers: str, *, kill: bool = False) -> dict[str, Any]:
    """Write a table with Spark; return what its driver told."""
    if reason := why_not():
        pytest.skip(reason)
    with running_emulator(filesystems=["data"]) as emulator:
        if kill:
            emulator.do(partial(_set_climate, Climate.from_json(_SLOW)))
        given = {
            "root": f"abfs://data@{emulator.account}.dfs.core.windows.net/table",
            "jar": str(client_jar()),
            "conf": conf_of(emulator),
            "master": master,
            "workers": workers,
            "kill": kill,
        }
        (scratch / "given.json").write_text(json.dumps(given))
        done = run_script(scratch, DRIVER, timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
        told: dict[str, Any] = json.loads((scratch / "told.json").read_text())
        return told


def _set_climate(climate: Climate, emulator: AdlsEmulator) -> None:
    emulator.weather.climate = climate


def test_an_executor_that_is_killed_is_replaced(tmp_path: Path) -> None:
    """Spark or the driver gives its slice to another one, and the table has each row once."""
    with cluster(tmp_path) as master:
        told = written(tmp_path, master, "spark", kill=True)

    assert [type(pid) for pid in told["killed"]] == [int]
    assert told["killed"] != [0]
    assert told["jobs"] >= FILES // 20
    assert (told["files"], told["ids"], told["warnings"]) == (FILES, 240, [])


def test_spark_in_one_process_is_told(tmp_path: Path) -> None:
    """There are no executors beside the driver, which goes on alone."""
    told = written(tmp_path, "local[2]", "spark")

    assert (told["files"], told["ids"], told["jobs"]) == (FILES, 240, 0)
    [warning] = told["warnings"]
    why = "Spark runs in one process: name processes instead"
    assert warning == f"asynccommit.workers=spark: {why}; this process moves all files"

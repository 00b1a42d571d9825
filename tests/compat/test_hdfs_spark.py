"""Stock Spark on a real NameNode: Hadoop's client writes, this package commits."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from asynccommit.formats.success import COMMITTER, decode_success
from tests.crash_real.processes import environment
from tests.support.mini_hdfs import MiniHdfs
from tests.support.spark import run_script

pytestmark = [pytest.mark.every(3, 0), pytest.mark.jvm, pytest.mark.full, pytest.mark.timeout(300)]

_numbers = count()
CONFIGURED = """
import json

root = (scratch / "root").read_text()
spark = configure(builder(scratch), schemes=["file", "hdfs"]).getOrCreate()
frame = spark.range(20).selectExpr("id", "id % 3 as p", "cast(id as string) as s").repartition(2)
"""
SCRIPT = """
told = {}


def write(name, what=frame, mode="errorifexists", kind="parquet", **options):
    before, error = len(reports()), None
    try:
        writer = what.write.mode(mode).options(**options).partitionBy("p").format(kind)
        writer.save(f"{root}/{name}")
    except Exception as raised:
        error = str(raised)
    told.setdefault(name, []).append([error, [report.files for report in reports()[before:]]])


def read(name, kind="parquet"):
    rows = spark.read.format(kind).schema("id long, s string, p int").load(f"{root}/{name}")
    told[name].append(sorted(row.id for row in rows.collect()))


for kind in ("parquet", "csv", "json", "orc"):
    write(kind, kind=kind)
    read(kind, kind)
write("overwritten")
write("overwritten", frame.where("id < 3"), "overwrite")
read("overwritten")
write("dynamic")
one = frame.where("p = 1").selectExpr("id + 100 as id", "p", "s")
write("dynamic", one, "overwrite", partitionOverwriteMode="dynamic")
read("dynamic")
write("appended")
write("appended", frame.selectExpr("id + 100 as id", "p", "s"), "append")
write("appended", frame.selectExpr("id", "p", "assert_true(id < 15, 'boom') as s"), "append")
read("appended")
(scratch / "told.json").write_text(json.dumps(told))
spark.stop()
"""
KILLED = """
after_renames(2, lambda: os.kill(os.getpid(), signal.SIGKILL))
frame.write.partitionBy("p").parquet(f"{root}/killed")
"""
READ = """
rows = spark.read.parquet(f"{root}/killed").collect()
(scratch / "ids").write_text(json.dumps(sorted(row.id for row in rows)))
"""
ALL = list(range(20))


@pytest.fixture
def root(hdfs: MiniHdfs, tmp_path: Path) -> str:
    """Return the URL of a directory of this test's own, which the program is told."""
    url = f"{hdfs.url}/spark-{next(_numbers)}"
    (tmp_path / "root").write_text(url)
    return url


def test_writes_are_committed_here(hdfs: MiniHdfs, root: str, tmp_path: Path) -> None:
    """All formats and modes: Spark reads what was written, each by a job commit of ours."""
    done = run_script(tmp_path, CONFIGURED + SCRIPT)
    assert done.returncode == 0, done.stderr[-2000:]
    told: dict[str, list[Any]] = json.loads((tmp_path / "told.json").read_text())

    for kind in ("parquet", "csv", "json", "orc"):
        assert told[kind] == [[None, [6]], ALL], kind
    assert told["overwritten"][-1] == [0, 1, 2]
    one = [number for number in ALL if number % 3 == 1]
    assert told["dynamic"][-1] == sorted(set(ALL) - set(one)) + [100 + number for number in one]
    assert "boom" in told["appended"][2][0]
    assert told["appended"][-1] == ALL + [100 + number for number in ALL]
    path = root.removeprefix(hdfs.url)
    marker = decode_success(hdfs.read(f"{path}/parquet/_SUCCESS"), "_SUCCESS")
    assert marker.committer == COMMITTER
    assert not hdfs.exists(f"{path}/appended/_temporary")


def test_killed_driver_is_resumed_by_the_command(hdfs: MiniHdfs, root: str, tmp_path: Path) -> None:
    """After kill -9 in the middle of the renames the command finishes the job, without a JVM."""
    done = run_script(tmp_path, CONFIGURED + KILLED)
    assert done.returncode == -9, done.stderr[-2000:]
    path = f"{root.removeprefix(hdfs.url)}/killed"
    assert not hdfs.exists(f"{path}/_SUCCESS")

    line = [sys.executable, "-m", "asynccommit", "resume", f"{root}/killed", "--json"]
    resumed = subprocess.run(line, capture_output=True, text=True, env=environment(), timeout=120)

    assert resumed.returncode == 0, resumed.stdout
    assert hdfs.exists(f"{path}/_SUCCESS")
    assert not hdfs.exists(f"{path}/_temporary")
    done = run_script(tmp_path, CONFIGURED + READ)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads((tmp_path / "ids").read_text()) == ALL

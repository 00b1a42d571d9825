"""Tasks on s3a that leave files which no job commit would publish, with Hadoop's own committers.

One driver program runs all jobs. A thread of it puts a file into the directory of a task attempt,
by Hadoop's filesystem, while the task waits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from asynccommit.demo.s3 import client_conf, client_jars
from asynccommit.errors import UnsupportedError
from tests.spark.test_s3 import client_of
from tests.support.hadoop import jars, java_command
from tests.support.s3_servers import moto_url, new_bucket
from tests.support.spark import run_script

__all__ = ["moto_url"]
pytestmark = [
    pytest.mark.every(2, 0),
    pytest.mark.full,
    pytest.mark.spark,
    pytest.mark.timeout(300),
]  # the first one waits for Spark

LEFT = [
    ("magic", "_SUCCESS"),
    ("magic", "_temporary/x"),
    ("magic", "__magic/x"),
    ("directory", "_SUCCESS"),
    ("directory", "_temporary/x"),
    ("partitioned", "__magic/x"),
]
SCRIPT = """
import json
import re
import time

from pyspark import TaskContext
from pyspark.sql.functions import udf

given = json.loads((scratch / "given.json").read_text())
made = builder(scratch, "local[2,1]").config("spark.jars", ",".join(given["jars"]))
for key, value in given["conf"].items():
    made.config(f"spark.hadoop.{key}", value)
spark = configure(made).getOrCreate()
root = given["root"]


def wait(number):
    flag = scratch / f"left-{TaskContext.get().taskAttemptId()}"
    for _ in range(600):
        if flag.exists():
            return number
        time.sleep(0.1)
    raise TimeoutError("nobody has left a file")


def leave(where, file, ended):
    paths, conf = spark._jvm.org.apache.hadoop.fs, spark._jsc.hadoopConfiguration()
    pattern = paths.Path(where)
    store, found = pattern.getFileSystem(conf), []
    while not found and not ended.wait(0.1):
        found = list(store.globStatus(pattern) or ())
    for status in found:
        directory = status.getPath()
        out = store.create(paths.Path(directory, file), True)
        out.write(1)
        out.close()
        attempt = re.search(r"attempt_\\w+_(\\d+)", str(directory))[1]
        (scratch / f"left-{attempt}").touch()


def write(name, what, committer, by):
    before, error = len(reports()), None
    try:
        what.write.option("fs.s3a.committer.name", committer).partitionBy(by).parquet(
            f"{root}/{name}"
        )
    except Exception as raised:
        error = str(raised)
    return [error, [report.files for report in reports()[before:]]]


slow = spark.range(0, 1, 1, 1).withColumn("p", udf(wait, "long", useArrow=False)("id"))
told = []
for number, (committer, file) in enumerate(given["left"]):
    where = f"{root}/left{number}/__magic_job-*/job-*/*/tasks/*/__base"
    if committer != "magic":
        where = f"file:{scratch}/buffer/*/_temporary/*/_temporary/attempt_*"
    ended = threading.Event()
    thread = threading.Thread(target=leave, args=(where, file, ended))
    thread.start()
    told.append(write(f"left{number}", slow, committer, "p"))
    ended.set()
    thread.join()
odd = spark.range(3).selectExpr("id", "'1.crc' as `.k`").coalesce(1)
told.append(write("staged", odd, "directory", ".k"))
told.append(write("uploaded", odd, "magic", ".k"))
(scratch / "told.json").write_text(json.dumps(told))
spark.stop()
"""


@pytest.fixture(scope="module")
def program(
    moto_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, str, Any]]:
    """Run the driver program; skips where there is no client."""
    if java_command() is None or jars() is None:
        pytest.skip("needs java and pyspark")
    try:
        found = client_jars()
    except UnsupportedError as error:
        pytest.skip(str(error))
    scratch, bucket = tmp_path_factory.mktemp("names"), new_bucket(moto_url)
    conf = {**client_conf(moto_url), "fs.s3a.buffer.dir": f"{scratch}/buffer"}
    conf["fs.s3a.committer.staging.tmp.path"] = f"file:{scratch}/staging"
    given: Mapping[str, Any] = {
        "jars": list(map(str, found)),
        "conf": conf,
        "root": f"s3a://{bucket}/ta ble%20é",
        "left": LEFT,
    }
    (scratch / "given.json").write_text(json.dumps(given))
    done = run_script(scratch, SCRIPT, timeout=280)
    assert done.returncode == 0, done.stderr[-4000:]
    client = client_of(moto_url)
    yield json.loads((scratch / "told.json").read_text()), bucket, client
    client.close()


def uploads(client: Any, bucket: str, table: str) -> list[str]:
    """Return the keys below a table of uploads that nobody has ended."""
    found = client.list_multipart_uploads(Bucket=bucket).get("Uploads", ())
    return [one["Key"] for one in found if f"/{table}/" in one["Key"]]


def files(client: Any, bucket: str, table: str) -> list[str]:
    """Return the files below a table."""
    found = client.list_objects_v2(Bucket=bucket).get("Contents", ())
    return [one["Key"] for one in found if re.search(f"/{table}/.*[^/]$", one["Key"])]


@pytest.mark.parametrize("number", range(len(LEFT)), ids=map(" ".join, LEFT))
def test_task_that_leaves_a_name_of_the_protocol(
    program: tuple[Any, str, Any], number: int
) -> None:
    """It fails as a task and names the file; of its uploads none stays open."""
    told, bucket, client = program
    (error, reported), table, name = told[number], f"left{number}", LEFT[number][1]

    assert "TASK_WRITE_FAILED" in error
    assert f"/{table}/{name}, which belongs to the commit protocol" in error
    assert "Suppressed" not in error  # an upload that could not be aborted
    assert reported == []
    assert uploads(client, bucket, table) == []
    assert files(client, bucket, table) == []


def test_partition_that_hadoop_does_not_list(program: tuple[Any, str, Any]) -> None:
    """A partition that looks like a checksum fails the task that stages it on a local disk."""
    told, bucket, client = program
    (error, reported), uploaded = told[-2:]

    assert re.search(r"\.k=1\.crc.*would not be committed", error)
    assert reported == []
    assert files(client, bucket, "staged") == []
    assert uploaded == [None, [1]]

"""The whole road on s3a: executors upload by Hadoop's own committers, the driver completes.

One driver program writes every table, because Hadoop's client must be there when it starts, by the
committers of the tests that are selected. The tests look at what it told, and at what moto holds
afterwards. Nothing is told to Python of the
server: what the session says to Hadoop is enough.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from asynccommit.demo.s3 import client_conf, client_jars
from asynccommit.errors import UnsupportedError
from asynccommit.formats.success import SuccessData, decode_success
from tests.support.hadoop import jars, java_command
from tests.support.s3_servers import moto_url, new_bucket
from tests.support.spark import run_script

__all__ = ["moto_url"]
# The first one waits for Spark.
pytestmark = [
    pytest.mark.every(3, 2),
    pytest.mark.spark,
    pytest.mark.full,
    pytest.mark.timeout(300),
]

COMMITTERS = {"": "magic", "directory": "directory", "partitioned": "partitioned"}
"""What a session says -> whose tasks those are; without a word it is the magic one."""
EACH = [*COMMITTERS.values()]

FOLDER = "ta ble%20é"
WHOLE = list(range(20))
PARTS = ["a b", "50%", "x+y", "k=v", "é日本"]
SCRIPT = """
import json
import time

from pyspark.sql.functions import udf

given = json.loads((scratch / "given.json").read_text())
made = builder(scratch).config("spark.jars", ",".join(given["jars"]))
for key, value in given["conf"].items():
    made.config(f"spark.hadoop.{key}", value)
spark = configure(made).getOrCreate()
parts = ", ".join(f"'{part}'" for part in given["parts"])
named = f"element_at(array({parts}), cast(id % {len(given['parts'])} as int) + 1)"
frame = spark.range(20).selectExpr("id", "id % 3 as p", "cast(id as string) as s").repartition(2)


def slowly(number):
    time.sleep(0.3 if number % 2 else 0.1)
    return number


# One task fails while the other, which nobody waits for, is about to write its files.
slow = udf(slowly, "long")
lagging = spark.range(20).repartitionByRange(2, "id").select(slow("id").alias("id"))
lagging = lagging.selectExpr("id", "id % 3 as p", "cast(assert_true(id != 2, 'boom') as string) s")
bad = frame.selectExpr("id", "p", "cast(assert_true(id < 15, 'boom') as string) as s")


def write(name, what=frame, mode="errorifexists", **options):
    before, error = len(reports()), None
    if committer:
        options["fs.s3a.committer.name"] = committer
    try:
        what.write.mode(mode).options(**options).partitionBy("p").parquet(f"{root}/{name}")
    except Exception as raised:
        error = str(raised)
    files = [report.files for report in reports()[before:]]
    told.setdefault(name, []).append({"error": error, "files": files})


def read(name):
    rows = spark.read.parquet(f"{root}/{name}").collect()
    told[name][-1]["ids"] = sorted(row.id for row in rows)
    told[name][-1]["parts"] = sorted({str(row.p) for row in rows})


everything = {}
for committer, folder in given["committers"].items():
    root, told = f"{given['root']}/{folder}", {}
    everything[folder] = told
    write("written", frame.selectExpr("id", f"{named} as p", "s"))
    read("written")
    write("changed")
    write("changed", mode="append")
    write("changed", bad, mode="append")
    read("changed")
    write("changed", frame.where("id < 3"), mode="overwrite")
    read("changed")
    write("dynamic")
    one = frame.where("p = 1").selectExpr("id + 100 as id", "p", "s")
    write("dynamic", one, mode="overwrite", partitionOverwriteMode="dynamic")
    read("dynamic")
    write("failed", bad)
    if not committer:
        write("lagging", lagging)
    write("empty", frame.where("id < 0"))
    if committer == "partitioned":
        write("conflict")
        replaces = {"fs.s3a.committer.staging.conflict-mode": "replace"}
        write("conflict", one, mode="append", **replaces)
        read("conflict")

told = everything["elsewhere"] = {}
committer, root = "", given["root"]
spark.sql(
    f"CREATE TABLE located (id bigint, s string, p int) USING parquet PARTITIONED BY (p) "
    f"LOCATION '{given['plain']}/located'"
)
spark.sql(f"ALTER TABLE located ADD PARTITION (p=1) LOCATION '{given['plain']}/away'")
try:
    spark.sql("INSERT INTO located SELECT id, cast(id as string), 1 FROM range(3)")
    told["located"] = ""
except Exception as raised:
    told["located"] = str(raised)
time.sleep(5)
(scratch / "told.json").write_text(json.dumps(everything))
spark.stop()
"""


@dataclass(frozen=True)
class Ran:
    """What the driver program did with one committer, and what the bucket holds."""

    committer: str
    told: Mapping[str, Sequence[Mapping[str, Any]]]
    bucket: str
    client: Any

    def names(self, table: str) -> list[str]:
        """Return the names below a table."""
        start = f"{FOLDER}/{self.committer}/{table}/"
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=start
        )
        return [o["Key"][len(start) :] for page in pages for o in page.get("Contents", ())]

    def visible(self, table: str) -> list[str]:
        """Return the files of a table that readers see."""
        names = self.names(table)
        return [
            name for name in names if name and name[-1] != "/" and not re.search(r"(^|/)[_.]", name)
        ]

    def left(self, table: str) -> list[str]:
        """Return the files that no finished job may leave."""
        return [n for n in self.names(table) if re.match(r"(_temporary|__magic).*[^/]$", n)]

    def marker(self, table: str) -> SuccessData:
        """Return what the marker of a table says."""
        key = f"{FOLDER}/{self.committer}/{table}/_SUCCESS"
        found = self.client.get_object(Bucket=self.bucket, Key=key)
        return decode_success(found["Body"].read(), "_SUCCESS")

    def uploads(self) -> list[str]:
        """Return the keys of uploads that nobody has ended."""
        found = self.client.list_multipart_uploads(Bucket=self.bucket)
        return [upload["Key"] for upload in found.get("Uploads", ())]


def client_of(url: str) -> Any:
    """Return a client of another hand."""
    import botocore.session

    return botocore.session.get_session().create_client(
        "s3",
        endpoint_url=url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        region_name="us-east-1",
    )


def committers(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return those of ``COMMITTERS`` that the selected tests of this file look at."""
    items = [item for item in request.session.items if item.path == request.path]
    ran = {item.callspec.params.get("ran") for item in items if hasattr(item, "callspec")}
    return {said: name for said, name in COMMITTERS.items() if name in ran}


@pytest.fixture(scope="module")
def program(
    request: pytest.FixtureRequest, moto_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Mapping[str, Any], str, Any]]:
    """Run the driver program; skips where there is no client."""
    if java_command() is None or jars() is None:
        pytest.skip("needs java and pyspark")
    try:
        found = client_jars()
    except UnsupportedError as error:
        pytest.skip(str(error))
    scratch, bucket = tmp_path_factory.mktemp("s3"), new_bucket(moto_url)
    conf = {
        **client_conf(moto_url),
        "fs.s3a.committer.staging.tmp.path": f"file:{scratch}/sta ging",
        "fs.s3a.buffer.dir": f"{scratch}/buffer",
    }
    given = {
        "jars": list(map(str, found)),
        "conf": conf,
        "committers": committers(request),
        "root": f"s3a://{bucket}/{FOLDER}",
        "plain": f"s3a://{bucket}/plain",
        "parts": PARTS,
    }
    (scratch / "given.json").write_text(json.dumps(given))
    # To Hadoop the user is another than to Python, as with Kerberos.
    done = run_script(scratch, SCRIPT, timeout=280, environment={"HADOOP_USER_NAME": "hadoop"})
    assert done.returncode == 0, done.stderr[-4000:]
    if {"directory", "partitioned"} & {*committers(request)}:
        assert os.listdir(f"{scratch}/sta ging") == ["hadoop"]
        assert os.listdir(f"{scratch}/sta ging/hadoop") == []
    client = client_of(moto_url)
    yield json.loads((scratch / "told.json").read_text()), bucket, client
    client.close()


@pytest.fixture(params=EACH)
def ran(program: tuple[Mapping[str, Any], str, Any], request: pytest.FixtureRequest) -> Ran:
    """Return what the program did with each committer."""
    told, bucket, client = program
    return Ran(request.param, told[request.param], bucket, client)


def test_write(ran: Ran) -> None:
    """A table with awkward partition values is read back whole; its marker tells the committer."""
    [write] = ran.told["written"]

    assert (write["error"], write["ids"], write["parts"]) == (None, WHOLE, sorted(PARTS))
    assert write["files"] == [len(ran.visible("written"))]
    assert (ran.marker("written").committer, ran.marker("written").success) == (ran.committer, True)
    assert ran.marker("written").job_id_source == "spark.sql.sources.writeJobUUID"
    assert ran.left("written") == []


def test_append_and_overwrite(ran: Ran) -> None:
    """An append adds, a failed one adds nothing, an overwrite replaces all there was."""
    made, added, failed, replaced = ran.told["changed"]

    assert (made["error"], added["error"], replaced["error"]) == (None, None, None)
    assert "boom" in failed["error"]
    assert failed["files"] == []
    assert failed["ids"] == sorted(WHOLE * 2)
    assert replaced["ids"] == [0, 1, 2]
    assert len(ran.visible("changed")) == replaced["files"][0]
    assert ran.left("changed") == []


def test_dynamic_overwrite(ran: Ran) -> None:
    """Only the partitions that are written to are replaced."""
    made, replaced = ran.told["dynamic"]

    assert (made["error"], replaced["error"]) == (None, None)
    kept = [number for number in WHOLE if number % 3 != 1]
    assert replaced["ids"] == sorted(kept + [n + 100 for n in WHOLE if n % 3 == 1])
    assert ran.left("dynamic") == []


def test_nothing_of_a_failed_job(ran: Ran) -> None:
    """A job that fails leaves no file, no pending set, and no upload that goes on costing."""
    [write] = ran.told["failed"]

    assert "boom" in write["error"]
    assert ran.visible("failed") == []
    assert ran.left("failed") == []
    assert ran.uploads() == []


@pytest.mark.parametrize("ran", EACH[:1], indirect=True)
def test_task_that_nobody_waits_for(ran: Ran) -> None:
    """What a task still writes when its job has failed leaves no upload, either."""
    [write] = ran.told["lagging"]

    assert "boom" in write["error"]
    assert ran.uploads() == []


def test_empty_job(ran: Ran) -> None:
    """A job without rows succeeds and leaves its marker."""
    [write] = ran.told["empty"]

    assert (write["error"], write["files"]) == (None, [0])
    assert ran.visible("empty") == []
    assert ran.marker("empty").success


@pytest.mark.parametrize("ran", EACH[2:], indirect=True)
def test_conflict_mode(ran: Ran) -> None:
    """A write that only adds replaces partitions where Hadoop's staging option says so."""
    made, replaced = ran.told["conflict"]

    assert (made["error"], replaced["error"]) == (None, None)
    kept = [number for number in WHOLE if number % 3 != 1]
    assert replaced["ids"] == sorted(kept + [n + 100 for n in WHOLE if n % 3 == 1])


def test_partition_with_a_place_of_its_own(program: tuple[Mapping[str, Any], str, Any]) -> None:
    """What cannot be renamed there is refused before anything is written, and says why."""
    told, bucket, client = program
    found = client.list_objects_v2(Bucket=bucket, Prefix="plain/").get("Contents", ())

    assert "uploads cannot be renamed" in told["elsewhere"]["located"]
    assert [o["Key"] for o in found if not o["Key"].endswith("/")] == []

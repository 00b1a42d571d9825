"""The whole road on gs: executors write by Google's connector, the driver commits by our store.

One driver program writes every table, because the connector must be there when it starts; the
tests look at what it told, and at what the emulator holds afterwards.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from asynccommit.demo.gcs import client_jar
from asynccommit.formats.manifest import decode_manifest
from asynccommit.formats.success import COMMITTER, SuccessData, decode_success
from asynccommit.stores.urls import decode_uri
from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread, running_gcs_emulator
from asynccommit.testing.models.gcs.model import BucketOptions
from tests.support.gcs_hadoop import Bucket, conf_of, etag_of, why_not
from tests.support.spark import run_script

pytestmark = [pytest.mark.every(3, 1), pytest.mark.spark, pytest.mark.full]

BUCKETS = {"flat-tables": BucketOptions(), "hns-tables": BucketOptions(hns=True)}
FOLDER = "ta ble%20é 😀"
WHOLE = list(range(20))
PARTS = ["a b", "50%", "x+y", "k=v", "é日本", "😀"]
# Ten requests a file less: nothing here has both a file and a directory of one name.
QUICK = {"fs.gs.create.items.conflict.check.enable": "false"}
FAULTS: Sequence[Mapping[str, Any]] = [
    {"kind": "after", "op": "move", "path": "/lost-503/", "every": 3},
    {"kind": "cut", "op": "move", "path": "/lost-cut/", "every": 3},
    {"kind": "before", "op": "move", "path": "/busy/", "every": 2},
]
CONFIGURED = """
import json
import time

given = json.loads((scratch / "given.json").read_text())
made = builder(scratch).config("spark.jars", given["jar"])
for key, value in given["conf"].items():
    made.config(f"spark.hadoop.{key}", value)
spark = configure(made).getOrCreate()
configure(spark, hadoop_clients=["gs"])  # Google's connector is a client, too
java = int(spark._jvm.java.lang.ProcessHandle.current().pid())
parts = ", ".join(f"'{part}'" for part in given["parts"])
named = f"element_at(array({parts}), cast(id % {len(given['parts'])} as int) + 1)"
frame = spark.range(20).selectExpr("id", "id % 3 as p", "cast(id as string) as s").repartition(2)
"""
SCRIPT = """
bad = frame.selectExpr("id", "p", "cast(assert_true(id < 15, 'boom') as string) as s")
told = {}


def write(name, what=frame, mode="errorifexists", **options):
    before, error = len(reports()), None
    try:
        writer = what.write.mode(mode).options(**options).partitionBy("p")
        writer.parquet(f"{given['root']}/{name}")
    except Exception as raised:
        error = str(raised)
    told.setdefault(name, []).append(
        {"error": error, "files": [report.files for report in reports()[before:]]}
    )


def read(name):
    try:
        rows = spark.read.parquet(f"{given['root']}/{name}").collect()
    except Exception as error:
        raise RuntimeError(f"after {told[name]}") from error
    told[name][-1]["ids"] = sorted(row.id for row in rows)
    told[name][-1]["parts"] = sorted({str(row.p) for row in rows})


for bucket in given["buckets"]:
    given["root"] = f"gs://{bucket}/{given['folder']}"
    told = {}
    flat = bucket == given["buckets"][0]
    for name in ("lost-503", "lost-cut", "busy") if flat else ():
        write(name)
        read(name)

    write("written", frame.selectExpr("id", f"{named} as p", "s"))
    read("written")

    write("overwritten")
    write("overwritten", frame.where("id < 3"), mode="overwrite")
    read("overwritten")

    write("dynamic")
    one = frame.where("p = 1").selectExpr("id + 100 as id", "p", "s")
    write("dynamic", one, mode="overwrite", partitionOverwriteMode="dynamic")
    read("dynamic")

    if flat:
        write("overwritten", mode="errorifexists")
        write("appended")
        write("appended", mode="append")
        write("appended", bad, mode="append")
        read("appended")
        write("failed", bad)
    (scratch / f"{bucket}.json").write_text(json.dumps(told))
spark.stop()
"""
KILLED = """
after_renames(2, lambda: os.kill(os.getpid(), signal.SIGKILL))
frame.write.mode("overwrite").partitionBy("p").parquet(f"{given['root']}/killed")
"""
REPAIRED = """
from asynccommit.spark import resume, status

table = f"{given['root']}/killed"
told = {"status": [job.to_json() for job in status(table)], "files": resume(table).files}
told["ids"] = sorted(row.id for row in spark.read.parquet(table).collect())

after_renames(2, lambda: (os.kill(java, signal.SIGKILL), time.sleep(1)))
try:
    frame.write.partitionBy("p").parquet(f"{given['root']}/alone")
except Exception as error:
    told["raised"] = type(error).__name__
bridge.BRIDGE.wait(60)
(scratch / "repaired.json").write_text(json.dumps(told))
"""


@dataclass(frozen=True)
class Told:
    """What one write of the driver program told.

    Attributes:
        error: the message of the exception, ``None`` if there was none.
        files: how many files each of its job commits made visible.
        ids: what was read afterwards, ``None`` if nothing was.
        parts: the values of ``p`` that were read, as texts.
    """

    error: str | None
    files: Sequence[int]
    ids: Sequence[int] | None = None
    parts: Sequence[str] | None = None


@dataclass(frozen=True)
class Ran:
    """The driver program after its end, on one bucket."""

    told: Mapping[str, Sequence[Told]]
    bucket: Bucket

    def tree(self, table: str) -> dict[str, bytes]:
        """Return the files of a table with their content; placeholders end in ``/``."""
        found = self.bucket.objects(f"/{FOLDER}/{table}/")
        return {name: one.content.data for name, one in found.items() if name}

    def visible(self, table: str) -> list[str]:
        """Return the files of a table that readers see."""
        names = self.tree(table)
        return [name for name in names if name[-1] != "/" and not re.search(r"(^|/)[_.]", name)]

    def marker(self, table: str) -> SuccessData:
        """Return what the marker of a table says."""
        return decode_success(self.tree(table)["_SUCCESS"], "_SUCCESS")

    def left(self, table: str) -> list[str]:
        """Return what no finished job may leave."""
        return [name for name in self.tree(table) if re.search(r"(^|/)(_temporary|\.)", name)]

    def folders(self, table: str) -> set[str]:
        """Return the folders of a table."""
        start = f"{FOLDER}/{table}/"
        found = self.bucket.folders()
        return {name[len(start) :] for name in found if name.startswith(start)} - {""}


@dataclass(frozen=True)
class Program:
    """The driver program after its end: on every bucket, and what it needs to go on."""

    emulator: GcsEmulatorThread
    scratch: Path

    def on(self, bucket: str) -> Ran:
        """Return what it did on one bucket."""
        told = json.loads((self.scratch / f"{bucket}.json").read_text())
        writes = {name: [Told(**one) for one in several] for name, several in told.items()}
        return Ran(writes, Bucket(self.emulator, bucket))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """Run the driver program against an emulator; skips where there is no connector."""
    if reason := why_not():
        pytest.skip(reason)
    scratch = tmp_path_factory.mktemp("gcs")
    with running_gcs_emulator(buckets=BUCKETS) as emulator:
        for fault in FAULTS:
            Bucket(emulator, "").strike(**fault)
        given = {
            "jar": str(client_jar()),
            "conf": {**conf_of(emulator), **QUICK},
            "buckets": list(BUCKETS),
            "folder": FOLDER,
            "root": f"gs://flat-tables/{FOLDER}",
            "parts": PARTS,
        }
        (scratch / "given.json").write_text(json.dumps(given))
        done = run_script(scratch, CONFIGURED + SCRIPT, timeout=170)
        assert done.returncode == 0, done.stderr[-4000:]
        yield Program(emulator, scratch)


@pytest.fixture(params=list(BUCKETS))
def ran(program: Program, request: pytest.FixtureRequest) -> Ran:
    """Return what the program did on a bucket of each kind."""
    return program.on(request.param)


def assert_whole(ran: Ran, table: str) -> None:
    """See that one write made a table that was read back whole, and left nothing else."""
    [write] = ran.told[table]
    assert (write.error, write.ids) == (None, WHOLE)
    assert write.files == [len(ran.visible(table))]
    assert (ran.marker(table).committer, ran.marker(table).success) == (COMMITTER, True)
    assert len(ran.marker(table).filenames) == write.files[0]
    assert ran.left(table) == []


def test_write(ran: Ran) -> None:
    """A partitioned table is committed by us and read back whole, whatever its values are."""
    assert_whole(ran, "written")
    assert ran.told["written"][0].parts == sorted(PARTS)
    places = {f"{name.split('/')[0]}/" for name in ran.visible("written")}
    assert ran.folders("written") == (places if ran.bucket.name == "hns-tables" else set())


@pytest.mark.parametrize("table", ["lost-503", "lost-cut", "busy"])
def test_write_in_foul_weather(program: Program, table: str) -> None:
    """Lost responses and refusals cost requests only."""
    assert_whole(program.on("flat-tables"), table)


def test_weather_was_foul(program: Program) -> None:
    """The faults did strike."""
    struck = program.emulator.do(lambda it: dict(it.weather.struck))

    assert struck["after move"] >= 2
    assert struck["cut move"] >= 2
    assert struck["before move"] >= 3


def test_append(program: Program) -> None:
    """Appending adds; a job that fails adds nothing and leaves nothing."""
    ran = program.on("flat-tables")
    first, second, failed = ran.told["appended"]

    assert (first.error, second.error) == (None, None)
    assert "boom" in str(failed.error)
    assert (failed.ids, failed.files) == (sorted(WHOLE * 2), [])
    assert len(ran.visible("appended")) == first.files[0] + second.files[0]
    assert ran.left("appended") == []


def test_overwrite(ran: Ran) -> None:
    """Overwriting replaces all; a table that is there is refused where that was asked for."""
    first, second, *refused = ran.told["overwritten"]

    assert (first.error, second.error) == (None, None)
    assert second.ids == [0, 1, 2]
    assert len(ran.visible("overwritten")) == second.files[0]
    assert all("already exists" in str(write.error) for write in refused)
    assert ran.left("overwritten") == []


def test_dynamic_overwrite(ran: Ran) -> None:
    """Only the partitions that are written to are replaced."""
    _, second = ran.told["dynamic"]

    assert second.error is None
    assert second.ids == sorted(i + 100 if i % 3 == 1 else i for i in WHOLE)
    assert ran.left("dynamic") == []


def test_job_that_fails(program: Program) -> None:
    """A first job that fails leaves no file, no marker and no directory of its own."""
    ran = program.on("flat-tables")
    [failed] = ran.told["failed"]

    assert "boom" in str(failed.error)
    assert failed.files == []
    assert ran.tree("failed") == {}


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_drivers_that_die(program: Program) -> None:
    """Python alone, and the session's own ``resume`` finishes; the JVM alone, and Python does.

    Until then nothing is deleted, and the manifests name the very objects that the tasks made.
    """
    ran = program.on("flat-tables")
    done = run_script(program.scratch, CONFIGURED + KILLED)
    assert done.returncode == -9, done.stderr
    left = ran.bucket.objects(f"/{FOLDER}/killed/")
    manifests = [name for name in left if name.endswith("-manifest.json")]
    read = [decode_manifest(left[name].content.data, name) for name in manifests]
    files = [entry for manifest in read for entry in manifest.files]
    places = {decode_uri(entry.dest).path for manifest in read for entry in manifest.directories}
    waiting = {etag_of(one) for name, one in left.items() if name.endswith(".parquet")}
    assert ("_SUCCESS" in left, len(ran.visible("killed"))) == (False, 2)
    assert len({entry.etag for entry in files} & waiting) == 4
    assert places == {f"/{FOLDER}/killed/p={number}" for number in range(3)}

    done = run_script(program.scratch, CONFIGURED + REPAIRED)
    told = json.loads((program.scratch / "repaired.json").read_text())

    [job] = told["status"]
    assert (job["state"], job["alive"]) == ("stopped", False)
    assert (told["files"], told["ids"]) == (6, WHOLE)
    assert "raised" in told
    for table in ("killed", "alone"):
        assert len(ran.visible(table)) == 6
        assert ran.marker(table).success
        assert ran.left(table) == []

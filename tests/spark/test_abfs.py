"""The whole road on ADLS: executors write by Hadoop's ABFS client, the driver commits by our store.

One driver program writes every table, because ``hadoop-azure`` must be there when it starts; the
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

from asynccommit.demo.adls import client_jar
from asynccommit.formats.success import COMMITTER, SuccessData, decode_success
from asynccommit.testing.emulators.adls.emulator import EmulatorThread, running_emulator
from asynccommit.testing.models.fault_rules import Fault
from tests.support.abfs import conf_of, why_not
from tests.support.spark import run_script

pytestmark = pytest.mark.spark

FILESYSTEM = "tables"
FOLDER = "ta ble%20"
WHOLE = list(range(20))
FAULTS: Sequence[Mapping[str, Any]] = [
    {"kind": "after", "op": "rename", "path": "/lost-500/", "every": 3},
    {"kind": "cut", "op": "rename", "path": "/lost-cut/", "every": 3},
    {"kind": "before", "op": "*", "path": "/busy/", "every": 7, "code": "ServerBusy"},
    {"kind": "slow", "op": "mkdir", "path": r"/late/.*_m_000001_", "delay": 3},
    # These two only count.
    {"kind": "slow", "op": "head", "path": r"/counted/p=\d$", "delay": 0},
    {"kind": "slow", "op": "list", "path": r"/counted/.*/tasks/attempt_", "delay": 0},
]
CONFIGURED = """
import json
import time

given = json.loads((scratch / "given.json").read_text())
made = builder(scratch).config("spark.jars", given["jar"])
for key, value in given["conf"].items():
    made.config(f"spark.hadoop.{key}", value)
spark = configure(made).getOrCreate()
java = int(spark._jvm.java.lang.ProcessHandle.current().pid())
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
    rows = spark.read.parquet(f"{given['root']}/{name}").collect()
    told[name][-1]["ids"] = sorted(row.id for row in rows)


for name in ("written", "lost-500", "lost-cut", "busy"):
    write(name)
    read(name)

write("appended")
write("appended", mode="append")
read("appended")
write("appended", bad, mode="append")
read("appended")

write("overwritten")
write("overwritten", frame.where("id < 3"), mode="overwrite")
read("overwritten")
write("overwritten", mode="errorifexists")

write("dynamic")
one = frame.where("p = 1").selectExpr("id + 100 as id", "p", "s")
write("dynamic", one, mode="overwrite", partitionOverwriteMode="dynamic")
read("dynamic")

write("counted")
write("failed", bad)
second = "cast(assert_true(spark_partition_id() = 1, 'not the second') as string) as s"
write("late", frame.selectExpr("id", "p", second))
while spark.sparkContext.statusTracker().getActiveStageIds():
    time.sleep(0.1)
time.sleep(1)
(scratch / "told.json").write_text(json.dumps(told))
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
    """

    error: str | None
    files: Sequence[int]
    ids: Sequence[int] | None = None


@dataclass(frozen=True)
class Ran:
    """The driver program after its end."""

    told: Mapping[str, Sequence[Told]]
    emulator: EmulatorThread
    scratch: Path

    def tree(self, table: str) -> dict[str, bytes]:
        """Return the files of a table with their content; directories end in ``/``."""
        where = f"{FOLDER}/{table}"
        listing = self.emulator.do(
            lambda running: [
                (name[len(where) + 1 :], node.is_dir, node.read())
                for name, node in running.model.list(FILESYSTEM, recursive=True).entries
                if name.startswith(f"{where}/")
            ]
        )
        return {f"{name}/" if is_dir else name: data for name, is_dir, data in listing}

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


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """Run the driver program against an emulator; skips where there is no ABFS client."""
    if reason := why_not():
        pytest.skip(reason)
    scratch = tmp_path_factory.mktemp("abfs")
    with running_emulator() as emulator:
        emulator.do(lambda it: it.weather.add(*[Fault.from_json(fault) for fault in FAULTS]))
        root = f"abfs://{FILESYSTEM}@{emulator.account}.dfs.core.windows.net/{FOLDER}"
        given = {"jar": str(client_jar()), "conf": conf_of(emulator), "root": root}
        (scratch / "given.json").write_text(json.dumps(given))
        done = run_script(scratch, CONFIGURED + SCRIPT, timeout=170)
        assert done.returncode == 0, done.stderr[-4000:]
        told = json.loads((scratch / "told.json").read_text())
        writes = {name: [Told(**one) for one in several] for name, several in told.items()}
        yield Ran(writes, emulator, scratch)


@pytest.mark.parametrize("table", ["written", "lost-500", "lost-cut", "busy"])
def test_write(ran: Ran, table: str) -> None:
    """A partitioned table is committed by us and read back whole, whatever the weather."""
    [write] = ran.told[table]

    assert (write.error, write.ids) == (None, WHOLE)
    assert write.files == [len(ran.visible(table))]
    assert {name.split("/")[0] for name in ran.visible(table)} == {"p=0", "p=1", "p=2"}
    assert (ran.marker(table).committer, ran.marker(table).success) == (COMMITTER, True)
    assert len(ran.marker(table).filenames) == write.files[0]
    assert ran.left(table) == []


def test_weather_was_foul(ran: Ran) -> None:
    """The faults did strike."""
    struck = ran.emulator.do(lambda it: dict(it.weather.struck))

    assert struck["after rename"] >= 2
    assert struck["cut rename"] >= 2
    assert sum(count for kind, count in struck.items() if kind.startswith("before")) >= 5


def test_task_commit_lists_each_directory_once_and_looks_at_no_destination(ran: Ran) -> None:
    """Two tasks list their directory and its three partitions, and ask for nothing else."""
    struck = ran.emulator.do(lambda it: dict(it.weather.struck))

    assert ran.told["counted"][0].error is None
    assert struck["slow list"] == 2 * (1 + 3)
    assert "slow head" not in struck


def test_append(ran: Ran) -> None:
    """Appending adds; a job that fails adds nothing and leaves nothing."""
    first, second, failed = ran.told["appended"]

    assert (first.error, second.error) == (None, None)
    assert second.ids == sorted(WHOLE * 2)
    assert "boom" in str(failed.error)
    assert (failed.ids, failed.files) == (second.ids, [])
    assert len(ran.visible("appended")) == first.files[0] + second.files[0]
    assert ran.left("appended") == []


def test_overwrite(ran: Ran) -> None:
    """Overwriting replaces all; a table that is there is refused where that was asked for."""
    first, second, refused = ran.told["overwritten"]

    assert (first.error, second.error) == (None, None)
    assert second.ids == [0, 1, 2]
    assert len(ran.visible("overwritten")) == second.files[0]
    assert "already exists" in str(refused.error)
    assert ran.left("overwritten") == []


def test_dynamic_overwrite(ran: Ran) -> None:
    """Only the partitions that are written to are replaced."""
    _, second = ran.told["dynamic"]

    assert second.error is None
    assert second.ids == sorted(i + 100 if i % 3 == 1 else i for i in WHOLE)
    assert ran.left("dynamic") == []


def test_job_that_fails(ran: Ran) -> None:
    """A first job that fails leaves no file, no marker and no directory of its own."""
    [failed] = ran.told["failed"]

    assert "boom" in str(failed.error)
    assert failed.files == []
    assert [name for name in ran.tree("failed") if not name.endswith("/")] == []
    assert ran.left("failed") == []


def test_a_task_that_begins_after_its_job_has_failed(ran: Ran) -> None:
    """An attempt whose directory is made after the end of the job removes it, and the table's."""
    [late] = ran.told["late"]

    assert ran.emulator.do(lambda it: it.weather.struck["slow mkdir"]) == 1
    assert "not the second" in str(late.error)
    assert ran.tree("late") == {}


@pytest.mark.every(3, 0)
@pytest.mark.full
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_drivers_that_die(ran: Ran) -> None:
    """Python alone, and the session's own ``resume`` finishes; the JVM alone, and Python does."""
    done = run_script(ran.scratch, CONFIGURED + KILLED)
    assert done.returncode == -9, done.stderr
    assert "_SUCCESS" not in ran.tree("killed")
    assert len(ran.visible("killed")) == 2

    done = run_script(ran.scratch, CONFIGURED + REPAIRED)
    told = json.loads((ran.scratch / "repaired.json").read_text())

    [job] = told["status"]
    assert (job["state"], job["alive"]) == ("stopped", False)
    assert (told["files"], told["ids"]) == (6, WHOLE)
    assert "raised" in told
    for table in ("killed", "alone"):
        assert len(ran.visible(table)) == 6
        assert ran.marker(table).success
        assert ran.left(table) == []

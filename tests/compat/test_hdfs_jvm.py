"""Stock Spark on filesystems that only its JVM opens: Hadoop writes, this package commits."""

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
from tests.support.spark import ENVIRONMENT, run_script

pytestmark = [pytest.mark.every(2, 0), pytest.mark.jvm, pytest.mark.full, pytest.mark.timeout(300)]

_numbers = count()
CONFIGURED = """
import json

given = json.loads((scratch / "given.json").read_text())
root, made = given["root"], builder(scratch)
for key, value in given["conf"].items():
    made = made.config(key, value)
spark = configure(made).getOrCreate()
frame = spark.range(20).selectExpr("id", "id % 3 as p").repartition(2)
"""
WRITES = """
def read(name):
    return sorted(row.id for row in spark.read.parquet(f"{root}/{name}").collect())


told = {}
frame.write.partitionBy("p").parquet(f"{root}/made")
told["made"] = read("made")
more = frame.selectExpr("id + 100 as id", "p")
more.write.mode("append").partitionBy("p").parquet(f"{root}/made")
told["appended"] = read("made")
one = frame.where("p = 1").selectExpr("id + 200 as id", "p")
dynamic = one.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
dynamic.partitionBy("p").parquet(f"{root}/made")
told["dynamic"] = read("made")
frame.where("id < 3").write.mode("overwrite").partitionBy("p").parquet(f"{root}/made")
told["overwritten"] = read("made")
told["reports"] = [report.files for report in reports()]
(scratch / "told.json").write_text(json.dumps(told))
spark.stop()
"""
KILLED = """
after_renames(2, lambda: os.kill(os.getpid(), signal.SIGKILL))
frame.write.partitionBy("p").parquet(f"{root}/killed")
"""
RESUMED = """
from asynccommit.spark import resume, status

before = [job.state.value for job in status(f"{root}/killed")]
files = resume(f"{root}/killed").files
rows = spark.read.parquet(f"{root}/killed").collect()
told = [before, files, sorted(row.id for row in rows), len(status(f"{root}/killed"))]
(scratch / "told.json").write_text(json.dumps(told))
spark.stop()
"""
REFUSED = """
told = []
try:
    frame.write.parquet("s3a://bucket/table")
except Exception as error:
    told.append(str(error))
(scratch / "told.json").write_text(json.dumps(told))
spark.stop()
"""
ALL = list(range(20))
OVER = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"


def give(scratch: Path, root: str, **conf: str) -> None:
    """Tell the program where to write, and how its session is configured."""
    (scratch / "given.json").write_text(json.dumps({"root": root, "conf": conf}))


def told(scratch: Path, body: str) -> Any:
    """Return what a program of Spark has found out."""
    done = run_script(scratch, CONFIGURED + body)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((scratch / "told.json").read_text())


def check_writes(found: Any) -> None:
    """Check what a reader saw after each mode, and that each write was committed here."""
    appended = ALL + [100 + number for number in ALL]
    one = [number for number in ALL if number % 3 == 1]
    gone = {*one, *(100 + number for number in one)}
    assert found["made"] == ALL
    assert found["appended"] == appended
    assert found["dynamic"] == sorted({*appended} - gone | {200 + number for number in one})
    assert found["overwritten"] == [0, 1, 2]
    assert len(found["reports"]) == 4


def test_writes_to_hdfs_go_through_the_jvm_on_request(hdfs: MiniHdfs, tmp_path: Path) -> None:
    """With ``asynccommit.store=jvm`` all modes are committed through Hadoop's client."""
    path = f"/jvm-{next(_numbers)}"
    give(tmp_path, hdfs.url + path, **{"spark.asynccommit.store": "jvm"})
    check_writes(told(tmp_path, WRITES))

    marker = decode_success(hdfs.read(f"{path}/made/_SUCCESS"), "_SUCCESS")
    assert marker.committer == COMMITTER
    assert not hdfs.exists(f"{path}/made/_temporary")


def test_killed_driver_is_resumed_through_the_jvm(hdfs: MiniHdfs, tmp_path: Path) -> None:
    """After kill -9 in the middle of the renames another session finishes the job."""
    path = f"/jvm-{next(_numbers)}"
    give(tmp_path, hdfs.url + path, **{"spark.asynccommit.store": "jvm"})
    done = run_script(tmp_path, CONFIGURED + KILLED)
    assert done.returncode == -9, done.stderr[-2000:]
    assert not hdfs.exists(f"{path}/killed/_SUCCESS")

    before, files, ids, after = told(tmp_path, RESUMED)

    assert (before, files, ids, after) == (["stopped"], 6, ALL, 0)


def test_scheme_of_a_hadoop_class_alone(hdfs: MiniHdfs, tmp_path: Path) -> None:
    """A scheme that only the session's configuration knows is committed without being named."""
    path = f"/jvm-{next(_numbers)}"
    hdfs.mkdirs(path)
    give(
        tmp_path,
        "mine://tables/in",
        **{
            "spark.hadoop.fs.mine.impl": OVER,
            "spark.hadoop.fs.viewfs.overload.scheme.target.mine.impl": (
                "org.apache.hadoop.fs.LocalFileSystem"
            ),
            "spark.hadoop.fs.viewfs.mounttable.tables.link./in": hdfs.url + path,
        },
    )
    check_writes(told(tmp_path, WRITES))
    assert hdfs.exists(f"{path}/made/_SUCCESS")


def test_shell_resumes_through_a_jvm_of_its_own(hdfs: MiniHdfs, tmp_path: Path) -> None:
    """The command names the option that starts a JVM, and with it finishes the job."""
    path = f"/jvm-{next(_numbers)}"
    hdfs.mkdirs(path)
    conf = {
        "spark.hadoop.fs.mine.impl": OVER,
        "spark.hadoop.fs.viewfs.overload.scheme.target.mine.impl": (
            "org.apache.hadoop.fs.LocalFileSystem"
        ),
        "spark.hadoop.fs.viewfs.mounttable.tables.link./in": hdfs.url + path,
    }
    give(tmp_path, "mine://tables/in", **conf)
    done = run_script(tmp_path, CONFIGURED + KILLED)
    assert done.returncode == -9, done.stderr[-2000:]
    (tmp_path / "conf").mkdir()
    lines = [f"{key} {value}\n" for key, value in conf.items()]
    (tmp_path / "conf/spark-defaults.conf").write_text("".join(lines))

    code, said = command(tmp_path, "status", "mine://tables/in/killed")
    assert code != 0
    assert "-s asynccommit.store=jvm" in said

    jvm = ("-s", "asynccommit.store=jvm")
    code, said = command(tmp_path, "status", "mine://tables/in/killed", *jvm, "--json")
    assert code == 0, said
    assert [job["state"] for job in json.loads(said)["jobs"]] == ["stopped"]
    code, said = command(tmp_path, "resume", "mine://tables/in/killed", *jvm)
    assert code == 0, said
    assert hdfs.exists(f"{path}/killed/_SUCCESS")


def command(scratch: Path, *words: str) -> tuple[int, str]:
    """Run the command from a shell; return its exit code, and its output or its error."""
    line = [sys.executable, "-m", "asynccommit", *words]
    env = environment() | ENVIRONMENT | {"SPARK_CONF_DIR": str(scratch / "conf")}
    done = subprocess.run(line, capture_output=True, text=True, env=env, timeout=120)
    return done.returncode, done.stdout or done.stderr


@pytest.mark.parametrize("scheme", ["viewfs", "mine"])
def test_local_directory_behind_a_view(scheme: str, tmp_path: Path) -> None:
    """A view file system with a mount of a local directory is committed through the JVM."""
    (tmp_path / "mounted").mkdir()
    conf = {
        "spark.asynccommit.store": "jvm",
        # Hadoop's local file system fails if a directory is deleted while a reader lists it.
        "spark.asynccommit.cleanup": "wait",
        "spark.hadoop.fs.viewfs.mounttable.tables.link./in": f"file://{tmp_path}/mounted",
    }
    if scheme == "mine":
        target = "spark.hadoop.fs.viewfs.overload.scheme.target.file.impl"
        conf |= {"spark.hadoop.fs.mine.impl": OVER}
        conf |= {target: "org.apache.hadoop.fs.LocalFileSystem"}
    give(tmp_path, f"{scheme}://tables/in", **conf)
    check_writes(told(tmp_path, WRITES))
    assert (tmp_path / "mounted/made/_SUCCESS").exists()
    assert not (tmp_path / "mounted/made/_temporary").exists()

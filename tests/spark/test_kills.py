"""Processes that die while a job is committed: Python, the JVM, both; and Ctrl-C.

A driver program is killed after a number of renames, by its environment; run again without that it
is the same program, letter for letter. What a user types then is typed here.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.support.spark import leftovers, run_python, run_script, visible, wait_until

pytestmark = [pytest.mark.every(2), pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]

WRITE = """
conf = {key: os.environ[key] for key in os.environ if key.startswith("asynccommit.")}
spark = configure(builder(scratch), conf=conf).getOrCreate()
java = int(spark._jvm.java.lang.ProcessHandle.current().pid())
(scratch / "java.pid").write_text(str(java))
frame = spark.range(20).selectExpr("id", "id % 3 as p").repartition(2)
table = str(scratch / "t")

def at(stage, action):
    todo = [action]
    def on_progress(progress):
        if progress.stage == stage and todo:
            todo.pop()()
    bridge.on_progress = on_progress

def die():
    if "java" in os.environ.get("DIE", ""):
        os.kill(java, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)

if "DIE" in os.environ:
    after_renames(int(os.environ["DIE"].partition(" ")[0]), die)

def write(mode="append", frame=frame):
    frame.write.mode(mode).partitionBy("p").parquet(table)
"""
AFTER_TWO = {"DIE": "2"}
NEW = """
new = spark.range(100, 104).selectExpr("id", "1 as p")
"""


def wait_for_jvm(scratch: Path) -> None:
    """Wait until the script's JVM has gone too, with what it does on its way out."""
    pid = (scratch / "java.pid").read_text()
    assert wait_until(lambda: not Path("/proc", pid).exists(), 30)


def run(scratch: Path, body: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a driver program until it and its JVM have gone."""
    done = run_script(scratch, WRITE + body, environment=environment)
    wait_for_jvm(scratch)
    return done


def type_in(command: str) -> subprocess.CompletedProcess[str]:
    """Type a command as a message shows it."""
    name, *arguments = shlex.split(command)
    assert name == "asynccommit"
    return run_python("-m", "asynccommit", *arguments)


def fill(table: Path) -> dict[str, bytes]:
    """Put ten rows of two partitions there, as another job has left them; return the files."""
    for p in (0, 1):
        (table / f"p={p}").mkdir(parents=True)
        rows = pyarrow.table({"id": range(1000 + 10 * p, 1005 + 10 * p)})
        pyarrow.parquet.write_table(rows, table / f"p={p}" / "old.parquet")
    return content(table)


OLD = [*range(1000, 1005), *range(1010, 1015)]


def content(table: Path) -> dict[str, bytes]:
    """Return every file with what it holds."""
    return {str(path): path.read_bytes() for path in table.rglob("*") if path.is_file()}


def ids(table: Path) -> list[int]:
    """Return the ids that readers see."""
    read = pyarrow.parquet.ParquetFile
    found = [read(table / name).read(["id"]) for name in visible(table)]
    return sorted(i for part in found for i in part["id"].to_pylist())


def records(table: Path) -> list[Path]:
    """Return the commit records under a table."""
    return list(table.glob("_temporary/*/00/commit-record.json"))


@pytest.mark.rotate("victims")
@pytest.mark.parametrize("victims", ["python", "java and python"])
def test_python_dies_after_the_record(tmp_path: Path, victims: str) -> None:
    """Nothing that a resume needs is deleted, whether or not the JVM lives to abort."""
    table = tmp_path / "t"
    fill(table)
    run(tmp_path, "write()\n", DIE=f"2 {victims}")

    assert len(records(table)) == 1
    assert not (table / "_SUCCESS").exists()
    staged = list(records(table)[0].parent.rglob("*.parquet"))
    moved = [name for name in visible(table) if "old" not in name]
    assert len(moved) >= 2
    assert len(staged) + len(moved) == 6

    done = type_in(f"asynccommit resume '{table}'")

    assert done.returncode == 0, done.stderr
    assert ids(table) == [*range(20), *OLD]
    assert json.loads((table / "_SUCCESS").read_text())["success"]
    assert leftovers(table) == []


@pytest.mark.full
def test_python_dies_before_the_record(tmp_path: Path) -> None:
    """Nothing is visible, and another job's directory is not touched."""
    other = tmp_path / "t" / "_temporary" / "other" / "00" / "tasks"
    other.mkdir(parents=True)
    run(tmp_path, 'at("job_stage_load_manifests", die)\nwrite()\n')

    assert visible(tmp_path / "t") == []
    assert records(tmp_path / "t") == []
    assert other.exists()


@pytest.mark.full
def test_abort_removes_the_table_of_a_killed_first_job(tmp_path: Path) -> None:
    """What both processes left is no table once it is aborted: Spark's default mode writes it."""
    table = tmp_path / "t"
    run(tmp_path, 'at("job_stage_load_manifests", die)\nwrite("errorifexists")\n', DIE="99 java")
    assert table.exists()
    done = type_in(f"asynccommit abort '{table}'")

    assert done.returncode == 0, done.stderr
    assert not table.exists()


@pytest.mark.full
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_python_dies_and_the_jvm_has_it_rolled_back(tmp_path: Path, mode: str) -> None:
    """By option the JVM starts another Python, which puts the table back as it was."""
    table = tmp_path / "t"
    before = fill(table)
    policy = {"asynccommit.on.failure": "rollback"}
    run(tmp_path, f"write({mode!r})\n", **AFTER_TWO, **policy)

    assert content(table) == before
    assert leftovers(table) == []


@pytest.mark.full
@pytest.mark.parametrize("mode, typed", [("static", "resume"), ("dynamic", "abort --rollback")])
def test_overwrite_that_was_killed(tmp_path: Path, mode: str, typed: str) -> None:
    """It becomes the new table or stays the old one, and never is a mixture of both."""
    table = tmp_path / "t"
    before = fill(table)
    body = f"""
spark.conf.set("spark.sql.sources.partitionOverwriteMode", {mode!r})
new = spark.range(100, 104).selectExpr("id", "1 as p").repartition(2)
write("overwrite", new)
"""
    run(tmp_path, body, DIE="1 java", **{"asynccommit.on.failure": "rollback"})
    assert len(records(table)) == 1  # nobody was left to roll it back
    done = type_in(f"asynccommit {typed} '{table}'")

    assert done.returncode == 0, done.stderr
    assert leftovers(table) == []
    if typed == "resume":
        assert ids(table) == [*range(100, 104)]
    else:
        assert content(table) == before


@pytest.mark.full
def test_rerun_is_refused_with_what_to_type(tmp_path: Path) -> None:
    """The unchanged program says what to type; after that each row is there exactly once."""
    table, key = tmp_path / "t", {"asynccommit.job.key": "flights of July"}
    fill(table)
    program = """
import re, subprocess
for _ in range(3):
    try:
        write()
        print("--done--", flush=True)
    except Exception as error:
        text = str(error).partition("JVM stacktrace")[0]
        print(text, flush=True)
        for typed in re.findall("asynccommit abort .*", text):
            subprocess.run(f"{sys.executable} -m {typed}", shell=True, check=True)
"""
    run(tmp_path, program, **AFTER_TWO, **key)
    again = run(tmp_path, program, **key)

    refused, undone, done = again.stdout.partition("--done--")
    assert "interrupted" in refused.splitlines()[0], again.stderr
    assert re.search(r"finish it: asynccommit resume \S+t --job-id \S+$", refused, re.MULTILINE)
    assert len(refused.splitlines()) < 20
    assert undone, again.stderr
    assert "the work of 'flights of July' was done" in done
    assert ids(table) == [*range(20), *OLD]
    assert leftovers(table) == []


@pytest.mark.full
@pytest.mark.rotate("policy")
@pytest.mark.parametrize("policy", ["resume", "rollback"])
def test_rerun_settles_what_is_left(tmp_path: Path, policy: str) -> None:
    """By option the unchanged program finishes or undoes it first: each row exactly once."""
    table = tmp_path / "t"
    fill(table)
    conf = {"asynccommit.on.unfinished": policy}
    run(tmp_path, "write()\n", **AFTER_TWO, **conf)
    again = run(tmp_path, "write()\n", **conf)

    if policy == "resume":
        assert again.returncode != 0
        assert "is now finished" in again.stderr
    else:
        assert again.returncode == 0, again.stderr
    assert ids(table) == [*range(20), *OLD]
    assert leftovers(table) == []


@pytest.mark.full
def test_owner_that_lives_is_left_alone(tmp_path: Path) -> None:
    """While a driver commits, nobody else resumes or undoes its job, and it ends as ever."""
    done = run(
        tmp_path,
        """
import json, subprocess

def try_all():
    job = next((scratch / "t" / "_temporary").iterdir()).name
    asked = {"what": "rollback", "dest": f"file:{scratch}/t", "jobId": job, "attempt": 0}
    asked |= {"conf": {}, "storage": {}}
    base, told = [sys.executable, "-W", "ignore", "-m"], []
    for words in (
        ["asynccommit", "resume", table],
        ["asynccommit", "abort", table, "--rollback"],
        ["asynccommit.spark.undo"],
    ):
        tried = subprocess.run(
            [*base, *words], input=json.dumps(asked), capture_output=True, text=True
        )
        told.append([tried.returncode, tried.stdout + tried.stderr])
    (scratch / "told.json").write_text(json.dumps(told))

after_renames(2, try_all)
write()
print(len(reports()), reports()[0].epoch)
""",
    )
    told = json.loads((tmp_path / "told.json").read_text())

    assert done.stdout.split() == ["1", "1"], done.stderr
    assert [code for code, _ in told] == [3, 3, 1]
    assert all("asynccommit takeover" in text for _, text in told)
    assert ids(tmp_path / "t") == [*range(20)]
    assert leftovers(tmp_path / "t") == []


@pytest.mark.full
def test_jvm_dies_during_the_commit(tmp_path: Path) -> None:
    """Python ends what it has begun: the table is whole, though the write raises."""
    done = run(
        tmp_path,
        """
at("job_stage_rename_files", lambda: os.kill(java, signal.SIGKILL))
try:
    write()
except Exception as error:
    print("raised", type(error).__name__)
bridge.BRIDGE.wait(30)
""",
    )

    assert "raised" in done.stdout, done.stderr
    assert ids(tmp_path / "t") == [*range(20)]
    assert (tmp_path / "t" / "_SUCCESS").exists()
    assert leftovers(tmp_path / "t") == []


@pytest.mark.full
@pytest.mark.parametrize("stage", ["job_stage_load_manifests", "job_stage_rename_files"])
def test_ctrl_c_during_the_commit(tmp_path: Path, stage: str) -> None:
    """The program is interrupted, and the commit that has begun ends whole before it exits."""
    done = run(
        tmp_path,
        f"""
import time
def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)
at({stage!r}, interrupt)
write()
""",
    )

    assert done.returncode != 0, done.stderr  # by KeyboardInterrupt, or Py4J's word for it
    assert ids(tmp_path / "t") == [*range(20)]
    assert (tmp_path / "t" / "_SUCCESS").exists()
    assert leftovers(tmp_path / "t") == []

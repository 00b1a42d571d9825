"""Processes that die while a job is committed: Python, the JVM, both; and Ctrl-C."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.spark import leftovers, run_script, visible, wait_until

pytestmark = pytest.mark.spark

WRITE = """
spark = configure(builder(scratch)).getOrCreate()
java = int(spark._jvm.java.lang.ProcessHandle.current().pid())
(scratch / "java.pid").write_text(str(java))
frame = spark.range(20).selectExpr("id", "id % 3 as p").repartition(2)

def at(stage, action):
    todo = [action]
    def on_progress(progress):
        if progress.stage == stage and todo:
            todo.pop()()
    bridge.on_progress = on_progress

def write():
    frame.write.mode("append").partitionBy("p").parquet(str(scratch / "t"))
"""


def wait_for_jvm(scratch: Path) -> None:
    """Wait until the script's JVM has gone too, with what it does on its way out."""
    pid = (scratch / "java.pid").read_text()
    assert wait_until(lambda: not Path("/proc", pid).exists(), 30)


def records(table: Path) -> list[Path]:
    """Return the commit records under a table."""
    return list(table.glob("_temporary/*/00/commit-record.json"))


@pytest.mark.parametrize("victims", ["python", "both"])
def test_python_dies_after_the_record(tmp_path: Path, victims: str) -> None:
    """Nothing that a resume needs is deleted, whether or not the JVM lives to abort."""
    kill = "os.kill(java, signal.SIGKILL), " if victims == "both" else ""
    run_script(
        tmp_path,
        WRITE
        + f'at("job_stage_rename_files", lambda: ({kill}os.kill(os.getpid(), signal.SIGKILL)))\n'
        + "write()\n",
    )
    wait_for_jvm(tmp_path)

    table = tmp_path / "t"
    assert len(records(table)) == 1
    attempt = records(table)[0].parent
    listed = [json.loads(path.read_text()) for path in attempt.glob("manifests/*-manifest.json")]
    assert sum(len(manifest["files"]) for manifest in listed) == 6
    assert len(list(attempt.rglob("tasks/**/*.parquet"))) + len(visible(table)) == 6
    assert not (table / "_SUCCESS").exists()


def test_python_dies_before_the_record(tmp_path: Path) -> None:
    """Nothing is visible, and another job's directory is not touched."""
    other = tmp_path / "t" / "_temporary" / "other" / "00" / "tasks"
    other.mkdir(parents=True)
    run_script(
        tmp_path,
        WRITE
        + 'at("job_stage_load_manifests", lambda: os.kill(os.getpid(), signal.SIGKILL))\nwrite()\n',
    )
    wait_for_jvm(tmp_path)

    assert visible(tmp_path / "t") == []
    assert records(tmp_path / "t") == []
    assert other.exists()


def test_jvm_dies_during_the_commit(tmp_path: Path) -> None:
    """Python ends what it has begun: the table is whole, though the write raises."""
    done = run_script(
        tmp_path,
        WRITE
        + """
        at("job_stage_rename_files", lambda: os.kill(java, signal.SIGKILL))
        try:
            write()
        except Exception as error:
            print("raised", type(error).__name__)
        bridge.BRIDGE.wait(30)
        """.replace("\n        ", "\n"),
    )
    wait_for_jvm(tmp_path)

    assert "raised" in done.stdout, done.stderr
    assert len(visible(tmp_path / "t")) == 6
    assert (tmp_path / "t" / "_SUCCESS").exists()
    assert leftovers(tmp_path / "t") == []


@pytest.mark.parametrize("stage", ["job_stage_load_manifests", "job_stage_rename_files"])
def test_ctrl_c_during_the_commit(tmp_path: Path, stage: str) -> None:
    """The program is interrupted, and the commit that has begun ends whole before it exits."""
    done = run_script(
        tmp_path,
        WRITE
        + f"""
        import time
        def interrupt():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        at({stage!r}, interrupt)
        write()
        """.replace("\n        ", "\n"),
    )
    wait_for_jvm(tmp_path)

    assert done.returncode != 0, done.stderr  # by KeyboardInterrupt, or Py4J's word for it
    assert len(visible(tmp_path / "t")) == 6
    assert (tmp_path / "t" / "_SUCCESS").exists()
    assert leftovers(tmp_path / "t") == []

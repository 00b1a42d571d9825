"""Tables that are there only because the driver of their first job was killed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asynccommit import sync
from asynccommit.spark.bridge import Bridge
from asynccommit.spark.jars import build_id
from tests.spark.test_kills import ids, run
from tests.support.spark import leftovers, run_python, visible

SET_UP = """
import os, signal, sys
from asynccommit import sync
with sync.open_job(sys.argv[1], job_id=sys.argv[2]) as job, job.task(0) as task:
    open(task.path("x"), "w").close()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def set_up_and_killed(table: Path, job_id: str, *, made: bool) -> None:
    """Leave what a job has whose driver was killed, as Spark's setup does it."""
    assert run_python("-c", SET_UP, str(table), job_id).returncode == -9
    if made:
        (table / "_temporary" / job_id / "00" / "alive" / "made-destination").mkdir(parents=True)


def clear(table: Path) -> str:
    """Ask as the JVM does before Spark looks what is there; return the error, empty if none."""
    asked = {"version": 1, "what": "clear", "dest": f"file:{table}", "jobId": "new", "attempt": 0}
    told = {**asked, "build": build_id(), "conf": {}, "storage": {}}
    reply = json.loads(Bridge().apply(json.dumps(told)))
    return str(reply.get("error", ""))


@pytest.mark.parametrize("made", [["a"], ["a", "b"], ["b"]])
def test_what_dead_jobs_have_made_is_removed(tmp_path: Path, made: list[str]) -> None:
    """A destination that holds nothing else is gone, whichever of them has made it."""
    for job_id in ("a", "b"):
        set_up_and_killed(tmp_path / "t", job_id, made=job_id in made)

    assert clear(tmp_path / "t") == ""
    assert not (tmp_path / "t").exists()


def test_a_directory_of_the_users_stays(tmp_path: Path) -> None:
    """One that was there before the job is kept, and so is what the job has left in it."""
    (tmp_path / "t").mkdir()
    set_up_and_killed(tmp_path / "t", "a", made=False)

    assert clear(tmp_path / "t") == ""
    assert (tmp_path / "t" / "_temporary" / "a").exists()


def test_what_else_is_there_stays(tmp_path: Path) -> None:
    """Only a directory in which nothing is but what dead jobs have left is removed."""
    set_up_and_killed(tmp_path / "t", "a", made=True)
    (tmp_path / "t" / "mine").write_text("mine")

    assert clear(tmp_path / "t") == ""
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["mine"]


def test_a_job_that_lives_is_left_alone(tmp_path: Path) -> None:
    """Neither it nor a dead one beside it is touched."""
    set_up_and_killed(tmp_path / "t", "a", made=True)
    with sync.open_job(tmp_path / "t", job_id="b") as job, job.task(0) as task:
        Path(task.path("x")).write_text("x")
        assert clear(tmp_path / "t") == ""
        assert (tmp_path / "t" / "_temporary" / "a").exists()

    assert visible(tmp_path / "t") == ["x"]


def test_a_commit_that_was_cut_short_is_named(tmp_path: Path) -> None:
    """What may be finished is not deleted, and the answer says how to look at it."""
    killed = """
import os, signal, sys
from pathlib import Path
from asynccommit import sync
from tests.support.spark import after_renames
after_renames(0, lambda: os.kill(os.getpid(), signal.SIGKILL))
with sync.open_job(sys.argv[1], job_id="a") as job, job.task(0) as task:
    Path(task.path("x")).write_text("x")
"""
    assert run_python("-c", killed, str(tmp_path / "t")).returncode == -9

    assert f"asynccommit status {tmp_path / 't'}" in clear(tmp_path / "t").replace("file:", "")
    assert (tmp_path / "t" / "_temporary" / "a").exists()


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["errorifexists", "ignore"])
def test_rerun_after_both_were_killed(tmp_path: Path, mode: str) -> None:
    """The unchanged program writes the table that its first run has only begun."""
    program = f"""
if (scratch / "kill").exists():
    (scratch / "kill").unlink()
    at("job_stage_load_manifests", die)
write({mode!r})
"""
    (tmp_path / "kill").touch()
    run(tmp_path, program, DIE="99 java")
    assert (tmp_path / "t").exists()
    assert visible(tmp_path / "t") == []
    again = run(tmp_path, program)

    assert again.returncode == 0, again.stderr
    assert ids(tmp_path / "t") == [*range(20)]
    assert leftovers(tmp_path / "t") == []


@pytest.mark.every(2)
@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_second_job_does_not_clear_one_that_runs(tmp_path: Path) -> None:
    """Of two jobs that make one table in the default mode the second is refused."""
    done = run(
        tmp_path,
        """
import time
from pyspark.sql.functions import udf
go = str(scratch / "go")

def linger(x):
    while not os.path.exists(go):
        time.sleep(0.1)
    return x

slow = frame.withColumn("id", udf(linger, "long", useArrow=False)("id"))
first = threading.Thread(target=write, args=("errorifexists", slow))
first.start()
while not list((scratch / "t").glob("_temporary/*/00/job-owner.json")):
    time.sleep(0.1)
try:
    spark.range(3).write.parquet(table)
except Exception as error:
    print(str(error)[:21], flush=True)
Path(go).touch()
first.join()
""",
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["[PATH_ALREADY_EXISTS]"]
    assert ids(tmp_path / "t") == [*range(20)]

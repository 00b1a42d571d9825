"""Tables with a serde of Hive's: Spark writes to a staging directory, and Hive moves it on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.spark import run_python, run_script

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]

HIVE = """
import json, signal
os.chdir(scratch)
prepared = builder(scratch).enableHiveSupport()
url = "jdbc:derby:memory:metastore;create=true"
prepared = prepared.config("spark.hadoop.javax.jdo.option.ConnectionURL", url)
prepared = prepared.config("spark.driver.extraJavaOptions", f"-Dderby.system.home={scratch}")
spark = configure(prepared).getOrCreate()
spark.sql("create table h (id bigint) stored as textfile")
INSERT = "insert into h select id from range(5)"
"""


@pytest.mark.full
def test_a_report_says_that_hive_moves_on(tmp_path: Path) -> None:
    """The directory of the report is gone by the time that it is read, and the report says so."""
    done = run_script(
        tmp_path,
        HIVE
        + """
spark.sql(INSERT)
said = last_report()
spark.range(3).write.parquet(str(scratch / "t"))
plain = last_report()
print(json.dumps([spark.table("h").count(), said.dest, *said.warnings, len(plain.warnings)]))
""",
        timeout=200,
    )

    assert done.returncode == 0, done.stderr
    count, dest, note, others = json.loads(done.stdout)
    assert (count, others) == (5, 0)
    assert "/warehouse/h/.hive-staging_hive_" in dest
    assert note == f"Hive moves these files to its table, and then deletes its staging {dest}"


@pytest.mark.every(2, 0)
@pytest.mark.full
def test_a_job_key_is_refused(tmp_path: Path) -> None:
    """Hive drops the marker that would tell a second run that it is done, so nothing is written."""
    done = run_script(
        tmp_path,
        HIVE
        + """
spark.conf.set("asynccommit.job.key", "of July")
for _ in range(2):
    try:
        spark.sql(INSERT)
    except Exception as error:
        print(str(error).splitlines()[0])
spark.conf.unset("asynccommit.job.key")
spark.sql(INSERT)
print(spark.table("h").count())
""",
        timeout=200,
    )

    assert done.returncode == 0, done.stderr
    *refused, count = done.stdout.splitlines()
    assert len(refused) == 2
    assert all(line.startswith("asynccommit: asynccommit.job.key is 'of July'") for line in refused)
    assert count == "5"


@pytest.mark.every(2, 1)
@pytest.mark.full
def test_a_job_that_was_killed_is_found_in_the_staging_directory(tmp_path: Path) -> None:
    """Not below the table, of which its files are no part yet: as the page says."""
    done = run_script(
        tmp_path,
        HIVE
        + """
java = int(spark._jvm.java.lang.ProcessHandle.current().pid())
def die():
    for process in (java, os.getpid()):
        os.kill(process, signal.SIGKILL)
after_renames(1, die)
spark.sql(INSERT)
""",
        timeout=200,
    )
    assert done.returncode == -9
    table = tmp_path / "warehouse" / "h"
    (staging,) = table.glob(".hive-staging_hive_*/-ext-10000")

    told = run_python("-m", "asynccommit", "status", str(table)).stdout
    assert "no job" in told.lower()
    job = next((staging / "_temporary").iterdir()).name
    assert job in run_python("-m", "asynccommit", "status", str(staging)).stdout

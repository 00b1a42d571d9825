"""A NameNode that accepts tickets of a real KDC only."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from asynccommit.cli.output import Exit
from asynccommit.formats.success import COMMITTER, decode_success
from tests.crash_real.processes import environment
from tests.support import mini_kdc
from tests.support.mini_kdc import OTHER, USER, SecuredHdfs, start_secured_hdfs
from tests.support.spark import run_script

pytestmark = [pytest.mark.every(2, 1), pytest.mark.jvm, pytest.mark.full, pytest.mark.timeout(300)]

CONFIGURED = """
import json

root = (scratch / "root").read_text()
made = builder(scratch)
for service in ("hadoopfs", "hbase", "hive"):  # one JVM needs the ticket alone
    made = made.config(f"spark.security.credentials.{service}.enabled", "false")
spark = configure(made).getOrCreate()
"""
WRITE = """
frame = spark.range(20).selectExpr("id", "id % 3 as p").repartition(2)
frame.write.partitionBy("p").parquet(f"{root}/made")
rows = spark.read.parquet(f"{root}/made").collect()
told = [sorted(row.id for row in rows), [report.files for report in reports()]]
(scratch / "told.json").write_text(json.dumps(told))
spark.stop()
"""
KILLED = """
after_renames(2, lambda: os.kill(os.getpid(), signal.SIGKILL))
frame = spark.range(20).selectExpr("id", "id % 3 as p").repartition(2)
frame.write.partitionBy("p").parquet(f"{root}/killed")
"""


LOGGED_IN = """
import json

given = json.loads((scratch / "given.json").read_text())
made = builder(scratch)
for service in ("hadoopfs", "hbase", "hive"):  # one JVM needs no token
    made = made.config(f"spark.security.credentials.{service}.enabled", "false")
for key, value in given["conf"].items():
    made = made.config(key, value)
root = given["root"]
spark = configure(made).getOrCreate()
"""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredHdfs]:
    """Run a KDC and a cluster."""
    if reason := mini_kdc.why_not():
        pytest.skip(reason)
    with start_secured_hdfs(tmp_path_factory.mktemp("secured"), "-Xmx512m") as started:
        yield started


def command(secured: SecuredHdfs, *words: str, ticket: bool = True) -> tuple[int, str]:
    """Run the command from a shell; return its exit code and its output."""
    line = [sys.executable, "-m", "asynccommit", *words]
    env = environment() | secured.environment(ticket=ticket)
    done = subprocess.run(line, capture_output=True, text=True, env=env, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_spark_writes_with_a_ticket(
    secured: SecuredHdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks and the job commit use the ticket of ``kinit``; the files are the user's."""
    for name, value in secured.environment().items():
        monkeypatch.setenv(name, value)
    (tmp_path / "root").write_text(f"{secured.hdfs.url}/spark")
    done = run_script(tmp_path, CONFIGURED + WRITE)
    assert done.returncode == 0, done.stderr[-3000:]

    ids, files = json.loads((tmp_path / "told.json").read_text())

    assert (ids, files) == (list(range(20)), [6])
    marker = decode_success(secured.hdfs.read("/spark/made/_SUCCESS"), "_SUCCESS")
    assert marker.committer == COMMITTER
    status = secured.hdfs.filesystem.getFileStatus(secured.hdfs.path("/spark/made/_SUCCESS"))
    assert status.getOwner() == USER


def test_shell_resumes_with_a_ticket(
    secured: SecuredHdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``status`` and ``resume`` need no JVM; without a ticket they say what is missing."""
    with monkeypatch.context() as patched:
        for name, value in secured.environment().items():
            patched.setenv(name, value)
        (tmp_path / "root").write_text(f"{secured.hdfs.url}/shell")
        done = run_script(tmp_path, CONFIGURED + KILLED)
    assert done.returncode == -9, done.stderr[-3000:]
    table = f"{secured.hdfs.url}/shell/killed"

    code, said = command(secured, "status", table, ticket=False)
    assert code == Exit.FAILED, said
    assert "authentication failed" in said
    assert "kinit" in said

    code, said = command(secured, "status", table, "--json")
    assert code == 0, said
    assert [job["state"] for job in json.loads(said)["jobs"]] == ["stopped"]
    assert command(secured, "resume", table)[0] == 0
    assert secured.hdfs.exists("/shell/killed/_SUCCESS")


def test_shell_uses_a_keytab(secured: SecuredHdfs) -> None:
    """The options ``kerberos_principal`` and ``kerberos_keytab`` take the place of a ticket."""
    secured.hdfs.mkdirs("/keytab")
    words = [f"kerberos_principal={secured.principal}", f"kerberos_keytab={secured.keytab}"]
    given = [word for pair in words for word in ("-s", pair)]
    code, said = command(secured, "status", f"{secured.hdfs.url}/keytab", *given, ticket=False)
    assert code == 0, said


@pytest.mark.parametrize("how", ["keytab", "proxy"])
def test_job_commit_is_the_sessions_user(
    secured: SecuredHdfs, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python commits as the session's user, though it has no ticket, or that of another user."""
    for name, value in secured.environment(ticket=how == "proxy").items():
        monkeypatch.setenv(name, value)
    conf = {"spark.kerberos.principal": secured.principal}
    conf |= {"spark.kerberos.keytab": str(secured.keytab)}
    if how == "proxy":
        conf = {}
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--proxy-user {OTHER} pyspark-shell")
    given = {"root": f"{secured.hdfs.url}/by-{how}", "conf": conf}
    (tmp_path / "given.json").write_text(json.dumps(given))
    done = run_script(tmp_path, LOGGED_IN + WRITE)
    assert done.returncode == 0, done.stderr[-3000:]

    ids, files = json.loads((tmp_path / "told.json").read_text())

    assert (ids, files) == (list(range(20)), [6])
    owner = OTHER if how == "proxy" else USER
    for name in ("made", "made/_SUCCESS", "made/p=0"):
        status = secured.hdfs.filesystem.getFileStatus(secured.hdfs.path(f"/by-{how}/{name}"))
        assert status.getOwner() == owner

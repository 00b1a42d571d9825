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

pytestmark = [pytest.mark.every(3, 1), pytest.mark.jvm, pytest.mark.full, pytest.mark.timeout(300)]

CONFIGURED = """
import json

given = json.loads((scratch / "given.json").read_text())
made = builder(scratch)
for service in ("hadoopfs", "hbase", "hive"):  # one JVM needs no token
    made = made.config(f"spark.security.credentials.{service}.enabled", "false")
for key, value in given["conf"].items():
    made = made.config(key, value)
root = given["root"]
spark = configure(made).getOrCreate()
frame = spark.range(20).selectExpr("id", "id % 3 as p").repartition(2)
"""
WRITE = """
frame.write.partitionBy("p").parquet(f"{root}/made")
rows = spark.read.parquet(f"{root}/made").collect()
told = [sorted(row.id for row in rows), [report.files for report in reports()]]
(scratch / "told.json").write_text(json.dumps(told))
"""
KILLED = """
after_renames(2, lambda: os.kill(os.getpid(), signal.SIGKILL))
how = frame.write.option("asynccommit.on.failure", given.get("then", "keep"))
how.partitionBy("p").parquet(f"{root}/killed")
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


@pytest.mark.parametrize("how", ["ticket", "keytab", "proxy"])
def test_job_commit_is_the_sessions_user(
    secured: SecuredHdfs, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python commits as the session's user, and what it cannot undo as that user it leaves."""
    for name, value in secured.environment(ticket=how != "keytab").items():
        monkeypatch.setenv(name, value)
    conf = {"spark.kerberos.principal": secured.principal}
    conf |= {"spark.kerberos.keytab": str(secured.keytab)}
    if how == "proxy":
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--proxy-user {OTHER} pyspark-shell")
    given = {"root": f"{secured.hdfs.url}/{how}", "conf": conf if how == "keytab" else {}}
    (tmp_path / "given.json").write_text(json.dumps({**given, "then": "rollback"}))
    done = run_script(tmp_path, CONFIGURED + WRITE + KILLED)
    assert done.returncode == -9, done.stderr[-3000:]

    assert json.loads((tmp_path / "told.json").read_text()) == [[*range(20)], [6]]
    marker = decode_success(secured.hdfs.read(f"/{how}/made/_SUCCESS"), "_SUCCESS")
    assert marker.committer == COMMITTER
    for name in ("made", "made/_SUCCESS", "made/p=0"):
        assert owner(secured, f"/{how}/{name}") == (OTHER if how == "proxy" else USER)
    assert secured.hdfs.exists(f"/{how}/killed/_temporary") is (how != "ticket"), done.stderr


def owner(secured: SecuredHdfs, path: str) -> str:
    """Return whose a file is."""
    status = secured.hdfs.filesystem.getFileStatus(secured.hdfs.path(path))
    return str(status.getOwner())


def test_shell_resumes_with_a_ticket(
    secured: SecuredHdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``status`` and ``resume`` need no JVM; without a ticket they say what is missing."""
    with monkeypatch.context() as patched:
        for name, value in secured.environment().items():
            patched.setenv(name, value)
        given = {"root": f"{secured.hdfs.url}/shell", "conf": {}}
        (tmp_path / "given.json").write_text(json.dumps(given))
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

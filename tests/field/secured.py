"""Jobs on a cluster with Kerberos: a KDC, HDFS and YARN, with delegation tokens that end soon."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyarrow import parquet

from tests.field.place import MissingError, Place, StartError, options_of
from tests.field.starts import Start
from tests.field.yarn_starts import in_container, on_yarn, submit
from tests.support import mini_kdc, mini_yarn
from tests.support.class_data import SHORT_LIVED
from tests.support.mini_kdc import OTHER, USER, SecuredHdfs, start_secured_yarn
from tests.support.mini_yarn import MiniYarn

SOON = 30
"""Seconds after which a token must be renewed."""

_LIVES = {
    "dfs.namenode.delegation.token.renew-interval": str(SOON * 1000),
    "dfs.namenode.delegation.token.max-lifetime": "900000",
    "ipc.client.connection.maxidletime": "300",  # each request after a pause shows a token again
}
PROGRAM = """\
import os, signal, sys
from pyspark.sql import SparkSession
import asynccommit.spark

root, kill, *tables = sys.argv[1:]
def die(progress):
    if kill == "kill" and progress.stage == "job_stage_rename_files" and progress.done >= 5:
        os.kill(os.getpid(), signal.SIGKILL)
slow = {"asynccommit.rate": 1.5}
builder = SparkSession.builder.appName("flights")
spark = asynccommit.spark.configure(builder, on_progress=die, conf=slow).getOrCreate()
for name in tables:
    flights = spark.range(1000).selectExpr("id", "id % 30 as day").repartition(1)
    flights.write.partitionBy("day").parquet(f"{root}/{name}")
    print("seconds:", name, int(asynccommit.spark.last_report().seconds), flush=True)
spark.stop()
"""


@dataclass(frozen=True, slots=True)
class Secured:
    """A running cluster with Kerberos, and the place of a cell.

    Attributes:
        place: where applications are started.
        hdfs: the KDC and the store.
        yarn: what runs containers.
    """

    place: Place
    hdfs: SecuredHdfs
    yarn: MiniYarn

    def submit(self, mode: str, folder: str, *options: str, end: str = "none") -> str:
        """Run the program, which writes two tables in a container, and one here."""
        tables = ("first", "second") if mode == "cluster" else ("first",)
        words = (*options, "app.py", f"{self.hdfs.hdfs.url}/{folder}", end, *tables)
        return submit(self.place, self.yarn, mode, *words)

    def command(self, *words: str, user: str = USER) -> str:
        """Run the command as a user."""
        proxied = {"HADOOP_PROXY_USER": user} if user != USER else {}
        self.place.variables |= proxied
        try:
            return self.place.python("-m", "asynccommit", *words)
        finally:
            for name in proxied:
                del self.place.variables[name]

    def expect(self, table: str, user: str) -> None:
        """Check the rows of a table and whose they are. Raises ``StartError``."""
        hdfs, here = self.hdfs.hdfs, self.place.folder / table.strip("/").replace("/", "-")
        with hdfs.hadoop.errors():
            path = hdfs.hadoop.path(str(here))
            hdfs.filesystem.copyToLocalFile(False, hdfs.path(table), path, True)
        rows = parquet.read_table(here, partitioning="hive").to_pylist()
        if sorted((row["id"], row["day"]) for row in rows) != [(i, i % 30) for i in range(1000)]:
            raise StartError(f"{table} has other rows: {len(rows)}")
        names = (table, f"{table}/_SUCCESS", f"{table}/day=7")
        owners = {str(hdfs.filesystem.getFileStatus(hdfs.path(it)).getOwner()) for it in names}
        if owners != {user}:
            raise StartError(f"{table} is of {owners}, expected {user}")
        if hdfs.exists(f"{table}/_temporary"):
            raise StartError(f"{table} has leftovers")


@contextmanager
def _cluster(place: Place) -> Iterator[Secured]:
    if reason := mini_kdc.why_not() or mini_yarn.why_not():
        raise MissingError(reason)
    folder = place.folder / "cluster"
    folder.mkdir()
    started = start_secured_yarn(folder, "-Xmx600m", *SHORT_LIVED.split(), settings=_LIVES)
    with started as (hdfs, yarn):
        _open_home(hdfs)
        on_yarn(place, yarn)
        java = f"{SHORT_LIVED} -Djava.security.krb5.conf={hdfs.krb5_conf}"
        for name in ("executor", "driver", "yarn.am"):
            place.settings[f"spark.{name}.extraJavaOptions"] = java
        place.variables |= hdfs.environment() | {"HADOOP_CONF_DIR": str(yarn.conf_dir)}
        yield Secured(place, hdfs, yarn)


def _open_home(secured: SecuredHdfs) -> None:
    """Let every user make a home directory, where Spark stages its files."""
    hdfs = secured.hdfs
    everybody = hdfs.hadoop.new("org.apache.hadoop.fs.permission.FsPermission", "777")
    with hdfs.hadoop.errors():
        hdfs.mkdirs("/user")
        hdfs.filesystem.setPermission(hdfs.path("/user"), everybody)


def client(place: Place) -> str:
    """Write with a ticket, then for another user, who resumes a commit that was killed."""
    with _cluster(place) as secured:
        place.write(PROGRAM)
        said = secured.submit("client", "ticket")
        secured.expect("/ticket/first", USER)
        said += _killed(secured)
        return said


def _killed(secured: Secured) -> str:
    root = f"{secured.hdfs.hdfs.url}/proxied"
    try:
        secured.submit("client", "proxied", "--proxy-user", OTHER, end="kill")
        raise StartError("the application was not killed")
    except StartError as error:
        if "-9" not in str(error) and "137" not in str(error):
            raise
    said = secured.command("resume", f"{root}/first", user=OTHER)
    secured.expect("/proxied/first", OTHER)
    return said


def cluster(place: Place) -> str:
    """Write in a container, with the tokens of the submission alone, then with a keytab."""
    with _cluster(place) as secured:
        in_container(place)
        place.write(PROGRAM)
        said = secured.submit("cluster", "tokens")
        login = {
            "spark.kerberos.principal": secured.hdfs.principal,
            "spark.kerberos.keytab": str(secured.hdfs.keytab),
        }
        no_ticket = str(secured.hdfs.cache.with_name("no-ticket"))
        place.variables["KRB5CCNAME"] = no_ticket
        said += secured.submit("cluster", "keytab", *options_of(login))
        for folder in ("tokens", "keytab"):
            secured.expect(f"/{folder}/first", USER)
            secured.expect(f"/{folder}/second", USER)
        _check_seconds(said)
        return said


def _check_seconds(said: str) -> None:
    """Check that commits took longer than a token lives."""
    seconds = [int(line.split()[-1]) for line in said.splitlines() if line.startswith("seconds:")]
    if len(seconds) < 2 or min(seconds) <= SOON:
        raise StartError(f"commits took {seconds} s, expected more than {SOON} s each")


SECURED_STARTS = {
    "secured-client": Start(
        client,
        "with Kerberos: `spark-submit app.py`; with `--proxy-user`, killed and resumed",
        None,
    ),
    "secured-cluster": Start(
        cluster,
        "with Kerberos: `--deploy-mode cluster` with tokens that are renewed in the commit, and "
        "with a keytab",
        None,
    ),
}

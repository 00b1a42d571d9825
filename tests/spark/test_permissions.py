"""Permissions of committed files and directories, beside those of Spark's own protocol."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from asynccommit.spark.sessions import settings_of
from tests.support.permissions import KINDS, directory
from tests.support.spark import cluster, run_script

OURS = "org.asynccommit.spark.AsyncCommitProtocol"
STOCK = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
BODY = """
    import json
    from tests.support.permissions import facts, umask
    os.umask(int(sys.argv[2], 8))
    made = builder(scratch)
    if sys.argv[3]:
        made = made.config("spark.hadoop.fs.permissions.umask-mode", sys.argv[3])
    spark = configure(made).getOrCreate()
    frame = spark.range(300).selectExpr("id", "id % 60 as p")

    def write(rows, tasks, path, mode="error", **options):
        writer = rows.repartition(tasks).write.mode(mode).options(**options)
        (writer.partitionBy("p") if "p" in rows.columns else writer).parquet(str(path))

    def fill(root):
        write(frame, 1, root / "whole")
        write(frame, 3, root / "by-file")
        write(frame.drop("p"), 2, root / "plain")
        write(frame.selectExpr("id", "p + 40 as p"), 1, root / "appended")
        write(frame.selectExpr("id", "p + 80 as p"), 3, root / "appended", "append")
        write(frame, 1, root / "dynamic")
        some = frame.where("p < 30")
        write(some, 1, root / "dynamic", "overwrite", partitionOverwriteMode="dynamic")

    def look(root):
        found = {}
        for folder, _, names in os.walk(root):
            for name in (".", *names):
                path = Path(folder, name)
                kind = "part" if name.startswith("part-") else name
                if name.endswith(".crc"):
                    continue
                place = os.path.relpath(Path(folder, kind), root)
                found.setdefault(place, set()).add(repr(facts(path)))
        return {place: sorted(all) for place, all in found.items()}

    seen = {}
    for protocol, kind, root in json.loads(sys.argv[4]):
        spark.conf.set("spark.sql.sources.commitProtocolClass", protocol)
        fill(Path(root))
        seen[root] = look(root)
    print(json.dumps(seen))
    spark.stop()
"""

NOBODY = 65534
TWO_USERS = """
    import json
    made = builder(scratch, sys.argv[2]).config("spark.executor.memory", "512m")
    made = made.config("spark.hadoop.fs.permissions.umask-mode", "000")
    spark = configure(made).getOrCreate()
    frame = spark.range(240).selectExpr("id", "id % 60 as p")
    key = "spark.sql.sources.commitProtocolClass"
    kinds = {"ours": spark.conf.get(key), "stock": sys.argv[3]}
    seen = {}
    for kind, protocol in kinds.items():
        spark.conf.set(key, protocol)
        for tasks in (1, 3):
            table = scratch / f"{kind}-{tasks}"
            frame.repartition(tasks).write.partitionBy("p").parquet(str(table))
            found = {each.name: each.stat() for each in table.glob("p=*")}
            seen[table.name] = {p: [it.st_uid, oct(it.st_mode & 0o777)] for p, it in found.items()}
            users = {each.stat().st_uid for each in table.glob("p=*/part-*")}
            assert users == {65534}, users
    print(json.dumps(seen))
    spark.stop()
"""


def on_both(scratch: Path, mask: str, option: str) -> dict[str, tuple[Any, Any]]:
    """Return what stock Spark and this protocol leave in each kind of directory."""
    roots = [
        (name, kind, str(directory(scratch / f"{kind}-{name.rpartition('.')[2]}", kind)))
        for kind in KINDS
        for name in (STOCK, OURS)
    ]
    done = run_script(scratch, BODY, mask, option, json.dumps(roots), timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    places = {(name, kind): root for name, kind, root in roots}
    return {kind: (seen[places[STOCK, kind]], seen[places[OURS, kind]]) for kind in KINDS}


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.timeout(640)
@pytest.mark.parametrize(
    "mask, option",
    [("022", "077"), ("027", ""), ("077", "002")],
)
def test_permissions_are_those_of_stock_spark(tmp_path: Path, mask: str, option: str) -> None:
    """Mode, owner, group and ACLs of each directory and file, under any umask of the process."""
    for kind, (stock, ours) in on_both(tmp_path, mask, option).items():
        assert len(stock) > 400, "partitions and their files, of five tables"
        assert ours == stock, kind


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.cluster
@pytest.mark.spark
@pytest.mark.timeout(400)
@pytest.mark.skipif(os.getuid() != 0, reason="starts workers of another user")
def test_partitions_belong_to_the_driver_whoever_ran_the_tasks(tmp_path: Path) -> None:
    """A partition of one file and one of several have the same owner and mode.

    With Spark's own protocol a partition has the owner of the task that made it.
    """
    work = Path(tempfile.mkdtemp(prefix="asynccommit-"))  # others cannot enter tmp_path
    work.chmod(0o777)
    with cluster(work, NOBODY) as master:
        done = run_script(work, TWO_USERS, master, STOCK, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    shutil.rmtree(work)

    for owner, tables in ((0, ("ours-1", "ours-3")), (NOBODY, ("stock-1", "stock-3"))):
        for name in tables:
            expected = {f"p={number}": [owner, "0o777"] for number in range(60)}
            assert seen[name] == expected, name


def test_the_umask_of_a_session_counts(spark: Any, table: Path, frame: Any) -> None:
    """Directories and marker, which Python makes, are as the session's configuration says."""
    spark.conf.set("fs.permissions.umask-mode", "027")
    try:
        frame.write.partitionBy("p").parquet(str(table))
        assert settings_of(spark, "file")[1] == {"fs.permissions.umask-mode": "027"}
    finally:
        spark.conf.unset("fs.permissions.umask-mode")

    made = {*table.glob("p=*")}
    assert (len(made), {oct(path.stat().st_mode & 0o777) for path in made}) == (3, {"0o750"})
    assert oct(os.stat(table / "_SUCCESS").st_mode & 0o777) == "0o640"

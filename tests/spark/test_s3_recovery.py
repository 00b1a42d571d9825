"""``status``, ``resume`` and ``rollback`` on s3a, called by a program with a session.

One driver program does it all. A proxy before moto refuses to complete some uploads, so that job
commits fail half-way; then it does not any more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from asynccommit.demo.moto import Moto
from asynccommit.demo.s3 import client_conf, client_jars
from asynccommit.errors import UnsupportedError
from asynccommit.testing.emulators.s3_proxy.emulator import running_s3_proxy
from tests.support.hadoop import jars, java_command
from tests.support.s3_servers import moto_url, new_bucket
from tests.support.spark import run_script

__all__ = ["moto_url"]
pytestmark = [
    pytest.mark.every(2, 1),
    pytest.mark.full,
    pytest.mark.spark,
    pytest.mark.timeout(300),
]  # the first one waits for Spark

WHOLE, OLD = list(range(20)), [0, 1]
SCRIPT = """
import json
import urllib.request
from functools import partial

from asynccommit.spark import resume, rollback, status

os.chdir(scratch)  # where Hadoop's staging tasks keep their sets is below
given = json.loads((scratch / "given.json").read_text())
made = builder(scratch).config("spark.jars", ",".join(given["jars"]))
for key, value in given["conf"].items():
    made.config(f"spark.hadoop.{key}", value)
spark = configure(made).getOrCreate()
frame = spark.range(20).selectExpr("id", "id % 2 as p").repartition(2)
told = {}


def weather(*faults):
    asked = urllib.request.Request(
        f"{given['proxy']}/_emulator/faults", json.dumps(faults).encode(), method="PUT"
    )
    urllib.request.urlopen(asked, timeout=30).close()


def stop_half_way(table):
    frame.where("id < 2").write.partitionBy("p").parquet(table)
    refused = {"kind": "before", "op": "complete_upload", "path": "p=1/", "code": "AccessDenied"}
    weather(refused)
    try:
        frame.where("id >= 2").write.mode("append").partitionBy("p").parquet(table)
    except Exception as error:
        return str(error)
    finally:
        weather()


def end(name, verb):
    table = f"{given['root']}/{name}"
    error = stop_half_way(table)
    job = error.split()[1].rstrip(",")
    jobs = [[found.job_id == job, found.files] for found in status(table)]
    done = verb(table, job)
    told[name] = {
        "error": error,
        "jobs": jobs,
        "done": {key: getattr(done, key, False) for key in ("resumed", "rolled_back")},
        "ids": sorted(row.id for row in spark.read.parquet(table).collect()),
        "left": len(status(table)),
    }


end("resume", resume)
end("takeover", partial(resume, force=True))
end("rollback", rollback)
spark.conf.set("fs.s3a.committer.name", "directory")
end("staged-resume", resume)
end("staged-rollback", rollback)
(scratch / "told.json").write_text(json.dumps(told))
spark.stop()
"""


@dataclass(frozen=True)
class Ran:
    """What the driver program did, and what the bucket holds."""

    told: Mapping[str, Any]
    bucket: str
    moto: Moto
    scratch: Path

    def left(self, table: str) -> list[str]:
        """Return what no finished job may leave below a table: files of its own, and uploads."""
        keys = self.moto.objects(self.bucket, f"{table}/")
        own = [key for key in keys if re.search("/(__magic|_temporary).*[^/]$", key)]
        return own + self.moto.uploads(self.bucket, f"{table}/")


@pytest.fixture(scope="module")
def ran(moto_url: str, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Run the driver program; skips where there is no client."""
    if java_command() is None or jars() is None:
        pytest.skip("needs java and pyspark")
    try:
        found = client_jars()
    except UnsupportedError as error:
        pytest.skip(str(error))
    scratch, bucket = tmp_path_factory.mktemp("s3"), new_bucket(moto_url)
    with running_s3_proxy(moto_url) as proxy:
        conf = {**client_conf(proxy.endpoint), "fs.s3a.buffer.dir": f"{scratch}/buffer"}
        given = {
            "jars": list(map(str, found)),
            "conf": conf,
            "root": f"s3a://{bucket}",
            "proxy": proxy.endpoint,
        }
        (scratch / "given.json").write_text(json.dumps(given))
        done = run_script(scratch, SCRIPT, timeout=280)
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads((scratch / "told.json").read_text())
    return Ran(told, bucket, Moto(moto_url), scratch)


@pytest.mark.parametrize("verb", ["resume", "takeover"])
def test_commit_is_finished(ran: Ran, verb: str) -> None:
    """The job is found, and then the table is as if nothing had happened."""
    told = ran.told[verb]

    assert "complete_upload" in told["error"]
    assert told["jobs"] == [[True, 4]]
    assert told["done"]["resumed"]
    assert told["ids"] == WHOLE
    assert (told["left"], ran.left(verb)) == (0, [])


def test_commit_is_undone(ran: Ran) -> None:
    """The table is as before the job, and no upload is left to pay for."""
    told = ran.told["rollback"]

    assert told["jobs"] == [[True, 4]]
    assert told["done"]["rolled_back"]
    assert told["ids"] == OLD
    assert (told["left"], ran.left("rollback")) == (0, [])


@pytest.mark.parametrize("verb, ids", [("resume", WHOLE), ("rollback", OLD)])
def test_staged_job(ran: Ran, verb: str, ids: list[int]) -> None:
    """A job whose sets Hadoop keeps elsewhere is found there once it is named."""
    told = ran.told[f"staged-{verb}"]

    assert "complete_upload" in told["error"]
    assert told["done"] == {"resumed": verb == "resume", "rolled_back": verb == "rollback"}
    assert told["ids"] == ids
    assert ran.left(f"staged-{verb}") == []
    assert list(ran.scratch.glob("tmp/staging/*/*/*")) == []

"""A program that ends in the middle of a job: it ends, and says nothing of what has no meaning."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from asynccommit.testing.emulators.adls.emulator import EmulatorThread
from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread
from asynccommit.testing.pytest_plugin import adls_emulator_thread, gcs_emulator_thread
from tests.support.s3_servers import moto_url, new_bucket, options

__all__ = ["adls_emulator_thread", "gcs_emulator_thread", "moto_url"]

BLOCK = """
import json, sys
from asynccommit import sync

url, options = sys.argv[1], json.loads(sys.argv[2])
opened = sync.job(url, storage_options=options)
job = opened.__enter__()
begun = job.task(0)
task = begun.__enter__()
task.put("part", b"x")
print(job.job_id)
"""
GENERATOR = """
import json, sys
from asynccommit import sync

def rows():
    with sync.job(sys.argv[1], storage_options=json.loads(sys.argv[2])) as job, job.task(0) as task:
        task.put("part", b"x")
        yield job.job_id

held = rows()
print(next(held))
"""
STORE = """
import json, random, sys
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.urls import parse_url

address = parse_url(sys.argv[1])
store = open_store(address, StoreSettings(random.Random(1), options=json.loads(sys.argv[2])))

async def put():
    await store.put(f"{address.path}-file", b"x")

submit(put())
print("done")
"""
PROGRAMS = pytest.mark.parametrize("program", [BLOCK, GENERATOR, STORE])


def end(program: str, url: str, storage_options: Mapping[str, Any]) -> None:
    """Run a program to its end, and see that it has said one line and nothing else."""
    words = [sys.executable, "-c", program, url, json.dumps(storage_options)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1


@PROGRAMS
def test_on_a_local_disk(program: str, tmp_path: Path) -> None:
    """A job whose block is not left is aborted, as by an exception."""
    end(program, str(tmp_path / "out"), {})

    assert not (tmp_path / "out").exists()


@PROGRAMS
def test_on_adls(program: str, adls_emulator_thread: EmulatorThread) -> None:
    """The same where a store holds connections."""
    emulator = adls_emulator_thread
    emulator.do(lambda running: running.model.create_filesystem("data"))
    url = f"abfs://data@{emulator.account}.dfs.core.windows.net/out"

    end(program, url, {"connection_string": emulator.connection_string})


@PROGRAMS
def test_on_gcs(program: str, gcs_emulator_thread: GcsEmulatorThread) -> None:
    """The same with a bucket of Google Cloud Storage."""
    emulator = gcs_emulator_thread
    emulator.do(lambda running: running.service.create_bucket("data"))

    end(program, "gs://data/out", {"endpoint_url": emulator.endpoint, "token": "anon"})


@PROGRAMS
def test_on_s3(program: str, moto_url: str) -> None:
    """The same with a bucket of S3, whose jobs have open uploads."""
    end(program, f"s3://{new_bucket(moto_url)}/out", options(moto_url))

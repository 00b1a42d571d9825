"""A program that ends in the middle of a job: it ends, and says nothing of what has no meaning."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from asynccommit import sync
from asynccommit.testing.emulators.adls.emulator import EmulatorThread
from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread
from asynccommit.testing.pytest_plugin import adls_emulator_thread, gcs_emulator_thread
from tests.support.s3_servers import moto_url, new_bucket, options

__all__ = ["adls_emulator_thread", "gcs_emulator_thread", "moto_url"]

BLOCK = """
import json, sys
from asynccommit import sync

url, options = sys.argv[1], json.loads(sys.argv[2])
opened = sync.open_job(url, storage_options=options)
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
    storage = json.loads(sys.argv[2])
    with sync.open_job(sys.argv[1], storage_options=storage) as job, job.task(0) as task:
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
DAEMON = """
import sys, threading
from asynccommit import sync

ready = threading.Event()

def work():
    with sync.open_job(sys.argv[1]) as job, job.task(0) as task:
        task.put("part", b"x")
        ready.set()
        if sys.argv[3] == "idle":
            threading.Event().wait()
        for number in range(1_000_000):
            task.put(f"part-{number}", b"x")

threading.Thread(target=work, daemon=True).start()
ready.wait()
print("main ends")
"""
LEAVING = """
import threading, time
from concurrent.futures import ThreadPoolExecutor
from asynccommit.runtime import at_exit

ready, pool = threading.Event(), ThreadPoolExecutor(1)

def work():
    with at_exit.leaving(at_exit.entered(print)) as is_open:
        ready.set()
        time.sleep(0.5)
        print("done", pool.submit(lambda: is_open).result())

threading.Thread(target=work).start()
ready.wait()
"""
CALLING = """
import asyncio, random, sys, threading
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.urls import parse_url

address = parse_url(sys.argv[1])
store, ready = open_store(address, StoreSettings(random.Random(1))), threading.Event()

async def put():
    ready.set()
    await asyncio.sleep(0.5)
    await asyncio.to_thread(print, "on a thread")
    await store.put(f"{address.path}/file", b"x")

threading.Thread(target=lambda: submit(put())).start()
ready.wait()
"""
AWAITED = """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from asynccommit import sync

ready = threading.Event()

def work():
    with sync.open_job(sys.argv[1]) as job, job.task(0) as task:
        task.put("part-0", b"x")
        ready.set()
        time.sleep(0.3)
        for number in range(1, 20):
            task.put(f"part-{number}", b"x")
    print("committed", job.report.files)

if sys.argv[2] == "thread":
    threading.Thread(target=work).start()
else:
    ThreadPoolExecutor(1).submit(work)
ready.wait()
print("main ends")
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


@pytest.mark.parametrize("at", ["idle", "busy"])
def test_a_daemon_thread_in_the_middle_of_a_job(at: str, tmp_path: Path) -> None:
    """The program ends without a word, nothing is committed, and the job can be aborted."""
    table = tmp_path / "out"
    words = [sys.executable, "-c", DAEMON, str(table), "{}", at]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "main ends\n", "")

    assert [path.name for path in table.iterdir()] == ["_temporary"]
    (job,) = (table / "_temporary").iterdir()
    sync.job(str(table), job.name).abort()
    assert not (table / "_temporary").exists()


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


@pytest.mark.parametrize("kind", ["thread", "pool"])
def test_a_thread_that_python_waits_for(kind: str, tmp_path: Path) -> None:
    """A job in a thread that is no daemon is committed, though the main thread has ended."""
    words = [sys.executable, "-c", AWAITED, str(tmp_path / "out"), kind]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "main ends\ncommitted 20\n"
    assert (tmp_path / "out" / "_SUCCESS").exists()


def test_a_call_of_a_thread_that_python_waits_for(tmp_path: Path) -> None:
    """A call outside of a block has its thread pools until it returns, too."""
    words = [sys.executable, "-c", CALLING, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr, done.stdout) == (0, "", "on a thread\n")
    assert (tmp_path / "file").exists()


def test_a_thread_that_is_about_to_leave_its_block() -> None:
    """What a commit takes from thread pools is there until it has ended."""
    words = [sys.executable, "-c", LEAVING]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr, done.stdout) == (0, "", "done True\n")

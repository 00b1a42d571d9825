"""pyarrow's own client of Google Cloud Storage, in C++: it knows nothing of the SDK for Python.

It runs in a process of its own: it holds Python's lock while it waits for the bytes of a file, so
that a server in the same process could never send them.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import subprocess
import sys
from importlib.util import find_spec

import pytest

from asynccommit.api import open_job
from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread
from tests.witness.gcs import asked, strike

FILES = """
import sys
from datetime import timedelta

from pyarrow.fs import FileSelector, GcsFileSystem

host, root = sys.argv[1:]
there = GcsFileSystem(
    anonymous=True,
    scheme="http",
    endpoint_override=host,
    project_id="project",
    retry_time_limit=timedelta(seconds=5),
)
"""
SCRIPT = (
    FILES
    + """
def write(path, data):
    with there.open_output_stream(path) as file:
        file.write(data)


there.create_dir(f"{root}/a b/p=100%25")
write(f"{root}/a b/p=100%25/part é", b"." * 100_000)
write(f"{root}/large", b"." * 20_000_000)
write(f"{root}/target", b"old")
there.move(f"{root}/a b/p=100%25/part é", f"{root}/target")
there.copy_file(f"{root}/target", f"{root}/a b/copy")
there.create_dir(f"{root}/gone/deep")
write(f"{root}/gone/deep/file", b"1")
there.delete_dir(f"{root}/gone")
write(f"{root}/old", b"1")
there.delete_file(f"{root}/old")
with there.open_input_file(f"{root}/target") as file:
    file.seek(99_999)
    assert file.read() == b"."
with there.open_input_stream(f"{root}/large") as file:
    assert len(file.read()) == 20_000_000
try:
    there.move(f"{root}/a b", f"{root}/moved")
except OSError as error:
    print("refused:", str(error)[:60])
for info in there.get_file_info(FileSelector(root, recursive=True)):
    print(info.path.removeprefix(f"{root}/"), info.type.name, info.size or 0)
"""
)
EXPECTED = """\
a b Directory 0
a b/copy File 100000
a b/p=100%25 Directory 0
large File 20000000
target File 100000
"""
TABLE = (
    FILES
    + """
import pyarrow.dataset as dataset

read = dataset.dataset(
    f"{root}/t", filesystem=there, partitioning=dataset.partitioning(flavor="hive")
)
table = read.to_table().sort_by("task")
print(table["task"].to_pylist(), sorted(set(table["day"].to_pylist())))
"""
)


def is_there() -> bool:
    """Whether this pyarrow was built with its client of Google Cloud Storage."""
    if find_spec("pyarrow") is None:
        return False
    import pyarrow.fs

    return hasattr(pyarrow.fs, "GcsFileSystem")


pytestmark = pytest.mark.skipif(not is_there(), reason="needs a pyarrow with GcsFileSystem")


def run(script: str, gcs: GcsEmulatorThread, root: str) -> str:
    """Run a script on a bucket of an emulator, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", script, gcs.endpoint.removeprefix("http://"), root],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


@pytest.mark.parametrize("root", ["data", "tree"])
def test_files_and_directories(gcs: GcsEmulatorThread, root: str) -> None:
    """It makes, writes, reads, lists, copies, deletes and moves files; directories it moves not."""
    refused, _, listing = run(SCRIPT, gcs, root).partition("\n")

    assert refused.startswith("refused:")
    assert listing == EXPECTED
    # Its moves are copies and deletions.
    assert {**asked(gcs), "move": 0}.items() >= {"move": 0, "rewrite": 2}.items()


def test_files_in_bad_weather(gcs: GcsEmulatorThread) -> None:
    """What gets lost is asked again, and is the same in the end."""
    for kind, op in (("cut", "upload"), ("cut_before", "list"), ("cut", "get"), ("cut", "read")):
        strike(gcs, kind, op)
    refused, _, listing = run(SCRIPT, gcs, "data").partition("\n")

    assert refused.startswith("refused:")
    assert listing == EXPECTED


@pytest.mark.usefixtures("in_a_hurry")
@pytest.mark.parametrize("root", ["data", "tree"])
def test_table_of_a_job(gcs: GcsEmulatorThread, root: str) -> None:
    """A table that a job of ours committed is read, its partitions in the names of directories."""
    arrow, parquet = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
    storage = {"endpoint_url": gcs.endpoint, "token": "anon"}

    async def commit() -> None:
        async with open_job(f"gs://{root}/t", storage_options=storage) as job:
            for number in range(3):
                parquet.write_table(arrow.table({"task": [number] * 2}), sink := io.BytesIO())
                async with job.task(number) as task:
                    await task.put(f"day={number}/part.parquet", sink.getvalue())

    asyncio.run(commit())

    assert run(TABLE, gcs, root) == "[0, 0, 1, 1, 2, 2] [0, 1, 2]\n"

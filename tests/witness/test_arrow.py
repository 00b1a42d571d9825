"""pyarrow's own client of ADLS, in C++: it knows nothing of the SDK for Python.

It runs in a process of its own, because an error that it does not expect ends the process.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

from asynccommit.testing.emulators.adls.emulator import EmulatorThread

SCRIPT = """
import sys

from pyarrow.fs import AzureFileSystem, FileSelector

account, key, authority = sys.argv[1:]
there = AzureFileSystem(
    account_name=account,
    account_key=key,
    blob_storage_authority=authority,
    dfs_storage_authority=authority,
    blob_storage_scheme="http",
    dfs_storage_scheme="http",
)


def write(path, data):
    with there.open_output_stream(path) as file:
        file.write(data)


there.create_dir("data/a b/p=100%25")
write("data/a b/p=100%25/part é", b"." * 100_000)
write("data/target", b"old")
there.move("data/a b/p=100%25/part é", "data/target")
write("data/a b/other", b"1")
there.create_dir("data/empty")
there.move("data/a b", "data/empty")
there.copy_file("data/target", "data/copy")
# Its leases last beyond a move: what has been moved is not moved again here.
there.create_dir("data/gone/deep")
write("data/gone/deep/file", b"1")
there.delete_dir("data/gone")
write("data/old", b"1")
there.delete_file("data/old")
with there.open_input_file("data/target") as file:
    file.seek(99_999)
    assert file.read() == b"."
there.create_dir("data/directory")
write("data/file", b"1")
try:
    there.move("data/directory", "data/file")
except OSError as error:
    print("refused:", str(error)[:60])
for info in there.get_file_info(FileSelector("data", recursive=True)):
    print(info.path, info.type.name, info.size)
"""
EXPECTED = """\
data/copy File 100000
data/directory Directory 0
data/empty Directory 0
data/empty/other File 1
data/empty/p=100%25 Directory 0
data/file File 1
data/target File 100000
"""


def is_there() -> bool:
    """Whether this pyarrow was built with its client of Azure."""
    if find_spec("pyarrow") is None:
        return False
    import pyarrow.fs

    return hasattr(pyarrow.fs, "AzureFileSystem")


@pytest.mark.full
@pytest.mark.skipif(not is_there(), reason="needs a pyarrow with AzureFileSystem")
def test_files_and_directories(adls_emulator_thread: EmulatorThread) -> None:
    """It makes, writes, reads, lists, copies, deletes, moves over a file and an empty directory."""
    emulator = adls_emulator_thread
    emulator.do(lambda running: running.model.create_filesystem("data"))
    # Of a path-style URL it would take the account for the filesystem.
    arguments = [emulator.account, emulator.key, f".localhost:{emulator.port}"]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
    )

    assert (done.stderr, done.returncode) == ("", 0)
    refused, _, listing = done.stdout.partition("\n")
    assert refused.startswith("refused:")
    assert listing == EXPECTED

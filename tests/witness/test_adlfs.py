"""adlfs, which pandas and pyarrow use for ``abfs://``: files by the blob API."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from azure.storage.filedatalake.aio import FileSystemClient

from asynccommit.testing.emulators.adls.emulator import AdlsEmulator, EmulatorThread
from tests.witness.sdk import write

HARD = "a b/p=100%25/é 日本/x+y&z"


def connect(emulator: AdlsEmulator | EmulatorThread, *, asynchronous: bool = False) -> Any:
    """Return adlfs' filesystem of the emulator's account."""
    # Imported by name: adlfs has no types.
    spec = importlib.import_module("adlfs.spec")
    options = {"asynchronous": asynchronous, "skip_instance_cache": True}
    with pytest.MonkeyPatch.context() as patch:
        # It would close at exit, when its loop is gone; the fixtures do that.
        patch.setattr(spec, "weakref", SimpleNamespace(finalize=lambda *_: None))
        return spec.AzureBlobFileSystem(connection_string=emulator.connection_string, **options)


@pytest.fixture
async def there(adls_emulator: AdlsEmulator) -> AsyncIterator[Any]:
    """Yield adlfs as coroutines use it."""
    made = connect(adls_emulator, asynchronous=True)
    yield made
    await made.service_client.close()


async def test_coroutines(there: Any, files: FileSystemClient, tmp_path: Path) -> None:
    """Pipe, list, find, look at, read, move and remove, from coroutines."""
    names = [f"data/{HARD}/part-{number}" for number in range(3)]
    for number, name in enumerate(names):
        await there._pipe_file(name, b"." * number)
    listed = await there._ls(f"data/{HARD}", detail=False)
    found = await there._find("data")
    info = await there._info(names[2])
    data = await there._cat_file(names[2])
    await there._cp_file(names[2], "data/copy")
    await there._rm(names[0])

    assert listed == found == names
    assert (info["size"], info["type"], data) == (2, "file", b"..")
    paths = [path.name async for path in files.get_paths() if not path.is_directory]
    assert [f"data/{path}" for path in paths] == [*names[1:], "data/copy"]


@pytest.fixture
def here(adls_emulator_thread: EmulatorThread) -> Iterator[Any]:
    """Yield adlfs as everyone else uses it."""
    made = connect(adls_emulator_thread)
    made.mkdir("data")
    yield made
    asyncio.run_coroutine_threadsafe(made.service_client.close(), made.loop).result(10)


def test_files(here: Any, tmp_path: Path) -> None:
    """Put, open, list, find, look at and read files, as from a script."""
    (tmp_path / "local").write_bytes(b"local")
    here.put(str(tmp_path / "local"), f"data/{HARD}/put")
    with here.open(f"data/{HARD}/opened", "wb") as file:
        file.write(b"opened")
    here.invalidate_cache()

    assert here.ls(f"data/{HARD}", detail=False) == [f"data/{HARD}/opened", f"data/{HARD}/put"]
    assert here.find("data") == [f"data/{HARD}/opened", f"data/{HARD}/put"]
    assert here.cat(f"data/{HARD}/put") == b"local"
    assert here.info(f"data/{HARD}/opened")["size"] == 6
    assert here.isdir("data/a b")
    assert here.isdir(f"data/{HARD}")
    assert not here.exists("data/nowhere")


def test_file_in_blocks(here: Any) -> None:
    """A file that is written block by block is whole, and is read in ranges."""
    data = os.urandom(700_001)
    with here.open("data/large", "wb", block_size=256 * 1024) as file:
        for start in range(0, len(data), 100_000):
            file.write(data[start : start + 100_000])
    here.invalidate_cache()

    assert here.info("data/large")["size"] == len(data)
    with here.open("data/large", "rb", block_size=100_000) as file:
        file.seek(600_000)
        assert file.read(10) == data[600_000:600_010]
    assert here.cat("data/large") == data


def test_file_without_replacing(here: Any) -> None:
    """A file that is to be new is refused where one is, and the one that is there stays."""
    here.pipe("data/file", b"1")
    with pytest.raises(FileExistsError):
        here.pipe("data/file", b"2", mode="create")

    assert here.cat("data/file") == b"1"


def test_move_and_remove(here: Any) -> None:
    """A moved file is under its new name only, a removed tree is gone with its directories."""
    here.pipe({"data/d/e/a": b"1", "data/d/e/b": b"2", "data/other": b"3"})
    here.mv("data/d/e/a", "data/d/moved")
    here.invalidate_cache()
    moved = here.find("data")
    here.rm("data/d", recursive=True)
    here.invalidate_cache()

    assert moved == ["data/d/e/b", "data/d/moved", "data/other"]
    assert here.find("data", withdirs=True) == ["data/other"]


def test_table_of_pyarrow(here: Any) -> None:
    """A partitioned dataset that pyarrow wrote is read as it was."""
    arrow = importlib.import_module("pyarrow")
    dataset = importlib.import_module("pyarrow.dataset")
    table = arrow.table({"id": list(range(20)), "p": [f"a b%{n % 3}" for n in range(20)]})
    options = {"format": "parquet", "partitioning": ["p"], "partitioning_flavor": "hive"}
    dataset.write_dataset(table, "data/t", filesystem=here, **options)
    here.invalidate_cache()
    hive = dataset.partitioning(flavor="hive")
    found = dataset.dataset("data/t", filesystem=here, partitioning=hive).to_table()

    assert len(here.find("data/t")) == 3
    assert found.sort_by("id").select(["id", "p"]).to_pydict() == table.to_pydict()


async def test_file_that_another_client_renamed(there: Any, files: FileSystemClient) -> None:
    """adlfs sees a rename of the other API at once, with the etag that the file had."""
    file = await write(files, "d/a", b"12345")
    before = await there._info("data/d/a")
    await file.rename_file("data/d/b")
    there.invalidate_cache()
    after = await there._info("data/d/b")

    assert (after["etag"], after["size"]) == (before["etag"], 5)
    assert await there._ls("data/d", detail=False) == ["data/d/b"]

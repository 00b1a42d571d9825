"""gcsfs, which pandas, Dask and pyarrow use for ``gs://``: by both of its classes.

The older class knows objects only. The newer one, its default, asks by gRPC whether a bucket has
folders and then makes, renames and removes these; what it asks for is in ``folders``.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import pytest

from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread
from tests.witness.gcs import HARD_NAMES, Folders, asked, gcsfs, open_files, tree


def test_files(gcs_files: Any, root: str, tmp_path: Path) -> None:
    """Pipe, put, open, list, walk, look at and read gcs_files, as from a script."""
    (tmp_path / "local").write_bytes(b"local")
    gcs_files.pipe({f"{root}/d/a": b"12345", f"{root}/d/e/b": b""})
    gcs_files.put(str(tmp_path / "local"), f"{root}/d/put")
    with gcs_files.open(f"{root}/d/opened", "wb") as file:
        file.write(b"opened")
    gcs_files.invalidate_cache()

    assert gcs_files.ls(root, detail=False) == [f"{root}/d"]
    assert sorted(gcs_files.ls(f"{root}/d", detail=False)) == [
        *(f"{root}/d/{name}" for name in ("a", "e", "opened", "put")),
    ]
    assert tree(gcs_files, root) == ["d/a", "d/e/b", "d/opened", "d/put"]
    assert tree(gcs_files, root, dirs=True) == ["d", "d/a", "d/e", "d/e/b", "d/opened", "d/put"]
    assert [(path, sorted(dirs), sorted(names)) for path, dirs, names in gcs_files.walk(root)] == [
        (root, ["d"], []),
        (f"{root}/d", ["e"], ["a", "opened", "put"]),
        (f"{root}/d/e", [], ["b"]),
    ]
    assert gcs_files.cat(f"{root}/d/put") == b"local"
    assert gcs_files.cat_file(f"{root}/d/a", 1, 3) == b"23"
    assert gcs_files.du(root) == 5 + 5 + 6
    assert [gcs_files.isdir(f"{root}/{name}") for name in ("d", "d/e", "d/a")] == [
        True,
        True,
        False,
    ]
    assert not gcs_files.exists(f"{root}/nowhere")
    assert gcs_files.info(f"{root}/d/a")["size"] == 5
    with pytest.raises(FileNotFoundError):
        gcs_files.cat(f"{root}/nowhere")


@pytest.mark.parametrize("name", HARD_NAMES)
def test_names(older: Any, name: str) -> None:
    """A name with any characters is the same in a write, a listing, a move and a read."""
    # Most of its methods take some characters for a pattern: those for one file do not.
    older.pipe_file(f"data/dir {name}/x", b"1")
    older.mv_file(f"data/dir {name}/x", f"data/{name} moved")

    assert tree(older, "data") == [f"{name} moved"]
    assert older.cat_file(f"data/{name} moved") == b"1"


def test_file_in_blocks(gcs_files: Any, root: str) -> None:
    """A file that is written block by block is whole, and is read in ranges."""
    data = os.urandom(700_001)
    with gcs_files.open(f"{root}/large", "wb", block_size=2**18) as file:
        for start in range(0, len(data), 100_000):
            file.write(data[start : start + 100_000])
    gcs_files.invalidate_cache()

    assert gcs_files.info(f"{root}/large")["size"] == len(data)
    with gcs_files.open(f"{root}/large", "rb", block_size=100_000) as file:
        file.seek(600_000)
        assert file.read(10) == data[600_000:600_010]
    assert gcs_files.cat(f"{root}/large") == data


@pytest.mark.parametrize("consistency", ["size", "md5"])
def test_consistency(gcs: GcsEmulatorThread, consistency: str) -> None:
    """The checks that gcsfs makes of what it wrote and read are passed."""
    with open_files(gcs, consistency=consistency) as files:
        files.pipe("data/file", b"12345")
        with files.open("data/large", "wb", block_size=2**18, consistency=consistency) as file:
            file.write(b"." * 600_000)

        assert files.cat("data/file", consistency=consistency) == b"12345"


def test_file_without_replacing(gcs_files: Any, root: str) -> None:
    """A file that is to be new is refused where one is, and the one that is there stays."""
    gcs_files.pipe(f"{root}/file", b"1")
    with pytest.raises(FileExistsError):
        gcs_files.pipe(f"{root}/file", b"2", mode="create")
    with pytest.raises(FileExistsError), gcs_files.open(f"{root}/file", "xb") as file:
        file.write(b"2")

    assert gcs_files.cat(f"{root}/file") == b"1"


def test_transaction(gcs_files: Any, root: str) -> None:
    """Files of a transaction are there when it ends, and are not if it fails."""
    with gcs_files.transaction:
        with gcs_files.open(f"{root}/a", "wb") as file:
            file.write(b"." * 300_000)
        assert tree(gcs_files, root) == []
    with pytest.raises(ValueError, match="no"), gcs_files.transaction:
        with gcs_files.open(f"{root}/b", "wb") as file:
            file.write(b"." * 300_000)
        raise ValueError("no")

    assert tree(gcs_files, root) == ["a"]


def test_metadata(older: Any) -> None:
    """Metadata is written with a file, read, changed and taken away."""
    older.pipe("data/file", b"1", metadata={"a": "1"}, content_type="text/x-test")
    older.setxattrs("data/file", b="2", a=None, content_type="text/y-test")
    found = older.info("data/file")

    assert (found["metadata"], found["contentType"]) == ({"b": "2"}, "text/y-test")
    assert older.getxattr("data/file", "b") == "2"


def test_merge(older: Any) -> None:
    """Files are put together by the service."""
    older.pipe({"data/a": b"1", "data/b": b"2"})
    older.merge("data/c", ["data/a", "data/b"])

    assert older.cat("data/c") == b"12"


def test_directories(gcs_files: Any, root: str, folders: Folders) -> None:
    """Directories are made where there are folders; elsewhere nothing happens, without error."""
    gcs_files.makedirs(f"{root}/d/e")
    gcs_files.mkdir(f"{root}/d/f")
    made = tree(gcs_files, root, dirs=True)
    hierarchical = root == "tree"

    assert made == (["d", "d/e", "d/f"] if hierarchical else [])
    if hierarchical:
        with pytest.raises(OSError, match="not empty"):
            gcs_files.rmdir(f"{root}/d")
        gcs_files.rmdir(f"{root}/d/e")
        assert tree(gcs_files, root, dirs=True) == ["d", "d/f"]
        assert folders[1].count("CreateFolder") == 2


def test_copy(gcs_files: Any, gcs: GcsEmulatorThread, root: str) -> None:
    """Files and trees are copied; a large file in as many calls as the service wants."""
    gcs_files.pipe({f"{root}/d/a": b"1", f"{root}/d/e/b": b"2", f"{root}/large": b"." * 1_000_000})
    gcs.do(lambda running: running.set_pages({"rewrite_bytes": 400_000}))
    gcs_files.cp(f"{root}/d", f"{root}/copy", recursive=True)
    gcs_files.cp_file(f"{root}/large", f"{root}/copy/large")

    assert [name for name in tree(gcs_files, root) if name.startswith("copy")] == [
        *("copy/a", "copy/e/b", "copy/large"),
    ]
    assert gcs_files.info(f"{root}/copy/large")["size"] == 1_000_000
    assert asked(gcs)["rewrite"] >= 2 + 3


def test_versions(gcs: GcsEmulatorThread) -> None:
    """Generations are part of names, if they are wanted."""
    with open_files(gcs, version_aware=True) as files:
        files.pipe("versions/file", b"old")
        old = files.info("versions/file")["generation"]
        files.pipe("versions/file", b"new")
        files.invalidate_cache()

        assert files.cat(f"versions/file#{old}") == b"old"
        assert files.cat("versions/file") == b"new"
        assert len(files.ls("versions", versions=True)) == 2


def test_emulator_by_the_environment(
    gcs: GcsEmulatorThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``STORAGE_EMULATOR_HOST`` leads it here, if it is not told otherwise."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs.environ["STORAGE_EMULATOR_HOST"])
    with open_files(gcs, endpoint_url=None) as files:
        files.pipe("data/a", b"12345")

        assert files.cat("data/a") == b"12345"


def test_requester_pays(gcs: GcsEmulatorThread) -> None:
    """Where the requester pays, it wants to be told so."""
    gcs.do(lambda running: running.service.patch_bucket("data", {"requester_pays": True}))
    with open_files(gcs) as files, pytest.raises(ValueError, match="requester pays"):
        files.ls("data")
    with open_files(gcs, requester_pays="project") as files:
        files.pipe("data/a", b"1")
        assert files.cat("data/a") == b"1"


def test_buckets(older: Any) -> None:
    """Buckets are made, listed and removed as directories."""
    older.mkdir("new")
    older.pipe("new/a", b"1")
    with pytest.raises(gcsfs("retry").HttpError, match="not empty"):
        older.rmdir("new")
    older.rm("new/a")
    listed = older.ls("", detail=False)
    older.rmdir("new")

    assert [name.rstrip("/") for name in listed] == ["data", "new", "tree", "versions"]
    assert not older.exists("new")


def test_table_of_pandas(gcs_files: Any, root: str) -> None:
    """A table that pandas wrote in parts is read as it was."""
    pandas = importlib.import_module("pandas")
    table = pandas.DataFrame({"id": range(20), "p": [f"a b%{n % 3}" for n in range(20)]})
    table.to_parquet(f"{root}/t", partition_cols=["p"], filesystem=gcs_files)
    gcs_files.invalidate_cache()
    read = pandas.read_parquet(f"{root}/t", filesystem=gcs_files)

    assert sorted(zip(read["id"], read["p"], strict=True)) == sorted(
        zip(table["id"], table["p"], strict=True)
    )


def test_table_of_pyarrow(gcs_files: Any, root: str) -> None:
    """A partitioned dataset that pyarrow wrote is read as it was, and is written over."""
    arrow = importlib.import_module("pyarrow")
    dataset = importlib.import_module("pyarrow.dataset")
    options = {"format": "parquet", "partitioning": ["p"], "partitioning_flavor": "hive"}
    for rows in (30, 20):
        table = arrow.table({"id": list(range(rows)), "p": [f"a b%{n % 3}" for n in range(rows)]})
        dataset.write_dataset(
            table,
            f"{root}/t",
            filesystem=gcs_files,
            existing_data_behavior="delete_matching",
            **options,
        )
    gcs_files.invalidate_cache()
    hive = dataset.partitioning(flavor="hive")
    read = dataset.dataset(f"{root}/t", filesystem=gcs_files, partitioning=hive).to_table()

    assert sorted(read["id"].to_pylist()) == list(range(20))
    assert len(tree(gcs_files, root)) == 3

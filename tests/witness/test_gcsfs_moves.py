"""gcsfs: what it moves and removes, by which requests, and what it makes of faults."""

from __future__ import annotations

from typing import Any

import pytest

from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread
from tests.witness.gcs import Folders, asked, strike, tree


def test_move_of_a_file(gcs_files: Any, gcs: GcsEmulatorThread, root: str) -> None:
    """A file is moved by one request, over one that is there, and into a directory."""
    gcs_files.pipe({f"{root}/a": b"new", f"{root}/b": b"old", f"{root}/d/c": b"3"})
    gcs_files.mv(f"{root}/a", f"{root}/b")
    gcs_files.mv_file(f"{root}/b", f"{root}/d/b")

    assert tree(gcs_files, root) == ["d/b", "d/c"]
    assert gcs_files.cat(f"{root}/d/b") == b"new"
    assert {**asked(gcs), "rewrite": 0}.items() >= {"move": 2, "rewrite": 0}.items()


def test_move_of_lists(gcs_files: Any, gcs: GcsEmulatorThread, root: str) -> None:
    """Files of a list are moved to the names of another list, each by a request."""
    names = [f"part-{number}" for number in range(5)]
    gcs_files.pipe({f"{root}/tmp/{name}": b"1" for name in names})
    sources = [f"{root}/tmp/{name}" for name in names]
    gcs_files.mv(sources, [f"{root}/p={number}/{name}" for number, name in enumerate(names)])

    assert tree(gcs_files, root) == [f"p={number}/{name}" for number, name in enumerate(names)]
    assert asked(gcs)["move"] == 5


def test_move_of_a_directory(
    gcs_files: Any, gcs: GcsEmulatorThread, root: str, folders: Folders
) -> None:
    """A directory is moved object by object; where there are folders, by one request by gRPC."""
    gcs_files.pipe({f"{root}/d/a": b"1", f"{root}/d/e/b": b"2", f"{root}/other": b"3"})
    gcs_files.mv(f"{root}/d", f"{root}/moved", recursive=True)

    assert tree(gcs_files, root) == ["moved/a", "moved/e/b", "other"]
    if root == "tree":
        assert (asked(gcs).get("move", 0), folders[1].count("RenameFolder")) == (0, 1)
    else:
        # It also tries to move the directories, which are no objects.
        assert asked(gcs)["move"] == 2 + 2


def test_move_of_a_directory_onto_another(newer: Any) -> None:
    """A folder is not moved to where one is; that there may be one inside is not thought of."""
    newer.pipe({"tree/d/a": b"1", "tree/other/b": b"2"})
    with pytest.raises(FileExistsError):
        newer.mv("tree/d", "tree/other", recursive=True)

    assert tree(newer, "tree") == ["d/a", "other/b"]


def test_remove(gcs_files: Any, root: str) -> None:
    """A file, then a tree, are gone; what is not there is not found."""
    gcs_files.pipe({f"{root}/d/a": b"1", f"{root}/d/e/b": b"2", f"{root}/other": b"3"})
    gcs_files.rm(f"{root}/other")
    gcs_files.rm(f"{root}/d", recursive=True)
    with pytest.raises(FileNotFoundError):
        gcs_files.rm(f"{root}/d", recursive=True)

    assert tree(gcs_files, root, dirs=True) == []


def test_remove_in_batches(
    gcs_files: Any, gcs: GcsEmulatorThread, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are removed many at one time; those that were refused for now, again."""
    # Of a server that is not Google's it believes that there are no batches.
    monkeypatch.setattr(type(gcs_files), "on_google", True)
    names = [f"{root}/d/{number} é%" for number in range(45)]
    gcs_files.pipe(dict.fromkeys(names, b"1"))
    newer = "Extended" in type(gcs_files).__name__
    if not newer:  # its waits cannot be taken away
        strike(gcs, "before", "delete", skip=7, times=3)
    gcs_files.rm(names)

    assert tree(gcs_files, root) == []
    # 20 at a time by the newer class, 100 by the older; and one more for what was refused.
    assert asked(gcs)["batch"] == (3 if newer else 1 + 1)
    assert asked(gcs)["delete"] == 45 + (0 if newer else 3)


@pytest.mark.parametrize("kind", ["before", "after", "cut", "cut_before"])
def test_remove_in_a_batch_that_is_lost(
    gcs: GcsEmulatorThread, older: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch is sent again; that nothing is found then is no error if anything was."""
    monkeypatch.setattr(type(older), "on_google", True)
    older.pipe({"data/a": b"1", "data/b": b"1"})
    strike(gcs, kind, "batch")
    if kind in ("after", "cut"):
        with pytest.raises(FileNotFoundError):
            older.rm(["data/a", "data/b"])
    else:
        older.rm(["data/a", "data/b"])

    assert tree(older, "data") == []
    assert asked(gcs)["batch"] == 2


@pytest.mark.parametrize("kind", ["cut", "after"])
def test_move_whose_answer_is_lost(
    gcs_files: Any, gcs: GcsEmulatorThread, root: str, kind: str
) -> None:
    """It moves again, finds no source, and says so, though the file is where it should be."""
    gcs_files.pipe(f"{root}/a", b"12345")
    strike(gcs, kind, "move")
    with pytest.raises(FileNotFoundError):
        gcs_files.mv(f"{root}/a", f"{root}/b")

    assert tree(gcs_files, root) == ["b"]
    assert asked(gcs)["move"] == 2


def test_move_that_is_refused(gcs_files: Any, gcs: GcsEmulatorThread, root: str) -> None:
    """A move that is refused for another reason is done by a copy and a deletion instead."""
    gcs_files.pipe(f"{root}/a", b"12345")
    gcs.do(lambda running: running.service.denied.add("storage.objects.move"))
    gcs_files.mv(f"{root}/a", f"{root}/b")

    assert tree(gcs_files, root) == ["b"]
    assert {**asked(gcs)}.items() >= {"rewrite": 1, "delete": 1}.items()


def test_move_where_the_server_knows_none(
    gcs_files: Any, gcs: GcsEmulatorThread, root: str
) -> None:
    """A server that answers 404 to all moves is believed: the file is said not to be there."""
    gcs_files.pipe(f"{root}/a", b"12345")
    gcs.do(lambda running: running.service.patch_bucket(root, {"moves": False}))
    with pytest.raises(FileNotFoundError):
        gcs_files.mv(f"{root}/a", f"{root}/b")

    assert tree(gcs_files, root) == ["a"]


@pytest.mark.parametrize("op", ["insert", "read", "list", "get", "delete", "rewrite"])
@pytest.mark.parametrize("kind", ["before", "cut_before"])
def test_everything_that_did_not_happen(
    gcs: GcsEmulatorThread, older: Any, op: str, kind: str
) -> None:
    """What was refused or did not arrive is sent again."""
    strike(gcs, kind, op, times=2)
    older.pipe("data/a", b"12345")
    older.cp("data/a", "data/b")
    older.invalidate_cache()

    assert older.info("data/a")["size"] == 5
    assert older.cat("data/a") == b"12345"
    assert tree(older, "data") == ["a", "b"]
    older.rm("data/a")
    assert tree(older, "data") == ["b"]

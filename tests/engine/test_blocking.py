"""The blocking store does what the functions do, for programs without a loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit import NotFoundError, sync
from asynccommit.engine import BulkError


def test_every_operation_blocks(tmp_path: Path) -> None:
    """Files are written, moved, listed, verified and deleted one call after the other."""
    for number in range(1_500):
        path = tmp_path / f"in/p={number % 3}/f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")

    with sync.open_store(tmp_path) as store:
        assert store.move_tree(tmp_path / "in", tmp_path / "out").directories == 1
        listed = [info for info in store.list_tree(tmp_path / "out") if not info.is_dir]
        assert len(listed) == 1_500
        assert store.verify([(info.path, 1) for info in listed]).ok
        pairs = [(info.path, f"{tmp_path}/flat/{number}") for number, info in enumerate(listed)]
        assert store.rename_files(pairs).done == 1_500
        assert store.make_directories([tmp_path / "more/a"]).done == 1
        assert store.delete_files([pair[1] for pair in pairs[:10]]).done == 10
        assert store.delete_tree(tmp_path / "flat").directories == 1
        with pytest.raises(NotFoundError):
            store.delete_tree(tmp_path / "flat")
        with pytest.raises(BulkError):
            store.rename_files(pairs)
        assert repr(store) == "BlockingStore(local filesystem)"

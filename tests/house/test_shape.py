"""The shape of ``commit/`` does not get worse: floors, modules to open, what changes and where."""

from __future__ import annotations

from tests.house import shape


def test_floors_below_commit() -> None:
    """No chain of imports in a folder of ``commit/`` is longer than eight modules."""
    folders = sorted(path.parent for path in shape.COMMIT.rglob("*/__init__.py"))
    heights = {folder.name: shape.floors(folder) for folder in folders}

    assert len(heights) > 10
    assert {name: height for name, height in heights.items() if height > 8} == {}


def test_what_can_happen_to_one_file() -> None:
    """Three modules do, settle, undo and recognise the rename of one file."""
    assert shape.about_one_file() == ["identity", "rename_files", "undo_renames"]


def test_what_changes_in_a_context() -> None:
    """A context of a commit is frozen: only the meter and the promise change, in few places."""
    assert shape.mutable_fields() == ["meter", "promise"]
    assert len(shape.places()) <= 10

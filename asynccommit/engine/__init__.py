"""Rename, delete and verify many files of any store, within its limits."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from asynccommit.former import Former
from asynccommit.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from asynccommit.engine.deletes import delete_files, delete_tree
    from asynccommit.engine.directories import make_directories
    from asynccommit.engine.listing import list_tree
    from asynccommit.engine.pairs import FileRename
    from asynccommit.engine.renames import rename_files
    from asynccommit.engine.report import BulkError, BulkProgress, BulkReport, Failure
    from asynccommit.engine.settling import resume, rollback
    from asynccommit.engine.trees import move_tree
    from asynccommit.engine.verification import Expected, Mismatch, VerifyReport, verify
else:

    def _rollback() -> object:
        return import_module("asynccommit.engine.settling").rollback

    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "deletes": ["delete_files", "delete_tree"],
            "directories": ["make_directories"],
            "listing": ["list_tree"],
            "pairs": ["FileRename"],
            "renames": ["rename_files"],
            "report": ["BulkError", "BulkProgress", "BulkReport", "Failure"],
            "settling": ["resume", "rollback"],
            "trees": ["move_tree"],
            "verification": ["Expected", "Mismatch", "VerifyReport", "verify"],
        },
        {"undo": Former(_rollback, "asynccommit.engine.rollback")},
    )

__all__ = [
    "BulkError",
    "BulkProgress",
    "BulkReport",
    "Expected",
    "Failure",
    "FileRename",
    "Mismatch",
    "VerifyReport",
    "delete_files",
    "delete_tree",
    "list_tree",
    "make_directories",
    "move_tree",
    "rename_files",
    "resume",
    "rollback",
    "verify",
]

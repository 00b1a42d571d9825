"""The blocking form of an open store and its bulk operations."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from asynccommit.engine.deletes import delete_files, delete_tree
from asynccommit.engine.directories import make_directories
from asynccommit.engine.journaled import JournalPath
from asynccommit.engine.listing import list_tree
from asynccommit.engine.operation import OnError
from asynccommit.engine.renames import rename_files
from asynccommit.engine.report import BulkReport, OnProgress
from asynccommit.engine.settling import resume, rollback
from asynccommit.engine.trees import move_tree
from asynccommit.engine.verification import VerifyReport, verify
from asynccommit.former import warn_of_former
from asynccommit.runtime.loop_thread import call
from asynccommit.stores.base import Info, Store

_Path = str | os.PathLike[str]
_LISTED = 1_000


class BlockingStore:
    """An open store whose operations block. Made by ``sync.open_store``.

    See the functions of ``asynccommit.engine`` for arguments and errors. ``on_progress`` is called
    in another thread.
    """

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    def __repr__(self) -> str:
        return f"BlockingStore({self._inner.traits.name})"

    def rename_files(
        self,
        pairs: Iterable[Sequence[Any]],
        *,
        replace: bool = False,
        copy: bool = False,
        on_error: OnError = "stop",
        dry_run: bool = False,
        journal: JournalPath | None = None,
        lease: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> BulkReport:
        """Rename files, many at a time. See ``engine.rename_files``."""
        return call(
            rename_files(
                self._inner,
                pairs,
                replace=replace,
                copy=copy,
                on_error=on_error,
                dry_run=dry_run,
                journal=journal,
                lease=lease,
                on_progress=on_progress,
            )
        )

    def move_tree(
        self,
        source: _Path,
        dest: _Path,
        *,
        replace: bool = False,
        copy: bool = False,
        on_error: OnError = "stop",
        dry_run: bool = False,
        journal: JournalPath | None = None,
        lease: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> BulkReport:
        """Move a directory and everything below it. See ``engine.move_tree``."""
        return call(
            move_tree(
                self._inner,
                source,
                dest,
                replace=replace,
                copy=copy,
                on_error=on_error,
                dry_run=dry_run,
                journal=journal,
                lease=lease,
                on_progress=on_progress,
            )
        )

    def resume(
        self,
        journal: JournalPath,
        *,
        force: bool = False,
        lease: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> BulkReport:
        """Finish a move from its journal. See ``engine.resume``."""
        return call(resume(self._inner, journal, force=force, lease=lease, on_progress=on_progress))

    def rollback(
        self,
        journal: JournalPath,
        *,
        force: bool = False,
        lease: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> BulkReport:
        """Undo a move from its journal. See ``engine.rollback``."""
        return call(
            rollback(self._inner, journal, force=force, lease=lease, on_progress=on_progress)
        )

    def undo(self, journal: JournalPath, **given: Any) -> BulkReport:
        """Do what ``rollback`` does, under its former name."""
        warn_of_former("asynccommit.sync.BlockingStore.undo", "rollback")
        return self.rollback(journal, **given)

    def delete_files(
        self,
        paths: Iterable[_Path],
        *,
        on_error: OnError = "stop",
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
    ) -> BulkReport:
        """Delete files by path. See ``engine.delete_files``."""
        return call(
            delete_files(
                self._inner, paths, on_error=on_error, dry_run=dry_run, on_progress=on_progress
            )
        )

    def delete_tree(
        self,
        path: _Path,
        *,
        on_error: OnError = "stop",
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
    ) -> BulkReport:
        """Delete a directory and everything below it. See ``engine.delete_tree``."""
        return call(
            delete_tree(
                self._inner, path, on_error=on_error, dry_run=dry_run, on_progress=on_progress
            )
        )

    def make_directories(
        self,
        paths: Iterable[_Path],
        *,
        on_error: OnError = "stop",
        on_progress: OnProgress | None = None,
    ) -> BulkReport:
        """Make directories and their parents.

        See ``engine.make_directories``.
        """
        return call(
            make_directories(self._inner, paths, on_error=on_error, on_progress=on_progress)
        )

    def verify(
        self, expected: Iterable[Sequence[Any]], *, on_progress: OnProgress | None = None
    ) -> VerifyReport:
        """Compare files with expectations. See ``engine.verify``."""
        return call(verify(self._inner, expected, on_progress=on_progress))

    def list_tree(self, path: _Path) -> Iterator[Info]:
        """Yield everything below ``path``. See ``engine.list_tree``."""
        listing = list_tree(self._inner, path)

        async def some() -> list[Info]:
            found = list[Info]()
            async for info in listing:
                found.append(info)
                if len(found) == _LISTED:
                    break
            return found

        while found := call(some()):
            yield from found

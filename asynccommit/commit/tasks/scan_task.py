"""Task commit, first half: what a task attempt has written."""

from __future__ import annotations

from dataclasses import dataclass, field

from asynccommit.commit.context import CommitContext
from asynccommit.commit.full_etags import with_etags
from asynccommit.commit.object_holds import refuse_held
from asynccommit.commit.spill import Entry
from asynccommit.errors import PreconditionError, RejectedError
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import Ask, each_page, for_each_directory

_MAX_DEPTH = 512


@dataclass(slots=True)
class TaskFiles:
    """The files and directories below a task attempt's directory.

    Attributes:
        files: entries with decoded paths, in the order of their paths.
        directories: destination directory -> level from 1, parents first.
    """

    files: list[Entry] = field(default_factory=list)
    directories: dict[str, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """The sizes of the files, added up."""
        return sum(entry.size for entry in self.files)


async def scan_task_attempt(run: CommitContext, base: str) -> TaskFiles:
    """List everything below ``base``, each level in parallel.

    Args:
        run: the commit under way.
        base: the task attempt's directory.

    Raises ``NotFoundError`` if ``base`` is missing, ``PreconditionError`` for anything but files
    and directories, such as a symbolic link, which could lead out of the directory, and
    ``RejectedError`` for entries that the store would not move.
    """
    found = TaskFiles()
    level, pending = 0, [base]
    while pending:
        level += 1
        if level > _MAX_DEPTH:
            raise RejectedError("list", base, f"directories are nested deeper than {_MAX_DEPTH}")
        children = await _children(run, pending)
        pending = [info.path for info in children if info.is_dir]
        for path in pending:
            found.directories[run.layout.root + path[len(base) :]] = level
        files = await with_etags(run, [info for info in children if not info.is_dir])
        found.files.extend(_entry(run, base, info) for info in files)
    found.files.sort()
    return found


def refuse_reserved(run: CommitContext, found: TaskFiles, base: str) -> None:
    """Refuse reserved names, and names that are not text.

    No commit could publish them, and the marker could not name them.

    Args:
        run: the commit under way.
        found: what a task attempt has written.
        base: the task attempt's directory.

    Raises ``PreconditionError`` that names the file, ``UrlError``.
    """
    layout = run.layout
    reserved = (layout.temporary, layout.success)
    for path in (*[entry.dest for entry in found.files], *found.directories):
        if path.startswith(reserved) and layout.reserves(path):
            text = f"{path} belongs to the commit protocol: rename it or delete it"
            raise PreconditionError("list", base + path[len(layout.root) :], text)
        if not path.isascii():
            layout.url(path)


def _entry(run: CommitContext, base: str, info: Info) -> Entry:
    name = info.path[len(base) :].removesuffix(run.layout.staged)
    return Entry(info.path, run.layout.root + name, info.size, info.etag)


async def _children(run: CommitContext, directories: list[str]) -> list[Info]:
    children: list[Info] = []

    async def collect(directory: str, ask: Ask) -> None:
        listing: list[Info] = []
        async for page in each_page(ask, directory):
            listing += page.entries
            if page.hidden:
                text = "the store takes it for a temporary file of its own: rename it or delete it"
                raise PreconditionError("list", page.hidden[0], text)
        refuse_held(run, listing)
        for info in listing:
            if info.kind is Kind.OTHER:
                raise PreconditionError(
                    "list",
                    info.path,
                    "neither a file nor a directory (a link), or an invalid name",
                )
            children.append(info)

    await for_each_directory(run.store, directories, collect, workers=run.workers)
    children.sort(key=lambda info: info.path)
    return children

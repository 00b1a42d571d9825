"""``asynccommit ls``, ``mv``, ``rm`` and ``verify``: files without a job."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from asynccommit.cli.arguments import DryRun, Storage, absolute, reporting
from asynccommit.cli.file_call import (
    FileCall,
    OnBulk,
    below,
    fixed_part,
    gathered,
    is_literal,
    matching,
    read_file_call,
    refuse_dots,
    second_place,
)
from asynccommit.cli.move_settling import (
    Force,
    JournalFile,
    LeaseSeconds,
    Resume,
    Rollback,
    Settling,
    advice_of,
)
from asynccommit.cli.name_lists import quote_name, read_list
from asynccommit.cli.output import Exit, Output
from asynccommit.engine.deletes import delete_files, delete_tree
from asynccommit.engine.listing import list_tree
from asynccommit.engine.operation import OnError
from asynccommit.engine.pairs import FileRename
from asynccommit.engine.paths import is_within
from asynccommit.engine.renames import rename_files
from asynccommit.engine.report import BulkError, BulkReport
from asynccommit.engine.trees import move_tree
from asynccommit.engine.verification import Expected, VerifyReport
from asynccommit.engine.verification import verify as verify_files
from asynccommit.errors import ExistsError, OptionError
from asynccommit.inspect.job_files import OpenJobs
from asynccommit.inspect.text import bulk_report, verify_report
from asynccommit.runtime.terminal import count_of, plain, show_bytes
from asynccommit.stores.base import Info
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.tree import list_all


class Columns(StrEnum):
    """The lines of ``ls``."""

    TABLE = "table"
    NAMES = "names"
    TSV = "tsv"


_AGAIN = "to finish, run the same command again"

Place = Annotated[
    str, typer.Argument(metavar="URL", help="File, directory or pattern: a path or a URL.")
]
FromFile = Annotated[
    str | None,
    typer.Option(
        "--from-file",
        metavar="FILE",
        help="List of names below the URL, one a line; - for standard input.",
    ),
]
KeepGoing = Annotated[
    bool, typer.Option("--keep-going", "-k", help="Continue after a failure; report all failures.")
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--rate", min=0.001, metavar="NUMBER", help="Maximum number of requests a second."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--max-concurrency", min=1, metavar="NUMBER", help="Maximum number of requests in flight."
    ),
]


@reporting
def ls(
    output: Output,
    place: Place,
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="List everything below the directory.")
    ] = False,
    columns: Annotated[
        Columns,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Lines: table, names, or tsv with name, size and etag.",
        ),
    ] = Columns.TABLE,
    storage_option: Storage = None,
) -> None:
    """List files and directories.

    A pattern with *, ? or [...] lists the files below it that match; * matches
    slashes as well. With --format names or tsv, other commands read the list
    through --from-file; names that are not printable text are quoted as git
    quotes paths.
    """
    call = read_file_call(place, storage_option, output)
    lines = _Listing(output, columns)

    async def run(store: Wrapped, on_bulk: OnBulk) -> None:
        if not await is_literal(store, call.place):
            lines.top = fixed_part(call.place)
            async for info in matching(store, call.place):
                lines.add(info)
            return
        info = await store.head(call.place.path)
        if not info.is_dir:
            lines.top = call.place.path.rpartition("/")[0] or "/"
            lines.add(info)
            return
        lines.top = call.place.path
        async for child in _children(store, call.place.path, recursive=recursive):
            lines.add(child)

    call.run(run, progress=False)
    lines.end()


@reporting
def mv(
    output: Output,
    source: Annotated[
        str | None,
        typer.Argument(metavar="SOURCE", help="File, directory or pattern: a path or a URL."),
    ] = None,
    dest: Annotated[
        str | None,
        typer.Argument(metavar="DEST", help="New path or URL; with a slash at its end, move into."),
    ] = None,
    from_file: FromFile = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace files at the destination.")
    ] = False,
    copy: Annotated[
        bool,
        typer.Option("--copy", help="Copy and delete where the store cannot rename (S3)."),
    ] = False,
    keep_going: KeepGoing = False,
    journal: JournalFile = None,
    resume: Resume = None,
    rollback: Rollback = None,
    force: Force = False,
    lease: LeaseSeconds = None,
    rate: Rate = None,
    workers: Workers = None,
    storage_option: Storage = None,
    dry_run: DryRun = False,
) -> None:
    """Move files or directories within a store.

    Nothing is replaced without --replace. Directories are moved as a whole
    where the store renames them; otherwise every file is renamed. The same
    command finishes what an interrupted one has left; a list without etags
    needs --keep-going then, as files that have arrived fail.

    With --journal an interrupted move is finished by mv --resume JOURNAL, or
    undone by mv --rollback JOURNAL, by anybody and exactly.

    Patterns leave the directories of jobs alone unless they name them, and
    nothing is moved while a job there has not ended.
    """
    settling = Settling(resume, rollback, force, lease)
    others = (source, dest, from_file, replace, copy, keep_going, journal, dry_run)
    if (known := settling.read(others)) is not None:
        _show(output, settling.run(known, storage_option, output, rate=rate, workers=workers))
        return
    if source is None or dest is None:
        raise OptionError("expected SOURCE and DEST, or --resume or --rollback with a journal")
    refuse_dots(source)
    call = read_file_call(source, storage_option, output, rate=rate, workers=workers)
    goals = _goals(call, dest, from_file)
    options: dict[str, Any] = {
        "replace": replace,
        "copy": copy,
        "on_error": "continue" if keep_going else "stop",
        "dry_run": dry_run,
        "journal": None if journal is None else str(absolute(journal)),
        "lease": lease,
    }
    again = f"{_AGAIN} with --keep-going" if from_file else _AGAIN
    try:
        report = call.run(
            lambda store, on_bulk: _move(
                call, store, force, goals, from_file, {**options, "on_progress": on_bulk}
            ),
            again if journal is None else advice_of(journal),
        )
    except BulkError as error:
        if isinstance(error.cause, ExistsError):
            output.note("to replace files at the destination, add --replace")
        raise
    _show(output, report)


def _goals(call: FileCall, dest: str, from_file: str | None) -> tuple[str, str]:
    """Return where the source goes, and where what matches it goes."""
    name = "" if from_file else call.place.path.rpartition("/")[2]
    return second_place(call.place, dest, name).path, second_place(call.place, dest).path


async def _move(
    call: FileCall,
    store: Wrapped,
    force: bool,
    goals: tuple[str, str],
    from_file: str | None,
    options: dict[str, Any],
) -> BulkReport:
    """Move a list of files, a directory or what matches a pattern."""
    jobs, (goal, into) = call.open_jobs(store, force=force), goals
    await jobs.refuse(goal)
    if from_file:
        return await rename_files(store, _listed(jobs, call, from_file, goal), **options)
    if await is_literal(store, call.place):
        await jobs.refuse_tree(call.place.path)
        return await move_tree(store, call.place.path, goal, **options)
    return await rename_files(store, _matched(jobs, store, call, into), **options)


@reporting
def rm(
    output: Output,
    place: Place,
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="Delete a directory and all below it.")
    ] = False,
    from_file: FromFile = None,
    keep_going: KeepGoing = False,
    force: Annotated[
        bool, typer.Option("--force", help="Delete files of unfinished jobs, too.")
    ] = False,
    rate: Rate = None,
    workers: Workers = None,
    storage_option: Storage = None,
    dry_run: DryRun = False,
) -> None:
    """Delete files, or with --recursive a directory.

    A pattern with *, ? or [...] deletes the files that match; * matches
    slashes as well. Look at them first with --dry-run or ls.

    Patterns leave the directories of jobs alone unless they name them, and
    nothing is deleted while a job there has not ended.
    """
    refuse_dots(place)
    call = read_file_call(place, storage_option, output, rate=rate, workers=workers)
    on_error: OnError = "continue" if keep_going else "stop"

    async def run(store: Wrapped, on_bulk: OnBulk) -> BulkReport:
        options: dict[str, Any] = {
            "on_error": on_error,
            "dry_run": dry_run,
            "on_progress": on_bulk,
        }
        jobs = call.open_jobs(store, force=force)
        if from_file or not await is_literal(store, call.place):
            async with gathered(_to_delete(jobs, store, call, from_file)) as paths:
                return await delete_files(store, paths, **options)
        path = call.place.path
        await jobs.refuse(path)
        if not (await store.head(path)).is_dir:
            return await delete_files(store, [path], **options)
        if not recursive:
            raise OptionError(f"{call.place} is a directory: to delete all of it, add --recursive")
        await jobs.refuse_tree(path)
        return await delete_tree(store, path, **options)

    _show(output, call.run(run, _AGAIN))


@reporting
def verify(
    output: Output,
    place: Place,
    from_file: Annotated[
        str,
        typer.Option(
            "--from-file",
            metavar="FILE",
            help="Expected files: name, size and etag, separated by tabs; - for standard input.",
        ),
    ],
    rate: Rate = None,
    workers: Workers = None,
    storage_option: Storage = None,
) -> None:
    """Compare files with a list of names, sizes and etags.

    `ls --recursive --format tsv` writes such a list. Size and etag may be
    left out. Exits with 3 if a file is missing or differs.
    """
    call = read_file_call(place, storage_option, output, rate=rate, workers=workers)

    async def run(store: Wrapped, on_bulk: OnBulk) -> VerifyReport:
        return await verify_files(store, _expected(call, from_file), on_progress=on_bulk)

    report = call.run(run)
    if not report.checked:
        output.warn(f"{from_file} is empty: no file was compared")
    output.result(report.to_json(), verify_report(report))
    if not report.ok:
        raise typer.Exit(int(Exit.REFUSED))


def _show(output: Output, report: BulkReport) -> None:
    """Show the result; exit with 1 if something failed."""
    output.result(report.to_json(), bulk_report(report))
    if report.failed:
        raise typer.Exit(int(Exit.FAILED))


async def _children(store: Wrapped, path: str, *, recursive: bool) -> AsyncIterator[Info]:
    if recursive:
        async for info in list_tree(store, path):
            yield info
        return
    for info in sorted(await list_all(store, path)):
        yield info


async def _to_delete(
    jobs: OpenJobs, store: Wrapped, call: FileCall, name: str | None
) -> AsyncIterator[str]:
    """Yield the paths of a list, or of what matches a pattern."""
    if name is None:
        async for info in matching(store, call.place, jobs=jobs):
            yield info.path
        return
    async for listed in read_list(name):
        path = below(call.place.path, listed.name)
        await jobs.refuse(path)
        yield path


async def _listed(
    jobs: OpenJobs, call: FileCall, name: str, dest: str
) -> AsyncIterator[FileRename]:
    async for listed in read_list(name):
        source = below(call.place.path, listed.name)
        await jobs.refuse(source)
        yield FileRename(source, below(dest, listed.name), listed.etag)


async def _matched(
    jobs: OpenJobs, store: Wrapped, call: FileCall, dest: str
) -> AsyncIterator[FileRename]:
    """Yield the renames of what matches a pattern.

    What is below the destination stays, so that the same command can be run again.
    """
    top = fixed_part(call.place)
    skip = len(top.rstrip("/")) + 1
    inner = dest if is_within(dest, top) else None
    async for info in matching(store, call.place, but=inner, jobs=jobs):
        goal = below(dest, info.path[skip:])
        if inner is None and is_within(goal, top):
            raise OptionError(
                f"{info.path} would go to {goal}, where the same command would move it again: "
                f"move {top} without a pattern, or its files with --from-file"
            )
        yield FileRename(info.path, goal, info.etag, info.size)


async def _expected(call: FileCall, name: str) -> AsyncIterator[Expected]:
    async for listed in read_list(name):
        yield Expected(below(call.place.path, listed.name), listed.size, listed.etag)


class _Listing:
    """Lines of ``ls``, printed as they are found.

    Attributes:
        top: the directory that names are relative to.
    """

    def __init__(self, output: Output, columns: Columns) -> None:
        self.top = ""
        self._output = output
        self._columns = columns
        self._entries: list[dict[str, Any]] = []
        self._files = self._bytes = 0

    def add(self, info: Info) -> None:
        """Print one entry."""
        name = info.path[len(self.top.rstrip("/")) + 1 :]
        self._files += not info.is_dir
        self._bytes += info.size
        if self._output.json:
            self._entries.append(
                {"name": name, "kind": info.kind.value, "size": info.size, "etag": info.etag}
                | {"modified": info.modified}
            )
        elif self._columns is Columns.TABLE:
            self._print(f"{_time(info)}  {_size(info):>9}  {plain(name)}{'/' * info.is_dir}")
        elif not info.is_dir:
            self._print_raw(name, info)

    def _print_raw(self, name: str, info: Info) -> None:
        facts = f"\t{info.size}\t{info.etag or ''}" if self._columns is Columns.TSV else ""
        self._print(quote_name(name) + facts)

    def _print(self, line: str) -> None:
        sys.stdout.write(f"{line}\n")

    def end(self) -> None:
        """Print the totals."""
        if self._output.json:
            totals = {"files": self._files, "bytes": self._bytes}
            self._output.result({**totals, "entries": self._entries}, "")
        elif self._columns is Columns.TABLE:
            self._output.note(f"{count_of(self._files, 'file')}, {show_bytes(self._bytes)}")


def _time(info: Info) -> str:
    if not info.modified:
        return " " * 19
    return datetime.fromtimestamp(info.modified, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _size(info: Info) -> str:
    return "" if info.is_dir else show_bytes(info.size)

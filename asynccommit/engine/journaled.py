"""Move files with a journal, by the steps of a job commit."""

from __future__ import annotations

import logging
import os
import posixpath
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field

import anyio

from asynccommit.commit.by_rename.move_committer import FilesToMove, MoveCommitter
from asynccommit.commit.context import OnEnd
from asynccommit.commit.layouts.move import PREFIX, MoveLayout
from asynccommit.commit.meter import Progress
from asynccommit.commit.spill import Entry, Spill
from asynccommit.engine.directories import remove_emptied
from asynccommit.engine.journals import Journal, opened
from asynccommit.engine.listing import list_tree
from asynccommit.engine.operation import BulkOperation, OnError
from asynccommit.engine.paths import is_within, parent_of
from asynccommit.engine.report import BulkError, BulkReport
from asynccommit.errors import (
    AsyncCommitError,
    CommitError,
    ExistsError,
    NotFoundError,
    OptionError,
    OwnedError,
    PreconditionError,
    PreflightError,
    StoreError,
    UnsupportedError,
)
from asynccommit.formats.commit_owner import Outcome
from asynccommit.formats.commit_record import Owner
from asynccommit.formats.move_journal import JournalState, MoveJournal
from asynccommit.options.job import Options
from asynccommit.redact import Redacted
from asynccommit.runtime.apart import OnLoop
from asynccommit.runtime.concurrency import for_each
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.base import Info, Kind, Store
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.urls import Address

JournalPath = str | os.PathLike[str]
log = logging.getLogger(__name__)

RENAMING = "job_stage_rename_files"
UNDOING = "job_stage_roll_back"
_under_way: set[str] = set()
_PATIENCE_SECONDS = 60.0
"""Time for deleting what a move that has not begun has written."""


@dataclass(slots=True)
class Journaled:
    """A move with a journal.

    Attributes:
        operation: counts, progress and report.
        journal: the file.
        tree: whether the source is a directory that moves as a whole.
        replace: whether files at the destination are replaced.
        lease: seconds without a heartbeat after which another may continue; ``None`` for the
            default of the store.
        host: clock, ids and names.
        moves: the files.
        source: decoded path of the directory that all files are below.
        dest: decoded path of the directory that all files go to.
        links: see ``MoveJournal``.
    """

    operation: BulkOperation
    journal: Journal
    tree: bool = False
    replace: bool = False
    lease: float | None = None
    host: Host = field(default_factory=this_host)
    moves: FilesToMove = field(default_factory=lambda: FilesToMove(Spill()))
    source: str = ""
    dest: str = ""
    links: str | None = None

    @property
    def store(self) -> Wrapped:
        """Return the store of the files."""
        assert isinstance(self.operation.store, Wrapped)
        return self.operation.store

    @property
    def address(self) -> Address:
        """Return a place in the store."""
        assert self.store.address is not None
        return self.store.address

    async def take(self, entry: Entry) -> None:
        """Add a file to move, and widen the directories above all files."""
        source, dest = parent_of(entry.source), parent_of(entry.dest)
        self.source = posixpath.commonpath([self.source or source, source])
        self.dest = posixpath.commonpath([self.dest or dest, dest])
        await self.moves.files.append([entry])

    def committer(self, job_id: str) -> MoveCommitter:
        """Return what commits the move."""
        options = Options(
            mark_success=False,
            delete_target_files=self.replace,
            lease=self.lease,
            workers=self.operation.workers,
        )
        layout = MoveLayout(
            self.address.at(self.dest),
            job_id,
            source=self.source,
            journal=self.journal.shown,
            links=self.links,
        )
        return MoveCommitter(
            self.store,
            layout,
            options,
            self.host,
            moves=self.moves,
            on_begin=self.journal.confirm,
            on_end=_ending(self),
        )


def refuse_unfit(store: Wrapped) -> None:
    """Refuse a store on which no process can take a move over.

    Raises ``UnsupportedError``.
    """
    traits = store.traits
    if not (traits.atomic_rename and traits.conditional_put):
        raise UnsupportedError(f"{traits.name} cannot move files with a journal: leave it out")
    if not (traits.fences or traits.content_etags):
        raise UnsupportedError(f"{traits.name} cannot move files with a journal: leave it out")


def refuse_unjournaled(store: Store, *, copy: bool, on_error: OnError) -> None:
    """Refuse options that no move with a journal has.

    Raises ``OptionError``, and ``UnsupportedError`` for a store without renames.
    """
    if copy:
        raise OptionError("a move with a journal cannot copy: leave out copy, or the journal")
    if on_error != "stop":
        raise OptionError("a move with a journal is done as a whole: leave out on_error='continue'")
    refuse_unfit(opened_store(store))


def opened_store(store: Store) -> Wrapped:
    """Return a store that has an address.

    Raises ``OptionError`` for any other.
    """
    if not isinstance(store, Wrapped):
        raise OptionError("a journal needs a store that was opened by open_store, with its URL")
    return store


@asynccontextmanager
async def begun(
    operation: BulkOperation,
    journal: JournalPath,
    lease: float | None,
    host: Host | None,
    *,
    replace: bool,
) -> AsyncIterator[Journaled]:
    """Open the journal of a new move. See ``rename_files`` for the arguments."""
    assert isinstance(operation.store, Wrapped)
    async with opened(operation.store, journal) as record:
        move = Journaled(operation, record, replace=replace, lease=lease, host=host or this_host())
        with closing(move.moves.files):
            yield move


async def move_listed(move: Journaled, entries: Iterable[Entry] | AsyncIterable[Entry]) -> None:
    """Move single files, named with the etag that they must have, if any.

    Raises as ``rename_files`` does.
    """
    store = move.store

    async def look(entry: Entry) -> None:
        info = await store.head(entry.source)
        if info.kind is not Kind.FILE:
            raise PreconditionError("rename", entry.source, _only_files(info))
        if entry.etag is not None and not store.traits.same(info.etag, entry.etag):
            raise PreconditionError("rename", entry.source, "it has changed: its etag differs")
        await move.take(entry._replace(size=info.size, etag=info.etag))

    try:
        await for_each(entries, look, workers=move.operation.workers)
    except StoreError as error:
        raise failed(move, error, begun=False) from error


async def move_whole(move: Journaled, old: str, new: str) -> None:
    """Move everything below a directory. Raises as ``move_tree`` does."""
    for path in (old, new):
        if move.journal.store is move.store and is_within(move.journal.place.path, path):
            raise OptionError(
                f"the journal {move.journal.place} is within {path}, which the move changes: "
                "choose another place"
            )
    directories: list[str] = []
    async for info in list_tree(move.store, old):
        dest = new + info.path[len(old) :]
        if info.is_dir:
            directories.append(dest)
        elif info.kind is Kind.FILE:
            await move.moves.files.append([Entry(info.path, dest, info.size, info.etag)])
        else:
            raise PreconditionError("rename", info.path, _only_files(info))
    move.moves.directories = directories
    move.tree, move.source, move.dest = True, old, new


def _only_files(info: Info) -> str:
    what = "a link" if info.kind is Kind.OTHER else f"a {info.kind.value}"
    return f"it is {what}; a move with a journal takes only files"


async def carry_out(move: Journaled) -> BulkReport:
    """Begin the move, and finish it.

    Raises ``BulkError``; ``PreflightError`` for a journal that exists; ``OwnedError`` if another
    process has taken the move over.
    """
    name = f"{PREFIX}{move.host.new_id()}"
    _under_way.add(name)
    try:
        return await _carry_out(move, name)
    finally:
        _under_way.discard(name)


async def _carry_out(move: Journaled, name: str) -> BulkReport:
    operation = move.operation
    operation.total = move.moves.files.count
    move.links = await links_of(move)
    try:
        await move.journal.begin(_content(move, name))
    except ExistsError as error:
        raise PreflightError(name, "job_stage_setup", (error,), str(error)) from error
    committer = move.committer(name)
    try:
        await committer.setup_job()
        async with committer.living():
            report = await committer.commit_job((), on_progress=telling(operation, RENAMING))
    except BaseException as error:
        operation.done = committer.renamed
        if not committer.has_begun:
            await _give_up(committer, move.journal, error)
        raise failed(move, error, begun=committer.has_begun) from error
    return await done(operation, report.files, report.bytes)


def is_under_way(job_id: str) -> bool:
    """Return whether this process is at work on its own move."""
    return job_id in _under_way


def _content(move: Journaled, name: str) -> MoveJournal:
    return MoveJournal(
        job_id=name,
        source=str(move.address.at(move.source)),
        dest=str(move.address.at(move.dest)),
        tree=move.tree,
        replace=move.replace,
        started_ms=int(move.host.now() * 1000),
        owner=Owner(name, move.host.name, move.host.user, move.host.process),
        links=move.links,
    )


async def links_of(move: Journaled) -> str | None:
    """Return which of the two directories are links, where there are any."""
    if not move.store.traits.links:
        return None
    found: list[str] = []
    for name, path in (("source", move.source), ("dest", move.dest)):
        with suppress(NotFoundError):
            if (await move.store.head(path)).kind is Kind.OTHER:
                found.append(name)
    return " ".join(found)


def _ending(move: Journaled) -> OnEnd:
    """Return what ends a move: empty directories go, and the journal says so."""

    async def end(outcome: Outcome, files: int) -> None:
        state = JournalState.UNDONE
        if outcome is Outcome.COMMITTED:
            state = JournalState.FINISHED
            if move.tree:
                await _remove_emptied(move.store, move.source)
        await move.journal.end(state, files, int(move.host.now() * 1000))

    return end


async def _remove_emptied(store: Wrapped, source: str) -> None:
    """Remove the directories of the source that hold nothing any more.

    All files are moved: a directory that cannot be removed is worth a warning and no more.
    """
    found: list[Info] = []
    try:
        with suppress(NotFoundError):
            found = [info async for info in list_tree(store, source) if info.is_dir]
        await remove_emptied(store, [*found, Info(source, Kind.DIRECTORY)])
    except StoreError as error:
        log.warning("an empty directory of the moved tree remains: %s", Redacted(error))


async def _give_up(committer: MoveCommitter, journal: Journal, error: BaseException) -> None:
    """Delete what a move that has not begun has written."""
    try:
        with anyio.move_on_after(_PATIENCE_SECONDS, shield=True):
            if committer.set_up:
                await committer.abort_job(type(error).__name__)
            await journal.discard()
    except AsyncCommitError as problem:
        error.add_note(f"and what it had written could not be deleted: {problem}")


def failed(move: Journaled, error: BaseException, *, begun: bool) -> BaseException:
    """Return the error to raise for a failed move, with its report.

    Args:
        move: the move.
        error: what has failed.
        begun: whether something may have been moved.
    """
    if not isinstance(error, AsyncCommitError) or isinstance(error, OwnedError):
        return error
    cause: BaseException = error
    if not begun and isinstance(error, CommitError) and len(error.failures) == 1:
        cause = error.failures[0]
    found = cause if isinstance(cause, StoreError) else StoreError("move", move.source, str(cause))
    move.operation.record(found.path, "", found)
    return BulkError(move.operation.report(), cause)


async def done(operation: BulkOperation, files: int, size: int = 0) -> BulkReport:
    """Return the report of a move that is finished or undone."""
    operation.done = 0
    operation.finish(files, size)
    return await operation.result()


def telling(operation: BulkOperation, stage: str) -> OnLoop[Progress]:
    """Return a callback that shows one stage of a commit as ``operation``."""

    def tell(progress: Progress) -> None:
        if progress.stage == stage:
            operation.observe(progress.done, progress.total)

    return OnLoop(tell)

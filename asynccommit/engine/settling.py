"""Finish or undo a move from its journal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from datetime import UTC, datetime

from asynccommit.commit.by_rename.move_committer import MoveCommitter
from asynccommit.commit.driver.owners import describe
from asynccommit.commit.hints import quoted
from asynccommit.commit.ownership.lease import ACCOUNT_LEASE, LEASE
from asynccommit.engine.journaled import (
    RENAMING,
    UNDOING,
    Journaled,
    JournalPath,
    done,
    failed,
    is_under_way,
    links_of,
    opened_store,
    refuse_unfit,
    telling,
)
from asynccommit.engine.journals import opened
from asynccommit.engine.operation import BulkOperation
from asynccommit.engine.report import BulkReport, OnProgress
from asynccommit.engine.trees import move_tree
from asynccommit.errors import (
    CommitError,
    CommittedError,
    ManifestError,
    NotFoundError,
    OwnedError,
    PreflightError,
    StoreError,
)
from asynccommit.formats.move_journal import JournalState, MoveJournal
from asynccommit.results import AbortReport
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.base import Store
from asynccommit.stores.tree import is_there
from asynccommit.stores.urls import parse_url


async def resume(
    store: Store,
    journal: JournalPath,
    *,
    force: bool = False,
    lease: float | None = None,
    on_progress: OnProgress | None = None,
    host: Host | None = None,
) -> BulkReport:
    """Finish a move that was interrupted, from its journal.

    Any process may do it that reaches the store and the journal. A finished move is left as it is:
    the report has its files as skipped. An undoing that was interrupted is finished instead.

    Args:
        store: the store of the files, as ``asynccommit.open_store`` opens it.
        journal: the absolute local path or URL of the journal.
        force: take the move over from an owner that seems to be alive.
        lease: seconds without a heartbeat after which another may continue this move.
        on_progress: called a few times a second, in a thread.
        host: clock, ids and names; the real ones by default.

    Raises:
        OwnedError: its owner may be alive; nothing was done.
        PreflightError: the move was undone, or had not begun and must be given anew.
        ManifestError: the journal cannot be trusted.
        NotFoundError: there is no journal.
        BulkError: something could not be moved; its ``report`` says what was done.
    """
    operation = BulkOperation("resume", store, on_progress=on_progress)
    async with _read(operation, journal, lease, host) as (move, content):
        report = await _resume(move, content, force=force)
    if report is not None:
        return report
    if not content.tree:
        text = "nothing had been moved when it was interrupted: run the same command again"
        raise PreflightError(content.job_id, "job_stage_setup", (), text)
    return await move_tree(
        store,
        move.source,
        move.dest,
        replace=content.replace,
        journal=journal,
        lease=lease,
        on_progress=on_progress,
        host=host,
    )


async def _resume(move: Journaled, content: MoveJournal, *, force: bool) -> BulkReport | None:
    """Finish a move; return ``None`` after giving up one that has not begun."""
    operation, committer = move.operation, move.committer(content.job_id)
    if content.state is JournalState.FINISHED:
        await _sweep(move, committer, content)
        operation.skipped = content.files
        return await operation.result()
    if content.state is JournalState.UNDONE:
        raise _undone(content, "it was undone")
    try:
        report = await committer.resume_job(force=force, on_progress=telling(operation, RENAMING))
    except CommitError as error:
        if _has_begun(error, committer):
            operation.done = committer.renamed
            raise failed(move, error, begun=True) from error
    else:
        if report.rolled_back:
            raise _undone(content, "it was being undone, and that is now finished")
        return await done(operation, report.files, report.bytes)

    async def give_up() -> AbortReport:
        return await committer.abort_job("given up", careful=not force)

    await _end(move, committer, content, force=force, act=give_up)
    await move.journal.discard()
    return None


async def rollback(
    store: Store,
    journal: JournalPath,
    *,
    force: bool = False,
    lease: float | None = None,
    on_progress: OnProgress | None = None,
    host: Host | None = None,
) -> BulkReport:
    """Undo a move that was interrupted, from its journal.

    Moved files go back to where they were, and replaced ones to their places. Files that others
    have changed since stay where they are; the report names them as failures. On a store over a
    network this waits for the lease of whoever was moving, as requests may be under way.

    Args: see ``resume``.

    Raises:
        OwnedError: its owner may be alive, or its requests may be under way; nothing was done.
        CommittedError: the move is finished.
        ManifestError: the journal cannot be trusted.
        NotFoundError: there is no journal.
        BulkError: something could not be moved back; its ``report`` says what was done.
    """
    operation = BulkOperation("undo", store, on_error="continue", on_progress=on_progress)
    async with _read(operation, journal, lease, host) as (move, content):
        committer = move.committer(content.job_id)
        if content.state is JournalState.FINISHED:
            raise _finished(content)
        if content.state is JournalState.UNDONE:
            await _sweep(move, committer, content)
            operation.skipped = content.files
            return await operation.result()
        try:
            report = await _end(
                move,
                committer,
                content,
                force=force,
                act=lambda: committer.rollback_job(
                    force=force, on_progress=telling(operation, UNDOING)
                ),
            )
        except CommittedError as error:
            raise _decided(move, error) from error
        except CommitError as error:
            raise failed(move, error, begun=True) from error
        if report.kept:
            raise CommitError(content.job_id, "job_stage_abort", (), report.kept)
        if not report.rolled_back:
            await move.journal.end(JournalState.UNDONE, 0, int(move.host.now() * 1000))
        return await _undo_report(operation, report)


@asynccontextmanager
async def _read(
    operation: BulkOperation, journal: JournalPath, lease: float | None, host: Host | None
) -> AsyncIterator[tuple[Journaled, MoveJournal]]:
    """Open a journal, and the move that it names.

    Raises ``ManifestError`` for a move on another store.
    """
    store = opened_store(operation.store)
    refuse_unfit(store)
    async with opened(store, journal) as record:
        content = await record.read()
        source, dest = parse_url(content.source), parse_url(content.dest)
        address = store.address
        if address is None or not (source.same_store(address) and dest.same_store(address)):
            text = f"belongs to a move on the store of {content.dest}: open that store"
            raise ManifestError(str(record.place), text)
        move = Journaled(operation, record, content.tree, content.replace, lease)
        move.source, move.dest, move.links = source.path, dest.path, content.links
        move.host = host or this_host()
        await _refuse_new_links(move, content)
        with closing(move.moves.files):
            yield move, content


async def _refuse_new_links(move: Journaled, content: MoveJournal) -> None:
    """Refuse a link that has come to the place of source or destination."""
    now = await links_of(move)
    if content.state is not JournalState.BEGUN or move.links is None or now is None:
        return
    for name in set(now.split()) - set(move.links.split()):
        path = move.source if name == "source" else move.dest
        text = f"{path} is a link, and was none when the move began: put the directory back"
        raise PreflightError(content.job_id, "job_stage_setup", (), text)


def _has_begun(error: CommitError, committer: MoveCommitter) -> bool:
    """Return whether there was a commit record when ``error`` was raised."""
    record = committer.layout.record
    missing = [one for one in error.failures if isinstance(one, NotFoundError)]
    return not any(one.path == record for one in missing)


async def _end(
    move: Journaled,
    committer: MoveCommitter,
    content: MoveJournal,
    *,
    force: bool,
    act: Callable[[], Awaitable[AbortReport]],
) -> AbortReport:
    """Await ``act``, which ends a move, or give up one that has not begun.

    Where its process has left nothing that tells who it is, the journal does. Raises ``OwnedError``
    if that process may be about to begin the move.
    """
    layout = committer.layout
    signs = [layout.record, layout.job_owner]
    if await _is_any_there(move, [*signs, layout.ended("aborted")]):
        try:
            return await act()
        except OwnedError:
            if await _is_any_there(move, signs):
                raise
    if not force and not await _is_dead(move, content):
        text = f"{describe(content.owner)} may be about to begin it. Nothing was done"
        raise OwnedError(content.job_id, "job_stage_abort", (), text)
    return await committer.abort_job("given up")


async def _is_any_there(move: Journaled, paths: Sequence[str]) -> bool:
    return any([await is_there(move.store, path) for path in paths])


async def _is_dead(move: Journaled, content: MoveJournal) -> bool:
    """Return whether the process that began a move is dead or silent."""
    owner, host = content.owner, move.host
    if (owner.host, bool(owner.process)) == (host.name, True):
        if owner.process == host.process:
            return not is_under_way(content.job_id)
        alive = await asyncio.to_thread(host.is_running, owner.process)
        if alive is not None:
            return not alive
    lease = move.lease or (ACCOUNT_LEASE if move.store.traits.account else LEASE)
    return await move.journal.age(host.new_id()) > lease


async def _sweep(move: Journaled, committer: MoveCommitter, content: MoveJournal) -> None:
    """Delete what an interrupted clean-up of an ended move has left."""
    if not await is_there(move.store, committer.layout.job_dir):
        return
    with suppress(OwnedError, PreflightError, CommittedError):  # another process cleans up
        if content.state is JournalState.FINISHED:
            await committer.resume_job()
        else:
            await _end(move, committer, content, force=True, act=committer.rollback_job)


async def _undo_report(operation: BulkOperation, report: AbortReport) -> BulkReport:
    for path in report.not_restored:
        why = next((text for text in report.warnings if text.startswith(f"{path} ")), "")
        operation.record(path, "", StoreError("undo", path, why or "differs from before the move"))
    return await done(operation, report.files)


def _undone(content: MoveJournal, what: str) -> PreflightError:
    text = f"{what}; {_when(content)}nothing is left to finish. To move the files, begin a new move"
    return PreflightError(content.job_id, "job_stage_setup", (), text)


def _finished(content: MoveJournal) -> CommittedError:
    text = (
        f"the move is finished, and cannot be undone; {_when(content)}move its files back from "
        f"{content.dest} to {content.source} by another move"
    )
    return CommittedError(content.job_id, "job_stage_abort", (), text)


def _decided(move: Journaled, error: CommittedError) -> CommittedError:
    text = (
        "all files have been moved and only the last step is left, so it cannot be undone. Finish "
        f"it: asynccommit mv --resume {quoted(move.journal.shown)}"
    )
    return CommittedError(error.job_id, error.stage, (), text)


def _when(content: MoveJournal) -> str:
    if content.ended_ms is None:
        return ""
    when = datetime.fromtimestamp(content.ended_ms / 1000, UTC).isoformat(timespec="seconds")
    return f"the journal says so since {when}: "

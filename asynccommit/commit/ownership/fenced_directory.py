"""The directory of a job attempt, renamed to keep late requests out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import cast

from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.own_tasks import own_tasks
from asynccommit.commit.errors import lease_lost
from asynccommit.commit.job.cleanup import CleanupResult
from asynccommit.commit.layouts.layout import RECORD, Layout
from asynccommit.commit.ownership.attempt_files import (
    delete_remains,
    delete_whole,
    find_tasks,
    refuse_asides,
)
from asynccommit.commit.ownership.job_directory import JobDirectory
from asynccommit.commit.ownership.shared_directories import take_own
from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    PreconditionError,
    RejectedError,
)
from asynccommit.formats.commit_owner import Decision, Outcome
from asynccommit.formats.commit_record import MAX_RECORD_BYTES
from asynccommit.runtime.concurrency import both
from asynccommit.stores.base import DraftingStore, Info
from asynccommit.stores.grant import granting, unchecked
from asynccommit.stores.tree import is_there, list_if_there, remove_directory


class FencedDirectory(JobDirectory):
    """On stores where nothing can enter a directory once it is renamed."""

    async def is_taken(self, run: CommitContext) -> bool:
        """See ``JobDirectory.is_taken``."""
        return await is_there(run.store, run.layout.owner(run.identity.epoch + 1))

    async def require_place(self, run: CommitContext) -> None:
        """See ``JobDirectory.require_place``.

        The owner's directory must exist as well.

        Who takes a commit over writes a claim, renames the place and puts a file where it was. The
        claims decide, because creating any directory below recreates the place.
        """
        claim = run.layout.owner(run.identity.epoch)
        if run.store.traits.account:
            await self._require_listed(run, claim)
            return
        try:
            (_, place), taken = await both(
                lambda: both(lambda: run.store.head(claim), lambda: run.store.head(run.epoch_dir)),
                lambda: self.is_taken(run),
            )
        except NotFoundError:
            raise lease_lost(run) from None
        if taken or not place.is_dir:
            raise lease_lost(run)

    async def _require_listed(self, run: CommitContext, claim: str) -> None:
        """Check the claims and the place by one request, where each costs time."""
        layout = run.layout
        there = {info.path: info for info in await list_if_there(run.store, layout.attempt_dir)}
        place = there.get(run.epoch_dir)
        owned = claim in there and layout.owner(run.identity.epoch + 1) not in there
        if not owned or place is None or not place.is_dir:
            raise lease_lost(run)

    async def write(self, run: CommitContext, path: str, data: bytes) -> Info:
        """See ``JobDirectory.write``.

        A place that was taken over has no directory for it. The result tells its path, which is
        another one where it is renamed anyway.
        """
        if not run.store.traits.drafts:
            return await run.store.put(path, data)
        place = path.rpartition("/")[0]
        if not (await run.store.head(place)).is_dir:
            raise lease_lost(run)
        return await cast(DraftingStore, run.store).draft(place, data)

    async def take_back(self, run: CommitContext, path: str) -> None:
        """See ``JobDirectory.take_back``.

        It went with its directory.
        """

    async def take_manifests(self, run: CommitContext) -> bool:
        """See ``JobDirectory.take_manifests``.

        Other jobs may have theirs in the same place.
        """
        if run.layout.shared:
            return await is_there(run.store, run.layout.committed_dir)
        try:
            await run.store.rename(run.layout.manifests_dir, f"{run.epoch_dir}/manifests")
        except ExistsError:
            return True  # moved before, and made again by a straggler
        except NotFoundError:
            return False
        return True

    async def close(self, run: CommitContext, outcome: Outcome) -> None:
        """See ``JobDirectory.close``.

        No other process finds a commit to continue then.
        """
        try:
            await run.store.rename(run.epoch_dir, run.layout.closed(run.identity.epoch))
        except NotFoundError:
            raise lease_lost(run) from None
        if run.held is not None:
            run.held.close()

    async def has_begun(self, run: CommitContext, attempt_dir: str) -> bool:
        """See ``JobDirectory.has_begun``."""
        return await _has_record(run, attempt_dir)

    async def find_end(self, run: CommitContext) -> Decision | None:
        """See ``JobDirectory.find_end``.

        The outcome stays as long as the commit does.
        """
        return None

    async def has_ended(self, run: CommitContext) -> bool:
        """See ``JobDirectory.has_ended``."""
        return await is_there(run.store, run.layout.ended("committed"))

    async def has_work(self, run: CommitContext) -> bool:
        """See ``JobDirectory.has_work``."""
        return bool(await list_if_there(run.store, run.layout.tasks_dir))

    async def is_late(self, run: CommitContext, layout: Layout) -> bool:
        """See ``JobDirectory.is_late``.

        Late files have no directory to come to.
        """
        return False

    async def is_renamed(self, run: CommitContext) -> bool:
        """See ``JobDirectory.is_renamed``."""
        return await _has_record(run, run.layout.ended("aborted"))

    async def restore_begun(self, run: CommitContext) -> bool:
        """See ``JobDirectory.restore_begun``."""
        begun = await self.is_renamed(run)
        if begun:
            await _put_back(run, run.layout.ended("aborted"))
        return begun

    async def is_given_back(self, run: CommitContext) -> bool:
        """See ``JobDirectory.is_given_back``."""
        await self.restore_begun(run)
        return await _is_of_commit(run, run.layout.attempt_dir)

    async def abort(
        self, run: CommitContext, check: Callable[[], None] | None = None
    ) -> CleanupResult:
        """See ``JobDirectory.abort``."""
        await delete_remains(run)
        place = run.layout.attempt_dir
        if run.layout.shared:
            if not (
                await is_there(run.store, place) or await own_tasks(run, until=run.layout.attempt)
            ):
                return CleanupResult.NOTHING
            await run.store.mkdir(place)  # to be renamed: who begins to commit now learns of it
        with granting(check=check):
            place = await _set_aside(run, "aborted")
        if place != run.layout.attempt_dir and await _has_record(run, place):
            await _put_back(run, place)
            begun = await _has_record(run, run.layout.attempt_dir)
            return CleanupResult.KEPT if begun else CleanupResult.NOTHING  # it has ended since
        try:
            await refuse_asides(run, place)
        except PreconditionError:
            await _put_back(run, place)
            raise
        await take_own(run, place)
        return await delete_whole(run, place)

    async def delete_ended(self, run: CommitContext, how: str) -> CleanupResult:
        """See ``JobDirectory.delete_ended``."""
        lease = run.held
        if lease is not None:
            await lease.end()
        place = await _move_away(run, how)
        if place == run.layout.attempt_dir and await self.is_given_back(run):
            place = await _move_away(run, how)  # an abort had it for a moment
        _, tasks = await both(lambda: _confirm(run, place), lambda: find_tasks(run, place))
        if lease is not None:
            lease.free()  # nobody begins below the name that the directory has now
        return await delete_whole(run, place, tasks)


async def _set_aside(run: CommitContext, what: str) -> str:
    """Rename the job attempt's directory, and return its new path.

    Raises ``PreconditionError`` if it belongs to another commit.
    """
    place = await _move_away(run, what)
    await _confirm(run, place)
    return place


async def _move_away(run: CommitContext, what: str) -> str:
    """Rename the job attempt's directory, in which no commit can begin then."""
    source, place = run.layout.attempt_dir, run.layout.ended(what)
    try:
        await run.store.rename(source, place)
    except NotFoundError:
        return source
    except ExistsError:  # what a process left that died while deleting
        await run.store.delete_tree(place)
        await run.store.rename(source, place)
    return place


async def _confirm(run: CommitContext, place: str) -> None:
    """Put a directory that was renamed back if it belongs to another commit."""
    source = run.layout.attempt_dir
    if place == source or not run.identity.commit_id or await _is_of_commit(run, place):
        return
    with unchecked():
        await _put_back(run, place)  # of a later job with this id
    raise PreconditionError("delete_tree", source, "now belongs to another commit")


async def _is_of_commit(run: CommitContext, place: str) -> bool:
    """Return whether a directory contains the record of this commit."""
    try:
        record = await run.store.get(f"{place}/{RECORD}", MAX_RECORD_BYTES)
    except NotFoundError:
        return False
    return sha256(record).hexdigest() == run.identity.commit_id


async def _put_back(run: CommitContext, place: str) -> None:
    """Undo ``_set_aside``, even if a commit made new directories since."""
    try:
        await run.store.rename(place, run.layout.attempt_dir)
        return
    except NotFoundError:
        return  # another process, which has seen the commit as well, was quicker
    except ExistsError:
        children = await list_if_there(run.store, place)
    for child in children:
        with suppress(ExistsError, NotFoundError):
            name = child.path.rpartition("/")[2]
            await run.store.rename(child.path, f"{run.layout.attempt_dir}/{name}")
    with suppress(ExistsError, NotFoundError):
        await remove_directory(run.store, place)


async def _has_record(run: CommitContext, attempt_dir: str) -> bool:
    try:
        record = await run.store.get(f"{attempt_dir}/{RECORD}", MAX_RECORD_BYTES)
    except NotFoundError:
        return False
    except (PreconditionError, RejectedError):
        return True  # a directory, or too large: nothing of ours, and nothing to delete
    return bool(record.strip(b"\0"))

"""The directory of a job attempt that any write creates again.

No directory can be fenced there. Late requests are still harmless, because every move and every
delete names a version, and writes that begin or decide something replace nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from asynccommit.commit.context import CommitContext
from asynccommit.commit.errors import lease_lost
from asynccommit.commit.job.cleanup import CleanupResult
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.ownership.attempt_files import delete_remains, delete_whole, refuse_asides
from asynccommit.commit.ownership.flat_namespace import (
    close_record,
    delete_attempt,
    find_end,
    take_back_word,
)
from asynccommit.commit.ownership.job_directory import JobDirectory
from asynccommit.commit.ownership.status import is_end, read_state
from asynccommit.errors import ExistsError, LeaseLostError, ManifestError
from asynccommit.formats.commit_owner import (
    MAX_OWNER_BYTES,
    Decision,
    Outcome,
    decode_decision,
    encode_decision,
)
from asynccommit.stores.base import Info
from asynccommit.stores.tree import is_there, list_if_there, read_if_there, tree_pages


class FlatDirectory(JobDirectory):
    """On stores where late files are recognised by their names and versions."""

    async def is_taken(self, run: CommitContext) -> bool:
        """See ``JobDirectory.is_taken``.

        Also true if the commit is gone.
        """
        layout, epoch = run.layout, run.identity.epoch
        there = {info.path for info in await list_if_there(run.store, layout.attempt_dir)}
        mine = {layout.record, layout.owner(epoch)}
        return layout.owner(epoch + 1) in there or not mine <= there

    async def require_place(self, run: CommitContext) -> None:
        """See ``JobDirectory.require_place``."""
        if await self.is_taken(run):
            raise lease_lost(run)

    async def write(self, run: CommitContext, path: str, data: bytes) -> Info:
        """See ``JobDirectory.write``.

        A late request must not create another version, so it replaces nothing.
        """
        try:
            info = await run.store.put(path, data, overwrite=False)
        except ExistsError:
            info = await run.store.head(path)
        try:
            await self.require_place(run)
        except LeaseLostError:
            await self.take_back(run, path)
            raise
        return info

    async def take_back(self, run: CommitContext, path: str) -> None:
        """See ``JobDirectory.take_back``."""
        await take_back_word(run, path)

    async def take_manifests(self, run: CommitContext) -> bool:
        """See ``JobDirectory.take_manifests``.

        They stay, and late ones count for nothing.
        """
        return await is_there(run.store, run.layout.committed_dir)

    async def close(self, run: CommitContext, outcome: Outcome) -> None:
        """See ``JobDirectory.close``.

        The file says how the commit ended.
        """
        identity, now = run.identity, int(run.host.now() * 1000)
        decision = Decision(outcome, identity.epoch, identity.owner_id, now, identity.commit_id)
        await self.write(run, run.layout.closed(identity.epoch), encode_decision(decision))
        if (lease := run.held) is not None:
            lease.free()
            await lease.end()

    async def has_begun(self, run: CommitContext, attempt_dir: str) -> bool:
        """See ``JobDirectory.has_begun``.

        A late record does not count.
        """
        layout = replace(run.layout, attempt=int(attempt_dir.rpartition("/")[2]))
        try:
            return await read_state(run.store, layout) is not None
        except ManifestError:
            return True  # nothing of ours, and nothing to delete

    async def find_end(self, run: CommitContext) -> Decision | None:
        """See ``JobDirectory.find_end``.

        The clean-up deletes the outcome before the end.
        """
        return await find_end(run)

    async def has_ended(self, run: CommitContext) -> bool:
        """See ``JobDirectory.has_ended``."""
        for info in await list_if_there(run.store, run.layout.attempt_dir):
            if not is_end(run.layout, info.path):
                continue
            data = await read_if_there(run.store, info.path, MAX_OWNER_BYTES)
            with suppress(ManifestError):
                if data and decode_decision(data, info.path).outcome is Outcome.COMMITTED:
                    return True
        return False

    async def has_work(self, run: CommitContext) -> bool:
        """See ``JobDirectory.has_work``."""
        if not run.store.traits.bulk_delete or await self.has_ended(run):
            return False
        async for page in tree_pages(run.store, run.layout.tasks_dir):
            if any(not info.is_dir for info in page):
                return True
        return False

    async def is_late(self, run: CommitContext, layout: Layout) -> bool:
        """See ``JobDirectory.is_late``."""
        return not await is_there(run.store, layout.manifests_dir)

    async def is_renamed(self, run: CommitContext) -> bool:
        """See ``JobDirectory.is_renamed``.

        Nothing is ever renamed.
        """
        return False

    async def restore_begun(self, run: CommitContext) -> bool:
        """See ``JobDirectory.restore_begun``.

        Nothing was renamed.
        """
        return False

    async def is_given_back(self, run: CommitContext) -> bool:
        """See ``JobDirectory.is_given_back``.

        Nothing was taken.
        """
        return False

    async def abort(
        self, run: CommitContext, check: Callable[[], None] | None = None
    ) -> CleanupResult:
        """See ``JobDirectory.abort``.

        The place of the record is taken, so that none begins.
        """
        place = run.layout.attempt_dir
        if not run.store.traits.bulk_delete:
            await delete_remains(run)
            await refuse_asides(run, place)
            return await delete_whole(run, place)
        if not await is_there(run.store, place):
            return CleanupResult.NOTHING
        await refuse_asides(run, place)
        record = await close_record(run)
        if record is None:
            return CleanupResult.KEPT
        await delete_attempt(run, record)
        return CleanupResult.DELETED

    async def delete_ended(self, run: CommitContext, how: str) -> CleanupResult:
        """See ``JobDirectory.delete_ended``."""
        if not run.store.traits.bulk_delete:
            return await delete_whole(run, run.layout.attempt_dir)
        return CleanupResult.DELETED if await delete_attempt(run) else CleanupResult.NOTHING

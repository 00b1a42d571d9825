"""Looking at the destination once more after a rollback: no file of the job may be left there.

Nothing is claimed that was not looked at. A completion that took effect late, and a service that
answers wrongly, leave a file that nobody would look for.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.loaded import Pending
from asynccommit.commit.by_upload.plan import UploadPlan
from asynccommit.commit.by_upload.reconcile import ended_as
from asynccommit.commit.errors import NAMED
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.errors import NotFoundError, OutcomeUnknownError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.tree import pages


async def files_left(
    run: UploadContext, plan: UploadPlan, said: Collection[str]
) -> tuple[str, ...]:
    """Return the files of the job that are still at their destinations, and warn of them.

    One listing of each directory; what is in the place of a file of the job is asked for by name.
    Without a token a file of the same bytes looks the same, so what the commit overwrote and has
    put back is left out then.

    Args:
        run: the rollback.
        plan: of the commit, everything of which is undone.
        said: paths that are known to be left.
    """
    left: list[str] = []

    async def ask(pending: Pending) -> None:
        if pending.dest in said or not (pending.token or pending.dest not in plan.asides):
            return
        try:
            if await ended_as(run, pending) is None:
                return
        except OutcomeUnknownError:  # another has put it there since: the rollback found it gone
            return
        left.append(pending.dest)

    with run.timed("op_verify_rollback"):
        suspects = await _suspects(run, plan)
        await for_each(suspects, ask, workers=run.workers)
    left.sort()
    for path in left[:NAMED]:
        run.warn(f"{path} stays: as far as can be told it is a file of the job")
    if len(left) > NAMED:
        run.warn(f"{len(left) - NAMED} more files of the job stay as far as can be told")
    return tuple(left)


async def _suspects(run: UploadContext, plan: UploadPlan) -> list[Pending]:
    """Return the uploads in whose place there is a file; sets may be wrong about its length."""
    loaded = plan.loaded
    with Fingerprints(run.options.spill_directory) as found:

        async def look(path: str) -> None:
            with suppress(NotFoundError):
                async for page in pages(run.store, path or "/"):
                    found.add([info.path for info in page if not info.is_dir])
            run.step()

        await for_each(sorted(loaded.parents), look, workers=run.workers)
        there = loaded.dests.common(found)
    if not there:
        return []
    return [pending async for pending in loaded.spill.each() if fingerprint(pending.dest) in there]

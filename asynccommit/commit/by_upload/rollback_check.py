"""Check after a rollback that no file of the job remains.

Nothing is claimed that was not looked at. A late completion, or a wrong response, would otherwise
leave a file unnoticed.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.loaded import Pending
from asynccommit.commit.by_upload.open_uploads import ended_as
from asynccommit.commit.by_upload.plan import UploadPlan
from asynccommit.commit.errors import NAMED
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.errors import NotFoundError, OutcomeUnknownError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.tree import pages


async def files_left(
    run: UploadContext, plan: UploadPlan, said: Collection[str]
) -> tuple[str, ...]:
    """Return and warn of files of the job at their destinations.

    Each directory is listed once; files in the place of the job's files are read by name. Without a
    token a file of the same bytes looks the same, so what the commit overwrote and has put back is
    left out then.

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

    with run.meter.timed("op_verify_rollback"):
        suspects = await _suspects(run, plan)
        await for_each(suspects, ask, workers=run.workers)
    left.sort()
    for path in left[:NAMED]:
        run.warn(f"{path} remains: it seems to be a file of the job")
    if len(left) > NAMED:
        run.warn(f"{len(left) - NAMED} more files of the job seem to remain")
    return tuple(left)


async def _suspects(run: UploadContext, plan: UploadPlan) -> list[Pending]:
    """Return uploads with a file in their place.

    Pending sets may have wrong lengths.
    """
    loaded = plan.loaded
    with Fingerprints(run.options.spill_directory) as found:

        async def look(path: str) -> None:
            with suppress(NotFoundError):
                async for page in pages(run.store, path or "/"):
                    found.add([info.path for info in page if not info.is_dir])
            run.meter.step()

        await for_each(sorted(loaded.parents), look, workers=run.workers)
        there = loaded.dests.common(found)
    if not there:
        return []
    return [pending async for pending in loaded.spill.each() if fingerprint(pending.dest) in there]

"""Job commit, fifth step: every file to its destination, never over anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from asynccommit.parallel import for_each
from asynccommit.stages.preflight import SAMPLE, Plan
from asynccommit.stages.run import Run
from asynccommit.stages.spill import Entry


async def rename_files(run: Run, plan: Plan) -> None:
    """Rename every file of the plan, and keep a sample of what was renamed.

    The first failure stops new renames and is raised once those under way have ended; files that
    were renamed stay where they are.
    """
    loaded = plan.loaded
    with run.timed("job_stage_rename_files", loaded.files):
        await for_each(
            loaded.spill.entries(),
            _renamer(run.store.rename, run.renamed_one, plan.sample),
            workers=run.workers,
        )
    run.statistics.count("committer_files_committed", loaded.files)
    run.statistics.count("committer_bytes_committed", loaded.bytes)


def _renamer(
    rename: Callable[[str, str], Awaitable[None]], step: Callable[[], None], sample: list[str]
) -> Callable[[Entry], Awaitable[None]]:
    async def rename_one(entry: Entry) -> None:
        await rename(entry.source, entry.dest)
        step()
        if len(sample) < SAMPLE:
            sample.append(entry.dest)

    return rename_one

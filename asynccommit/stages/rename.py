"""Job commit, fifth step: every file to its destination, never over anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import blake2b

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
            _renamer(run, plan.sample),
            workers=run.workers,
        )
    run.statistics.count("committer_files_committed", loaded.files)
    run.statistics.count("committer_bytes_committed", loaded.bytes)


def _renamer(run: Run, sample: list[str]) -> Callable[[Entry], Awaitable[None]]:
    rename, step = run.store.rename, run.renamed_one
    epoch = run.epoch.encode() if run.store.traits.tokens else None

    async def rename_one(entry: Entry) -> None:
        token = None if epoch is None else token_of(epoch, entry.source, entry.dest)
        await rename(entry.source, entry.dest, etag=entry.etag, token=token)
        step()
        if len(sample) < SAMPLE:
            sample.append(entry.dest)

    return rename_one


def token_of(epoch: bytes, source: str, dest: str) -> str:
    """Return the UUID that marks one rename of one job commit, the same whoever computes it."""
    text = f"{source}\0{dest}".encode("utf-8", "surrogatepass")
    hexa = blake2b(text, digest_size=16, key=epoch).hexdigest()
    return f"{hexa[:8]}-{hexa[8:12]}-{hexa[12:16]}-{hexa[16:20]}-{hexa[20:]}"

"""Jobs where a directory that was renamed away is made again by whatever still comes to it.

There nobody can be kept out of a place. What comes late does no harm all the same, because every
move and every delete names the version of what it acts on, and writes that begin or decide
something replace nothing.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StoreError,
)
from asynccommit.formats.commit_record import ABORTED, MAX_RECORD_BYTES
from asynccommit.job import Layout
from asynccommit.parallel import (
    is_there,
    list_if_there,
    remove_below,
    remove_directory,
    remove_file,
    remove_files,
)
from asynccommit.stages.run import Run
from asynccommit.stages.standing import is_blank, is_control, is_end, look, read_if_there
from asynccommit.store import Info


async def close_record(run: Run) -> bool:
    """Take the commit record's place, so that no commit begins while an abort deletes.

    Returns whether that was done; if not, a commit has begun.
    """
    with suppress(ExistsError, OutcomeUnknownError):
        await run.store.put(run.layout.record, ABORTED, overwrite=False)
        return True
    there = await read_if_there(run.store, run.layout.record, MAX_RECORD_BYTES)
    if there is None:
        return False
    return is_blank(there) or await look(run.store, run.layout) is None


async def delete_attempt(run: Run) -> bool:
    """Delete the job attempt's directory; whether something was there.

    The data first; then the record, without which the rest means nothing to anybody but what says
    how it ended, which goes last. Raises ``PreconditionError`` if the record is another commit's.
    """
    layout = run.layout
    record = await _own_record(run)
    found = await remove_below(run.store, layout.attempt_dir, lambda info: _says(layout, info))
    if record is not None:
        await remove_files(run.store, [record])
    found += await remove_below(
        run.store, layout.attempt_dir, lambda info: is_end(layout, info.path)
    )
    found += await remove_below(run.store, layout.attempt_dir)
    with suppress(NotFoundError, ExistsError):
        await remove_directory(run.store, layout.attempt_dir)
    return record is not None or found > 0


def _says(layout: Layout, info: Info) -> bool:
    """Whether a file tells how a commit stands."""
    return not info.is_dir and is_control(layout, info.path)


async def _own_record(run: Run) -> Info | None:
    """Return the record as it is there, to be deleted as nothing else."""
    try:
        info = await run.store.head(run.layout.record)
        record = await run.store.get(run.layout.record, MAX_RECORD_BYTES)
    except NotFoundError:
        return None
    if run.commit_id and sha256(record).hexdigest() != run.commit_id:
        raise PreconditionError("delete", run.layout.record, "is of another commit by now")
    return info


async def is_closed(run: Run) -> bool | None:
    """Whether all of the commit is done but the clean-up; ``None`` if it is gone altogether."""
    listing = {info.path for info in await list_if_there(run.store, run.layout.attempt_dir)}
    if run.layout.record not in listing:
        return None
    return any(is_end(run.layout, path) for path in listing)


async def take_back_word(run: Run, path: str) -> None:
    """Delete what this owner has written, if nothing is left of the commit that it is about."""
    with suppress(StoreError):
        if not await is_there(run.store, run.layout.record):
            await remove_file(run.store, path)

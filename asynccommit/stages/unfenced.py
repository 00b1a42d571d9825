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
from asynccommit.parallel import is_there, list_if_there, remove_below
from asynccommit.stages.run import Run
from asynccommit.stages.standing import is_blank, is_control, read_if_there
from asynccommit.store import Info


async def close_record(run: Run) -> bool:
    """Take the commit record's place, so that no commit begins while an abort deletes.

    Returns whether that was done; if not, a commit has begun.
    """
    with suppress(ExistsError, OutcomeUnknownError):
        await run.store.put(run.layout.record, ABORTED, overwrite=False)
        return True
    there = await read_if_there(run.store, run.layout.record, MAX_RECORD_BYTES)
    return there is not None and is_blank(there)


async def delete_attempt(run: Run) -> bool:
    """Delete the job attempt's directory; whether something was there.

    The data first; then the record, without which the rest means nothing to anybody. Raises
    ``PreconditionError`` if the record is another commit's.
    """
    layout = run.layout
    record = await _own_record(run)
    found = await remove_below(run.store, layout.attempt_dir, lambda info: _says(layout, info))
    if record:
        with suppress(NotFoundError):
            await run.store.delete(layout.record)
    found += await remove_below(run.store, layout.attempt_dir)
    with suppress(NotFoundError, ExistsError):
        await run.store.delete(layout.attempt_dir)
    return record or found > 0


def _says(layout: Layout, info: Info) -> bool:
    """Whether a file tells how a commit stands."""
    return not info.is_dir and is_control(layout, info.path)


async def _own_record(run: Run) -> bool:
    record = await read_if_there(run.store, run.layout.record, MAX_RECORD_BYTES)
    if record is None:
        return False
    if run.commit_id and sha256(record).hexdigest() != run.commit_id:
        raise PreconditionError("delete", run.layout.record, "is of another commit by now")
    return True


async def is_closed(run: Run) -> bool | None:
    """Whether all of the commit is done but the clean-up; ``None`` if it is gone altogether."""
    listing = {info.path for info in await list_if_there(run.store, run.layout.attempt_dir)}
    if run.layout.record not in listing:
        return None
    return any(path.endswith(".done") for path in listing)


async def take_back_word(run: Run, path: str) -> None:
    """Delete what this owner has written, if nothing is left of the commit that it is about."""
    with suppress(StoreError):
        if not await is_there(run.store, run.layout.record):
            await run.store.delete(path)

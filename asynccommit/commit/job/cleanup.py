"""The results of a clean-up, and the remaining files."""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from typing import cast

from asynccommit.commit.context import CommitContext
from asynccommit.commit.hints import job_command
from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    PreconditionError,
)
from asynccommit.stores.base import BulkStore, Store
from asynccommit.stores.tree import (
    is_there,
    remove_directory,
)

_SHOWN = 5


class CleanupResult(Enum):
    """The result of a cleanup."""

    DISABLED = "switched off"
    KEPT = "kept"
    NOTHING = "nothing to clean up"
    PARALLEL_DELETE = "task attempt directories deleted in parallel, then the job directory"
    DELETED = "job directory deleted"
    LEFT = "deleted, except for files written since"


async def see_left(
    run: CommitContext, store: Store, path: str, outcome: CleanupResult
) -> CleanupResult:
    """Return the result of an abort, with the files left at ``path``.

    One page of a listing is read, and a warning names its entries.
    """
    left = await first_below(store, path)
    if not left:
        return outcome
    shown = ", ".join(left[:_SHOWN]) + (" and more" if left[_SHOWN:] else "")
    again = job_command("abort", run.layout)
    run.warn(
        f"not deleted, because they were written since or the store keeps them: {shown}. "
        f"Abort the job again: {again}"
    )
    return CleanupResult.LEFT


async def remove_if_empty(run: CommitContext, path: str) -> None:
    """Delete a directory if it is empty."""
    with suppress(ExistsError, NotFoundError, PreconditionError):
        await remove_directory(run.store, path)


async def is_phantom(store: Store, path: str) -> bool:
    """Return whether a listed directory has no object at or below it.

    Servers without directories may show an empty prefix for minutes after its last object is gone.
    """
    return not (store.traits.directories or await is_there(store, path))


async def first_below(store: Store, path: str) -> list[str]:
    """Return one page of the entries at ``path`` and below.

    Where the store has directories it is the first level, and an empty directory is itself shown.
    """
    if store.traits.bulk_delete:
        page = await cast(BulkStore, store).list_tree(path)
        return sorted(info.path for info in page.entries if not info.is_dir or info.etag)
    try:
        page = await store.list(path)
    except NotFoundError:
        return []
    except PreconditionError:
        return [path]
    return sorted(info.path for info in page.entries) or [path]

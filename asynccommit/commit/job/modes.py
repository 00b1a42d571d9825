"""Write modes: what is output, what is refused or replaced."""

from __future__ import annotations

from collections.abc import Sequence

from asynccommit.commit.context import CommitContext
from asynccommit.commit.job.paths import stays
from asynccommit.commit.layout import TEMPORARY, Layout
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError
from asynccommit.options.job import Mode
from asynccommit.stores.base import Info
from asynccommit.stores.tree import list_if_there

STAGING = ".spark-staging"


SINK_LOG = "_spark_metadata"


OTHERS_BELOW = (
    "another job is writing below a directory to be replaced: finish or abort that job first"
)


async def refuse_mode(run: CommitContext, mode: Mode, overwrite: Sequence[str]) -> None:
    """Refuse a destination that ``mode`` cannot be used on.

    Raises ``ExistsError`` if ``FAIL`` finds something, ``PreconditionError`` if files would be
    added to a table whose readers only see what a streaming query has logged.
    """
    dest = run.layout.dest.path
    if mode is Mode.REPLACE_TABLE or dest in overwrite:
        return
    if mode is Mode.FAIL:
        taken = [
            info.path
            for info in await list_if_there(run.store, dest)
            if is_output(run.layout, info)
        ]
        if taken:
            raise not_empty("the destination", dest, taken)
    if run.options.readers_use_sink_log:
        return
    try:
        await run.store.head(f"{run.layout.root}/{SINK_LOG}")
    except NotFoundError:
        return
    raise PreconditionError(
        "rename",
        f"{run.layout.root}/{SINK_LOG}",
        "a streaming query wrote this table, and readers see only the files in its log: write "
        f"elsewhere, or replace the whole table ({Mode.REPLACE_TABLE})",
    )


def not_empty(what: str, path: str, taken: Sequence[str]) -> ExistsError:
    """Return the error of a directory that the mode ``FAIL`` finds in use."""
    first = min(taken).rpartition("/")[2]
    text = f"{what} is not empty, and the mode is {Mode.FAIL}: it has {first}"
    return ExistsError("", path, text)


def is_replaced(run: CommitContext, mode: Mode, overwrite: Sequence[str]) -> bool:
    """Return whether a job replaces the output of a finished run of its work."""
    replacing = (Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS)
    return mode in replacing or run.layout.dest.path in overwrite


def is_output(layout: Layout, info: Info) -> bool:
    """Return whether a child of the destination is the output of a job."""
    name = info.path.rpartition("/")[2]
    return info.path == layout.success or not (stays(name) or name == TEMPORARY)

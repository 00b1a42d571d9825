"""Write modes: what is output, what is refused or replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asynccommit.commit.context import CommitContext
from asynccommit.commit.layouts.layout import TEMPORARY, Layout
from asynccommit.commit.paths import stays
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError
from asynccommit.options.job import Mode
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info
from asynccommit.stores.tree import list_if_there

STAGING = ".spark-staging"


SINK_LOG = "_spark_metadata"


OTHERS_BELOW = (
    "another job is writing below a directory to be replaced: finish or abort that job first"
)


@dataclass(frozen=True, slots=True)
class Maker:
    """A format whose metadata says which files are its table's.

    Attributes:
        name: how messages call the table.
        marks: names in the table of which one shows the format.
        replaced: whether a job that replaces the whole table replaces these, too.
        inside: how a name in the directory ends that is the mark; empty if the mark itself tells.
        remedy: what else can be done.
    """

    name: str
    marks: tuple[str, ...]
    replaced: bool = False
    inside: str = ""
    remedy: str = "write with its own writer, or elsewhere"


MAKERS = (
    Maker(
        "a Parquet dataset with a summary, as Dask writes it,",
        ("_metadata",),
        replaced=True,
        remedy="delete that file first, without which readers list the directory, or replace the "
        f"whole table ({Mode.REPLACE_TABLE})",
    ),
    Maker("a Delta table", ("_delta_log",)),
    Maker("a Hudi table", (".hoodie",)),
    Maker("an Iceberg table", ("metadata",), inside=".metadata.json"),
    Maker("a Zarr store", (".zgroup", ".zarray", ".zmetadata")),
    Maker("a Zarr store", ("zarr.json",), replaced=True),
)


async def refuse_makers(run: CommitContext, mode: Mode, overwrite: Sequence[str]) -> None:
    """Refuse a table whose readers go by the metadata of another writer.

    A mark costs a request only where no listing of the destination has been read. Raises
    ``PreconditionError``.
    """
    if run.options.ignore_table_metadata:
        return
    whole = mode is Mode.REPLACE_TABLE or run.layout.dest.path in overwrite
    asked = [maker for maker in MAKERS if not (whole and maker.replaced)]
    found: list[tuple[Maker, str]] = []

    async def look(question: tuple[Maker, str]) -> None:
        maker, mark = question
        path = f"{run.layout.root}/{mark}"
        try:
            info = await run.store.head(path)
        except NotFoundError:
            return
        if maker.inside:
            inside = await list_if_there(run.store, path) if info.is_dir else []
            if not any(each.path.endswith(maker.inside) for each in inside):
                return
        found.append((maker, path))

    questions = [(maker, mark) for maker in asked for mark in maker.marks]
    await for_each(questions, look, workers=run.workers)
    if found:
        maker, path = min(found, key=lambda each: asked.index(each[0]))
        raise PreconditionError(
            "",
            path,
            f"this is {maker.name} and its readers would not see the change as it is: "
            f"{maker.remedy}, or set asynccommit.ignore.table.metadata=true",
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

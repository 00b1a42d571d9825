"""``asynccommit sink-log``: the log of a streaming file sink."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Annotated

import typer

from asynccommit.api import StorageOptions
from asynccommit.cli.arguments import (
    Storage,
    Url,
    Yes,
    absolute,
    reporting,
    store_options,
)
from asynccommit.cli.output import Exit, Output
from asynccommit.cli.program import Program
from asynccommit.errors import OptionError
from asynccommit.inspect.discovery import open_place
from asynccommit.inspect.errors import NothingThereError
from asynccommit.runtime.host import this_host
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.urls import Address
from asynccommit.streaming.adopt import Adopting, Adoption
from asynccommit.streaming.repair import Repaired, repair
from asynccommit.streaming.settings import SinkLogSettings
from asynccommit.streaming.text import (
    adoption_json,
    adoption_text,
    findings_json,
    findings_text,
    repair_json,
    repair_text,
    sink_json,
    sink_text,
)
from asynccommit.streaming.verify import Verified, verify

app = Program(
    name="sink-log",
    help="Show, verify, repair or hand on the log of a streaming file sink.",
    no_args_is_help=True,
)

Interval = Annotated[
    int,
    typer.Option(min=1, metavar="N", help="Compaction interval that readers use."),
]


@app.callback()
def _sink_log() -> None:
    """Show, verify, repair or hand on the log of a streaming file sink."""


@app.command("show")
@reporting
def show(
    output: Output,
    url: Url,
    interval: Interval = 10,
    storage_option: Storage = None,
) -> None:
    """Show the batches of the log, their writers and what readers see.

    The log is the directory _spark_metadata of the table.
    """
    found = submit(_verify(absolute(url), store_options(storage_option), interval))
    output.answer(sink_json(found), sink_text(found))
    if found.findings:
        output.warn(
            f"{len(found.findings) + found.more} problems found: run asynccommit sink-log verify"
        )


@app.command("verify")
@reporting
def verify_log(
    output: Output,
    url: Url,
    interval: Interval = 10,
    storage_option: Storage = None,
) -> None:
    """Check the log, and report every problem with its remedy.

    Changes nothing. Exits with 3 if there are problems, so that a check can
    fail.
    """
    found = submit(_verify(absolute(url), store_options(storage_option), interval))
    output.result(findings_json(found), findings_text(found))
    if found.findings:
        raise typer.Exit(int(Exit.REFUSED))


@app.command("repair")
@reporting
def repair_log(
    output: Output,
    url: Url,
    moved_from: Annotated[
        str | None,
        typer.Option(metavar="URL", help="URL of the table when the log was written."),
    ] = None,
    interval: Interval = 10,
    yes: Yes = False,
    storage_option: Storage = None,
) -> None:
    """Repair the log as far as the existing files allow.

    Shows what it would do unless --yes is given. Stop every query that writes
    to the table first. Replaced files are kept beside the log under hidden
    names. Exits with 3 if problems remain.
    """
    dest, storage = absolute(url), store_options(storage_option)
    source = None if moved_from is None else absolute(moved_from)
    done = submit(_repair(dest, storage, interval, source, yes=yes))
    output.result(repair_json(dest, done), repair_text(dest, done))
    if done.left:
        raise typer.Exit(int(Exit.REFUSED))


@app.command("adopt")
@reporting
def adopt_log(
    output: Output,
    url: Url,
    query: Annotated[
        str | None, typer.Option(metavar="ID", help="Id of the query, which has its checkpoint.")
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Empty directory for the checkpoint of a new query."),
    ] = None,
    sources: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of streams that the new query reads.")
    ] = 1,
    yes: Yes = False,
    storage_option: Storage = None,
) -> None:
    """Move the log to another query.

    For a query whose checkpoint is lost: the new one begins after the last
    batch of the log, and reads its sources from where its options say. It may
    have no state: no aggregation, no join of streams. Shows what it would do
    unless --yes is given. Stop every query that writes to the table first.
    """
    if (query is None) == (checkpoint is None):
        raise OptionError("give --checkpoint for a new query, or --query for one that has its own")
    dest, storage = absolute(url), store_options(storage_option)
    there = None if checkpoint is None else absolute(checkpoint)
    done = submit(_adopt(dest, storage, query, there, sources, yes=yes))
    output.result(adoption_json(done, done_now=yes), adoption_text(done, done_now=yes))


async def _adopt(
    dest: Address,
    storage: StorageOptions,
    query: str | None,
    checkpoint: Address | None,
    sources: int,
    *,
    yes: bool,
) -> Adoption:
    async with AsyncExitStack() as opened:
        store = await opened.enter_async_context(open_place(dest, storage))
        adopting = Adopting(store, dest, this_host(), dry_run=not yes)
        if checkpoint is None:
            return await adopting.to_query(query or "")
        place = await opened.enter_async_context(open_place(checkpoint, storage))
        return await adopting.with_checkpoint(place, checkpoint, sources)


async def _verify(dest: Address, storage: StorageOptions, interval: int) -> Verified:
    async with open_place(dest, storage) as store:
        found = await verify(store, dest, SinkLogSettings(interval=interval))
    if found.newest is None and not found.findings:
        raise NothingThereError(f"there is no sink log in {dest}: readers see all of its files")
    return found


async def _repair(
    dest: Address, storage: StorageOptions, interval: int, source: Address | None, *, yes: bool
) -> Repaired:
    settings = SinkLogSettings(interval=interval)
    async with open_place(dest, storage) as store:
        return await repair(store, dest, settings, this_host(), moved_from=source, dry_run=not yes)

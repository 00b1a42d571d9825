"""``asynccommit hive``: the tables that Hive wrote."""

from __future__ import annotations

from typing import Annotated, Any

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
from asynccommit.hive.deduplication import Dedup, Reading, dedup
from asynccommit.hive.empty_files import Format
from asynccommit.hive.names import HiveRules
from asynccommit.hive.text import hive_dedup
from asynccommit.inspect.discovery import open_place
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.urls import Address

app = Program(name="hive", help="Clean up tables that Hive wrote.", no_args_is_help=True)


@app.callback()
def _hive() -> None:
    """Clean up tables that Hive wrote."""


@app.command("dedup")
@reporting
def dedup_table(
    output: Output,
    url: Url,
    rules: Annotated[
        HiveRules,
        typer.Option(
            metavar="VERSION",
            help="Hive version whose rule applies: 2 keeps the largest attempt; 3 and 4 keep the "
            "newest (3 only if it is not smaller).",
        ),
    ] = HiveRules.TWO,
    partitions: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Number of partition columns: how many directories deep files are.",
        ),
    ] = 0,
    buckets: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Number of buckets. Buckets without a file get an empty one."
        ),
    ] = 0,
    format: Annotated[
        Format | None,
        typer.Option(
            metavar="FORMAT",
            help="Format of empty buckets: text, orc or parquet. Detected from a neighboring file "
            "if omitted.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Proceed even if file names are not Hive's. May delete good data."
        ),
    ] = False,
    yes: Yes = False,
    storage_option: Storage = None,
) -> None:
    """Delete duplicate task output from a table that Hive wrote.

    Keeps one attempt of each task. Also removes unfinished files and empty
    partitions, and creates missing buckets. Shows what it would do unless
    --yes is given. Exits with 3, changing nothing, if the rule does not decide.
    """
    reading = Reading(rules, partitions, buckets, format, force)
    dest, storage = absolute(url), store_options(storage_option)
    done = submit(_dedup(dest, storage, reading, yes=yes))
    output.result(_json(dest, done), hive_dedup(dest, done))
    if done.found.conflicts:
        raise typer.Exit(int(Exit.REFUSED))


async def _dedup(dest: Address, storage: StorageOptions, reading: Reading, *, yes: bool) -> Dedup:
    async with open_place(dest, storage) as store:
        return await dedup(store, dest.path, reading, dry_run=not yes)


def _json(dest: Address, done: Dedup) -> dict[str, Any]:
    found = done.found
    return {
        "destination": str(dest),
        "dry_run": done.dry_run,
        "directories": found.directories,
        "files": found.files,
        "duplicates": [
            {"stays": one.winner.path, "superfluous": [info.path for info in one.losers]}
            for one in found.duplicates
        ],
        "unfinished": [info.path for info in found.temporary],
        "empty_partitions": found.empty,
        "missing_buckets": list(found.missing),
        "conflicts": found.conflicts,
        "passed_over": found.passed,
        "deleted": done.deleted,
        "created": done.created,
        "removed": done.removed,
        "kept": done.kept,
    }

"""``asynccommit gc``: delete what dead jobs left."""

from __future__ import annotations

from typing import Annotated

import typer

from asynccommit.api import StorageOptions
from asynccommit.cli.arguments import (
    Option,
    Storage,
    Url,
    Yes,
    destination,
    read_age,
    read_options,
    reporting,
    store_options,
)
from asynccommit.cli.output import Exit, Output
from asynccommit.inspect.collect import GarbageResult, collect
from asynccommit.inspect.garbage import Sweep, find_garbage
from asynccommit.inspect.garbage_text import garbage_plan, garbage_result
from asynccommit.options.job import Options
from asynccommit.runtime.host import this_host
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.urls import Address


@reporting
def gc(
    output: Output,
    url: Url,
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Minimum age, such as 90m, 12h or 7d.")
    ] = "2d",
    yes: Yes = False,
    option: Option = None,
    storage_option: Storage = None,
) -> None:
    """Delete what dead jobs left under a destination, by age.

    Shows what it would do unless --yes is given. Ages are by the store's clock
    with --yes, otherwise by this machine's. A job that may be alive is kept.
    Nothing is deleted, and the exit code is 3, while a commit there must be
    resumed first.
    """
    age, dest = read_age(older_than), destination(url)
    options, storage = read_options(option, output), store_options(storage_option)
    sweep, result = submit(_sweep(dest, age, options, storage, yes=yes))
    for warning in sweep.warnings:
        output.warn(warning)
    if result is None:
        output.result({**sweep.to_json(), "dry_run": not yes}, garbage_plan(sweep))
    else:
        value = {**sweep.to_json(), "dry_run": False, **result.to_json()}
        output.result(value, garbage_result(sweep, result))
    if sweep.blocked:
        raise typer.Exit(int(Exit.REFUSED))
    if result is not None and result.failures:
        raise typer.Exit(int(Exit.FAILED))


async def _sweep(
    dest: Address, age: float, options: Options, storage: StorageOptions, *, yes: bool
) -> tuple[Sweep, GarbageResult | None]:
    sweep = await find_garbage(dest, age, this_host(), storage, options, exact=yes)
    if not yes or sweep.blocked:
        return sweep, None
    return sweep, await collect(sweep, options, storage)

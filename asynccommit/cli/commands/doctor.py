"""``asynccommit doctor``: what this machine has, and what a store does."""

from __future__ import annotations

from typing import Annotated

import typer

from asynccommit.cli.arguments import Storage, absolute, reporting, store_options
from asynccommit.cli.output import Exit, Output
from asynccommit.inspect.doctor import Check, Diagnosis, check_machine, check_place
from asynccommit.runtime.loop_thread import submit
from asynccommit.spark.bridge import storage_options
from asynccommit.spark.diagnosis import check_jars, diagnose
from asynccommit.spark.shell import start_jvm
from asynccommit.stores.urls import Address


@reporting
def doctor(
    output: Output,
    dest: Annotated[
        str | None, typer.Argument(metavar="URL", help="Destination to look at as well.")
    ] = None,
    write: Annotated[
        bool,
        typer.Option("--write", help="Try writes and renames in a directory of its own there."),
    ] = False,
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Start Spark as this machine sets it up, and check it too."),
    ] = False,
    storage_option: Storage = None,
) -> None:
    """Check this machine and, with a URL, the store of a destination.

    Nothing is changed without --write. Exits with 3 if there is a problem.
    """
    place = None if dest is None else absolute(dest)
    storage = store_options(storage_option)
    found = _with_spark(place, storage, write) if spark else _without(place, storage, write)
    output.answer(found.to_json(), found)
    if not found.ok:
        raise typer.Exit(int(Exit.REFUSED))


def _with_spark(place: Address | None, storage: dict[str, str], write: bool) -> Diagnosis:
    start_jvm("--spark")
    storage_options.update(storage)
    return diagnose(None, None if place is None else str(place), write=write)


def _without(place: Address | None, storage: dict[str, str], write: bool) -> Diagnosis:
    checks = [*check_machine(), *check_jars(None if place is None else place.scheme)]
    if place is not None:
        checks += submit(_place(place, storage, write=write))
    return Diagnosis(checks)


async def _place(place: Address, storage: dict[str, str], *, write: bool) -> list[Check]:
    return [check async for check in check_place(place, storage, write=write)]

"""``asynccommit doctor``: what this machine has, and what a store does."""

from __future__ import annotations

from typing import Annotated

import typer

from asynccommit.cli.arguments import Storage, absolute, reporting, store_options
from asynccommit.cli.output import Exit, Output
from asynccommit.inspect.doctor import Check, Diagnosis, check_machine, check_place
from asynccommit.runtime.loop_thread import submit
from asynccommit.spark.diagnosis import check_jars
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
    storage_option: Storage = None,
) -> None:
    """Check this machine and, with a URL, the store of a destination.

    Nothing is changed without --write. Exits with 3 if there is a problem.
    """
    place = None if dest is None else absolute(dest)
    checks = [*check_machine(), *check_jars(None if place is None else place.scheme)]
    if place is not None:
        checks += submit(_place(place, store_options(storage_option), write=write))
    found = Diagnosis(checks)
    output.result(found.to_json(), found)
    if not found.ok:
        raise typer.Exit(int(Exit.REFUSED))


async def _place(place: Address, storage: dict[str, str], *, write: bool) -> list[Check]:
    return [check async for check in check_place(place, storage, write=write)]

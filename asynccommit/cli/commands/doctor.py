"""``asynccommit doctor``: what this machine has, and what a store does."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from asynccommit.cli.arguments import Storage, absolute, reporting, store_options
from asynccommit.cli.output import Exit, Output
from asynccommit.inspect.cells import safe
from asynccommit.inspect.doctor import Check, check_machine, check_place
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.urls import Address

_MARKS = {True: "ok", False: "problem", None: ""}


@reporting
def doctor(
    output: Output,
    dest: Annotated[
        str | None, typer.Argument(metavar="[URL]", help="Destination to look at as well.")
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
    checks = list(check_machine())
    if dest is not None:
        place = absolute(dest)
        checks += submit(_place(place, store_options(storage_option), write=write))
    sound = all(check.ok is not False for check in checks)
    output.result({"ok": sound, "checks": [check.to_json() for check in checks]}, _table(checks))
    if not sound:
        raise typer.Exit(int(Exit.REFUSED))


async def _place(place: Address, storage: dict[str, str], *, write: bool) -> list[Check]:
    return [check async for check in check_place(place, storage, write=write)]


def _table(checks: list[Check]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for _ in range(3):
        table.add_column(overflow="fold")
    for check in checks:
        remedy = f"; {check.remedy}" if check.remedy and check.ok is not True else ""
        style = "red" if check.ok is False else ""
        table.add_row(check.name, safe(_MARKS[check.ok], style), safe(check.found + remedy))
    return table

"""``asynccommit status`` and ``asynccommit inspect``: they change nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from asynccommit.cli.arguments import (
    Attempt,
    JobId,
    Option,
    Storage,
    Url,
    absolute,
    destination,
    read_options,
    reporting,
    store_options,
)
from asynccommit.cli.output import Exit, Output
from asynccommit.inspect.inspection import inspect as inspect_place
from asynccommit.inspect.status import look_under
from asynccommit.inspect.text import inspection, situation
from asynccommit.runtime.loop_thread import submit


@reporting
def status(
    output: Output,
    url: Url,
    job_id: JobId = None,
    attempt: Attempt = None,
    option: Option = None,
    storage_option: Storage = None,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 3 if a job must be finished or aborted.")
    ] = False,
) -> None:
    """Show the jobs under a destination and how to finish or abort each.

    Changes nothing. Without --check the exit code is 0 whatever the state.
    """
    dest, options = destination(url), read_options(option, output)
    found = submit(look_under(dest, store_options(storage_option), options, job_id, attempt))
    show = output.result if check else output.answer  # of a check the exit code is the answer
    show(found.to_json(), situation(found))
    if check and not found.sound:
        raise typer.Exit(int(Exit.REFUSED))


@reporting
def inspect(
    output: Output,
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="Destination, job directory, or file that a job wrote.",
        ),
    ],
    storage_option: Storage = None,
) -> None:
    """Show what is at a path and what a commit would do.

    Changes nothing. Exits with 3 if a commit would be refused.
    """
    found = submit(inspect_place(absolute(path), store_options(storage_option)))
    output.answer({**found.to_json(), "sound": found.sound}, inspection(found))
    if not found.sound:
        raise typer.Exit(int(Exit.REFUSED))

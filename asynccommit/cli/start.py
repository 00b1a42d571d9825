"""The start of the command.

Only what a command needs is imported: ``emulate`` starts without the rest of the package.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from asynccommit.cli.old_spellings import modernized
from asynccommit.cli.output import Exit, Output, usage_error
from asynccommit.cli.program import SETTINGS, Program


@cache
def _commands(*, emulate: bool) -> Callable[..., Any]:
    """Return the command, or ``emulate`` alone; building it takes a while."""
    from typer.main import get_command

    if not emulate:
        from asynccommit.cli.verbs import app

        return get_command(app)
    from asynccommit.cli import emulate as emulators

    alone = Program(add_completion=False, **SETTINGS)
    alone.callback()(lambda: None)  # without one, typer would leave out the group's name
    alone.add_typer(emulators.app)
    return get_command(alone)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    # What is logged is also in the report; without a handler Python would print it raw.
    logging.getLogger("asynccommit").addHandler(logging.NullHandler())
    given, notes = modernized(sys.argv[1:] if args is None else args)
    for note in notes:
        Output().warn(note)
    emulate = given[:1] == ["emulate"] and "_ASYNCCOMMIT_COMPLETE" not in os.environ
    try:
        run = _commands(emulate=emulate)
        if "--json" not in given:
            run(given)
            return int(Exit.DONE)
        return int(run(given, standalone_mode=False) or 0)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(Exit.FAILED)
    except Exception as error:
        # Typer brings its own click or takes the installed one: there is no one class to name.
        if not hasattr(error, "format_message"):
            raise
        return usage_error(error.format_message())

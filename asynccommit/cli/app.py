"""The command: its verbs by name, and how it is run."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from asynccommit.cli import emulate
from asynccommit.cli.arguments import Json
from asynccommit.cli.commands.abort import abort
from asynccommit.cli.commands.commit import commit
from asynccommit.cli.commands.demo import app as demo
from asynccommit.cli.commands.doctor import doctor
from asynccommit.cli.commands.files import ls, mv, rm, verify
from asynccommit.cli.commands.gc import gc
from asynccommit.cli.commands.hive import app as hive
from asynccommit.cli.commands.loadtest import loadtest
from asynccommit.cli.commands.mapreduce import app as mapreduce
from asynccommit.cli.commands.resume import resume, takeover
from asynccommit.cli.commands.simulate import simulate
from asynccommit.cli.commands.sink_log import app as sink_log
from asynccommit.cli.commands.status import inspect, status
from asynccommit.cli.commands.uploads import app as uploads
from asynccommit.cli.old_spellings import modernized
from asynccommit.cli.output import Exit, Output, usage_error
from asynccommit.version import __version__

app = typer.Typer(
    name="asynccommit",
    help="Commit, resume, abort and inspect the output of parallel jobs.",
    epilog="Exit codes: 0 done, 1 failed, 2 usage error, 3 refused or problems found, "
    "4 outcome unknown, 5 not found, 130 interrupted, 143 terminated.",
    no_args_is_help=True,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)

for verb in (commit, status, resume, abort, takeover, inspect):
    app.command()(verb)
for verb in (gc, doctor, ls, mv, rm, verify):
    app.command()(verb)
for group in (uploads, sink_log, hive, mapreduce, demo):
    app.add_typer(group)
for verb in (simulate, loadtest):
    app.command()(verb)
app.add_typer(emulate.app)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    json: Json = False,
) -> None:
    """Commit, resume, abort and inspect the output of parallel jobs."""
    if version:
        Output(json).result({"version": __version__}, f"asynccommit {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


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
    try:
        if "--json" not in given:
            app(given)
            return int(Exit.DONE)
        return int(app(given, standalone_mode=False) or 0)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(Exit.FAILED)
    except Exception as error:
        # Typer brings its own click or takes the installed one: there is no one class to name.
        if not hasattr(error, "format_message"):
            raise
        return usage_error(error.format_message())

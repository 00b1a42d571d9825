"""The command: its verbs by name, and how it is run."""

from __future__ import annotations

from typing import Annotated

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
from asynccommit.cli.commands.man import man
from asynccommit.cli.commands.mapreduce import app as mapreduce
from asynccommit.cli.commands.report import report
from asynccommit.cli.commands.resume import resume, takeover
from asynccommit.cli.commands.simulate import simulate
from asynccommit.cli.commands.sink_log import app as sink_log
from asynccommit.cli.commands.spark_conf import spark_conf
from asynccommit.cli.commands.status import inspect, status
from asynccommit.cli.commands.uploads import app as uploads
from asynccommit.cli.output import Output
from asynccommit.cli.program import SETTINGS, Program
from asynccommit.version import __version__

app = Program(add_completion=True, **SETTINGS)

for verb in (commit, status, resume, abort, takeover, inspect, report):
    app.command()(verb)
for verb in (gc, doctor, spark_conf, ls, mv, rm, verify):
    app.command()(verb)
for group in (uploads, sink_log, hive, mapreduce, demo):
    app.add_typer(group)
for verb in (simulate, loadtest):
    app.command()(verb)
app.command(hidden=True)(man)
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

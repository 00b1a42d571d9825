"""``asynccommit demo``: Spark writes real data, on this machine and to emulated stores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from asynccommit.cli.arguments import Debug, Json, Quiet
from asynccommit.cli.output import Exit, Output, handled

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asynccommit.demo.outcome import Findings


class _LocalUnlessNamed(TyperGroup):
    """A group whose ``local`` runs when no sub-command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line. Insert ``local`` unless a sub-command or ``--help`` is first."""
        if not args or (args[0].startswith("-") and args[0] != "--help"):
            args = ["local", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="demo",
    cls=_LocalUnlessNamed,
    help="Compare commits of real data. Runs `local` if no command is given.",
)


@app.callback()
def _demo() -> None:
    """Compare commits of real data. Runs `local` if no command is given."""


Latency = Annotated[str, typer.Option(metavar="TIME", help="Latency of each answer.")]
Limit = Annotated[int, typer.Option(min=50, help="Requests per second.")]
Keep = Annotated[Path | None, typer.Option(help="New directory for the logs. Default: demo-out.")]


def _lost(what: str) -> Any:
    """Return the option for the share of ``what`` whose answers are lost."""
    return typer.Option(
        metavar="SHARE", help=f"Share of {what} that succeed but whose answer is lost."
    )


def _month(otherwise: str) -> Any:
    """Return the option for the months that are written; ``otherwise`` without it."""
    return typer.Option(min=1, max=12, help=f"Only this month. Repeatable. Default: {otherwise}.")


def _show(output: Output, outcome: Findings, table: RenderableType) -> None:
    """Print what a demo has found. Raises ``typer.Exit`` unless all of it was shown."""
    output.result(outcome.to_json(), table)
    if not outcome.proven:
        raise typer.Exit(int(Exit.FAILED))


@app.command("local")
def demo_local(
    big: Annotated[
        bool, typer.Option("--big", help="Partition by carrier as well (5,400 partitions).")
    ] = False,
    keep: Annotated[
        Path | None,
        typer.Option(help="New directory to write to. Default: demo-out, replaced each time."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write 336,776 flights with PySpark on this machine.

    Compares the commit of Spark with that of asynccommit.
    """
    output = Output(json, quiet, debug)
    with handled(output):
        from asynccommit.demo import run, table

        outcome = run(keep, big=big, say=output.note)
        _show(output, outcome, table(outcome))


@app.command("adls")
def demo_adls(
    latency: Latency = "20ms",
    limit: Limit = 1000,
    lost: Annotated[str, _lost("renames")] = "2%",
    month: Annotated[list[int] | None, _month("all months")] = None,
    keep: Keep = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write the flights with PySpark to an emulated ADLS Gen2.

    The emulator is slow and loses answers.
    """
    output = Output(json, quiet, debug)
    with handled(output):
        from asynccommit.demo import StoreBehaviour, adls_table, run_on_adls

        weather = StoreBehaviour(latency, limit, lost)
        outcome = run_on_adls(keep, months=month or (), weather=weather, say=output.note)
        _show(output, outcome, adls_table(outcome))


@app.command("gcs")
def demo_gcs(
    latency: Latency = "10ms",
    limit: Annotated[int, typer.Option(min=50, help="Writes per second.")] = 300,
    lost: Annotated[str, _lost("our moves")] = "2%",
    month: Annotated[list[int] | None, _month("the first two months")] = None,
    hns: Annotated[
        bool, typer.Option("--hns", help="Use a bucket with a hierarchical namespace.")
    ] = False,
    keep: Keep = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write flights with PySpark to an emulated Google Cloud Storage.

    Compares the commit of Spark with that of asynccommit.
    """
    output = Output(json, quiet, debug)
    with handled(output):
        from asynccommit.demo import MONTHS, StoreBehaviour, gcs_table, run_on_gcs

        weather = StoreBehaviour(latency, limit, lost)
        outcome = run_on_gcs(
            keep, months=month or MONTHS, weather=weather, hns=hns, say=output.note
        )
        _show(output, outcome, gcs_table(outcome))


@app.command("s3")
def demo_s3(
    latency: Latency = "5ms",
    limit: Limit = 3500,
    lost: Annotated[str, _lost("our completions")] = "5%",
    month: Annotated[list[int] | None, _month("the first month")] = None,
    keep: Keep = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write flights with PySpark to an S3 server for tests.

    Compares the commit of Hadoop's S3A committer with that of asynccommit.
    """
    output = Output(json, quiet, debug)
    with handled(output):
        from asynccommit.demo import S3_MONTHS, StoreBehaviour, run_on_s3, s3_table

        weather = StoreBehaviour(latency, limit, lost)
        outcome = run_on_s3(keep, months=month or S3_MONTHS, weather=weather, say=output.note)
        _show(output, outcome, s3_table(outcome))

"""``asynccommit demo``: Spark jobs on this machine and on emulators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asynccommit.cli.arguments import reporting
from asynccommit.cli.output import Exit, Output
from asynccommit.cli.program import PlainGroup, Program

if TYPE_CHECKING:
    from asynccommit.demo.outcome import Findings


class _LocalUnlessNamed(PlainGroup):
    """A group whose ``local`` runs when no sub-command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line.

        Insert ``local`` unless a sub-command or the option for help is first.
        """
        if not args or (args[0].startswith("-") and args[0] not in ("--help", "-h")):
            args = ["local", *args]
        return super().parse_args(ctx, args)


app = Program(
    name="demo",
    cls=_LocalUnlessNamed,
    help="Compare commits of real data. Runs `local` if no command is given.",
)


@app.callback()
def _demo() -> None:
    """Compare commits of real data. Runs `local` if no command is given."""


Latency = Annotated[str, typer.Option(metavar="TIME", help="Latency of each response.")]
Limit = Annotated[int, typer.Option(min=50, metavar="NUMBER", help="Requests per second.")]
Keep = Annotated[
    Path | None, typer.Option(metavar="DIR", help="New directory for the logs. Default: demo-out.")
]


def _lost(what: str) -> Any:
    """Return the option for the share of ``what`` whose responses are lost."""
    return typer.Option(
        metavar="SHARE", help=f"Share of {what} that succeed but whose response is lost."
    )


def _month(otherwise: str) -> Any:
    """Return the option for the months to write; default ``otherwise``."""
    return typer.Option(
        min=1, max=12, metavar="NUMBER", help=f"Only this month. Repeatable. Default: {otherwise}."
    )


def _show(output: Output, outcome: Findings) -> None:
    """Print the result of a demo.

    Raises ``typer.Exit`` unless everything was shown.
    """
    output.result(outcome.to_json(), outcome.table())
    if not outcome.proven:
        raise typer.Exit(int(Exit.FAILED))


@app.command("local")
@reporting
def demo_local(
    output: Output,
    big: Annotated[
        bool, typer.Option("--big", help="Partition by carrier as well (5,400 partitions).")
    ] = False,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="New directory to write to. Default: demo-out, replaced each time."
        ),
    ] = None,
) -> None:
    """Write 336,776 flights with PySpark, and kill the driver.

    Shows what is left with Spark's own committer and with asynccommit, and
    compares the times of both without a crash.
    """
    from asynccommit.demo import run

    bars = not (output.quiet or output.json)
    _show(output, run(keep, big=big, say=output.note, bars=bars))


@app.command("adls")
@reporting
def demo_adls(
    output: Output,
    latency: Latency = "20ms",
    limit: Limit = 1000,
    lost: Annotated[str, _lost("renames")] = "2%",
    month: Annotated[list[int] | None, _month("all months")] = None,
    keep: Keep = None,
) -> None:
    """Write the flights with PySpark to an emulated ADLS Gen2.

    The emulator is slow and loses responses.
    """
    from asynccommit.demo import StoreBehaviour, run_on_adls

    weather = StoreBehaviour(latency, limit, lost)
    _show(output, run_on_adls(keep, months=month or (), weather=weather, say=output.note))


@app.command("gcs")
@reporting
def demo_gcs(
    output: Output,
    latency: Latency = "10ms",
    limit: Annotated[int, typer.Option(min=50, metavar="NUMBER", help="Writes per second.")] = 300,
    lost: Annotated[str, _lost("our moves")] = "2%",
    month: Annotated[list[int] | None, _month("the first two months")] = None,
    hns: Annotated[
        bool, typer.Option("--hns", help="Use a bucket with a hierarchical namespace.")
    ] = False,
    keep: Keep = None,
) -> None:
    """Write flights with PySpark to an emulated Google Cloud Storage.

    Compares the commit of Spark with that of asynccommit.
    """
    from asynccommit.demo import MONTHS, StoreBehaviour, run_on_gcs

    weather = StoreBehaviour(latency, limit, lost)
    months = month or MONTHS
    _show(output, run_on_gcs(keep, months=months, weather=weather, hns=hns, say=output.note))


@app.command("s3")
@reporting
def demo_s3(
    output: Output,
    latency: Latency = "5ms",
    limit: Limit = 3500,
    lost: Annotated[str, _lost("our completions")] = "5%",
    month: Annotated[list[int] | None, _month("the first month")] = None,
    keep: Keep = None,
) -> None:
    """Write flights with PySpark to an S3 server for tests.

    Compares the commit of Hadoop's S3A committer with that of asynccommit.
    """
    from asynccommit.demo import S3_MONTHS, StoreBehaviour, run_on_s3

    weather = StoreBehaviour(latency, limit, lost)
    months = month or S3_MONTHS
    _show(output, run_on_s3(keep, months=months, weather=weather, say=output.note))


@app.command("s3-express")
@reporting
def demo_s3_express(
    output: Output,
    latency: Latency = "5ms",
    limit: Limit = 3500,
    lost: Annotated[str, _lost("the renames")] = "5%",
    keep: Keep = None,
) -> None:
    """Commit files of Python tasks to an emulated directory bucket of S3.

    Kills the driver among its renames, then finishes its commit.
    """
    from asynccommit.demo import StoreBehaviour, run_on_s3_express

    weather = StoreBehaviour(latency, limit, lost)
    _show(output, run_on_s3_express(keep, weather=weather, say=output.note))


@app.command("azure-flat")
@reporting
def demo_azure_flat(
    output: Output,
    latency: Latency = "20ms",
    limit: Limit = 20_000,
    lost: Annotated[str, _lost("the block lists")] = "5%",
    keep: Keep = None,
) -> None:
    """Commit files of Python tasks to an emulated flat account of Azure.

    Kills the driver among its block lists, then finishes its commit.
    """
    from asynccommit.demo import StoreBehaviour, run_on_azure_flat

    weather = StoreBehaviour(latency, limit, lost)
    _show(output, run_on_azure_flat(keep, weather=weather, say=output.note))


@app.command("hdfs")
@reporting
def demo_hdfs(
    output: Output,
    month: Annotated[list[int] | None, _month("the first three months")] = None,
    keep: Keep = None,
) -> None:
    """Write flights with PySpark to HDFS's own servers on this machine.

    Compares the two commits, then kills a driver and finishes its commit.
    """
    from asynccommit.demo import HDFS_MONTHS, run_on_hdfs

    _show(output, run_on_hdfs(keep, months=month or HDFS_MONTHS, say=output.note))

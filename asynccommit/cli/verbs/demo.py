"""``asynccommit demo``, ``demo-adls``, ``demo-gcs`` and ``demo-s3``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asynccommit.cli.arguments import Debug, Json, Quiet
from asynccommit.cli.output import Exit, Output, handled


def demo(
    big: Annotated[
        bool, typer.Option("--big", help="Partition by carrier as well: some 5,400 partitions.")
    ] = False,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Write to this new directory; otherwise to demo-out, replaced each time."
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write 336,776 flights with PySpark, committed by Spark and by asynccommit, and compare."""
    output = Output(json, quiet, debug)
    with handled(output):
        from asynccommit.demo import run, table

        outcome = run(keep, big=big, say=output.note)
        output.result(outcome.to_json(), table(outcome))
        if not outcome.proven:
            raise typer.Exit(int(Exit.FAILED))


def demo_adls(
    latency: Annotated[str, typer.Option(metavar="TIME", help="Of each answer.")] = "20ms",
    limit: Annotated[int, typer.Option(min=50, help="Requests a second.")] = 1000,
    lost: Annotated[
        str, typer.Option(metavar="SHARE", help="Of renames: done, and the answer lost.")
    ] = "2%",
    month: Annotated[
        list[int] | None, typer.Option(min=1, max=12, help="Only this month; all otherwise.")
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(help="Put logs into this new directory; otherwise into demo-out."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write the flights with PySpark to an emulated ADLS Gen2 that is slow and loses answers."""
    output = Output(json, quiet, debug)
    with handled(output):
        from asynccommit.demo import Weather, adls_table, run_on_adls

        weather = Weather(latency, limit, lost)
        outcome = run_on_adls(keep, months=month or (), weather=weather, say=output.note)
        output.result(outcome.to_json(), adls_table(outcome))
        if not outcome.proven:
            raise typer.Exit(int(Exit.FAILED))


def demo_gcs(
    latency: Annotated[str, typer.Option(metavar="TIME", help="Of each answer.")] = "10ms",
    limit: Annotated[int, typer.Option(min=50, help="Writes a second.")] = 300,
    lost: Annotated[
        str, typer.Option(metavar="SHARE", help="Of our moves: done, and the answer lost.")
    ] = "2%",
    month: Annotated[
        list[int] | None,
        typer.Option(min=1, max=12, help="Only this month; the first two otherwise."),
    ] = None,
    hns: Annotated[
        bool, typer.Option("--hns", help="A bucket with a hierarchical namespace.")
    ] = False,
    keep: Annotated[
        Path | None,
        typer.Option(help="Put logs into this new directory; otherwise into demo-out."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write flights with PySpark to an emulated bucket, committed by Spark and by asynccommit."""
    output = Output(json, quiet, debug)
    with handled(output):
        from asynccommit.demo import MONTHS, Weather, gcs_table, run_on_gcs

        weather = Weather(latency, limit, lost)
        outcome = run_on_gcs(
            keep, months=month or MONTHS, weather=weather, hns=hns, say=output.note
        )
        output.result(outcome.to_json(), gcs_table(outcome))
        if not outcome.proven:
            raise typer.Exit(int(Exit.FAILED))


def demo_s3(
    latency: Annotated[str, typer.Option(metavar="TIME", help="Of each answer.")] = "5ms",
    limit: Annotated[int, typer.Option(min=50, help="Requests a second.")] = 3500,
    lost: Annotated[
        str, typer.Option(metavar="SHARE", help="Of our completions: done, and the answer lost.")
    ] = "5%",
    month: Annotated[
        list[int] | None,
        typer.Option(min=1, max=12, help="Only this month; the first one otherwise."),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(help="Put logs into this new directory; otherwise into demo-out."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write flights with PySpark to an S3 of tests, committed by Hadoop and by asynccommit."""
    output = Output(json, quiet, debug)
    with handled(output):
        from asynccommit.demo import S3_MONTHS, Weather, run_on_s3, s3_table

        weather = Weather(latency, limit, lost)
        outcome = run_on_s3(keep, months=month or S3_MONTHS, weather=weather, say=output.note)
        output.result(outcome.to_json(), s3_table(outcome))
        if not outcome.proven:
            raise typer.Exit(int(Exit.FAILED))

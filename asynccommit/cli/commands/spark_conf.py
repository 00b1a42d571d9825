"""``asynccommit spark-conf``: settings that load the package in Spark."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from asynccommit.cli.arguments import reporting
from asynccommit.cli.output import Output
from asynccommit.spark.settings import settings_for


@reporting
def spark_conf(
    output: Output,
    flags: Annotated[
        bool, typer.Option("--flags", help="Print flags of spark-submit instead of lines.")
    ] = False,
    store: Annotated[
        list[str] | None,
        typer.Option(
            "--store",
            metavar="SCHEME",
            help="Add the Hadoop client of a store: abfs, abfss, gs or s3a. Repeatable.",
        ),
    ] = None,
    streams: Annotated[
        bool,
        typer.Option("--streams", help="Commit the batches of Spark's streaming file sink, too."),
    ] = False,
    spark_home: Annotated[
        Path | None,
        typer.Option(
            "--spark-home",
            metavar="DIRECTORY",
            help="Directory of Spark; the default is that of PySpark.",
        ),
    ] = None,
) -> None:
    """Write the settings that have Spark commit unchanged programs here.

    They are lines of spark-defaults.conf. The jar that they name is compiled
    if needed.
    """
    found = settings_for(spark_home, store or (), streams=streams)
    if output.json:
        output.result(asdict(found), "")
    else:
        sys.stdout.write(f"{found.flags() if flags else found.defaults()}\n")

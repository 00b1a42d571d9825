"""``asynccommit simulate``."""

from __future__ import annotations

from typing import Annotated

import typer

from asynccommit.cli.arguments import Debug, Json, Option, Quiet, read_options
from asynccommit.cli.output import Exit, Output, Stopped, handled
from asynccommit.inspect.progress import console_progress


def simulate(
    files: Annotated[
        str, typer.Option(metavar="NUMBER", help="Of the whole job; 10_000_000 is a number too.")
    ] = "100_000",
    tasks: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="One for 200 files unless given.")
    ] = None,
    partitions: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Directories, 100 unless given.")
    ] = None,
    latency: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Latency of each answer, such as 30ms or 10ms-50ms.",
        ),
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="What the store takes each second, or none. On adls requests, 20_000 unless "
            "given. On gcs writes, beside five times as many reads: what the bucket takes now, "
            "1_000 unless given (gcs-hns 8_000), and twice as many after 20 minutes of use.",
        ),
    ] = None,
    in_flight: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Requests on the wire at one time; 512 unless given, 256 on gcs.",
        ),
    ] = None,
    faults: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help="none, lossy, throttled, storm, late, or a JSON file of weather.",
        ),
    ] = "none",
    seed: Annotated[
        str, typer.Option(metavar="NUMBER", help="Of everything random: the same, the same run.")
    ] = "0",
    store: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="adls; gcs, a flat bucket; or gcs-hns, one with folders."
        ),
    ] = "adls",
    exact: Annotated[
        str,
        typer.Option(metavar="NUMBER", help="Jobs of more files are extrapolated from smaller."),
    ] = "1_000_000",
    option: Option = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Say what the commit of a job would take, by running it on a model of the store.

    The commit is this package's own, its requests are counted; only time is not waited for.
    """
    output = Output(json, quiet, debug)
    with handled(output):
        from asynccommit.simulate import shown, simulate
        from asynccommit.simulate.setup import read_setup

        given = {
            "files": files,
            "tasks": tasks,
            "partitions": partitions,
            "latency": latency,
            "limit": limit,
            "in-flight": in_flight,
            "faults": faults,
            "seed": seed,
            "store": store,
            "exact": exact,
        }
        told = {name: text for name, text in given.items() if text is not None}
        setup = read_setup(told, read_options(option, output))
        try:
            with console_progress(quiet=quiet) as on_progress:
                forecast = simulate(setup, on_progress)
        except KeyboardInterrupt as error:
            raise Stopped(Exit.INTERRUPTED, "interrupted; a simulation leaves nothing") from error
        for warning in forecast.figures.warnings:
            output.warn(warning)
        output.result(forecast.to_json(), shown(forecast))

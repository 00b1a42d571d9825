"""``asynccommit simulate``."""

from __future__ import annotations

from typing import Annotated

import typer

from asynccommit.cli.arguments import Option, read_options, reporting
from asynccommit.cli.output import Exit, Output, Stopped
from asynccommit.progress.console import console_progress


@reporting
def simulate(
    output: Output,
    files: Annotated[
        str,
        typer.Option(metavar="NUMBER", help="Total number of files, such as 20_000, 20k or 10M."),
    ] = "100_000",
    tasks: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Number of tasks. Default: one for every 200 files."),
    ] = None,
    partitions: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Number of directories. Default: 100.")
    ] = None,
    latency: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Latency of each response, such as 10ms-50ms. Default: 30ms, on hdfs 2ms.",
        ),
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Limit per second, or none. For adls: requests (default 20_000). For gcs and "
            "gcs-hns: writes at the start (default 1_000 and 8_000), doubling after 20 minutes of "
            "use; five times as many reads are allowed. For hdfs: changes that the NameNode does "
            "one after another (default 18_000); more of them wait.",
        ),
    ] = None,
    in_flight: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Maximum number of concurrent requests. Default: 512, on gcs 256, on hdfs 64.",
        ),
    ] = None,
    cpu: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Processor time of a request, such as 95us. Default: the processor is left out.",
        ),
    ] = None,
    workers: Annotated[
        str,
        typer.Option(
            metavar="NUMBER", help="Processes that share the requests, with a processor each."
        ),
    ] = "1",
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A JSON file with dollars for 10,000 requests of each kind. Default: list prices.",
        ),
    ] = None,
    faults: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help="none, lossy, throttled, storm, late, or a JSON file of faults.",
        ),
    ] = "none",
    seed: Annotated[
        str, typer.Option(metavar="NUMBER", help="Random seed. The same seed repeats the run.")
    ] = "0",
    store: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="adls, gcs (a flat bucket), gcs-hns (a bucket with folders) or hdfs.",
        ),
    ] = "adls",
    exact: Annotated[
        str,
        typer.Option(
            metavar="NUMBER", help="Extrapolate jobs with more files than this from smaller ones."
        ),
    ] = "1_000_000",
    option: Option = None,
) -> None:
    """Predict how long a commit takes by running it on a model of the store.

    Runs the real commit code, in simulated time, and counts its requests.
    """
    from asynccommit.simulate import shown, simulate
    from asynccommit.simulate.setup import read_setup

    given = {
        "files": files,
        "tasks": tasks,
        "partitions": partitions,
        "latency": latency,
        "limit": limit,
        "in-flight": in_flight,
        "cpu": cpu,
        "workers": workers,
        "prices": prices,
        "faults": faults,
        "seed": seed,
        "store": store,
        "exact": exact,
    }
    told = {name: text for name, text in given.items() if text is not None}
    setup = read_setup(told, read_options(option, output))
    try:
        with console_progress(quiet=output.quiet) as on_progress:
            forecast = simulate(setup, on_progress)
    except KeyboardInterrupt as error:
        raise Stopped(
            Exit.INTERRUPTED, "interrupted; a simulation leaves nothing behind"
        ) from error
    for warning in forecast.figures.warnings:
        output.warn(warning)
    output.answer(forecast.to_json(), shown(forecast))

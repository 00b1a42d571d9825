"""``asynccommit loadtest``: what an account bears."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from asynccommit.cli.arguments import Storage, absolute, reporting, store_options
from asynccommit.cli.commands.files import Rate, Workers
from asynccommit.cli.output import Exit, Output, Stopped
from asynccommit.cli.signals import resumable
from asynccommit.progress.console import console_progress
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.http.base import is_loopback
from asynccommit.stores.urls import Address


@reporting
def loadtest(
    output: Output,
    place: Annotated[
        str, typer.Argument(metavar="URL", help="Directory to work below: a path or a URL.")
    ],
    files: Annotated[
        int,
        typer.Option(
            min=1, metavar="NUMBER", help="Files to make; fewer if --max-requests allows no more."
        ),
    ] = 2_000,
    max_requests: Annotated[
        int,
        typer.Option("--max-requests", min=1, metavar="NUMBER", help="Maximum number of requests."),
    ] = 200_000,
    max_seconds: Annotated[
        float,
        typer.Option(
            "--max-seconds",
            min=0.001,
            metavar="SECONDS",
            help="Maximum duration, without clean-up.",
        ),
    ] = 60.0,
    rate: Rate = None,
    workers: Workers = None,
    forecast: Annotated[
        bool, typer.Option("--forecast/--no-forecast", help="Forecast a commit of a million files.")
    ] = True,
    consent: Annotated[
        bool, typer.Option("--yes", help="Send the requests to a real account without asking.")
    ] = False,
    storage_option: Storage = None,
) -> None:
    """Measure the rate and the latency of a store, and clean up.

    Writes small files in a directory of its own, commits, moves, verifies and
    deletes them, and finds the rate that the account bears. A real account may
    charge for the requests. Directories of runs that were killed are deleted.
    """
    from asynccommit.loadtest import LoadSettings, load_report, load_test

    settings = LoadSettings(
        files=files, max_requests=max_requests, max_seconds=max_seconds, forecast=forecast
    )
    address, storage = absolute(place), store_options(storage_option)
    if not consent:
        _ask(address, submit(_is_here(address, storage)), max_requests, output)
    advice = "the next run deletes what this one has left"
    shown = console_progress(quiet=output.quiet)
    with resumable(advice), shown as on_progress:
        report = submit(
            load_test(
                str(address),
                settings,
                storage_options=storage,
                rate=rate,
                max_concurrency=workers,
                on_progress=on_progress,
            )
        )
    output.answer(report.to_json(), load_report(report))
    if report.left:
        raise typer.Exit(int(Exit.FAILED))


async def _is_here(place: Address, storage: dict[str, str]) -> bool:
    """Return whether a store is this machine, or a server on it."""
    from asynccommit.stores.opening import open_place

    if place.scheme == "file":
        return True
    async with open_place(place, storage_options=storage) as store:
        account = store.traits.account
    server = account.rpartition("@")[2] if "@" in account else account.partition(":")[2]
    return is_loopback(server.partition("/")[0])


def _ask(place: Address, is_here: bool, requests: int, output: Output) -> None:
    """Ask before requests are sent to a real account. Raises ``Stopped``."""
    if is_here:
        return
    text = f"this sends up to {requests:,} requests to {place}, which may cost money"
    if not output.json and sys.stdin.isatty():
        if typer.confirm(f"{text}. Go on?", err=True):
            return
        raise Stopped(Exit.REFUSED, "nothing was sent")
    raise Stopped(Exit.REFUSED, f"{text}: nothing was sent. To send them, add --yes")

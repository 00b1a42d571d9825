"""``asynccommit mapreduce``: jobs in MapReduce's staging directory."""

from __future__ import annotations

from asynccommit.api import StorageOptions
from asynccommit.cli.arguments import Storage, Url, absolute, reporting, store_options
from asynccommit.cli.output import Output
from asynccommit.cli.program import Program
from asynccommit.inspect.discovery import open_place
from asynccommit.mapreduce.staging import Staging, read_staging
from asynccommit.mapreduce.text import staging_json, staging_text
from asynccommit.runtime.host import Host, this_host
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.urls import Address

app = Program(name="mapreduce", help="Show the commits of MapReduce jobs.", no_args_is_help=True)


@app.callback()
def _mapreduce() -> None:
    """Show the commits of MapReduce jobs."""


@app.command("status")
@reporting
def status(
    output: Output,
    url: Url,
    storage_option: Storage = None,
) -> None:
    """Show the MapReduce jobs in a staging directory and their commits.

    URL is yarn.app.mapreduce.am.staging-dir, the directory of a user in it, or
    that of one job. Changes nothing. Exits with 0 whatever the state of the
    jobs.
    """
    host = this_host()
    found = submit(_read(absolute(url), store_options(storage_option), host))
    for warning in found.warnings:
        output.warn(warning)
    now = host.now()
    output.answer(staging_json(found, now), staging_text(found, now))


async def _read(place: Address, storage: StorageOptions, host: Host) -> Staging:
    async with open_place(place, storage) as store:
        return await read_staging(store, place, host)

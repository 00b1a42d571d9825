"""The verb ``emulate``: stores on loopback, for people, other programs and load tests."""

from __future__ import annotations

import asyncio
import errno
import signal
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from asynccommit.cli.output import Output, handled
from asynccommit.errors import OptionError, UnsupportedError

if TYPE_CHECKING:
    from asynccommit.emulators.adls import AdlsEmulator
    from asynccommit.emulators.config import Settings

PORT = 10004
_STOPS = (signal.SIGINT, signal.SIGTERM)
_LOOPBACK = ("127.0.0.1", "::1", "localhost")

app = typer.Typer(
    name="emulate",
    help="Serve an emulator of a store on this machine, in memory, until interrupted.",
    no_args_is_help=True,
)


@app.callback()
def _stores() -> None:
    """Serve an emulator of a store on this machine, in memory, until interrupted."""


@app.command()
def adls(
    port: Annotated[
        int,
        typer.Option("--port", "-p", min=0, max=65535, help="The port; 0 for any that is free."),
    ] = PORT,
    address: Annotated[str, typer.Option(help="The interface to listen on.")] = "127.0.0.1",
    account: Annotated[
        str | None, typer.Option(help="Its name, devstoreaccount1 unless given.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Its key, the well-known development key unless given.")
    ] = None,
    filesystem: Annotated[
        list[str] | None,
        typer.Option("--filesystem", "-f", help="Make it at the start; may be repeated."),
    ] = None,
    flat: Annotated[bool, typer.Option("--flat", help="No hierarchical namespace.")] = False,
    latency: Annotated[
        str | None, typer.Option(metavar="TIME", help="Of each answer: 20ms, or 10ms-30ms.")
    ] = None,
    limit: Annotated[
        float | None, typer.Option(min=1, help="Requests a second; more are refused with 503.")
    ] = None,
    lost: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Of renames, as 2%: done, and the answer lost."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A JSON file: latency, limit, faults, accounts, pages.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the randomness of faults and latency.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="One JSON value once it serves.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
) -> None:
    """Serve an emulator of ADLS Gen2: dfs and blob endpoint, accounts, leases, faults.

    What clients see over HTTP can be changed while it runs, at /_emulator on the same port.
    """
    output = Output(json, quiet, debug)
    with handled(output):
        settings = _settings(config, account, key)
        settings = _with_weather(settings, latency, limit, lost)
        names = (*settings.filesystems, *(filesystem or ()))
        settings = replace(settings, filesystems=names, flat=flat or settings.flat)
        emulator = _make(settings, port, address, seed)
        if address not in _LOOPBACK:
            output.warn(f"whoever reaches {address} can read and change what is stored")
        _run(_serve(emulator, settings, output))


def _settings(config: Path | None, account: str | None, key: str | None) -> Settings:
    """Return what the file says, with the account of the command line instead of the file's."""
    try:
        from asynccommit.emulators.config import Settings, check_account, read_settings
    except ImportError as error:
        raise UnsupportedError(
            f"the emulator needs {error.name}: pip install 'asynccommit[emulate]'"
        ) from error
    settings = Settings()
    if config is not None:
        try:
            settings = read_settings(config.read_bytes(), str(config))
        except OSError as error:
            raise OptionError(f"{config} cannot be read: {error.strerror}") from error
    if account is None and key is None:
        return settings
    first_name, first_key = next(iter(settings.accounts.items()))
    name, secret = account or first_name, key or first_key
    check_account(name, secret)
    return replace(settings, accounts={name: secret})


def _with_weather(
    settings: Settings, latency: str | None, limit: float | None, lost: str | None
) -> Settings:
    from asynccommit.emulators.config import read_latency, read_share
    from asynccommit.sim.faults import CUT, Fault
    from asynccommit.sim.latency import Limit

    climate = settings.climate
    if latency is not None:
        climate = replace(climate, latency=read_latency(latency))
    if limit is not None:
        climate = replace(climate, limit=Limit.from_json({"rate": limit}))
    if lost is not None:
        fault = Fault(CUT, op="rename", probability=read_share(lost))
        climate = replace(climate, faults=(*climate.faults, fault))
    return replace(settings, climate=climate)


def _make(settings: Settings, port: int, address: str, seed: int) -> AdlsEmulator:
    from asynccommit.emulators.adls import AdlsEmulator
    from asynccommit.sim.store import Refusal

    emulator = AdlsEmulator(
        port=port,
        address=address,
        accounts=settings.accounts,
        hns=not settings.flat,
        climate=settings.climate,
        pages=settings.pages,
        seed=seed,
    )
    for name in dict.fromkeys(settings.filesystems):
        for model in emulator.accounts.values():
            try:
                model.create_filesystem(name)
            except Refusal as error:
                raise OptionError(f"filesystem {name!r}: {error.message}") from error
    return emulator


async def _serve(emulator: AdlsEmulator, settings: Settings, output: Output) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOPS:
        loop.add_signal_handler(number, stop.set)
    try:
        await emulator.start()
    except OSError as error:
        raise _named(error, emulator) from error
    try:
        output.result(_facts(emulator, settings), _welcome(emulator, settings))
        await stop.wait()
    finally:
        await emulator.stop()
    requests = sum(emulator.weather.requests.values())
    output.note(f"stopped after {requests:,} requests")


def _named(error: OSError, emulator: AdlsEmulator) -> OptionError:
    place = f"{emulator.address}:{emulator.wanted_port}"
    if error.errno == errno.EADDRINUSE:
        return OptionError(f"{place} is in use: give another --port, or 0 for any that is free")
    return OptionError(f"cannot listen on {place}: {error.strerror or error}")


def _run(serving: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop where it is installed: a third faster. Leaves signals as they were."""
    before = {number: signal.getsignal(number) for number in _STOPS}
    try:
        try:
            import uvloop
        except ImportError:
            asyncio.run(serving)
        else:
            uvloop.run(serving)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _facts(emulator: AdlsEmulator, settings: Settings) -> dict[str, Any]:
    """Return what a program needs; a key that was given is not repeated."""
    facts = {
        "url": emulator.url,
        "endpoint": emulator.endpoint,
        "port": emulator.port,
        "account": emulator.account,
        "accounts": list(emulator.accounts),
        "filesystems": list(dict.fromkeys(settings.filesystems)),
        "control": f"{emulator.endpoint}/_emulator",
    }
    if _is_known(emulator):
        facts["connection_string"] = emulator.connection_string
    return facts


def _is_known(emulator: AdlsEmulator) -> bool:
    from asynccommit.emulators.adls_auth import DEVELOPMENT_KEY

    return emulator.key == DEVELOPMENT_KEY


def _welcome(emulator: AdlsEmulator, settings: Settings) -> Group:
    shown_key = emulator.key if _is_known(emulator) else "the key that was given"
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in {
        "url": emulator.url,
        "account": emulator.account,
        "key": shown_key,
        "filesystems": ", ".join(dict.fromkeys(settings.filesystems)) or "none yet",
        "control": f"{emulator.endpoint}/_emulator/faults, weather, stats, tokens, pages, reset",
    }.items():
        table.add_row(name, Text(value))
    return Group(
        Text("An emulator of ADLS Gen2 is serving; Ctrl-C stops it. All is in memory."),
        Text(),
        table,
        Text(),
        *(Text(line) for line in _how_to(emulator, settings)),
    )


def _how_to(emulator: AdlsEmulator, settings: Settings) -> list[str]:
    host = emulator.endpoint.partition("://")[2]
    secret = emulator.connection_string
    if not _is_known(emulator):
        secret = secret.replace(emulator.key, "KEY")
    domain = f"{emulator.account}.dfs.core.windows.net"
    filesystem = next(iter(settings.filesystems), "FILESYSTEM")
    return [
        "The Azure SDK and adlfs take the connection string:",
        f"  {secret}",
        "",
        "asynccommit takes abfs URLs with these storage options:",
        f"  abfs://{filesystem}@{domain}/path",
        f'  {{"account_key": KEY, "account_host": "{host}", "use_ssl": False}}',
        "",
        "Hadoop and Spark (with spark.hadoop. before each name) take the same URLs with:",
        f"  fs.azure.abfs.endpoint={host}",
        "  fs.azure.always.use.https=false",
        "  fs.azure.networking.library=JDK_HTTP_URL_CONNECTION",
        f"  fs.azure.account.auth.type.{domain}=SharedKey",
        f"  fs.azure.account.key.{domain}=KEY",
        "  fs.azure.createRemoteFileSystemDuringInitialization=true",
    ]

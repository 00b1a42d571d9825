"""Read the settings of an emulator, and serve until stopped."""

from __future__ import annotations

import asyncio
import errno
import signal
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from asynccommit.cli.output import Output
from asynccommit.errors import OptionError, UnsupportedError

if TYPE_CHECKING:
    from asynccommit.testing.emulators.emulator import Serving
    from asynccommit.testing.models.fault_rules import Climate

T = TypeVar("T")

_STOPS = (signal.SIGINT, signal.SIGTERM)
_LOOPBACK = ("127.0.0.1", "::1", "localhost")

Port = Annotated[
    int,
    typer.Option(
        "--port",
        "-p",
        min=0,
        max=65535,
        metavar="NUMBER",
        help="Port to listen on; 0 picks a free one.",
    ),
]
Address = Annotated[str, typer.Option(metavar="ADDRESS", help="Interface to listen on.")]
LatencyText = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Latency of each response, such as 20ms or 10ms-30ms."),
]
Data = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder that keeps the data. Default: in memory only."),
]
Seed = Annotated[int, typer.Option(metavar="NUMBER", help="Random seed of faults and latency.")]


def lost_option(what: str) -> Any:
    """Return the option for the share of ``what`` whose responses are lost."""
    shown = f"Share of {what} that succeed but whose response is lost, such as 2%."
    return typer.Option(metavar="SHARE", help=shown)


def limit_option(status: int) -> Any:
    """Return the option for the limit beyond which requests get this status."""
    shown = f"Requests per second. Further requests are refused with {status}."
    return typer.Option(min=1, metavar="NUMBER", help=shown)


def config_option(keys: str) -> Any:
    """Return the option for a file of settings."""
    return typer.Option(metavar="FILE", help=f"JSON file with {keys}.")


def imported(load: Callable[[], T]) -> T:
    """Return the result of the import in ``load``.

    Raises ``UnsupportedError`` if the extra is not installed.
    """
    try:
        return load()
    except ImportError as error:
        raise UnsupportedError(
            f"the emulator needs {error.name}: pip install 'asynccommit[emulate]'"
        ) from error


def read_config(config: Path | None, read: Callable[[bytes, str], T], otherwise: T) -> T:
    """Return the result of ``read`` for a file.

    Raises ``OptionError`` if the file cannot be read.
    """
    if config is None:
        return otherwise
    try:
        return read(config.read_bytes(), str(config))
    except OSError as error:
        raise OptionError(f"{config} cannot be read: {error.strerror}") from error


def with_weather(
    climate: Climate, latency: str | None, limit: float | None, lost: str | None, op: str
) -> Climate:
    """Return weather with the options added; ``lost`` is the share of ``op``."""
    from asynccommit.testing.emulators.config import read_share
    from asynccommit.testing.models.fault_rules import CUT, Fault
    from asynccommit.testing.models.latency import RequestLimit, read_latency

    if latency is not None:
        climate = replace(climate, latency=read_latency(latency, "--latency"))
    if limit is not None:
        climate = replace(climate, limit=RequestLimit.from_json({"rate": limit}))
    if lost is not None:
        fault = Fault(CUT, op=op, probability=read_share(lost))
        climate = replace(climate, faults=(*climate.faults, fault))
    return climate


def serve(
    emulator: Serving,
    output: Output,
    facts: Callable[[], Mapping[str, Any]],
    welcome: Callable[[], Group],
) -> None:
    """Serve until a signal arrives, and print the address.

    Raises ``OptionError``.
    """
    if emulator.address not in _LOOPBACK:
        output.warn(f"anyone who can reach {emulator.address} can read and change the stored data")
    _run(_serve(emulator, output, facts, welcome))


async def _serve(
    emulator: Serving,
    output: Output,
    facts: Callable[[], Mapping[str, Any]],
    welcome: Callable[[], Group],
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOPS:
        loop.add_signal_handler(number, stop.set)
    try:
        await emulator.start()
    except OSError as error:
        raise _named(error, emulator) from error
    try:
        output.result(facts(), welcome())
        await stop.wait()
    finally:
        await emulator.stop()
    requests = sum(emulator.weather.requests.values())
    output.note(f"stopped after {requests:,} requests")


def _named(error: OSError, emulator: Serving) -> OptionError:
    place = f"{emulator.address}:{emulator.wanted_port}"
    if error.errno == errno.EADDRINUSE:
        return OptionError(f"{place} is in use: give another --port, or 0 for a free one")
    return OptionError(f"cannot listen on {place}: {error.strerror or error}")


def _run(serving: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop if installed, which is a third faster.

    The signal handlers are restored.
    """
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


def shown(
    title: str,
    rows: Mapping[str, str],
    lines: Iterable[str],
    kept: str = "Data is kept in memory only.",
) -> Group:
    """Return the text for a person: title, table, usage, storage."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, Text(value))
    told = (Text(line) for line in lines)
    return Group(Text(f"{title} Ctrl-C stops it. {kept}"), Text(), table, Text(), *told)

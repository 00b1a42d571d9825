"""Open the transport of an HTTP library."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.stores.http.base import HttpSettings, Transport

TRANSPORTS: Mapping[str, str] = MappingProxyType(
    {
        "pyreqwest": "asynccommit.stores.http.with_pyreqwest.PyreqwestTransport",
        "aiohttp": "asynccommit.stores.http.with_aiohttp.AiohttpTransport",
    }
)
"""Library -> dotted name of its transport, imported when one is opened; the quickest first."""

EXTRAS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"pyreqwest": ("fast",), "aiohttp": ("adls", "gcs", "s3")}
)
"""Library -> the extras of this package that install it."""


def open_transport(settings: HttpSettings, *, prefer: str | None = None) -> Transport:
    """Open a transport with the fastest installed library, or ``prefer``.

    Raises:
        OptionError: ``prefer`` is not one of ``TRANSPORTS``, or a setting is invalid.
        UnsupportedError: the library is not installed, or does not work in a forked process.
    """
    if prefer not in (None, *TRANSPORTS):  # what is given may be unhashable
        raise OptionError(f"unknown transport {prefer!r}: expected {', '.join(TRANSPORTS)}")
    for name in TRANSPORTS if prefer is None else (prefer,):
        try:
            return _open(name, settings)
        except ImportError:
            continue
        except UnsupportedError:
            if prefer is not None:
                raise
    ways = " or ".join(f"'asynccommit[{extra}]'" for extra in EXTRAS[prefer or "aiohttp"])
    raise UnsupportedError(f"no HTTP client is installed: pip install {ways}")


def _open(name: str, settings: HttpSettings) -> Transport:
    module, _, cls = TRANSPORTS[name].rpartition(".")
    transport: Transport = getattr(import_module(module), cls)(settings)
    return transport

"""The HTTP client that all stores share, and the choice of its library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Generic, NoReturn

from asynccommit.errors import OptionError, StoreError, UnsupportedError
from asynccommit.runtime.host import Host
from asynccommit.stores.http.base import HttpSettings, Response, Transport, TransportError
from asynccommit.stores.http.errors import Answer, ErrorTranslator, R
from asynccommit.stores.http.tokens import TokenError

SMALL = 1 << 16  # most bytes of an answer that carries no data
SILENCE = (TransportError, TokenError, ValueError)
"""The exceptions that an exchange raises, for the translator."""


class HttpClient(Generic[R]):
    """A sender of one store's requests; subclasses authorise them.

    Args:
        host: its clock.
        transport: what sends.
        judge: the translator of errors.
        encode: percent-encodes a path; raises ``ValueError``.
    """

    def __init__(
        self,
        host: Host,
        transport: Transport,
        judge: ErrorTranslator[R],
        encode: Callable[[str], str],
    ) -> None:
        self.judge = judge
        self._encode = encode
        self._now = host.now
        self._send = transport.send
        self._transport = transport

    def encode(self, request: R, path: str) -> str:
        """Return ``path`` percent-encoded. Raises ``RejectedError``."""
        try:
            return self._encode(path)
        except ValueError as error:
            raise self.judge.translate(request, error) from None

    def need(self, request: R, answer: Response, *expected: int) -> None:
        """Raise what ``answer`` means, unless its status is expected."""
        if answer.status not in expected:
            raise self.judge.translate(request, answer)

    def error(self, request: R, answer: Answer) -> StoreError:
        """Translate an error response into an error."""
        return self.judge.translate(request, answer)

    def refuse(self, request: R, error: ValueError) -> NoReturn:
        """Raise the error for a request that cannot be built."""
        raise self.judge.translate(request, error) from None

    def unread(self, request: R, error: ValueError) -> StoreError:
        """Return the error for an answer that cannot be read."""
        return self.judge.unread(request, error)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()


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

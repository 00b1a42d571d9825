"""The interface of an HTTP transport, whichever library it uses.

A transport sends one request and returns its answer, whatever the status says. It adds nothing: no
redirect is followed, no cookie kept, no body decoded, and no request is ever sent twice. What goes
wrong is said by what can have happened:

TransportError                there is no answer to use: has .detail
  NotSentError                nothing can have reached the server
    UntrustedError            its certificate is not trusted: no use to ask again
  NoAnswerError               sent or partly sent, and no whole answer: it may have happened
  TooLargeError               the response is larger than the caller takes
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Annotated, NamedTuple, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from asynccommit.errors import OptionError
from asynccommit.options.checked import PATH, Within, check_fields
from asynccommit.version import __version__

READS = frozenset({"GET", "HEAD"})
"""The verbs that change nothing."""

# The characters that both libraries send unchanged; they quote or resolve others differently.
_PATH = r"(?:/(?!(?:\.|%2[eE]){1,2}(?:[/?]|\Z))[\w.~!$&'()*+,;=:@%-]*)+"
_URL = re.compile(
    rf"https?://(?:[\w.-]+|\[[\w:.]+\])(?::\d+)?{_PATH}(?:\?[\w.~!$&()*+,;=:@%/?-]+)?", re.ASCII
)


class Response(NamedTuple):
    """A response: status, headers by lower-case name, unchanged body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class TransportError(Exception):
    """Raised when a request has no response that can be used.

    ``detail`` names method, host and path and what went wrong; never a header, a query or a body.
    """

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class NotSentError(TransportError):
    """Raised when nothing of the request can have reached the server."""


class UntrustedError(NotSentError):
    """Raised when the server's certificate is not trusted, which a repetition does not help."""


class NoAnswerError(TransportError):
    """Raised when a request was sent but no complete response arrived; it may have been executed.

    No complete response was received.
    """


class TooLargeError(TransportError):
    """Raised when the response is larger than the caller accepts."""


class Transport(Protocol):
    """A sender of requests over connections that it keeps."""

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, limit: int
    ) -> Response:
        """Send one request once and return its answer, whatever the status is.

        Args:
            method: the verb, in capitals.
            url: absolute and percent-encoded; it is sent as it is.
            headers: all headers except host, length, user agent and accepted encodings.
            body: the whole body.
            limit: most bytes of the answer's body to take.

        Raises:
            NotSentError: nothing can have reached the server.
            UntrustedError: its certificate is not trusted.
            NoAnswerError: it may have happened, and no whole answer came.
            TooLargeError: the response has more than ``limit`` bytes.
            ValueError: the URL or a header cannot be sent as it is.
        """
        ...

    async def aclose(self) -> None:
        """Close all connections; requests still under way fail."""
        ...


_Seconds = Annotated[float, Within(1e-9, 1e6, "seconds")]


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The settings of a transport: connections and timeouts in seconds.

    Attributes:
        connect_timeout: limit for getting a free or new connection, including DNS and TLS.
        read_timeout: limit between two pieces of a response, and until the first.
        total_timeout: limit for a request as a whole.
        connections: maximum number of open connections.
        keep_alive: how long an unused connection stays open.
        proxy: its URL; ``""`` for no proxy, ``None`` for the proxy of the environment.
        ca_file: certificates in PEM form to trust beside those of the system.
        user_agent: the name that the client sends.
    """

    connect_timeout: _Seconds = 10.0
    read_timeout: _Seconds = 60.0
    total_timeout: _Seconds = 120.0
    connections: Annotated[int, Within(1, 4096)] = 64
    keep_alive: _Seconds = 30.0
    proxy: str | None = field(default=None, repr=False)
    ca_file: Annotated[str | None, PATH] = None
    user_agent: str = f"asynccommit/{__version__}"

    def __post_init__(self) -> None:
        check_fields(self)

    def default_headers(self) -> dict[str, str]:
        """Return the headers that every request has."""
        return {"User-Agent": self.user_agent, "Accept": "*/*", "Accept-Encoding": "identity"}


class Proxies:
    """The proxies for URLs, read once from a setting or the environment.

    Raises:
        OptionError: a proxy is neither ``http`` nor ``https``.
    """

    def __init__(self, setting: str | None) -> None:
        self._known = {"all": setting} if setting is not None else getproxies_environment()
        self._by_host: dict[str, str | None] = {}
        for scheme in ("http", "https", "all"):
            _check_proxy(self._known.get(scheme))

    def __bool__(self) -> bool:
        return any(self._known.get(scheme) for scheme in ("http", "https", "all"))

    def __call__(self, url: str) -> str | None:
        """Return the proxy for ``url``, if it is asked through one."""
        origin = url[: url.find("/", 8)]
        try:
            return self._by_host[origin]
        except KeyError:
            return self._by_host.setdefault(origin, self._find(origin))

    def _find(self, origin: str) -> str | None:
        url = urlsplit(origin)
        proxy = self._known.get(url.scheme) or self._known.get("all")
        return None if not proxy or self._is_direct(url.hostname or "", url.netloc) else proxy

    def _is_direct(self, host: str, netloc: str) -> bool:
        """Return whether NO_PROXY excludes the host.

        NO_PROXY may name the host, its domain or network, or all hosts.
        """
        for name in self._known.get("no", "").lower().split(","):
            suffix = name.strip().lstrip(".")
            if suffix in ("*", host, netloc) or (suffix and host.endswith(f".{suffix}")):
                return True
            if _is_within(host, suffix):
                return True
        return False


def _is_within(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False


def _check_proxy(proxy: str | None) -> None:
    try:
        valid = not proxy or urlsplit(proxy).scheme in ("http", "https")
    except ValueError:  # whose text has the whole of it, a password too
        valid = False
    if not valid:
        raise OptionError("the proxy must be given as http://host:port")


def check_url(url: str) -> None:
    """Raise ``ValueError`` for a URL that would not be sent unchanged."""
    if not _URL.fullmatch(url):
        raise ValueError(f"cannot be sent unchanged: {place(url)}")


def place(url: str) -> str:
    """Return host and path of ``url`` for messages, without the query, which may be signed."""
    return url.partition("?")[0].partition("#")[0].partition("://")[2].rpartition("@")[2]


def is_loopback(server: str) -> bool:
    """Return whether ``HOST:PORT`` is this machine, where nobody else reads the requests."""
    server = server.rpartition("@")[2]
    name = server[1:].partition("]")[0] if server[:1] == "[" else server.partition(":")[0]
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False

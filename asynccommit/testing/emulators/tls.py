"""Certificates of emulators that serve https, made for each emulator.

Each has an authority of its own; the keys of both exist in this process only.
"""

from __future__ import annotations

import ssl
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from asynccommit.errors import OptionError, UnsupportedError

if TYPE_CHECKING:
    import trustme

_LOCAL = ("localhost", "127.0.0.1", "::1")

Tls: TypeAlias = ssl.SSLContext | bool | Collection[str]
"""A context to serve https with; whether to make one; or further host names for one to make."""


class ServerTls(NamedTuple):
    """The server's side of TLS connections.

    Attributes:
        context: ``None`` for a server of plain http.
        ca_pem: certificate of the authority in PEM form, if it was made here.
    """

    context: ssl.SSLContext | None = None
    ca_pem: bytes | None = None


def server_tls(tls: Tls, hosts: Collection[str]) -> ServerTls:
    """Return what a server needs for ``tls``.

    A certificate that is made is for this machine, ``hosts``, and the names in ``tls``.

    Raises:
        OptionError: a name is not a host name.
        UnsupportedError: trustme is not installed.
    """
    if isinstance(tls, ssl.SSLContext):
        return ServerTls(tls)
    if isinstance(tls, str):
        raise OptionError(f"tls={tls!r} is not valid: expected True, or a list of host names")
    if not tls:
        return ServerTls()
    return _new_certificate([*_LOCAL, *hosts, *(() if tls is True else tls)])


def _new_certificate(names: Collection[str]) -> ServerTls:
    authority = _new_authority()
    try:
        issued = authority.issue_cert(*dict.fromkeys(names))
    except ValueError as error:
        raise OptionError(f"a name for the certificate is not a host name: {error}") from error
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    issued.configure_cert(context)
    return ServerTls(context, authority.cert_pem.bytes())


def _new_authority() -> trustme.CA:
    try:
        import trustme
    except ImportError as error:
        raise UnsupportedError(
            f"https on an emulator needs {error.name}: pip install 'asynccommit[emulate]'"
        ) from error
    return trustme.CA(organization_name="asynccommit emulator")

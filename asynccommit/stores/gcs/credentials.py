"""Authorise requests to Google Cloud Storage by bearer token, or not.

A ``GcsCredential`` puts its header into each request, and knows its own secrets, so that no error
repeats one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, Protocol

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.stores.clients import SDK
from asynccommit.stores.gcs.endpoint import GcsEndpoint
from asynccommit.stores.gcs.hadoop import GcsConnectorOptions
from asynccommit.stores.gcs.identity import SCOPE, Identity
from asynccommit.stores.gcs.tokens import GcloudSource, ObjectSource
from asynccommit.stores.http.base import HttpSettings, Transport
from asynccommit.stores.http.client import open_transport
from asynccommit.stores.http.tokens import FixedCredential, HttpCredential, Renewal, TokenSource

_SDK = "asynccommit.stores.gcs.sdk_transport"  # imported only if its library is asked for


class GcsCredential(HttpCredential, Protocol):
    """A credential that authorises requests."""

    @property
    def anonymous(self) -> bool:
        """Return whether it authorises nothing."""
        ...

    def authorize(self, headers: dict[str, str]) -> None:
        """Add to ``headers``, which are by lower-case name."""
        ...


class GcsAnonymous(FixedCredential):
    """No authorisation, for public data and emulators."""

    anonymous = True

    def authorize(self, headers: dict[str, str]) -> None:
        return None


class GcsTokens(Renewal):
    """Tokens of a source, renewed ahead of their end."""

    anonymous = False

    def authorize(self, headers: dict[str, str]) -> None:
        headers["authorization"] = self.header


# --- the choice among several ----------------------------------------------------------------

ACCESS = ("read_only", "read_write", "full_control")
"""The scopes that tokens may be requested for, as in gcsfs."""

_FILE = "give the path of a file of credentials, its content, or an object of google.auth"
_OF_GCSFS = {
    "cache": f"is supported only by gcsfs: {_FILE}",
    "browser": "is supported only by gcsfs: run gcloud auth application-default login instead",
}


def credential_of(
    options: Mapping[str, Any],
    hadoop: GcsConnectorOptions,
    place: GcsEndpoint,
    open_transport: Callable[[bool], Transport],
    environ: Mapping[str, str],
    now: Callable[[], float],
) -> GcsCredential:
    """Return the credential from the options, or else that of the machine.

    An emulator gets no credential unless the options name one. This function reads no file and
    sends no request.

    Args:
        options: options; only ``token`` and ``access`` are read.
        hadoop: Hadoop's options, for what ``told`` does not set.
        place: the endpoint to which the credential is sent.
        open_transport: see ``opener``.
        environ: the environment.
        now: seconds since the epoch.

    Raises:
        OptionError: the credential is invalid, or would be sent unencrypted.
        UnsupportedError: the kind of credential is unknown, or a library is missing.
    """
    scope = _scope(options)
    found: Identity | object = options.get("token")
    if isinstance(found, str | os.PathLike | Mapping):
        found = _of_token(found, scope)
    if found is None:
        found = hadoop.identity(scope, environ.get("HADOOP_USER_NAME") or environ.get("USER", ""))
    if found is None:
        found = _of_machine(place, scope)
    if found == "anonymous" or _names(found) & {"AnonymousCredentials"}:
        return GcsAnonymous()
    place.refuse_plain("tokens")
    return GcsTokens(_source(found, scope, open_transport, environ, now), now)


def opener(http: HttpSettings, library: str | None) -> Callable[[bool], Transport]:
    """Return what opens the transport that tokens are asked through.

    It is called with whether only this machine's own network is asked: then there is no proxy.

    Args:
        http: of the store, whose certificates and proxy count for tokens too.
        library: which HTTP library sends; ``None`` for the quickest.
    """
    return partial(_open, http, library)


def _scope(options: Mapping[str, Any]) -> str:
    access = str(options.get("access", ACCESS[-1]))
    if access not in ACCESS:
        raise OptionError(f"access is {access[:100]!r}: expected {', '.join(ACCESS)}")
    return f"{SCOPE}devstorage.{access}"


def _of_token(
    given: str | os.PathLike[str] | Mapping[str, Any], scope: str
) -> Identity | Literal["anonymous"]:
    if isinstance(given, Mapping):
        return Identity("data", scope, data=given)
    if not isinstance(given, str):
        return Identity("file", scope, os.fspath(given))
    match given.strip():
        case "anon":
            return "anonymous"
        case "google_default":
            return Identity("default", scope)
        case "cloud":
            return Identity("machine", scope)
        case "cache" | "browser" as word:
            raise OptionError(f"token is {word!r}, which {_OF_GCSFS[word]}")
        case text:
            return Identity("text", scope, text)


def _of_machine(place: GcsEndpoint, scope: str) -> Identity | Literal["anonymous"]:
    """Return the default credential.

    The machine's own credential is for Google, not for emulators.
    """
    if not place.real and (place.emulator or place.plain):
        return "anonymous"
    return Identity("default", scope)


def _source(
    found: Identity | object,
    scope: str,
    open_transport: Callable[[bool], Transport],
    environ: Mapping[str, str],
    now: Callable[[], float],
) -> TokenSource:
    if not isinstance(found, Identity):
        if not all(hasattr(found, name) for name in ("token", "expiry", "valid", "refresh")):
            raise OptionError(f"token is a {type(found).__name__}: {_FILE}")
        return ObjectSource(found, scope, open_transport)
    found.check()
    if not _is_installed():
        raise UnsupportedError(
            "gcloud-aio-auth is needed for this credential: pip install 'asynccommit[gcs]', or "
            "give a credentials object of google.auth as token"
        )
    return GcloudSource(partial(found.load, environ), open_transport, now)


def _names(found: object) -> set[str]:
    return {kind.__name__ for kind in type(found).__mro__}


def _is_installed() -> bool:
    try:
        return find_spec("gcloud.aio.auth") is not None
    except ImportError:  # not even its parent
        return False


def _open(http: HttpSettings, library: str | None, direct: bool) -> Transport:
    settings = HttpSettings(
        connect_timeout=min(http.connect_timeout, 3.0 if direct else 10.0),
        read_timeout=20.0,
        total_timeout=30.0,
        connections=4,
        proxy="" if direct else http.proxy,
        ca_file=http.ca_file,
        user_agent=http.user_agent,
    )
    if library == SDK:
        sender: Transport = import_module(_SDK).OwnSession(settings)
        return sender
    return open_transport(settings, prefer=library)

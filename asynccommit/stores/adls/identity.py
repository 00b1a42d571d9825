"""Token credentials of azure-identity, imported on first use.

The import and the creation of a credential read files and start a process, so a thread does them.
The library's own retries are off: only ``Retry`` repeats failed requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.stores.adls.tokens import AzureTokens

_TENANT = re.compile(r"[A-Za-z0-9.-]+")


def tokens_of(source: Any, now: Callable[[], float]) -> AzureTokens:
    """Return the tokens of a credential object of the user's, who closes it."""
    return AzureTokens(source, now)


def default_tokens(told: Mapping[str, Any], now: Callable[[], float]) -> AzureTokens:
    """Return the tokens of ``DefaultAzureCredential`` on this machine."""
    options = {name: value for name, value in told.items() if name.startswith("exclude_")}
    if "client_id" in told:
        options["managed_identity_client_id"] = told["client_id"]
    return _tokens("DefaultAzureCredential", (), options, now)


@dataclass(frozen=True, slots=True)
class Application:
    """An application registered with Entra ID, and its secret.

    Attributes:
        tenant: id or domain of the directory.
        client: id of the application.
        secret: its secret.
        authority: host that gives tokens; empty for the public cloud.
    """

    tenant: str
    client: str
    secret: str = field(repr=False)
    authority: str = ""

    @classmethod
    def at(cls, endpoint: str, client: str, secret: str) -> Application:
        """Parse Hadoop's URL of a token endpoint.

        The URL is ``https://login.microsoftonline.com/TENANT/oauth2/token``.
        """
        url = urlsplit(endpoint)
        tenant = url.path.strip("/").partition("/")[0]
        if not url.hostname or not tenant:
            raise OptionError(
                "fs.azure.account.oauth2.client.endpoint names no tenant: "
                "expected https://login.microsoftonline.com/TENANT/oauth2/token"
            )
        return cls(tenant, client, secret, url.netloc)

    def tokens(self, now: Callable[[], float]) -> AzureTokens:
        """Return its tokens."""
        if not _TENANT.fullmatch(self.tenant):
            raise OptionError(
                f"{self.tenant[:100]!r} is not a tenant: expected a name or id of letters, "
                "digits, dots and hyphens"
            )
        options = {"authority": self.authority} if self.authority else {}
        names = (self.tenant, self.client, self.secret)
        return _tokens("ClientSecretCredential", names, options, now, (self.secret,))


@dataclass(frozen=True, slots=True)
class AzureMachine:
    """The identity that Azure gives to a machine or a pod.

    Attributes:
        kind: the class of azure.identity.aio.
        options: its arguments.
    """

    kind: str
    options: Mapping[str, str]

    def tokens(self, now: Callable[[], float]) -> AzureTokens:
        """Return its tokens."""
        return _tokens(self.kind, (), self.options, now)


def _tokens(
    kind: str,
    names: tuple[str, ...],
    options: Mapping[str, Any],
    now: Callable[[], float],
    secrets: tuple[str, ...] = (),
) -> AzureTokens:
    if not _is_installed():
        raise UnsupportedError(
            "azure-identity is needed for this credential: pip install 'asynccommit[adls]', or "
            "give account_key or sas_token"
        )
    return AzureTokens(None, now, make=partial(_make, kind, names, options), secrets=secrets)


def _is_installed() -> bool:
    try:
        return find_spec("azure.identity") is not None
    except ImportError:  # not even its parent
        return False


def _make(kind: str, names: tuple[str, ...], options: Mapping[str, Any]) -> Any:
    found = getattr(import_module("azure.identity.aio"), kind)
    return found(*names, **options, retry_total=0, connection_timeout=10, read_timeout=30)

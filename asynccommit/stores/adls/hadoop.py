"""Hadoop's options of ABFS: credentials and endpoints.

A key may end in the account's host, ``fs.azure.account.key.NAME.dfs.core.windows.net``, and then
counts for that account only; a SAS may be for one container of it. The rest of ``fs.azure.`` is
about other things than these and passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from asynccommit.errors import OptionError
from asynccommit.options.values import boolean, size
from asynccommit.stores.adls.identity import Application, AzureMachine

PREFIX = "fs.azure."
HIERARCHICAL = PREFIX + "account.hns.enabled"

_KEY = PREFIX + "account.key"
_SAS = PREFIX + "sas.fixed.token"
_AUTH = PREFIX + "account.auth.type"
_PROVIDER = PREFIX + "account.oauth.provider.type"
_OAUTH = PREFIX + "account.oauth2."
_LEAST_BLOCK, _LARGEST_BLOCK = 16 << 10, 100 << 20  # Hadoop's limits of fs.azure.write.request.size
_INSTEAD = "give the option credential, an object of azure.identity, instead"

Found = (
    tuple[Literal["key", "sas"], str]
    | tuple[Literal["application"], Application]
    | tuple[Literal["machine"], AzureMachine]
)


class AbfsOptions:
    """Options whose names begin with ``fs.azure.``."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        self._conf = conf

    def get(self, key: str, host: str, container: str = "") -> str | None:
        """Return the value of ``key`` that is closest to container and account."""
        places = (f".{container}.{host}", f".{host}", "")
        for place in places if container else places[1:]:
            if value := self._conf.get(key + place, "").strip():
                return value
        return None

    def flag(self, key: str, host: str) -> bool | None:
        """Return whether ``key`` is true; ``None`` if it is not given."""
        value = self.get(key, host)
        return None if value is None else boolean(key, value)

    def hierarchical(self, host: str) -> bool | None:
        """Return whether the account is said to have a hierarchical namespace."""
        return self.flag(HIERARCHICAL, host)

    def block(self, host: str) -> int | None:
        """Return the bytes of one append of a large file; ``None`` if not given."""
        key = PREFIX + "write.request.size"
        value = self.get(key, host)
        return None if value is None else min(max(size(key, value), _LEAST_BLOCK), _LARGEST_BLOCK)

    def endpoint(self, host: str) -> str:
        """Return ``IP:PORT`` to send requests to instead.

        Hadoop accepts no other form.
        """
        value = self.get(PREFIX + "abfs.endpoint", host) or ""
        return value if ":" in value else ""

    def plain(self, host: str) -> bool:
        """Return whether TLS is off for ``abfs:``."""
        return self.flag(PREFIX + "always.use.https", host) is False

    def credential(self, host: str, container: str) -> Found | None:
        """Return the credential that is configured for the account, if any is.

        Raises:
            OptionError: only Hadoop supports this kind, or it is incomplete.
        """
        kind = self.get(_AUTH, host)
        key, sas = self.get(_KEY, host), self.get(_SAS, host, container)
        match kind:
            case None:
                kind = "SharedKey" if key else "SAS" if sas else None
            case "Custom" | "UserboundSASWithOAuth":
                raise OptionError(f"{_AUTH} is {kind}, which runs Hadoop's classes: {_INSTEAD}")
        match kind:
            case None:
                return None
            case "SharedKey":
                return "key", _need(key, kind, _KEY)
            case "SAS":
                return "sas", _need(sas, kind, _SAS)
            case "OAuth":
                return self._oauth(host)
        raise OptionError(f"{_AUTH} is {kind[:100]!r}: expected SharedKey, SAS or OAuth")

    def _oauth(self, host: str) -> Found:
        provider = (self.get(_PROVIDER, host) or "ClientCredsTokenProvider").rpartition(".")[2]
        client = self.get(_OAUTH + "client.id", host)
        match provider:
            case "ClientCredsTokenProvider":
                keys = (_OAUTH + "client.endpoint", _OAUTH + "client.id", _OAUTH + "client.secret")
                values = (_need(self.get(key, host), "OAuth", key) for key in keys)
                return "application", Application.at(*values)
            case "MsiTokenProvider":
                options = {"client_id": client} if client else {}
                return "machine", AzureMachine("ManagedIdentityCredential", options)
            case "WorkloadIdentityTokenProvider":
                found = {
                    "client_id": client,
                    "tenant_id": self.get(_OAUTH + "msi.tenant", host),
                    "token_file_path": self.get(_OAUTH + "token.file", host),
                }
                options = {name: value for name, value in found.items() if value}
                return "machine", AzureMachine("WorkloadIdentityCredential", options)
        raise OptionError(f"{_PROVIDER} is {provider[:100]}: {_INSTEAD}")


def _need(value: str | None, kind: str, key: str) -> str:
    if value is None:
        raise OptionError(f"{_AUTH} is {kind}, but {key} is missing")
    return value

"""The destination of requests to Azure: account, container and URL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any
from urllib.parse import quote, unquote

from asynccommit.errors import OptionError
from asynccommit.stores.adls.hadoop import AbfsOptions
from asynccommit.stores.http.base import is_loopback
from asynccommit.stores.http.options import flag
from asynccommit.stores.urls import Address

_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_CONTAINER = re.compile(r"\$?[a-z0-9](?:-?[a-z0-9]){0,62}")
_OF_ACCOUNT = re.compile(r"([^.]+)\.(?:[^.]+\.)*(?:dfs|blob)\.", re.IGNORECASE)
_BLOB = re.compile(r"(?<=\.)blob(?=\.)", re.IGNORECASE)
_DFS = re.compile(r"(?<=\.)dfs(?=\.)")
_ENDPOINT = re.compile(
    r"(?P<protocol>https?)://(?P<server>(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?)"
    r"(?P<path>(?:/[a-z0-9-]+)*)/?",
    re.IGNORECASE,
)

_CLOUD = "core.windows.net"
_FABRIC = ".dfs.fabric.microsoft.com"
_ONELAKE = "onelake"  # the account's name in every region
_DEVELOPMENT = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey="
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "DfsEndpoint=http://127.0.0.1:10004/devstoreaccount1"
)
_FIELDS = {
    "accountname": "account_name",
    "accountkey": "account_key",
    "sharedaccesssignature": "sas_token",
    "defaultendpointsprotocol": "_protocol",
    "endpointsuffix": "_suffix",
    "dfsendpoint": "_dfs",
    "blobendpoint": "_blob",
}


@dataclass(frozen=True, slots=True)
class AdlsEndpoint:
    """A container, and how to reach it.

    Attributes:
        account: the account's name.
        container: the container's name, which Azure also calls filesystem.
        host: the account's host as Hadoop's options name it.
        origin: scheme, host and port that requests go to.
        prefix: what begins every path there: empty, or ``/account``.
    """

    account: str
    container: str
    host: str
    origin: str
    prefix: str

    @property
    def onelake(self) -> bool:
        """True for OneLake, whose containers are workspaces of Fabric."""
        return self.host.endswith(_FABRIC)

    @property
    def source(self) -> str:
        """Path of the container as the source of a rename is named."""
        return "/" + quote(self.container, safe="")

    @property
    def blob_origin(self) -> str:
        """The origin of the account's other endpoint, for blobs."""
        return _DFS.sub("blob", self.origin)

    @property
    def limit(self) -> str:
        """The name of what shares one limit on requests."""
        server = self.origin.partition("://")[2]
        return f"adls:{server}" if server == self.host else f"adls:{server}/{self.account}"

    def refuse_plain_tokens(self) -> None:
        """Raise ``OptionError`` if tokens would cross a network unencrypted."""
        protocol, _, server = self.origin.partition("://")
        if protocol == "http" and not is_loopback(server):
            raise OptionError(f"tokens are not sent to {self.origin}: use https, or an account key")


def find_place(
    address: Address, told: Mapping[str, Any], hadoop: AbfsOptions, around: Mapping[str, Any]
) -> AdlsEndpoint:
    """Return the place of ``address``.

    Args:
        address: ``abfs(s)://container@host/``, ``abfs(s)://container/`` or ``az://container/``.
            The container of OneLake is a workspace, by name or GUID.
        told: options under their own names.
        hadoop: those of Hadoop.
        around: values of the environment, for options that are not set.

    Raises:
        OptionError: account or container has no possible name, or two accounts are named.
    """
    container, _, host = address.authority.partition("@")
    host = _BLOB.sub("dfs", host.lower())
    host = _onelake(host, told) or host
    if not (_CONTAINER.fullmatch(container) or (container and host.endswith(_FABRIC))):
        raise OptionError(
            f"{address.authority!r} has no container: expected "
            f"{address.scheme}://CONTAINER@ACCOUNT.dfs.core.windows.net/path; a container's name "
            "has 3 to 63 lower-case letters, digits and single hyphens"
        )
    account = _account(host, told, around)
    # An endpoint in the environment belongs to the account that is named there.
    known = {**(around if around.get("account_name") == account else {}), **told}
    if not _is_host(host):
        host = f"{account}.dfs.{known.get('_suffix', _CLOUD)}"
    origin, prefix = _server(address.scheme, account, host, known, hadoop)
    return AdlsEndpoint(account, unquote(container), host, origin, prefix)


def _onelake(host: str, told: Mapping[str, Any]) -> str:
    """Return the host of OneLake if the URL or ``account_host`` names one."""
    given = _ENDPOINT.fullmatch(f"https://{str(told.get('account_host', '')).rpartition('//')[2]}")
    named = _BLOB.sub("dfs", given["server"].lower()) if given else ""
    return next((_ for _ in (host, named) if _.endswith(_FABRIC)), "")


def _account(host: str, told: Mapping[str, Any], around: Mapping[str, Any]) -> str:
    """Return the name of the account; raise if two settings name others."""
    if host.endswith(_FABRIC):
        return _ONELAKE
    found = _OF_ACCOUNT.match(host)
    in_url = found[1] if found else "" if _is_host(host) else host
    option = str(told.get("account_name", ""))
    if in_url and option and in_url != option:
        raise OptionError(f"the URL names the account {in_url!r}, but account_name is {option!r}")
    account = in_url or option or str(around.get("account_name", ""))
    if not account:
        raise OptionError(
            "no storage account: set account_name, or write "
            "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/path"
        )
    if not _ACCOUNT.fullmatch(account):
        raise OptionError(
            f"{account[:100]!r} is not the name of a storage account: expected 3 to 24 "
            "lower-case letters and digits"
        )
    return account


def _server(
    scheme: str, account: str, host: str, known: Mapping[str, Any], hadoop: AbfsOptions
) -> tuple[str, str]:
    """Return scheme and host that requests go to, and what begins their path."""
    named = (known.get("account_host"), known.get("_dfs"), known.get("_blob"))
    given = str(next(filter(None, (*named, hadoop.endpoint(host), host))))
    plain = known.get("_protocol") == "http" or (scheme == "abfs" and hadoop.plain(host))
    given = given if "://" in given else f"{'http' if plain else 'https'}://{given}"
    found = _ENDPOINT.fullmatch(given)
    if not found:
        # It may be part of a connection string, so it is not repeated.
        raise OptionError(f"the endpoint of {account!r} is not a host: set account_host=HOST:PORT")
    protocol, server, prefix = found["protocol"], _BLOB.sub("dfs", found["server"]), found["path"]
    if "use_ssl" in known:
        protocol = "https" if flag(known, "use_ssl") else "http"
    if not prefix and _is_bare(server):
        prefix = f"/{account}"
    return f"{protocol}://{server}", prefix


def _is_host(text: str) -> bool:
    """Return whether the text is more than the name of an account."""
    return "." in text or ":" in text


def _is_bare(server: str) -> bool:
    """Return whether a host has no account in its name.

    The host may have a port. The account of such a host is in the path.
    """
    name = _name_of(server)
    return "." not in name or _address(name) is not None


def _name_of(server: str) -> str:
    return server[1:].partition("]")[0] if server[:1] == "[" else server.partition(":")[0]


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(name)
    except ValueError:
        return None


def parse_connection_string(text: str) -> dict[str, Any]:
    """Parse a connection string into options; no error repeats its text.

    Raises:
        OptionError: the text is not a connection string, or lacks the account.
    """
    if "usedevelopmentstorage=true" in text.replace(" ", "").lower():
        text = _DEVELOPMENT
    found: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, value = part.partition("=")
        if not equals or not name.strip().isalpha():
            raise OptionError(
                "the connection string is not NAME=VALUE;NAME=VALUE: copy all of it from the portal"
            )
        if (field := _FIELDS.get(name.strip().lower())) and value.strip():
            found[field] = value.strip()
    if "account_name" not in found:
        found |= _named_by_endpoint(found)
    return found


def _named_by_endpoint(found: Mapping[str, Any]) -> dict[str, Any]:
    url = _ENDPOINT.fullmatch(str(found.get("_dfs") or found.get("_blob")))
    if not url:
        raise OptionError("the connection string has neither AccountName nor an endpoint")
    server, path = url["server"], url["path"].strip("/")
    return {"account_name": path if _is_bare(server) else server.partition(".")[0]}

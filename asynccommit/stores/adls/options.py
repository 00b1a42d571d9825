"""Options of a store on Azure, under all their names.

They come from fsspec, from Hadoop, and from the environment.

Three families of names are read: those of fsspec and adlfs (``account_name``), Hadoop's
(``fs.azure.account.key``, with ``spark.hadoop.`` in front or not), and the environment's
(``AZURE_STORAGE_ACCOUNT_NAME``). The environment counts only for options that are not set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from asynccommit.errors import OptionError
from asynccommit.stores.adls.credentials import (
    KINDS,
    AdlsCredential,
    credential_of,
    refuse_two,
)
from asynccommit.stores.adls.endpoint import AdlsEndpoint, find_place, parse_connection_string
from asynccommit.stores.adls.hadoop import PREFIX, AbfsOptions
from asynccommit.stores.http.base import HttpSettings
from asynccommit.stores.http.options import CONNECTIONS, OptionNames, count, http_settings
from asynccommit.stores.urls import Address

KNOWN = frozenset(
    {
        "account_name",
        "account_key",
        "connection_string",
        "sas_token",
        "credential",
        "tenant_id",
        "client_id",
        "client_secret",
        "anon",
        "account_host",
        "use_ssl",
        "timeout",
        "connection_timeout",
        "read_timeout",
        "max_concurrency",
        "proxy",
        "ca_file",
        "http_library",
        "client",
    }
)
"""Options that have an effect here, Hadoop's apart."""

NAMES = OptionNames(
    store="Azure",
    known=KNOWN,
    hadoop=(PREFIX,),
    foreign=("fs.gs.", "fs.s3a.", "google.cloud."),
    begins=("exclude_",),
    passed_over=frozenset(
        {
            "request_session",
            "socket_timeout",
            "blocksize",
            "location_mode",
            "loop",
            "asynchronous",
            "default_fill_cache",
            "default_cache_type",
            "version_aware",
            "assume_container_exists",
            "skip_instance_cache",
            "use_listings_cache",
            "listings_expiry_time",
            "max_paths",
            "batch_size",
        }
    ),
)
_ENVIRONMENT = {
    f"AZURE_STORAGE_{name.upper()}": name
    for name in (*KINDS[1:], "account_name", "tenant_id", "client_id")
}
_BLOCK = 8 << 20
_WORKERS = 512  # at 20 ms a response, more than an account takes


@dataclass(frozen=True, slots=True)
class AzureSettings:
    """The settings of a store on Azure.

    Attributes:
        place: the account and container, and the URL for requests.
        credential: authorises requests.
        http: settings of the transport.
        library: the HTTP library to use; ``None`` for the fastest.
        hierarchical: whether the account has directories; ``None`` to ask the service.
        workers: requests in flight.
        block: bytes of one append of a file that is sent in blocks.
        client: the user's client that sends, with the library ``sdk``; ``None`` to make one.
    """

    place: AdlsEndpoint
    credential: AdlsCredential = field(repr=False)
    http: HttpSettings
    library: str | None
    hierarchical: bool | None
    workers: int
    block: int = _BLOCK
    client: Any = field(default=None, repr=False)


def read_settings(
    address: Address,
    options: Mapping[str, Any],
    *,
    environ: Mapping[str, str],
    now: Callable[[], float],
) -> AzureSettings:
    """Return the settings of the store that holds ``address``.

    Args:
        address: its scheme and authority count.
        options: of the three families, or of none.
        environ: the environment.
        now: seconds since the epoch.

    Raises:
        OptionError: an option is unknown, cannot be read, or contradicts another.
        UnsupportedError: azure-identity is needed and not installed.
    """
    named, conf = NAMES.sort(options)
    hadoop = AbfsOptions(conf)
    refuse_two(named)
    told = _expand(named)
    around = _environment(environ)
    place = find_place(address, told, hadoop, around)
    workers = count(told, "max_concurrency", CONNECTIONS) or _WORKERS
    return AzureSettings(
        place,
        credential_of(told, hadoop, around, place, now),
        http_settings(told, workers),
        told.get("http_library"),
        hadoop.hierarchical(place.host),
        workers,
        hadoop.block(place.host) or _BLOCK,
        told.get("client"),
    )


def _environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of the environment, under the names of options."""
    values = ((name, environ.get(key, "").strip()) for key, name in _ENVIRONMENT.items())
    found: dict[str, Any] = {name: value for name, value in values if value}
    text = found.pop("connection_string", None)
    return found if text is None else {**found, **parse_connection_string(text)}


def _expand(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the values of their connection string, if any."""
    text = named.get("connection_string")
    found = {} if text is None else parse_connection_string(str(text))
    if (name := named.get("account_name")) and found.get("account_name", name) != name:
        raise OptionError(
            f"connection_string names the account {found['account_name']!r}, but account_name is "
            f"{name!r}"
        )
    return {**found, **named}

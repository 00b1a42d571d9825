"""Options of a store on Azure, under every name that users know them by, and the environment.

Three families of names are read: those of fsspec and adlfs (``account_name``), Hadoop's
(``fs.azure.account.key``, with ``spark.hadoop.`` in front or not), and the environment's
(``AZURE_STORAGE_ACCOUNT_NAME``). The environment counts only where options say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import Any

from asynccommit.errors import OptionError
from asynccommit.options.job import bare
from asynccommit.stores.adls.credentials import AdlsAnonymous, AdlsCredential, Sas, SharedKey
from asynccommit.stores.adls.endpoint import AdlsEndpoint, find_place, parse_connection_string
from asynccommit.stores.adls.hadoop import PREFIX, AbfsOptions
from asynccommit.stores.adls.identity import Application, default_tokens, tokens_of
from asynccommit.stores.http.base import HttpSettings
from asynccommit.stores.http.option_values import CONNECTIONS, count, flag, number
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
    }
)
"""Options that have an effect here, Hadoop's apart."""

# Of adlfs and fsspec, about files that are opened: they have nothing to do here, and no fault.
_PASSED_OVER = frozenset(
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
)

# A cluster's configuration may be of several clouds.
_OTHERS = ("fs.gs.", "fs.s3a.", "google.cloud.")
_KINDS = ("credential", "connection_string", "account_key", "sas_token", "client_secret", "anon")
_ENVIRONMENT = {
    f"AZURE_STORAGE_{name.upper()}": name
    for name in (*_KINDS[1:], "account_name", "tenant_id", "client_id")
}
_WORKERS = 512  # at 20 ms an answer, more than an account takes


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
    """

    place: AdlsEndpoint
    credential: AdlsCredential = field(repr=False)
    http: HttpSettings
    library: str | None
    hierarchical: bool | None
    workers: int


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
    named, hadoop = _sort(options)
    _refuse_two(named)
    told = _expand(named)
    around = _environment(environ)
    place = find_place(address, told, hadoop, around)
    workers = count(told, "max_concurrency", CONNECTIONS) or _WORKERS
    return AzureSettings(
        place,
        _credential(told, hadoop, around, place, now),
        _http(told, workers),
        told.get("http_library"),
        hadoop.hierarchical(place.host),
        workers,
    )


def _sort(options: Mapping[str, Any]) -> tuple[dict[str, Any], AbfsOptions]:
    named: dict[str, Any] = {}
    hadoop: dict[str, str] = {}
    for key, value in options.items():
        name = bare(key)
        if value is None or value == "" or name in _PASSED_OVER:
            continue
        if name.startswith(_OTHERS):
            continue
        if name.startswith(PREFIX):
            hadoop[name] = str(value)
        elif name in KNOWN or name.startswith("exclude_"):
            named[name] = value
        else:
            raise OptionError(_unknown(name))
    return named, AbfsOptions(hadoop)


def _unknown(name: str) -> str:
    near = get_close_matches(name.lower(), KNOWN, n=3, cutoff=0.6)
    hint = (
        f": did you mean {' or '.join(near)}?" if near else f"; there is {', '.join(sorted(KNOWN))}"
    )
    return f"no option {name[:100]!r} of a store on Azure{hint}"


def _environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what the environment says, under the names of options."""
    values = ((name, environ.get(key, "").strip()) for key, name in _ENVIRONMENT.items())
    found: dict[str, Any] = {name: value for name, value in values if value}
    text = found.pop("connection_string", None)
    return found if text is None else {**found, **parse_connection_string(text)}


def _expand(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with what a connection string among them says."""
    text = named.get("connection_string")
    found = {} if text is None else parse_connection_string(str(text))
    if (name := named.get("account_name")) and found.get("account_name", name) != name:
        raise OptionError(
            f"connection_string is of the account {found['account_name']!r}, "
            f"account_name is {name!r}"
        )
    return {**found, **named}


# --- credentials -----------------------------------------------------------------------------


def _credential(
    told: Mapping[str, Any],
    hadoop: AbfsOptions,
    around: Mapping[str, Any],
    place: AdlsEndpoint,
    now: Callable[[], float],
) -> AdlsCredential:
    names = {name: around[name] for name in ("tenant_id", "client_id") if name in around}
    credential = _of_options({**names, **told}, place, now) or _of_hadoop(hadoop, place, now)
    if credential is None and around.get("account_name", place.account) == place.account:
        credential = _of_options(around, place, now)
    if credential is None:
        place.refuse_plain_tokens()
        return default_tokens(told, now)
    return credential


def _refuse_two(named: Mapping[str, Any]) -> None:
    given = [_ for _ in _KINDS if _ in named and (_ != "anon" or flag(named, _))]
    if len(given) > 1:
        raise OptionError(f"{' and '.join(given)} are given: give one of them")


def _of_options(
    told: Mapping[str, Any], place: AdlsEndpoint, now: Callable[[], float]
) -> AdlsCredential | None:
    if "credential" in told:
        return _of_object(told["credential"], place, now)
    if "account_key" in told:
        return SharedKey(place.account, str(told["account_key"]), now)
    if "sas_token" in told:
        return _sas(str(told["sas_token"]), place)
    if "client_secret" in told:
        return _of_application(told, place, now)
    if flag(told, "anon"):
        return AdlsAnonymous()
    return None


def _sas(token: str, place: AdlsEndpoint) -> Sas:
    place.refuse_plain_tokens()
    return Sas(token)


def _of_object(given: Any, place: AdlsEndpoint, now: Callable[[], float]) -> AdlsCredential:
    """Read ``credential``: any value that Azure's libraries accept for it."""
    if isinstance(given, str):
        return _sas(given, place) if "sig=" in given else SharedKey(place.account, given, now)
    if hasattr(given, "get_token"):
        place.refuse_plain_tokens()
        return tokens_of(given, now)
    if hasattr(given, "signature"):  # AzureSasCredential
        return _sas(str(given.signature), place)
    if hasattr(given, "named_key"):  # AzureNamedKeyCredential
        return SharedKey(place.account, str(given.named_key.key), now)
    raise OptionError(
        f"credential is a {type(given).__name__}: give a token credential of azure.identity, "
        "an account key or a SAS token"
    )


def _of_application(
    told: Mapping[str, Any], place: AdlsEndpoint, now: Callable[[], float]
) -> AdlsCredential:
    missing = [name for name in ("tenant_id", "client_id") if name not in told]
    if missing:
        raise OptionError(f"client_secret is given without {' and '.join(missing)}")
    place.refuse_plain_tokens()
    names = ("tenant_id", "client_id", "client_secret")
    return Application(*(str(told[name]) for name in names)).tokens(now)


def _of_hadoop(
    hadoop: AbfsOptions, place: AdlsEndpoint, now: Callable[[], float]
) -> AdlsCredential | None:
    found = hadoop.credential(place.host, place.container)
    if found is None:
        return None
    kind, value = found
    if isinstance(value, str):
        return SharedKey(place.account, value, now) if kind == "key" else _sas(value, place)
    place.refuse_plain_tokens()
    return value.tokens(now)


# --- the rest --------------------------------------------------------------------------------


def _http(told: Mapping[str, Any], workers: int) -> HttpSettings:
    known = HttpSettings()
    seconds = partial(number, told, what="a number of seconds")
    return HttpSettings(
        connect_timeout=seconds("connection_timeout") or known.connect_timeout,
        read_timeout=seconds("read_timeout") or known.read_timeout,
        total_timeout=seconds("timeout") or known.total_timeout,
        connections=workers,
        proxy=told.get("proxy"),
        ca_file=told.get("ca_file"),
    )

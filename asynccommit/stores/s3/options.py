"""Options of a store on S3, under every name that users know them by.

Three families of names are read: those of fsspec and s3fs (``key``, ``client_kwargs``), those of
Hadoop (``fs.s3a.access.key``, with ``spark.hadoop.`` in front or not), and the environment's
(``AWS_REGION``). The environment counts only for options that are not set.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from asynccommit.errors import OptionError
from asynccommit.options.job import OptionWarning
from asynccommit.runtime.host import Host
from asynccommit.stores.http.base import HttpSettings
from asynccommit.stores.http.options import (
    CONNECTIONS,
    OptionNames,
    count,
    flag,
    http_settings,
    text,
)
from asynccommit.stores.s3.abilities import Abilities, RenameAbilities
from asynccommit.stores.s3.checksums import check_kind
from asynccommit.stores.s3.credentials import OfMachine, S3Credential, credential_of, region_of
from asynccommit.stores.s3.endpoint import S3Endpoint, Wanted, endpoint_of_environment, find_place
from asynccommit.stores.s3.hadoop import PREFIX, S3aOptions
from asynccommit.stores.s3.keys import Encryption, Keeping, keeping
from asynccommit.stores.s3.machine import AwsMachine
from asynccommit.stores.urls import Address

KNOWN = frozenset(
    {
        "key",
        "secret",
        "token",
        "profile",
        "anon",
        "endpoint_url",
        "region",
        "addressing_style",
        "use_dualstack_endpoint",
        "use_fips_endpoint",
        "use_ssl",
        "requester_pays",
        "client_kwargs",
        "config_kwargs",
        "s3_additional_kwargs",
        "encryption",
        "encryption_key",
        "encryption_context",
        "storage_class",
        "acl",
        "checksum",
        "conditional_delete",
        "conditional_put",
        "conditional_replace",
        "rename",
        "requests_timeout",
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

NAMES = OptionNames(
    store="S3",
    known=KNOWN,
    hadoop=(PREFIX,),
    foreign=("fs.azure.", "fs.gs.", "google.cloud."),
    passed_over=frozenset(
        {
            "asynchronous",
            "cache_regions",
            "cache_timeout",
            "cache_type",
            "default_block_size",
            "default_cache_type",
            "default_fill_cache",
            "fixed_upload_size",
            "listings_expiry_time",
            "loop",
            "max_paths",
            "skip_instance_cache",
            "use_listings_cache",
        }
    ),
    same={"username": "key", "password": "secret", "region_name": "region"},
    no_effect={
        "version_aware": (("false", "0"), "only the live version of an object is read or replaced"),
        "session": (("none",), "set key, secret and token, or profile"),
    },
    elsewhere={
        "access_key": "use key",
        "access_key_id": "use key",
        "aws_access_key_id": "use key",
        "secret_key": "use secret",
        "secret_access_key": "use secret",
        "aws_secret_access_key": "use secret",
        "aws_session_token": "use token",
        "session_token": "use token",
        "endpoint": "use endpoint_url",
        "endpoint_override": "use endpoint_url",
        "anonymous": "use anon",
        "account_name": "is this an s3:// URL?",
    },
)
_WORKERS = 256  # at 100 ms a completion, what a prefix takes of writes
# A part of 64 MiB over a slow line, and a completion of 10,000 of them, take their time.
_READ, _TOTAL = 120.0, 900.0
_PAGE, _BULK = 1000, 1000  # the most that the service gives and takes at once
CONDITIONS = ("batch", "single", "none")
"""The ways to make a delete depend on an etag: in a batch, one by one, or not at all."""


class Keeps(NamedTuple):
    """The conditions that the server supports; ``None`` if not configured.

    Attributes:
        puts: whether puts and completions may require an empty destination.
        replaces: whether completions may require an etag at the destination.
        deletes: one of ``CONDITIONS``.
    """

    puts: bool | None = None
    replaces: bool | None = None
    deletes: str | None = None


_UNSAID = Keeps()


@dataclass(frozen=True, slots=True)
class S3Settings:
    """The settings of a store on S3.

    Attributes:
        place: the bucket, and the URL for requests as far as it is known yet.
        credential: signs requests.
        http: settings of the transport.
        machine: finds region and endpoint by the first request; ``None`` if they are known.
        library: the HTTP library to use; ``None`` for the fastest.
        workers: requests in flight.
        page: entries of a page of a listing.
        bulk: deletes in one request.
        keeping: headers that determine the storage of objects.
        checksum: the checksum algorithm of writes; empty for none.
        keeps: the configured support of conditions.
        found: what the server was seen to do; ``None`` if that is not known.
        headers: additional headers of every request.
        renames: whether objects are renamed, by ``RenameObject``.
        found_renames: what a server that renames was seen to do; ``None`` if not known.
    """

    place: S3Endpoint
    credential: S3Credential = field(repr=False)
    http: HttpSettings
    machine: AwsMachine | None = None
    library: str | None = None
    workers: int = _WORKERS
    page: int = _PAGE
    bulk: int = _BULK
    keeping: Keeping = field(default_factory=Keeping, repr=False)
    checksum: str = "CRC32"
    keeps: Keeps = _UNSAID
    found: Abilities | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    renames: bool = False
    found_renames: RenameAbilities | None = None

    @property
    def conditions(self) -> str:
        """The dependence of deletes on etags.

        A server that ignores conditions would delete any version.
        """
        return self.keeps.deletes or ("batch" if self.place.real or self.renames else "none")

    @property
    def conditional(self) -> bool:
        """Return whether writes are sent with conditions."""
        return self.keeps.puts is not False

    @property
    def proven(self) -> bool:
        """Return whether the server is known to honour the conditions of puts."""
        if self.renames:
            return self.keeps.puts is True or self.found_renames is not None
        return self.place.real or self.keeps.puts is True or self.found is not None

    @property
    def matches(self) -> bool:
        """Return whether completions are known to honour a required etag."""
        said = self.keeps.replaces
        if said is None:
            said = self.place.real or (self.found is not None and self.found.replaces)
        return self.conditional and said

    @property
    def abort_tells(self) -> bool:
        """Return whether the abort of a completed upload is known to fail."""
        return self.place.real or (self.found is not None and self.found.tells)

    @property
    def keeps_objects(self) -> bool:
        """Return whether an abort is known to keep the object of its key."""
        return self.place.real or (self.found is not None and self.found.keeps)


def read_settings(
    address: Address, options: Mapping[str, Any], *, environ: Mapping[str, str], host: Host
) -> S3Settings:
    """Return the settings of the store that holds ``address``.

    This reads no file and sends no request; the first request of the store does.

    Args:
        address: its authority is the bucket.
        options: of the three families, or of none.
        environ: the environment.
        host: its clock.

    Raises:
        OptionError: an option is unknown, cannot be read, or contradicts another.
        UnsupportedError: a library is missing.
    """
    named, conf = NAMES.sort(options)
    told, hadoop = spread_kwargs(named), S3aOptions(conf, address.authority)
    place = find_place(address, _wanted(told, hadoop, environ))
    renames, kind = _renames(told, place), _checksum(told, hadoop, environ)
    machine = AwsMachine(text(told, "profile"))
    credential = credential_of(told, hadoop, place, machine, environ, host.now)
    found = isinstance(credential, OfMachine)
    most = hadoop.count("connection.maximum", CONNECTIONS)
    workers = count(told, "max_concurrency", CONNECTIONS) or most or _WORKERS
    return S3Settings(
        place=place,
        credential=credential,
        http=http_settings(
            told,
            workers,
            hadoop,
            read=_READ,
            total=_TOTAL,
            ca_file=environ.get("AWS_CA_BUNDLE"),
        ),
        machine=machine if place.real and (found or not place.region) else None,
        library=text(told, "http_library"),
        workers=workers,
        page=min(hadoop.count("paging.maximum") or _PAGE, _PAGE),
        bulk=_bulk(hadoop),
        keeping=_keeping(told, hadoop, place),
        checksum=_with_checksum(kind) if renames else kind,
        keeps=_keeps(told),
        headers={"x-amz-request-payer": "requester"} if _pays(told, hadoop) else {},
        renames=renames,
    )


# --- where requests go -----------------------------------------------------------------------


def _wanted(told: Mapping[str, Any], hadoop: S3aOptions, environ: Mapping[str, str]) -> Wanted:
    ssl, ours = hadoop.flag("connection.ssl.enabled"), flag(told, "use_ssl")
    return Wanted(
        endpoint=_endpoint(told, hadoop) or endpoint_of_environment(environ),
        region=region_of(told, hadoop, environ),
        path_style=_path_style(told, hadoop),
        ssl=(ssl if ours is None else ours) is not False,
        variant=_variant(told, hadoop, environ),
    )


def _endpoint(told: Mapping[str, Any], hadoop: S3aOptions) -> tuple[str, str] | None:
    given = {
        "endpoint_url": str(told.get("endpoint_url", "")),
        f"{PREFIX}endpoint": hadoop.get("endpoint"),
    }
    return next(((name, url) for name, url in given.items() if url), None)


def _path_style(told: Mapping[str, Any], hadoop: S3aOptions) -> bool | None:
    style = str(told.get("addressing_style", "auto")).lower()
    if style not in ("auto", "path", "virtual"):
        raise OptionError(f"addressing_style is {style[:100]!r}: expected path, virtual or auto")
    return hadoop.flag("path.style.access") if style == "auto" else style == "path"


def _variant(told: Mapping[str, Any], hadoop: S3aOptions, environ: Mapping[str, str]) -> str:
    def chosen(option: str, variable: str) -> bool:
        said = flag(told, option)
        return environ.get(variable, "").lower() == "true" if said is None else said

    fips = chosen("use_fips_endpoint", "AWS_USE_FIPS_ENDPOINT") or hadoop.flag("endpoint.fips")
    dual = chosen("use_dualstack_endpoint", "AWS_USE_DUALSTACK_ENDPOINT")
    return ("-fips" if fips else "") + (".dualstack" if dual else "")


# --- what requests ask for -------------------------------------------------------------------


def _bulk(hadoop: S3aOptions) -> int:
    if hadoop.flag("multiobjectdelete.enable") is False:
        return 1
    return min(hadoop.count("bulk.delete.page.size") or _BULK, _BULK)


def _pays(told: Mapping[str, Any], hadoop: S3aOptions) -> bool:
    pays = flag(told, "requester_pays")
    return bool(hadoop.flag("requester.pays.enabled") if pays is None else pays)


def _keeping(told: Mapping[str, Any], hadoop: S3aOptions, place: S3Endpoint) -> Keeping:
    encryption = hadoop.encryption()
    if told.keys() & {"encryption", "encryption_key"}:
        key = told.get("encryption_key", "")
        encryption = Encryption(
            str(told.get("encryption", "")),
            key if isinstance(key, bytes) else str(key),
            str(told.get("encryption_context", "")),
        )
    storage_class = told.get("storage_class") or hadoop.get("create.storage.class")
    acl = told.get("acl") or hadoop.get("acl.default")
    found = keeping(encryption, str(storage_class), str(acl))
    if found.content:
        place.refuse_plain("encryption keys")
    return found


def _checksum(told: Mapping[str, Any], hadoop: S3aOptions, environ: Mapping[str, str]) -> str:
    said = told.get("checksum") or hadoop.get("create.checksum.algorithm")
    if said:
        return check_kind(str(said))
    when = environ.get("AWS_REQUEST_CHECKSUM_CALCULATION", "").strip().lower()
    return "" if when == "when_required" else "CRC32"


def _renames(told: Mapping[str, Any], place: S3Endpoint) -> bool:
    """Return whether objects are renamed: as said, or in directory buckets."""
    said = flag(told, "rename")
    if said is False and place.zone:
        raise OptionError(
            f"rename is false, but {place.bucket!r} is a directory bucket, where files are renamed "
            "into place: leave the option out, or write to a general purpose bucket"
        )
    return bool(place.zone) if said is None else said


def _with_checksum(kind: str) -> str:
    """Return the algorithm; a renamed file is known by its checksum."""
    return kind or "CRC32"


def _keeps(told: Mapping[str, Any]) -> Keeps:
    said = str(told.get("conditional_delete", "")).lower()
    if said and said not in CONDITIONS:
        raise OptionError(f"conditional_delete is {said[:100]!r}: expected {', '.join(CONDITIONS)}")
    puts, replaces = flag(told, "conditional_put"), flag(told, "conditional_replace")
    return Keeps(puts, replaces, said or None)


# --- s3fs's arguments for botocore -----------------------------------------------------------

_CLIENT = {
    "region_name": "region",
    "endpoint_url": "endpoint_url",
    "aws_access_key_id": "key",
    "aws_secret_access_key": "secret",
    "aws_session_token": "token",
    "use_ssl": "use_ssl",
}
_CONFIG = {
    "region_name": "region",
    "connect_timeout": "connection_timeout",
    "read_timeout": "read_timeout",
    "max_pool_connections": "max_concurrency",
    "use_dualstack_endpoint": "use_dualstack_endpoint",
    "use_fips_endpoint": "use_fips_endpoint",
}
_ADDITIONAL = {
    "ServerSideEncryption": "encryption",
    "SSEKMSKeyId": "encryption_key",
    "SSEKMSEncryptionContext": "encryption_context",
    "StorageClass": "storage_class",
    "ACL": "acl",
    "ChecksumAlgorithm": "checksum",
}
# Of botocore's own ways of sending, which have nothing to do here, and no fault.
_PASSED_OVER = frozenset(
    {
        "api_version",
        "config",
        "parameter_validation",
        "retries",
        "response_checksum_validation",
        "s3",
        "signature_version",
        "tcp_keepalive",
        "user_agent",
        "user_agent_appid",
        "user_agent_extra",
    }
)


def spread_kwargs(told: dict[str, Any]) -> dict[str, Any]:
    """Merge ``client_kwargs`` and its siblings into options.

    Options that are given directly take precedence.
    """
    client = _mapping(told.pop("client_kwargs", {}), "client_kwargs")
    config = _mapping(told.pop("config_kwargs", {}), "config_kwargs")
    more = _mapping(told.pop("s3_additional_kwargs", {}), "s3_additional_kwargs")
    found = {
        **_known(more, _ADDITIONAL, "s3_additional_kwargs", _additional),
        **_known(config, _CONFIG, "config_kwargs", _config),
        **_known(client, _CLIENT, "client_kwargs", _client),
    }
    return {**found, **told}


def _mapping(value: object, name: str) -> Mapping[str, Any]:
    if isinstance(value, str):  # the command line has no other way to say it
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, Mapping):
        raise OptionError(
            f"{name} is not a mapping: expected one such as {{'region_name': 'eu-west-1'}}"
        )
    return value


def _known(
    given: Mapping[str, Any],
    names: Mapping[str, str],
    where: str,
    others: Callable[[str, Any], dict[str, Any] | None],
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name in names:
            found[names[name]] = value
        elif (extra := others(name, value)) is not None:
            found.update(extra)
        elif name not in _PASSED_OVER:
            warnings.warn(f"{where}.{name} has no effect here", OptionWarning, stacklevel=4)
    return found


def _client(name: str, value: Any) -> dict[str, Any] | None:
    if name != "verify":
        return None
    if value is False:
        raise OptionError(
            "client_kwargs.verify is false: certificates are always checked; set ca_file to the "
            "certificate of the server's authority"
        )
    return {} if value is True else {"ca_file": value}


def _config(name: str, value: Any) -> dict[str, Any] | None:
    match name:
        case "s3":
            style = _mapping(value, "config_kwargs.s3").get("addressing_style")
            return {"addressing_style": style} if style else {}
        case "signature_version" if not isinstance(value, str) or value == "unsigned":
            return {"anon": True}
        case "request_checksum_calculation":
            return {"checksum": "none"} if str(value).lower() == "when_required" else {}
        case "proxies":
            proxies = _mapping(value, "config_kwargs.proxies")
            proxy = proxies.get("https") or proxies.get("http")
            return {"proxy": proxy} if proxy else {}
    return None


def _additional(name: str, value: Any) -> dict[str, Any] | None:
    match name:
        case "RequestPayer":
            return {"requester_pays": value == "requester"}
        case "SSECustomerKey":
            return {"encryption": "SSE-C", "encryption_key": value}
        case "SSECustomerAlgorithm" | "SSECustomerKeyMD5":
            return {}
    return None

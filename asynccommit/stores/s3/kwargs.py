"""Read s3fs's arguments for botocore: ``client_kwargs`` and its siblings.

These are ``client_kwargs``, ``config_kwargs`` and ``s3_additional_kwargs``. Arguments with a
counterpart are read as options of their own names; the others have no effect here, which is
reported.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from asynccommit.errors import OptionError
from asynccommit.options.job import OptionWarning

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
        raise OptionError(f"{name} is no mapping: say {{'region_name': 'eu-west-1'}} or its like")
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
            warnings.warn(f"{where}.{name} has no effect here", OptionWarning, stacklevel=5)
    return found


def _client(name: str, value: Any) -> dict[str, Any] | None:
    if name != "verify":
        return None
    if value is False:
        raise OptionError(
            "client_kwargs.verify is false: certificates are always checked; name the one of the "
            "server's authority in the option ca_file"
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

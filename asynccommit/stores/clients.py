"""Storage options from a client object that a program has already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from asynccommit.errors import OptionError

KEY = "client"
SDK = "sdk"
"""The value of the option ``http_library`` for a service's own client library."""
_GOOGLE = "storage.googleapis.com"


def with_client(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``options`` with those of their ``client``.

    All others override these. The client's account, endpoint and credential are taken. Its
    connections are used only with ``http_library="sdk"``, and it stays open. It may be a filesystem
    of fsspec (adlfs, gcsfs, s3fs), a ``DataLakeServiceClient`` or ``BlobServiceClient`` of Azure,
    or a ``Storage`` of gcloud-aio-storage.

    Raises ``OptionError`` for anything else.
    """
    if KEY not in options:
        return options
    sends = options.get("http_library") == SDK
    given = {name: value for name, value in options.items() if name != KEY or sends}
    return {**_options_of(options[KEY]), **given}


def _options_of(client: object) -> Mapping[str, Any]:
    told = getattr(client, "storage_options", None)
    if isinstance(told, Mapping) and hasattr(client, "protocol"):
        return told
    if hasattr(client, "account_name") and hasattr(client, "credential"):
        return _of_azure(client)
    if hasattr(client, "token") and hasattr(client, "session"):
        return _of_gcloud(client)
    raise OptionError(
        f"client is a {type(client).__name__}: expected a filesystem of adlfs, gcsfs or s3fs, a "
        "DataLakeServiceClient, a BlobServiceClient, or a Storage of gcloud-aio-storage"
    )


def _of_azure(client: Any) -> Mapping[str, Any]:
    url = urlsplit(str(client.url))
    found: dict[str, Any] = {"account_name": client.account_name}
    found["use_ssl"] = url.scheme == "https"
    if not url.netloc.startswith(f"{client.account_name}."):
        found["account_host"] = url.netloc
    credential = client.credential
    if hasattr(credential, "account_key"):
        found["account_key"] = credential.account_key
    elif "sig=" in url.query:
        found["sas_token"] = url.query
    elif credential is not None:
        found["credential"] = credential
    else:
        found["anon"] = True
    return found


def _of_gcloud(client: Any) -> Mapping[str, Any]:
    root = str(getattr(client, "_api_root", ""))
    found: dict[str, Any] = {}
    if root and urlsplit(root).netloc != _GOOGLE:
        found["endpoint_url"] = root
    if getattr(client, "_api_is_dev", False):
        return {**found, "token": "anon"}
    service = getattr(client.token, "service_data", None)
    return {**found, "token": dict(service) if service else "google_default"}

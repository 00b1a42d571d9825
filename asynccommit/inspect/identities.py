"""Name the identity of a process at a store, without any secret.

Settings tell it. A client id, a tenant, a user's name and the kind of a key are shown; of an access
key id the first four letters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from asynccommit.inspect.credentials import credential_source
from asynccommit.runtime.host import user_name
from asynccommit.stores.urls import Address

Get = Callable[[str], str | None]
"""Return Hadoop's option of a name, ``None`` or empty if it is not set."""

_AUTH = "fs.azure.account.auth.type"
_OAUTH = "fs.azure.account.oauth"
_ROOM = 4  # letters of an access key id
_GOOGLE = ("fs.gs.", "google.cloud.")
_NAMES: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "azure": (
        ("client", "client_id", "AZURE_CLIENT_ID"),
        ("tenant", "tenant_id", "AZURE_TENANT_ID"),
    ),
    "amazon": (("access key", "key", "AWS_ACCESS_KEY_ID"), ("profile", "profile", "AWS_PROFILE")),
}
"""Service -> what an identity is called, its option and its variable."""


def python_identity(place: Address, storage: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return who this process is at a place.

    The source of its credentials comes first, then names.

    Args:
        place: a destination.
        storage: options of its store, Hadoop's among them.
        environ: the environment.
    """
    source = credential_source(place.scheme, storage, environ)
    if source is None:
        return user_name(os.geteuid())
    if place.scheme in ("hdfs", "viewfs"):
        user = environ.get("HADOOP_USER_NAME") or user_name(os.geteuid()).partition(",")[0]
        return f"{storage.get('kerberos_principal') or user}; {source}"
    if re.match(r"option (fs|google)\.", source):
        return hadoop_identity(
            place, lambda key: storage.get(key) or storage.get(f"spark.hadoop.{key}")
        )
    named = _NAMES.get({"a": "azure", "s": "amazon"}.get(place.scheme[0], ""), ())
    found = [
        f"{what} {_cut(what, str(value))}"
        for what, option, variable in named
        if (value := storage.get(option) or environ.get(variable))
    ]
    return ", ".join((source, *found))


def _cut(what: str, value: str) -> str:
    return f"{value[:_ROOM]}..." if what == "access key" else value


def hadoop_identity(place: Address, get: Get) -> str:
    """Return who a client of Hadoop's is at a place, from its options.

    The result is empty if the options say nothing of the scheme.
    """
    match place.scheme:
        case "abfs" | "abfss":
            return _at_azure(place.authority.rpartition("@")[2], get)
        case "s3" | "s3a" | "s3n":
            return _at_amazon(place.authority, get)
        case "gs":
            return _at_google(get)
    return ""


def _at_azure(host: str, get: Get) -> str:
    def said(key: str) -> str:
        return (get(f"{key}.{host}") or get(key) or "").strip()

    match kind := said(_AUTH) or "SharedKey":
        case "SharedKey":
            return f"shared key of {host.partition('.')[0]}"
        case "OAuth":
            provider = _class(said(f"{_OAUTH}.provider.type")) or "ClientCredsTokenProvider"
            tenant = urlsplit(said(f"{_OAUTH}2.client.endpoint")).path.strip("/").partition("/")[0]
            names = {
                "client": said(f"{_OAUTH}2.client.id"),
                "tenant": said(f"{_OAUTH}2.msi.tenant") or tenant,
            }
            found = [f"{what} {value}" for what, value in names.items() if value]
            return ", ".join((f"OAuth by {provider}", *found))
        case "SAS":
            return f"SAS of {_class(said('fs.azure.sas.token.provider.type')) or 'a fixed token'}"
    return f"{kind} by {_class(said(f'{_OAUTH}.provider.type')) or 'a class'}"


def _at_amazon(bucket: str, get: Get) -> str:
    def said(key: str) -> str:
        return (get(f"fs.s3a.bucket.{bucket}.{key}") or get(f"fs.s3a.{key}") or "").strip()

    providers = [_class(each) for each in re.split(r"[,\s]+", said("aws.credentials.provider"))]
    access = said("access.key")
    names = [f"access key {_cut('access key', access)}"] if access else []
    return ", ".join((*names, " or ".join(filter(None, providers)) or "the default providers"))


def _at_google(get: Get) -> str:
    def said(key: str) -> str:
        return next(filter(None, (get(prefix + key) for prefix in _GOOGLE)), "").strip()

    file = said("auth.service.account.json.keyfile")
    kind = said("auth.type") or ("SERVICE_ACCOUNT_JSON_KEYFILE" if file else "the connector's own")
    email = said("auth.impersonation.service.account") or said("auth.service.account.email")
    return ", ".join(filter(None, (kind, file, email)))


def _class(name: str) -> str:
    return name.rpartition(".")[2]

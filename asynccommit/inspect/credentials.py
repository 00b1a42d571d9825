"""Name the place that a store's credentials come from; never their values.

The order is that of the stores: options, Hadoop's options, the environment, files, the machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_HADOOP_IN_SPARK = "spark.hadoop."


@dataclass(frozen=True, slots=True)
class Sources:
    """The places of the credentials for one kind of store.

    Attributes:
        options: options under fsspec's names.
        hadoop: prefixes of Hadoop's options.
        environment: variables.
        files: files below the home directory.
        otherwise: what is asked if none of these is there.
    """

    options: Sequence[str]
    hadoop: Sequence[str]
    environment: Sequence[str]
    files: Sequence[str]
    otherwise: str


_AZURE = Sources(
    options=(
        "client",
        "credential",
        "connection_string",
        "account_key",
        "sas_token",
        "client_secret",
        "anon",
    ),
    hadoop=("fs.azure.account.key", "fs.azure.sas.", "fs.azure.account.oauth"),
    environment=(
        "AZURE_STORAGE_CONNECTION_STRING",
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_STORAGE_CLIENT_SECRET",
        "AZURE_STORAGE_ANON",
        "AZURE_CLIENT_SECRET",
        "AZURE_FEDERATED_TOKEN_FILE",
    ),
    files=(),
    otherwise="azure-identity is asked for a token of az login or of the machine",
)
_GOOGLE = Sources(
    options=("client", "token"),
    hadoop=("fs.gs.auth.", "google.cloud.auth."),
    environment=("STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS"),
    files=(".config/gcloud/application_default_credentials.json",),
    otherwise="the metadata server of the machine is asked for a token",
)
_AMAZON = Sources(
    options=("client", "anon", "key", "profile"),
    hadoop=("fs.s3a.access.key", "fs.s3a.aws.credentials.provider", "fs.s3a.bucket."),
    environment=(
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ),
    files=(".aws/credentials", ".aws/config"),
    otherwise="botocore asks the machine for its role",
)
_HADOOP = Sources(
    options=("kerberos_keytab", "kerberos_cache", "kerberos_principal"),
    hadoop=(),
    environment=("HADOOP_TOKEN_FILE_LOCATION", "KRB5CCNAME", "HADOOP_USER_NAME"),
    files=(),
    otherwise="the default Kerberos ticket, or the name of the user of this process",
)
SOURCES: Mapping[str, Sources] = {
    "abfs": _AZURE,
    "abfss": _AZURE,
    "az": _AZURE,
    "gs": _GOOGLE,
    "gcs": _GOOGLE,
    "s3": _AMAZON,
    "s3a": _AMAZON,
    "hdfs": _HADOOP,
    "viewfs": _HADOOP,
}
"""Scheme -> where its credentials may be."""


def credential_source(
    scheme: str, options: Mapping[str, Any], environ: Mapping[str, str]
) -> str | None:
    """Return where the credentials of a scheme come from, or ``None`` if it needs none.

    Args:
        scheme: that of a URL.
        options: options of the store, Hadoop's among them.
        environ: the environment; its HOME has the files.
    """
    if scheme not in SOURCES:
        return None
    sources = SOURCES[scheme]
    return next(_found(sources, options, environ), sources.otherwise)


def _found(
    sources: Sources, options: Mapping[str, Any], environ: Mapping[str, str]
) -> Iterator[str]:
    for name in sources.options:
        if options.get(name):
            yield f"option {name}"
    for key in sorted(options):
        bare = key.removeprefix(_HADOOP_IN_SPARK)
        if bare.startswith(tuple(sources.hadoop)) and options[key]:
            yield f"option {bare}"
    for name in sources.environment:
        if environ.get(name):
            yield f"variable {name}"
    for file in sources.files:
        if os.path.isfile(os.path.join(environ.get("HOME", ""), file)):
            yield f"file ~/{file}"

"""An identity is named by what settings tell of it, and by no secret."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pytest

from asynccommit.inspect.identities import hadoop_identity, python_identity
from asynccommit.runtime.host import user_name
from asynccommit.stores.urls import parse_url

ABFS = "abfs://data@account.dfs.core.windows.net/t"
OAUTH = "fs.azure.account.oauth"
AUTH = "fs.azure.account.auth.type"
SECRET = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="


@pytest.mark.parametrize(
    "url, conf, told",
    [
        (ABFS, {}, "shared key of account"),
        (ABFS, {"fs.azure.account.key": SECRET}, "shared key of account"),
        (ABFS, {AUTH: "SAS", "fs.azure.sas.fixed.token": SECRET}, "SAS of a fixed token"),
        (
            ABFS,
            {
                f"{AUTH}.account.dfs.core.windows.net": "OAuth",
                f"{OAUTH}.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.MsiTokenProvider",
                f"{OAUTH}2.client.id": "one",
                f"{OAUTH}2.msi.tenant": "two",
            },
            "OAuth by MsiTokenProvider, client one, tenant two",
        ),
        (
            ABFS,
            {
                AUTH: "OAuth",
                f"{OAUTH}2.client.endpoint": "https://login.microsoftonline.com/two/oauth2/token",
                f"{OAUTH}2.client.secret": SECRET,
            },
            "OAuth by ClientCredsTokenProvider, tenant two",
        ),
        (ABFS, {AUTH: "Custom", f"{OAUTH}.provider.type": "a.B"}, "Custom by B"),
        ("s3a://data/t", {}, "the default providers"),
        (
            "s3a://data/t",
            {
                "fs.s3a.aws.credentials.provider": "a.One,\n b.Two",
                "fs.s3a.access.key": "WRONG",
                "fs.s3a.bucket.data.access.key": "AKIAIOSFODNN7EXAMPLE",
                "fs.s3a.secret.key": SECRET,
            },
            "access key AKIA..., One or Two",
        ),
        ("gs://data/t", {}, "the connector's own"),
        (
            "gs://data/t",
            {"google.cloud.auth.service.account.json.keyfile": "/k.json"},
            "SERVICE_ACCOUNT_JSON_KEYFILE, /k.json",
        ),
        ("file:/t", {}, ""),
    ],
)
def test_client_of_hadoop(url: str, conf: Mapping[str, str], told: str) -> None:
    """The options of the account or bucket come first, and a default is named as such."""
    assert hadoop_identity(parse_url(url), conf.get) == told


@pytest.mark.parametrize(
    "url, storage, environ, told",
    [
        ("/t", {}, {}, user_name(os.geteuid())),
        (ABFS, {"account_key": SECRET}, {}, "option account_key"),
        (
            ABFS,
            {"client_secret": SECRET, "client_id": "one", "tenant_id": "two"},
            {},
            "option client_secret, client one, tenant two",
        ),
        (ABFS, {"fs.azure.account.key": SECRET}, {}, "shared key of account"),
        (ABFS, {"spark.hadoop.fs.azure.account.key": SECRET}, {}, "shared key of account"),
        (
            "s3a://data/t",
            {"key": "AKIAIOSFODNN7EXAMPLE", "secret": SECRET},
            {},
            "option key, access key AKIA...",
        ),
        ("s3://data/t", {}, {"AWS_PROFILE": "dev"}, "variable AWS_PROFILE, profile dev"),
        ("gs://data/t", {"token": "/k.json"}, {}, "option token"),
        (
            "hdfs://name/t",
            {},
            {"HADOOP_USER_NAME": "ann"},
            "ann; variable HADOOP_USER_NAME",
        ),
    ],
)
def test_python(
    url: str, storage: Mapping[str, Any], environ: Mapping[str, str], told: str
) -> None:
    """The source of the credentials comes first, then what names the identity."""
    assert python_identity(parse_url(url), storage, environ) == told
